"""Hands whose fingers turn, as descriptions without files, and a small arm to hold them.

`robotiq_85`: links and joints as far apart as in the description of the 2F-85 of ROS-Industrial (package
robotiq_2f_85_gripper_visualization, BSD): knuckles, fingers and pads of that four-bar linkage, boxes for its meshes.
`xarm`: the same for uFactory's xArm gripper (xarm_description, BSD). `pincer`: two fingers without a linkage, so that
their pads are parallel at one opening only.
"""

from __future__ import annotations

import math
from pathlib import Path


def _box(size: tuple[float, float, float], at: tuple[float, float, float], roll: float = 0.0) -> str:
    numbers = " ".join(f"{value:.6g}" for value in size)
    origin = f'xyz="{" ".join(f"{value:.6g}" for value in at)}" rpy="{roll:.6g} 0 0"'
    return f'<collision><origin {origin}/><geometry><box size="{numbers}"/></geometry></collision>'


def _bar(y: float, z: float, width: float = 0.015) -> str:
    """A bar from a link's origin to a place in its y-z plane, in which the next joint is."""
    return _box((width, 0.01, math.hypot(y, z)), (0.0, 0.5 * y, 0.5 * z), -math.atan2(y, z))


def _link(name: str, *shapes: str, mass: float = 0.02) -> str:
    inertia = 'ixx="1e-5" iyy="1e-5" izz="1e-5" ixy="0" ixz="0" iyz="0"'
    inertial = f'<inertial><mass value="{mass}"/><origin xyz="0 0 0.02"/><inertia {inertia}/></inertial>'
    return f'<link name="{name}">{inertial}{"".join(shapes)}</link>'


def _joint(
    name: str,
    parent: str,
    child: str,
    at: tuple[float, float, float],
    yaw: float = 0.0,
    axis: int = 1,
    upper: float = 0.8,
    mimic: tuple[str, float] | None = None,
    lower: float = 0.0,
    effort: float = 1000.0,
) -> str:
    place = " ".join(f"{value:.7g}" for value in at)
    follows = "" if mimic is None else f'<mimic joint="{mimic[0]}" multiplier="{mimic[1]}" offset="0"/>'
    return (
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{place}" rpy="0 0 {yaw:.10g}"/><axis xyz="{axis} 0 0"/>'
        f'<limit lower="{lower:.7g}" upper="{upper:.7g}" velocity="2" effort="{effort:g}"/>{follows}</joint>'
    )


def _fixed(parent: str, child: str, at: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> str:
    place = " ".join(f"{value:.7g}" for value in at)
    return (
        f'<joint name="{child}_mount" type="fixed"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{place}"/></joint>'
    )


def robotiq_85(palm: str = "palm") -> str:
    """Four-bar linkages by five mimic joints; 85 mm open at 0, closed at about 0.8 rad."""
    parts = [_link(palm, _box((0.07, 0.09, 0.06), (0.0, 0.0, 0.03)), mass=0.6)]
    for side, sign, leader in (("left", -1.0, True), ("right", 1.0, False)):
        yaw = math.pi if leader else 0.0
        follows = None if leader else ("finger_joint", 1.0)
        outer = "finger_joint" if leader else "right_outer_knuckle_joint"
        parts += [
            _link(f"{side}_outer_knuckle", _bar(0.0315, -0.0041, 0.02)),
            _joint(outer, palm, f"{side}_outer_knuckle", (0.0, sign * 0.0306011, 0.054904), yaw, 1, 0.8, follows),
            _link(f"{side}_outer_finger", _box((0.02, 0.012, 0.05), (0.0, 0.004, 0.022))),
            _fixed(f"{side}_outer_knuckle", f"{side}_outer_finger", (0.0, 0.0315, -0.0041)),
            _link(f"{side}_inner_finger", _box((0.02, 0.012, 0.06), (0.0, -0.0128, 0.0265))),
            _joint(f"{side}_inner_finger_joint", f"{side}_outer_finger", f"{side}_inner_finger",
                   (0.0, 0.0061, 0.0471), 0.0, 1, 0.8757, ("finger_joint", -1.0), -0.8757),
            _link(f"{side}_pad", _box((0.022, 0.00635, 0.0375), (0.0, 0.0, 0.0)), mass=0.005),
            _fixed(f"{side}_inner_finger", f"{side}_pad", (0.0, -0.0220203446692936, 0.03242)),
            _link(f"{side}_inner_knuckle", _bar(0.0376, 0.043)),
            _joint(f"{side}_inner_knuckle_joint", palm, f"{side}_inner_knuckle", (0.0, sign * 0.0127, 0.06142), yaw,
                   1, 0.8757, ("finger_joint", 1.0)),
        ]  # fmt: skip
    return "".join(parts)


def xarm(palm: str = "palm") -> str:
    """Four-bar linkages again, the motor's joint closes; a frame between the pads is there."""
    parts = [_link(palm, _box((0.09, 0.11, 0.07), (0.0, 0.0, 0.035)), mass=0.5)]
    for side, sign in (("left", 1), ("right", -1)):
        drive = "drive_joint" if side == "left" else "right_outer_knuckle_joint"
        follows = None if side == "left" else ("drive_joint", 1.0)
        parts += [
            _link(f"{side}_outer_knuckle", _bar(sign * 0.035465, 0.042039, 0.02)),
            _joint(drive, palm, f"{side}_outer_knuckle", (0.0, sign * 0.035, 0.059098), 0.0, sign, 0.85, follows),
            _link(f"{side}_finger", _box((0.025, 0.006, 0.05), (0.0, sign * -0.0247, 0.038)),
                  _box((0.02, 0.02, 0.02), (0.0, sign * -0.012, 0.015))),
            _joint(f"{side}_finger_joint", f"{side}_outer_knuckle", f"{side}_finger",
                   (0.0, sign * 0.035465, 0.042039), 0.0, -sign, 0.85, ("drive_joint", 1.0)),
            _link(f"{side}_inner_knuckle", _bar(sign * 0.035465, 0.042039)),
            _joint(f"{side}_inner_knuckle_joint", palm, f"{side}_inner_knuckle", (0.0, sign * 0.02, 0.074098), 0.0,
                   sign, 0.85, ("drive_joint", 1.0)),
        ]  # fmt: skip
    return "".join([*parts, '<link name="tcp"/>', _fixed(palm, "tcp", (0.0, 0.0, 0.172))])


def pincer(palm: str = "palm", parallel: float = 0.04, length: float = 0.1, reach: float = 0.6) -> str:
    """Two fingers that turn by one motor, each about its own axis; parallel where they are `parallel` [m] apart."""
    parts = [_link(palm, _box((0.05, 0.09, 0.05), (0.0, 0.0, 0.025)), mass=0.5)]
    for name, sign in (("one", 1), ("two", -1)):
        follows = None if name == "one" else ("one_finger_joint", 1.0)
        inner = 0.5 * parallel - 0.03 + 0.004
        parts += [
            _link(f"{name}_finger", _box((0.02, 0.008, 0.03), (0.0, sign * inner, length - 0.015)),
                  _box((0.02, 0.008, length - 0.02), (0.0, sign * (inner + 0.006), 0.5 * length - 0.01))),
            _joint(f"{name}_finger_joint", palm, f"{name}_finger", (0.0, sign * 0.03, 0.06), 0.0, -sign,
                   reach, follows, -reach),
        ]  # fmt: skip
    return "".join(parts)


def arm_with(hand: str, name: str = "small arm", more: str = "") -> str:
    """A hand on an arm of six joints that reaches 0.9 m; boxes."""
    links = [_link("foot", _box((0.12, 0.12, 0.1), (0.0, 0.0, 0.05)), mass=4.0)]
    chain = (
        ("turn", (0.0, 0.0, 0.1), "0 0 1", 3.0), ("lift", (0.0, 0.0, 0.12), "0 1 0", 2.5),
        ("bend", (0.0, 0.0, 0.4), "0 1 0", 2.8), ("roll", (0.0, 0.0, 0.18), "0 0 1", 3.0),
        ("tilt", (0.0, 0.0, 0.2), "0 1 0", 2.8), ("spin", (0.0, 0.0, 0.08), "0 0 1", 3.3),
    )  # fmt: skip
    shapes = {
        "turn": _box((0.08, 0.08, 0.08), (0.0, 0.0, 0.05)), "lift": _box((0.06, 0.06, 0.3), (0.0, 0.0, 0.2)),
        "bend": _box((0.06, 0.06, 0.1), (0.0, 0.0, 0.09)), "roll": _box((0.05, 0.05, 0.12), (0.0, 0.0, 0.1)),
        "tilt": "", "spin": "",
    }  # fmt: skip
    parent = "foot"
    for joint, at, axis, limit in chain:
        place = " ".join(map(str, at))
        links += [
            _link(f"{joint}_link", shapes[joint], mass=1.0),
            f'<joint name="{joint}" type="revolute"><parent link="{parent}"/><child link="{joint}_link"/>'
            f'<origin xyz="{place}"/><axis xyz="{axis}"/>'
            f'<limit lower="{-limit}" upper="{limit}" velocity="2" effort="150"/></joint>',
        ]
        parent = f"{joint}_link"
    return f'<robot name="{name}">{"".join(links)}{hand}{_fixed(parent, "palm", (0.0, 0.0, 0.05))}{more}</robot>'


def proposed(folder: Path, hand: str, arm: str = "") -> Path:
    """The files that `morphit robot init` proposes for an arm with a hand; the robot's own."""
    from morphit_ros.proposal.propose import proposal_texts, propose_robot
    from morphit_ros.robot.description import load_robot_description

    source = folder / f"{hand}.urdf"
    source.write_text(arm or arm_with({"robotiq_85": robotiq_85, "xarm": xarm, "pincer": pincer}[hand]()), "utf-8")
    proposal = propose_robot(str(source), load_robot_description(str(source)), hand)
    for name, text in zip(
        (f"{hand}.yaml", f"{hand}_gripper.yaml", f"{hand}.srdf"), proposal_texts(proposal, folder), strict=True
    ):
        (folder / name).write_text(text, "utf-8")
    return folder / f"{hand}.yaml"
