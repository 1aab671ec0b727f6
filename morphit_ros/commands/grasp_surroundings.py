"""What an object of `morphit grasp` stands on, what is around it, where the cameras stood: found, or as it was told."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from morphit_ros.errors import InvalidInputError

if TYPE_CHECKING:
    from morphit_ros.geometry.point_cloud import PointCloud
    from morphit_ros.geometry.support_plane import SupportPlane
    from morphit_ros.geometry.transforms import Array

_TOLD = ("--table", "--table-height", "--no-table")


@dataclass(frozen=True)
class Surroundings:
    """An object and what is known of the space around it, in the frame of its cloud.

    Attributes:
        cloud: the object.
        table: what it stands on, None for nothing.
        how: how that is known, for people.
        obstacles: (M, 3) points of other things [m], None for none.
        viewpoints: (K, 3) positions of the cameras [m], None where they are not known.
        approach: (3,) preferred approach, None for down onto the table.
    """

    cloud: PointCloud
    table: SupportPlane | None
    how: str
    obstacles: Array | None
    viewpoints: Array | None
    approach: Array | None


def add_surroundings(parser: Any) -> None:
    """Add the options that say what the cloud does not."""
    group = parser.add_argument_group("what is around the object, in the frame of the cloud [m]")
    group.add_argument(
        "--up", type=float, nargs=3, metavar=("X", "Y", "Z"),
        help="direction away from what the object stands on (default: looked for along the cloud's z axis, either way; "
        "z with --table-height)",
    )  # fmt: skip
    group.add_argument(
        "--table", type=float, nargs=4, metavar=("A", "B", "C", "D"),
        help="plane A x + B y + C z + D = 0 that the object stands on, as PCL and Open3D give it (default: a plane in "
        "the cloud, else the base of the object)",
    )  # fmt: skip
    group.add_argument(
        "--table-height", type=float, metavar="M", help="the same plane as its height along --up (default: as --table)"
    )
    group.add_argument("--no-table", action="store_true", help="nothing is below the object: it is held or hangs")
    group.add_argument(
        "--obstacles", metavar="FILE", help="cloud of what stands around the object, kept clear of (PLY, PCD or NPZ)"
    )
    group.add_argument(
        "--viewpoint", type=float, nargs=3, action="append", metavar=("X", "Y", "Z"),
        help="where a camera stood; may be repeated (default: concluded from the cloud)",
    )  # fmt: skip
    group.add_argument(
        "--approach", type=float, nargs=3, metavar=("X", "Y", "Z"),
        help="preferred direction of the approach (default: down onto the table)",
    )  # fmt: skip


def check_surroundings(options: argparse.Namespace) -> None:
    """Refuse what cannot be meant, before anything is read.

    Raises:
        InvalidInputError: options that contradict each other, a direction that is zero, a number that is not finite.
    """
    from morphit_ros.geometry.support_search import unit_vector

    told = [name for name in _TOLD if _value(options, name) not in (None, False)]
    if len(told) > 1:
        raise InvalidInputError(", ".join(told), f"{len(told)} of them", "one of them", "They contradict each other.")
    if options.up is not None and told and told[0] != "--table-height":
        raise InvalidInputError("--up", f"{told[0]} as well", "one of both", "A plane has its own direction up.")
    for name in ("--up", "--approach"):
        if _value(options, name) is not None:
            unit_vector(name, _value(options, name))
    if options.table is not None:
        unit_vector("--table A B C", options.table[:3])
    numbers = {"--table": options.table, "--table-height": options.table_height}
    numbers |= {f"--viewpoint {k}": place for k, place in enumerate(options.viewpoint or (), start=1)}
    for name, value in numbers.items():
        values: Sequence[float] = value if isinstance(value, list) else [] if value is None else [value]
        if not all(math.isfinite(number) for number in values):
            raise InvalidInputError(name, " ".join(f"{number:g}" for number in values), "finite numbers [m]")


def read_surroundings(options: argparse.Namespace, cloud: PointCloud) -> Surroundings:
    """What was told, and what the cloud shows of the rest.

    Args:
        options: checked by `check_surroundings`.
        cloud: as it was recorded, in metres.

    Raises:
        InvalidInputError: nothing tells what the object stands on; names the options that can.
    """
    import numpy as np

    from morphit_ros.geometry.point_cloud_io import load_point_cloud
    from morphit_ros.geometry.support_search import separate_table
    from morphit_ros.geometry.units import in_metres

    cloud = cloud.finite()
    parts = []
    if options.obstacles is not None:
        parts.append(in_metres(load_point_cloud(options.obstacles), options.unit, options.obstacles).finite().points)
    eyes = None if options.viewpoint is None else np.array(options.viewpoint)
    told = options.table is not None or options.table_height is not None or options.no_table or options.up is not None
    table: SupportPlane | None
    separated = None if told else separate_table(cloud)
    if separated is not None:
        cloud, support = separated.target, separated.support
        parts.append(separated.others)
        table, how = support.plane, f"{support.how}, {len(cloud)} points on it are the object"
    else:
        table, how = _support(options, cloud, eyes)
    approach = None if options.approach is None else np.array(options.approach)
    return Surroundings(cloud, table, how, np.concatenate(parts) if parts else None, eyes, approach)


def _support(
    options: argparse.Namespace, cloud: PointCloud, viewpoints: Array | None
) -> tuple[SupportPlane | None, str]:
    from morphit_ros.geometry.support_search import base_plane, find_support, plane_at, plane_of_coefficients

    if options.no_table:
        return None, "nothing is below the object, as --no-table says"
    if options.table is not None:
        return plane_of_coefficients(options.table, cloud.points), "as --table says"
    if options.table_height is not None:
        up = (0.0, 0.0, 1.0) if options.up is None else options.up
        return plane_at(up, options.table_height, cloud.points.mean(axis=0)), "as --table-height says"
    if options.up is not None:
        return base_plane(cloud, options.up), "the base of the object, up as --up says"
    found = find_support(cloud, viewpoints)
    if found is None:
        raise InvalidInputError(
            "--cloud", "an object that shows no side to stand on", "one seen from above its table, z upright",
            "Say --up X Y Z (of most robots and tables 0 0 1, of clouds in a hand's frame 0 0 -1), --table A B C D or "
            "--table-height M; --no-table if nothing is below it.",
        )  # fmt: skip
    return found.plane, f"the base of the object: {found.how}"


def _value(options: argparse.Namespace, name: str) -> Any:
    return getattr(options, name.lstrip("-").replace("-", "_"))
