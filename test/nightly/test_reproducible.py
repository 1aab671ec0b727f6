"""A process that compiles the kernels finds the same as one that takes them from the cache, to the last digit."""

import os
import subprocess
import sys

import numpy as np

PAIRS = 300
PROGRAM = f"""
import sys
import numpy as np
from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector
from morphit_ros.superovoid import Superovoid
from morphit_ros.superovoid.distances.min_distance import min_distance

rng = np.random.default_rng(0)
rows = []
for _ in range({PAIRS}):
    shapes = [
        Superovoid(tuple(rng.uniform(0.05, 0.3, 3)), tuple(rng.uniform(0.3, 1.7, 2)), tuple(rng.uniform(-0.3, 0.3, 2)))
        for _ in range(2)
    ]
    poses = [
        make_transform(matrix_from_rotation_vector(rng.normal(size=3)), rng.uniform(-0.5, 0.5, 3)) for _ in range(2)
    ]
    rows.append(min_distance(shapes[0], poses[0], shapes[1], poses[1]).row)
np.save(sys.argv[1], np.array(rows))
"""


def rows(folder, name, kernels):
    path = folder / f"{name}.npy"
    environment = {**os.environ, "MORPHIT_KERNELS": str(kernels)}
    subprocess.run([sys.executable, "-c", PROGRAM, str(path)], check=True, env=environment)
    return np.load(path)


def test_distances_are_the_same_compiled_here_and_taken_from_the_cache(tmp_path):
    compiled = rows(tmp_path, "compiled", tmp_path / "kernels")
    assert len(compiled) == PAIRS
    assert np.isfinite(compiled[:, 0]).all()
    np.testing.assert_array_equal(rows(tmp_path, "cached", tmp_path / "kernels"), compiled)
    # As another process compiles them once more.
    np.testing.assert_array_equal(rows(tmp_path, "again", tmp_path / "others"), compiled)
