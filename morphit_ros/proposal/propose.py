"""A robot file, a gripper file and an SRDF proposed from a description, with a word on where each value is from."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.transforms import Array, rpy_from_matrix
from morphit_ros.grasping.gripper import DEFAULT_PAD_STEP, GripperBox
from morphit_ros.proposal.home import HomePose, propose_home
from morphit_ros.proposal.measuring import HandMeasure, measure_hand
from morphit_ros.proposal.parts import ArmParts, find_parts
from morphit_ros.proposal.turning import measure_turning_hand
from morphit_ros.robot.configuration import MOVEIT_NAMES, RobotConfiguration
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.example_robots import EXAMPLE_PACKAGE, example_robots
from morphit_ros.robot.finger_positions import linkage_pairs
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.packages import resolve_uri
from morphit_ros.spheres.exports.srdf import srdf_from_model
from morphit_ros.spheres.robot_model import SphereModel, fit_robot_spheres
from morphit_ros.spheres.self_collision.matrix import Pair, SelfCollisionMatrix, self_collision_matrix

# Where descriptions are silent: seconds to full speed, and of joints without a speed limit [rad/s²]; closing force [N]
# and speed of a finger [m/s].
_SECONDS_TO_SPEED, _ACCELERATION, _FORCE, _SPEED = 1.0, 1.0, 20.0, 0.05
# Description authors write 1000 N and more where they mean "no limit"; hands press with less than this [N].
_STRONGEST, _FASTEST = 300.0, 1.0
# Objects of the simulated workcell stand so far in front of its origin [m].
_OBJECT_X = 0.5


@dataclass(frozen=True)
class Proposal:
    """What was found of a robot.

    Attributes:
        name: of the robot's file.
        source: what stands under `description` in it, where that does not depend on the file's place.
        description, model: the robot.
        parts, hand, home: its arm, its hand, a pose; no home where every pose that was tried touches something.
        spheres, matrix: its links as spheres, and which pairs of them meet.
    """

    name: str
    source: str
    description: RobotDescription
    model: KinematicModel
    parts: ArmParts
    hand: HandMeasure
    home: HomePose
    spheres: SphereModel
    matrix: SelfCollisionMatrix


def proposal_name(description: RobotDescription, name: str = "") -> str:
    """The name of a robot's files: the given one, else the description's, as a file may be called.

    Raises:
        InvalidInputError: a name that is none of a file.
    """
    name = name or re.sub(r"[^A-Za-z0-9_]+", "_", description.name).strip("_") or "robot"
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
        raise InvalidInputError("--name", repr(name), "letters, digits, '_', '-' and '.'")
    return name


def propose_robot(
    robot: str,
    description: RobotDescription,
    name: str,
    tip: str | None = None,
    arm: Sequence[str] = (),
    progress: Callable[[str, int, int], None] | None = None,
) -> Proposal:
    """Propose the files of a robot.

    Args:
        robot: as it was named: in config/robots, in example-robot-data, or a file or URI.
        description: the robot.
        name: of its files, see `proposal_name`.
        tip: link of the hand that is meant, and that carries the gripper frame.
        arm: the arm's joints, see `find_parts`.
        progress: of the fit of spheres.

    Raises:
        InvalidInputError: no hand, several, or one that cannot be described; see `find_parts` and `measure_hand`. No
            pose without contact.
        ResourceNotFoundError: a mesh file is missing.
    """
    model = KinematicModel(description)
    parts = find_parts(model, tip, arm)
    hand = measure_turning_hand(model, parts, tip) if parts.turning else measure_hand(model, parts, tip)
    spheres = fit_robot_spheres(description, progress=progress, source="collision_or_visual")
    matrix = self_collision_matrix(spheres, model)
    if parts.turning:
        matrix = _with_linkage(matrix, linkage_pairs(description, [joint.name for joint in parts.fingers]))
    home = propose_home(model, parts, hand, spheres, [frozenset(pair) for pair in (*matrix.ignored, *matrix.left_out)])
    if home is None:
        raise InvalidInputError(
            "home", "a contact in every pose that was tried", "a pose without one",
            f"See the spheres: morphit spheres view {robot}.",
        )  # fmt: skip
    return Proposal(name, _source(robot), description, model, parts, hand, home, spheres, matrix)


def _with_linkage(matrix: SelfCollisionMatrix, pairs: Collection[frozenset[str]]) -> SelfCollisionMatrix:
    """The same with pairs of a linkage among the adjacent ones: pins join them, which no joint says."""
    joined = [pair for pair in matrix.contact_share if frozenset(pair) in pairs]

    def others(group: Sequence[Pair]) -> tuple[Pair, ...]:
        return tuple(pair for pair in group if pair not in joined)

    return replace(
        matrix,
        adjacent=(*matrix.adjacent, *(pair for pair in joined if pair not in matrix.adjacent)),
        always=others(matrix.always),
        never=others(matrix.never),
        sometimes=others(matrix.sometimes),
        left_out={pair: share for pair, share in matrix.left_out.items() if pair not in joined},
    )


def proposal_texts(proposal: Proposal, folder: Path) -> tuple[str, str, str]:
    """The robot's file NAME.yaml, the gripper's NAME_gripper.yaml, and NAME.srdf, as texts for a folder."""
    return _robot_text(proposal, folder), _gripper_text(proposal), _srdf_text(proposal)


def touch_links(parts: ArmParts, hand: HandMeasure) -> list[str]:
    """What may touch a held object: the palm (what is fixed to it, if it has no geometry) and the fingers."""
    palm = [parts.palm_link] if parts.palm_link in parts.hand_links else parts.hand_links
    fingers = parts.finger_links if hand.fingers[0].name == parts.fingers[0].name else parts.finger_links[::-1]
    return [*palm, *(link for links in fingers for link in links)]


def open_questions(proposal: Proposal) -> list[str]:
    """What a person must look at before the robot moves, a line each."""
    hand, parts, matrix = proposal.hand, proposal.parts, proposal.matrix
    lines = [
        "acceleration_limits, max_force, max_speed: from the data sheets, see the files",
        f"moveit: names of your controllers ({', '.join(MOVEIT_NAMES.values())} are assumed)",
        "the gripper's boxes, pads and frame: see the picture (--picture)",
        "workcell: where the base stands; the root's z is taken for up",
    ]
    if not proposal.home.points_down:
        lines.append("home: no pose was found in which the hand points down; picks from above may be out of reach")
    if parts.standing_joints:
        lines.append(f"{', '.join(parts.standing_joints)}: not of the arm, taken to stand at zero")
    if not hand.tip_was_found:
        lines.append(f"tip_link: {hand.tip_link}, for lack of a frame between the pads")
    if hand.overlap > 1e-3:
        lines.append(f"fingers: beside the pads they overlap by {1e3 * hand.overlap:.1f} mm in the closed hand")
    lines += [
        f"{first} and {second}: their spheres touch nearly always, the links may not; fit more spheres"
        for first, second in matrix.left_out
    ]
    unproven = sum(pair not in matrix.proven for pair in matrix.never)
    if unproven:
        lines.append(f"SRDF: {unproven} pairs never met in {matrix.samples} poses, which is no proof")
    return lines


def _source(robot: str) -> str:
    """What names a robot's description from anywhere; a path made absolute."""
    if "://" in robot:
        return robot
    if not Path(robot).suffix or not Path(robot).exists():
        try:
            return RobotConfiguration.load(robot).description
        except ResourceNotFoundError:
            file = example_robots().get(robot)
            if file is not None:
                inside = file.as_posix().rpartition(f"/{EXAMPLE_PACKAGE}/")[2]
                return f"package://{EXAMPLE_PACKAGE}/{inside}"
    return str(resolve_uri(robot).absolute())


def _located(source: str, folder: Path) -> str:
    """A path relative to the file that names it, where both lie in one project; else as it is."""
    if "://" in source:
        return source
    relative = os.path.relpath(source, folder.absolute())
    return relative if relative.count("..") <= 2 else source


def _numbers(values: Sequence[float] | Array, digits: int = 4) -> str:
    # Never with an exponent: YAML would read 3e-05 as a text.
    texts = (f"{round(float(value), digits) + 0.0:.{digits}f}".rstrip("0") for value in values)
    return f"[{', '.join(text + '0' if text.endswith('.') else text for text in texts)}]"


def _robot_text(proposal: Proposal, folder: Path) -> str:
    parts, hand, home = proposal.parts, proposal.hand, proposal.home
    joints = [proposal.description.joints[name] for name in parts.arm_joints]
    accelerations = [
        joint.velocity_limit / _SECONDS_TO_SPEED if 0.0 < joint.velocity_limit < 100.0 else _ACCELERATION
        for joint in joints
    ]
    tip = "read: a frame between the pads" if hand.tip_was_found else "assumed: the palm"
    down = "hand down, " if home.points_down else "hand NOT down, "
    base = [_OBJECT_X - home.place[0], 0.0, 0.0]
    T = hand.T_tip_gripper
    rpy = rpy_from_matrix(T[:3, :3])
    rows = [
        ("name", proposal.name, ""),
        ("description", _quoted(_located(proposal.source, folder)), ""),
        ("semantic_description", f"{proposal.name}.srdf", "measured: pairs that never meet, by spheres"),
        ("base_link", parts.base_link, "read: the highest link that stands still below the arm"),
        ("arm_joints", _names(parts.arm_joints), "read: the chain to the hand behind the last branching"),
        ("home", _numbers([home.positions[name] for name in parts.arm_joints]),
         f"searched: {down}no self-contact, {home.margin:.0%} of half a range from limits [rad]"),
        ("acceleration_limits", _numbers(accelerations, 3),
         f"ASSUMED: the description's speeds in {_SECONDS_TO_SPEED:g} s [rad/s²]"),
        ("gripper", f"{proposal.name}_gripper.yaml", ""),
        ("tip_link", hand.tip_link, f"{tip}; carries the gripper frame"),
        ("tip_to_gripper", f"{{xyz: {_numbers(T[:3, 3])}, rpy: {_numbers(rpy, 6)}}}",
         "measured: midway between the pads, z approach, y closing [m], [rad]"),
        ("finger_joints", _names([joint.name for joint in hand.fingers]),
         "read: their sum is the aperture [m]" if hand.finger_positions is None else "read: they carry the pads"),
        ("touch_links", _names(touch_links(parts, hand)), "read: hand and fingers, may touch a held object"),
        ("workcell", f"{{base_position: {_numbers(base)}, base_yaw: 0.0}}",
         "ASSUMED: home above the simulated object [m], [rad]"),
        ("moveit", f"{{{', '.join(f'{key}: {value}' for key, value in MOVEIT_NAMES.items())}}}",
         "ASSUMED: names of group and controllers"),
    ]  # fmt: skip
    text = f"# {proposal.description.name}: proposed from its description. Look at what is ASSUMED.\n" + _lines(rows)
    if hand.finger_positions is not None:
        text += (
            "# Measured: opening between the pads [m], position of each finger joint there [rad].\nfinger_positions:\n"
        )
        text += "".join(f"  - {_numbers(row, 5)}\n" for row in hand.finger_positions)
    return text


def _gripper_text(proposal: Proposal) -> str:
    hand = proposal.hand
    # Of fingers that turn: force and speed of a pad, half-way.
    rates = np.ones(2) if hand.finger_positions is None else _rates(hand.finger_positions)
    efforts = [joint.effort_limit / rate for joint, rate in zip(hand.fingers, rates, strict=True)]
    efforts = [effort for effort in efforts if 0.0 < effort <= _STRONGEST]
    speeds = [joint.velocity_limit * rate for joint, rate in zip(hand.fingers, rates, strict=True)]
    speeds = [speed for speed in speeds if 0.0 < speed <= _FASTEST]
    turns = hand.pad_motion is not None
    scale, step = (1.0, 4) if turns else (1e3, 1)
    shown = hand.openings[::step]
    measured = ", ".join(f"{round(1e3 * gap, 1) + 0.0:g} at {round(scale * total, 3) + 0.0:g}" for total, gap in shown)
    low, high = float(hand.openings[:, 0].min()), float(hand.openings[:, 0].max())
    where = "opening of positions [mm]"
    if hand.finger_positions is not None:
        low, high = float(hand.openings[0, 1]), float(hand.openings[-1, 1])
        where = f"opening [mm] of {hand.fingers[0].name} [{'rad' if turns else 'mm'}]"
    rows = [
        ("name", f"{proposal.name}_gripper", ""),
        ("pad_width", f"{hand.pad_width:g}", "measured: flat part where the fingers meet, along x [m]"),
        ("pad_height", f"{hand.pad_height:g}", "measured: along z [m]"),
        ("pad_step", f"{DEFAULT_PAD_STEP:g}", "assumed: grid step of the canonical fingertip surface [m]"),
        ("aperture", _numbers([max(low, 0.0), high], 5), f"measured: {where}: {measured}"),
        ("max_force", f"{round(min(efforts), 2) if efforts else _FORCE:g}",
         "ASSUMED: the description's effort limit [N]" if efforts else "ASSUMED: the description says none [N]"),
        ("max_speed", f"{round(min(speeds), 4) if speeds else _SPEED:g}",
         "ASSUMED: the description's limit, of one finger [m/s]" if speeds else "ASSUMED: it says none [m/s]"),
    ]  # fmt: skip
    head = (
        f"# Gripper of {proposal.description.name}, measured on its geometry. Look at what is ASSUMED.\n"
        "# Gripper frame: origin midway between the pads, z along the approach, y from finger 2 to finger 1.\n"
    )
    motion = ""
    if hand.pad_motion is not None:
        head += "# The fingers turn: the origin is where the pads are in the closed hand, pad_motion says where else.\n"
        motion = (
            "# Measured: z of the pads [m], and their angle, positive with the tips nearer to each other [rad].\n"
            "pad_motion:\n"
            + "".join(
                f"  {key}: {_numbers(getattr(hand.pad_motion, key), 5)}\n" for key in ("apertures", "advances", "tilts")
            )
        )
    boxes = (
        "# Measured: boxes around slices of the geometry, centre and full size [m]; fingers from the pad's middle.\n"
        + _boxes("palm_boxes", hand.palm_boxes)
        + _boxes("finger_boxes", hand.finger_boxes)
    )
    return head + _lines(rows) + motion + boxes


def _rates(table: Array) -> Array:
    """Change (F,) of a pad's place by its joint's position, half-way in rows of openings and positions [m/rad]."""
    row = len(table) // 2
    change = table[row + 1] - table[row - 1]
    return np.abs(0.5 * change[0] / change[1:])


def _srdf_text(proposal: Proposal) -> str:
    parts = proposal.parts
    group = MOVEIT_NAMES["planning_group"]
    joints = "".join(f"\n    <joint name={quoteattr(joint)}/>" for joint in parts.arm_joints)
    states = "".join(
        f"\n    <joint name={quoteattr(name)} value={quoteattr(f'{value:g}')}/>"
        for name, value in proposal.home.positions.items()
    )
    start = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<robot name={quoteattr(proposal.description.name)}>\n'
        f'  <group name="{group}">{joints}\n  </group>\n'
        f'  <group_state name="home" group="{group}">{states}\n  </group_state>\n</robot>\n'
    )
    return srdf_from_model(proposal.spheres, proposal.description, proposal.matrix, existing=start)


def _lines(rows: Sequence[tuple[str, str, str]]) -> str:
    return "".join(f"{key}: {value}" + (f"   # {comment}" if comment else "") + "\n" for key, value, comment in rows)


def _names(names: Sequence[str]) -> str:
    return f"[{', '.join(map(_quoted, names))}]"


def _quoted(text: str) -> str:
    """A text as YAML takes it, in quotes where it needs them."""
    plain = re.fullmatch(r"[A-Za-z_./$][\w./$:+-]*", text) and text.lower() not in ("yes", "no", "on", "off", "null")
    return text if plain else "'" + text.replace("'", "''") + "'"


def _boxes(key: str, boxes: Sequence[GripperBox]) -> str:
    def numbers(values: Array, digits: int) -> str:
        if values.ndim == 1:
            return _numbers(values, digits)
        return f"[{', '.join(_numbers(row, digits) for row in values)}]"

    lines = "".join(f"  - {{center: {numbers(box.center, 5)}, size: {numbers(box.size, 4)}}}\n" for box in boxes)
    return f"{key}:\n{lines}" if boxes else f"{key}: []\n"
