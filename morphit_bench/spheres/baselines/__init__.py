"""Earlier ways to approximate a shape by spheres, from their papers, in one interface: for comparisons."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from morphit_bench.spheres.baselines.amaa import fit_amaa
from morphit_bench.spheres.baselines.packing import fit_packing
from morphit_bench.spheres.baselines.vssa import fit_vssa
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import MeshesLike
from morphit_ros.geometry.transforms import Array

_FITS: Mapping[str, Callable[[MeshesLike, int, int], tuple[Array, Array]]] = {
    "vssa": fit_vssa,
    "amaa": fit_amaa,
    "packing": fit_packing,
}

__all__ = ["fit_amaa", "fit_baseline", "fit_packing", "fit_vssa"]


def fit_baseline(method: str, mesh: MeshesLike, count: int, seed: int = 0) -> tuple[Array, Array]:
    """Fit exactly `count` spheres by a method's name: "vssa", "amaa" or "packing".

    Returns:
        centers (count, 3) and radii (count,) [m], in the frame of the mesh; several meshes mean their union.

    Raises:
        InvalidInputError: an unknown method, a count below one, no mesh or no area.
    """
    if method not in _FITS:
        raise InvalidInputError("method", repr(method), f"one of {', '.join(_FITS)}")
    return _FITS[method](mesh, count, seed)
