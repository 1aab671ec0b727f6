"""Convex pieces of any mesh by CoACD, kept in the cache by content."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from morphit_ros.dependencies import needed_for
from morphit_ros.geometry.array_files import read_arrays
from morphit_ros.geometry.inputs import MeshLike, as_mesh
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array
from morphit_ros.resources import atomic_write, cache_directory
from morphit_ros.simulation.solids import convex_hull

# CoACD's parameters: concavity that may remain, as a fraction of the mesh's size, and the effort of its search.
_PARAMETERS = {
    "threshold": 0.03,
    "preprocess_resolution": 50,
    "mcts_iterations": 30,
    "mcts_nodes": 10,
    "resolution": 1000,
}
# Corners a hull may keep: more make contacts slower, not better.
_MAX_CORNERS = 64


def convex_pieces(mesh: MeshLike, seed: int = 1) -> list[TriangleMesh]:
    """Convex pieces that together fill a mesh, in its frame.

    Takes seconds to a minute the first time; then the pieces come from the cache. A damaged cache file is replaced.

    Raises:
        MissingDependencyError: CoACD is not installed.
    """
    mesh = as_mesh(mesh)
    digest = hashlib.sha256(repr((sorted(_PARAMETERS.items()), _MAX_CORNERS, seed)).encode())
    digest.update(np.ascontiguousarray(mesh.vertices).tobytes())
    digest.update(np.ascontiguousarray(mesh.faces).tobytes())
    path = cache_directory("convex_pieces") / f"{digest.hexdigest()[:32]}.npz"
    if path.is_file():
        try:
            pieces = read_arrays(path)
            return [convex_hull(pieces[key]) for key in sorted(pieces, key=int)]
        except ValueError:
            # Cut short or overwritten: computed again below.
            pass
    corners = _decompose(mesh, seed)
    arrays: dict[str, Any] = {str(index): points for index, points in enumerate(corners)}
    with atomic_write(path, "wb") as stream:
        np.savez_compressed(stream, **arrays)
    return [convex_hull(points) for points in corners]


def _decompose(mesh: TriangleMesh, seed: int) -> list[Array]:
    with needed_for("splitting a mesh into convex pieces"):
        import coacd
    coacd.set_log_level("error")
    parts = coacd.run_coacd(coacd.Mesh(mesh.vertices, mesh.faces), seed=seed, **_PARAMETERS)
    return [_thinned(np.asarray(points, dtype=np.float64)) for points, _ in parts]


def _thinned(points: Array) -> Array:
    """At most `_MAX_CORNERS` corners of the hull: those farthest apart."""
    corners = convex_hull(points).vertices
    if len(corners) <= _MAX_CORNERS:
        return corners
    chosen = [int(np.argmax(np.linalg.norm(corners - corners.mean(axis=0), axis=1)))]
    distance = np.linalg.norm(corners - corners[chosen[0]], axis=1)
    while len(chosen) < _MAX_CORNERS:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(corners - corners[chosen[-1]], axis=1))
    return corners[chosen]
