"""examples/: each script is short, runs in a fresh process, says its figures, and leaves a picture."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
COUNT, MOST_LINES = 14, 40
# Bytes of a picture, and of 8-bit values, how far a picture that shows something spreads.
LEAST_BYTES, LEAST_SPREAD = 10_000, 8.0
LARGEST_IN_GALLERY = 80_000
# Of one example on a machine with other work [s].
LIMIT = 300.0
SLOW, ROS = ("01", "06", "08", "10"), ("06", "11")


def numbers(pattern: str, output: str) -> list[float]:
    """The groups of the first match, as numbers."""
    found = re.search(pattern, output)
    assert found is not None, f"no {pattern!r} in\n{output}"
    return [float(group) for group in found.groups()]


def check_spheres(output: str, folder: Path) -> None:
    (count,) = numbers(r"(\d+) spheres in all", output)
    rows = re.findall(r"panda_\w+ +(\d+) spheres.*mean +([\d.]+) mm, greatest +([\d.]+) mm", output)
    assert sum(int(row[0]) for row in rows) == count == (folder / "panda_spheres.urdf").read_text().count("<sphere")
    assert len(rows) == 11
    assert all(0.1 < float(mean) < 10.0 and float(mean) < float(greatest) < 40.0 for _, mean, greatest in rows)


def check_cover(output: str, folder: Path) -> None:
    (margin,) = numbers(r"proven: every point is at least ([\d.]+) um inside", output)
    assert margin > 0.0
    # Points that the proof knows nothing of: without a cover many are outside, with it none.
    assert numbers(r"cover=False: (\d+) of 50000", output)[0] > 1000
    assert numbers(r"cover=True: (\d+) of 50000", output)[0] == 0


def check_distance(output: str, folder: Path) -> None:
    distance, bound = numbers(r"distance ([\d.]+) mm, certified: not below ([\d.]+) mm", output)
    assert distance == pytest.approx(bound, abs=1e-3)
    errors = [float(value) for value in re.findall(r"greatest ([\d.]+) mm off", output)]
    # The superovoids stand for the meshes as well as their errors say.
    assert len(errors) == 2
    assert abs(numbers(r"points of the meshes: ([\d.]+) mm", output)[0] - distance) < sum(errors)


def check_clearance(output: str, folder: Path) -> None:
    assert numbers(r"(\d+) of 101 distances are certified", output) == [101]
    (least,) = numbers(r"least clearance ([\d.]+) mm at .* to crate", output)
    assert numbers(r"not below ([\d.]+) mm", output)[0] == pytest.approx(least, abs=0.02)
    assert 10.0 < least < 120.0


def check_grasp(output: str, folder: Path) -> None:
    grasps, starts = numbers(r"(\d+) grasps from (\d+) starts", output)
    score, aperture, contacts = numbers(r"score ([\d.]+), aperture ([\d.]+) mm, (\d+) contact points", output)
    assert 1 <= grasps < starts
    assert 0.4 < score <= 1.0 and contacts > 20
    # Around the cup, which is 30 to 42 mm wide, from above.
    assert 30.0 < aperture < 43.0
    # From above, straight or tilted by 30°: their scores differ by less than a seed makes them.
    assert numbers(r"approach along \[ *\S+ +\S+ +(\S+) *\]", output)[0] < -0.8


def check_pick(output: str, folder: Path) -> None:
    assert "(exit status 0)" in output
    assert 0.1 < numbers(r"the box was lifted by ([\d.]+) m", output)[0] < 0.3


def check_thigh(output: str, folder: Path) -> None:
    assert "32 plates, 21 motors" in output
    begin, end = (numbers(rf"{when} s: normals +([\d.]+) deg off", output)[0] for when in ("0.0", "10.0"))
    # The paper reports 10 degrees at 10 s.
    assert begin > 45.0 and end < 15.0
    assert numbers(r"joints open by (\S+) nm", output)[0] < 1e3


def check_neural_object(output: str, folder: Path) -> None:
    volume, share, truth = numbers(r"volume ([\d.]+) cm3 \+- ([\d.]+) %, truth ([\d.]+) cm3", output)
    assert abs(volume / truth - 1.0) < 3.0 * share / 100.0 < 0.3
    expected, off = numbers(r"centre .* m \+- ([\d.]+) mm, truth ([\d.]+) mm away", output)
    assert off < 1.0 and expected < 1.5
    found, true = (np.fromstring(text, sep=" ") for text in re.findall(r"\[([\d. ]+)\]", output.split("moments")[1]))
    assert found == pytest.approx(true, rel=0.05)


def check_friction(output: str, folder: Path) -> None:
    value, sigma, truth = numbers(r"friction ([\d.]+) \+- ([\d.]+), truth ([\d.]+)", output)
    assert abs(value - truth) < 3.0 * sigma
    assert 1e-4 < sigma < 0.02


def check_push(output: str, folder: Path) -> None:
    assert numbers(r"plan: .* ([\d.]+) mm from the goal", output)[0] < 2.0
    off, way = numbers(r"MuJoCo: ([\d.]+) mm from the goal, after a way of (\d+) mm", output)
    assert way == 153 and off < 15.0


def check_client(output: str, folder: Path) -> None:
    assert "the node ended with status 0" in output
    assert "50 of 50 distances are certified" in output
    assert 10.0 < numbers(r"least: ([\d.]+) mm from panda_", output)[0] < 131.1


def check_own_robot(output: str, folder: Path) -> None:
    grasps, score = numbers(r"(\d+) grasps in reach, best score ([\d.]+)", output)
    assert grasps >= 1 and 0.4 < score <= 1.0
    assert (folder / "my_arm.yaml").is_file() and (folder / "my_gripper.yaml").is_file()


def check_motion(output: str, folder: Path) -> None:
    corners, length = numbers(r"found after [\d.]+ ms: (\d+) corners, ([\d.]+) rad", output)
    # The straight way, 1.2 rad, is blocked.
    assert corners > 2 and 1.3 < length < 15.0
    assert "path proven free" in output
    (duration,) = numbers(r"motion of ([\d.]+) s proven free", output)
    assert 1.0 < duration < 15.0


def check_cloth(output: str, folder: Path) -> None:
    speed, strain = numbers(r"mean speed ([\d.]+) mm/s, 99 % of strains up to ([\d.]+) %", output)
    assert speed < 20.0
    assert strain < 5.0
    assert numbers(r"nearest node ([\d.]+) mm", output)[0] > 0.9
    assert (folder / "terrain.npz").is_file()
    assert (folder / "terrain.ply").is_file()


CHECKS = {
    "01": check_spheres, "02": check_cover, "03": check_distance, "04": check_clearance, "05": check_grasp,
    "06": check_pick, "07": check_thigh, "08": check_neural_object, "09": check_friction, "10": check_push,
    "11": check_client, "12": check_own_robot, "13": check_motion, "14": check_cloth,
}  # fmt: skip


def marked(example: Path) -> object:
    number = example.name[:2]
    marks = [pytest.mark.slow] * (number in SLOW) + [pytest.mark.ros, pytest.mark.alone] * (number in ROS)
    return pytest.param(example, id=example.stem, marks=marks)


def test_numbers_are_complete_and_every_example_has_a_check() -> None:
    assert [example.name[:2] for example in EXAMPLES] == [f"{number:02}" for number in range(1, COUNT + 1)]
    assert [example.name[2] for example in EXAMPLES] == COUNT * ["_"]
    assert sorted(CHECKS) == [example.name[:2] for example in EXAMPLES]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_is_short_and_reads_from_top_to_bottom(example: Path) -> None:
    text = example.read_text(encoding="utf-8")
    tree = ast.parse(text)
    title = (ast.get_docstring(tree) or "").splitlines()[:1]
    assert title and title[0].endswith("."), "the first line of the docstring is the title in the gallery"
    assert len(text.splitlines()) <= MOST_LINES
    assert not re.search(r"[\"' ]/(home|tmp|usr|work|opt|root)\b", text), "an absolute path"
    assert not any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in ast.walk(tree))
    assert "argparse" not in text and "morphit_bench" not in text
    assert f'"{example.stem}.png"' in text


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_the_gallery_has_a_small_picture_of_an_example(example: Path) -> None:
    picture = ROOT / f"docs/images/examples/{example.stem}.png"
    assert 0 < picture.stat().st_size <= LARGEST_IN_GALLERY, "python tools/make_pictures.py examples"


@pytest.mark.parametrize("example", [marked(example) for example in EXAMPLES])
def test_an_example_runs_and_leaves_a_picture(
    example: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from PIL import Image

    # Fits are made anew; kernels are not.
    environment = dict(os.environ, OMP_NUM_THREADS="1", MORPHIT_CACHE=str(tmp_path_factory.mktemp("cache")))
    if example.name[:2] in ROS:
        pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
        # None of the domains of test/ros, so that no other test's nodes answer.
        environment |= {"ROS_DOMAIN_ID": str(1 + os.getpid() % 19), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    # The folder with the picture is where the example runs: it needs no argument.
    done = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        timeout=LIMIT,
    )  # fmt: skip
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    picture = tmp_path / f"{example.stem}.png"
    assert picture.stat().st_size > LEAST_BYTES
    with Image.open(picture) as image:
        pixels = np.asarray(image.convert("RGB"), dtype=np.float64)
    assert pixels.std(axis=(0, 1)).max() > LEAST_SPREAD
    CHECKS[example.name[:2]](done.stdout, tmp_path)
