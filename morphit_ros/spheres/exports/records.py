"""Rows of spheres as the readers collect them, checked and put together into a model."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.spheres.robot_model import LinkSpheres, SphereModel

# Link, centre (3,) [m], radius [m], and where it was read, for messages.
Row = tuple[str, Sequence[float], float, str]

# What a model is called whose way of fitting its file doesn't tell.
IMPORTED = "imported"


def imported_model(robot_name: str, rows: Iterable[Row], source: str) -> SphereModel:
    """A model of rows, its links in the order of their first row.

    Distances to the surface are NaN, content hashes are computed from the spheres.

    Raises:
        InvalidInputError: no rows, a link without name, a centre or radius that is not finite, or a radius that
            is not above 0; names the row.
    """
    by_link: dict[str, tuple[list[Sequence[float]], list[float]]] = {}
    for link, center, radius, where in rows:
        if not link:
            raise InvalidInputError(where, "no name of a link", "a link")
        if not all(map(math.isfinite, center)):
            raise InvalidInputError(f"{where}: center", list(center), "three finite numbers [m]")
        if not (math.isfinite(radius) and radius > 0.0):
            raise InvalidInputError(f"{where}: radius", radius, "a finite number above 0 [m]")
        centers, radii = by_link.setdefault(link, ([], []))
        centers.append(center)
        radii.append(radius)
    if not by_link:
        raise InvalidInputError(source, "no spheres", "at least one sphere")
    links = {}
    for name, (centers, radii) in by_link.items():
        arrays = np.array(centers, dtype=np.float64), np.array(radii, dtype=np.float64)
        links[name] = LinkSpheres(
            link=name,
            centers=arrays[0],
            radii=arrays[1],
            d_avg=math.nan,
            d_max=math.nan,
            content_hash=sphere_hash(*arrays),
        )
    return SphereModel(robot_name=robot_name, variant=IMPORTED, links=links)


def sphere_hash(centers: Array, radii: Array) -> str:
    """A content hash of spheres of unknown origin."""
    return hashlib.sha256(b"spheres" + centers.tobytes() + radii.tobytes()).hexdigest()


def numbers_in(text: str, count: int, where: str) -> list[float]:
    """Numbers of a text, apart by blanks.

    Raises:
        InvalidInputError: another count of them, or something that is not a number.
    """
    try:
        values = [float(part) for part in text.split()]
    except ValueError:
        values = []
    if len(values) != count:
        raise InvalidInputError(where, repr(text[:80]), f"{count} number{'s' if count > 1 else ''}")
    return values
