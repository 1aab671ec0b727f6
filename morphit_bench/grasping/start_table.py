"""The hand-picked start poses of the paper's protocol: numbers of its authors' published configuration (MIT licence).

All in the published frames (`frames`): t0 [m] in the object frame (z down, table at z = 0), R0 as a rotation vector
[rad], n_app. Known shapes are stored in that frame, observed clouds too but for a shift that puts the highest z of the
thinned cloud at 0, so that their t0 are positions. The YCB rows refer to clouds whose frame we don't have: of them R0
and n_app are used as directions, and t0 only to choose one of the `clusters` k-means centres of the given cloud.

The paper's fifteen objects are the first five (known shapes, from CAD) and ten YCB objects (its "observed" shapes:
scans merged from all sides). Power drill, scissors and extra large clamp have no row: their clouds stand on end (t0
lies up to 0.18 m above the table) where the objects lie on a table, and about which heading is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

from morphit_ros.errors import ResourceNotFoundError


@dataclass(frozen=True)
class StartRow:
    """One hand-picked start.

    Attributes:
        t0, rotvec, n_app: position [m], orientation [rad] and preferred approach in the published object frame.
        clusters: number of k-means centres that t0 was chosen from; 0 where t0 is a position in a frame we have.
    """

    t0: tuple[float, float, float]
    rotvec: tuple[float, float, float]
    n_app: tuple[float, float, float]
    clusters: int = 0


_QUARTER = 1.57079633
_EIGHTH = 0.78539816

_DUCK_HEAD = StartRow((0.067006, 0.037205, -0.078979), (0.0, 0.0, 0.0), (0.3, 0.0, 1.0))
_T_STEM = (0.015053, 0.045312, -0.049456)
_HAMMER_HANDLE = (0.102465, 0.102614, -0.012474)
_CAMERA_SIDE = StartRow((0.043807, 0.043129, -0.080673), (0.0, 0.0, 1.57), (0.0, -0.3, 1.0))
_GLASS_STEM = StartRow((0.059880, 0.060266, -0.050141), (0.0, 0.0, -0.7039816), (0.5, -1.0, 0.0))
_PLATE_RIM = StartRow((0.061310, -0.026551, -0.011663), (-1.57, 0.0, 0.0), (0.0, 1.0, 0.0), 15)
_MUSTARD_SIDE = (0.003541, 0.009453, -0.156055)
_SPATULA = StartRow((0.002668, -0.017577, -0.014862), (-_QUARTER, 0.0, 0.0), (1.0, 1.0, 0.0), 8)
_GOLF_BALL = (-0.002957, 0.000813, -0.024736)
_CUPS = StartRow((0.006748, -0.044545, -0.047389), (0.0, 0.0, 0.0), (0.5, 0.0, 1.0), 8)
_BANANA_END = (0.003877, -0.006059, -0.022305)

OBSERVED = "observed/"
"""Prefix of the clouds' names."""

START_TABLE: dict[str, dict[str, StartRow]] = {
    "T": {
        "franka_hand": StartRow(_T_STEM, (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
        "hande": StartRow(_T_STEM, (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
        "umi": StartRow(_T_STEM, (0.0, 0.0, 1.57), (0.0, 0.0, 1.0)),
    },
    "RubberDuck": {
        "franka_hand": _DUCK_HEAD,
        "hande": _DUCK_HEAD,
        "umi": StartRow((0.067006, 0.037205, -0.118979), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    },
    "Hammer": {
        "franka_hand": StartRow((0.105087, 0.105040, -0.012512), (0.0, 0.0, 0.7853981633974483), (0.01, 0.02, 1.0)),
        "hande": StartRow(_HAMMER_HANDLE, (0.0, 0.0, 0.7853981633974483), (0.2, 0.2, 1.0)),
        "umi": StartRow(_HAMMER_HANDLE, (0.0, 0.0, 0.7853981633974483), (0.0, 0.0, 1.0)),
    },
    "OldCamera": {
        "franka_hand": _CAMERA_SIDE,
        "hande": _CAMERA_SIDE,
        "umi": StartRow((0.045767, 0.094906, -0.071206), (0.0, 0.0, 1.57), (0.0, 0.0, 1.0)),
    },
    "WineGlass": {
        "franka_hand": _GLASS_STEM,
        "hande": _GLASS_STEM,
        "umi": StartRow((0.059880, 0.060266, -0.050141), (0.61394313, 1.48218982, -0.61394313), (0.5, -1.0, 0.0)),
    },
    "mustard_bottle": {
        "franka_hand": StartRow((0.004149, 0.007659, -0.045195), (0.0, 0.0, _EIGHTH), (1.0, 1.0, 0.0), 2),
        "hande": StartRow(_MUSTARD_SIDE, (0.0, 0.0, _EIGHTH), (0.5, 0.5, 1.0), 5),
        "umi": StartRow(_MUSTARD_SIDE, (0.0, 0.0, _EIGHTH), (0.0, 0.0, 1.0), 5),
    },
    "banana": {
        "franka_hand": StartRow(_BANANA_END, (0.0, 0.0, -_EIGHTH), (0.5, -0.5, 1.0), 3),
        "hande": StartRow((0.025492, -0.015074, -0.021883), (0.0, 0.0, -0.35), (0.0, 0.0, 1.0), 4),
        "umi": StartRow(_BANANA_END, (0.0, 0.0, -_EIGHTH), (0.0, 0.0, 1.0), 3),
    },
    # Of how many centres the first was chosen is not told.
    "plate": {
        "franka_hand": _PLATE_RIM,
        "hande": StartRow((-0.031545, 0.087065, -0.014114), (-1.57, 0.0, 0.0), (1.0, -1.0, 0.0), 15),
        "umi": _PLATE_RIM,
    },
    "spatula": {"franka_hand": _SPATULA, "hande": _SPATULA, "umi": _SPATULA},
    "adjustable_wrench": {
        "franka_hand": StartRow((0.000153, 0.032911, -0.006953), (1.57, 0.0, 0.0), (1.0, 1.0, 0.0), 7),
        "hande": StartRow((0.000153, 0.032911, -0.006953), (1.57, 0.0, 0.0), (1.0, 0.5, 0.0), 7),
        "umi": StartRow((0.002942, -0.030315, -0.004762), (-_QUARTER, 0.0, 0.0), (0.0, 1.0, 0.0), 3),
    },
    "golf_ball": {
        "franka_hand": StartRow(_GOLF_BALL, (0.0, 0.0, 0.0), (1.0, 0.0, 1.0), 1),
        "hande": StartRow(_GOLF_BALL, (0.0, 0.0, 0.0), (1.0, 0.0, 1.0), 1),
        "umi": StartRow(_GOLF_BALL, (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 1),
    },
    "j_cups": {"franka_hand": _CUPS, "hande": _CUPS, "umi": _CUPS},
    "observed/OldCamera": {
        "hande": StartRow((0.021323, -0.003407, -0.079659), (0.0, 0.0, 1.57), (0.0, -0.3, 1.0)),
    },
    "observed/RubberDuck": {
        "hande": StartRow((-0.003051, -0.023849, -0.081192), (0.0, 0.0, 1.57), (0.0, 0.5, 1.0)),
    },
    "observed/T": {"hande": StartRow((0.002989, 0.012229, -0.036371), (0.0, 0.0, 1.57), (0.0, 0.0, 1.0))},
    "observed/Tape": {"hande": StartRow((0.023290, -0.003123, -0.082819), (0.0, 0.0, 1.57), (0.0, -1.0, 1.0))},
    "observed/Tripod": {
        "hande": StartRow((0.078323, 0.037201, -0.145716), (-0.61394313, 1.48218982, 0.61394313), (1.0, 1.0, 0.4)),
    },
}


def start_row(object_name: str, gripper_name: str) -> StartRow:
    """The row of an object and a gripper.

    Raises:
        ResourceNotFoundError: the paper has no start pose for them; lists what it has.
    """
    rows = START_TABLE.get(object_name)
    if rows is None:
        raise ResourceNotFoundError(
            f"start pose of '{object_name}'",
            [],
            f"The paper has them for {', '.join(START_TABLE)}; else use 'generic'.",
        )
    if gripper_name not in rows:
        raise ResourceNotFoundError(
            f"start pose of '{object_name}' for '{gripper_name}'", [], f"The paper has it for {', '.join(rows)}."
        )
    return rows[gripper_name]
