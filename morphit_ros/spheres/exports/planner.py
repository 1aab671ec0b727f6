"""What motion planners ask for beside spheres: base, tools, joints, and limits that a URDF doesn't have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.links import Joint

# A branch with fewer joints of its own is a gripper or a head, not a limb.
_LIMB_JOINTS = 3


@dataclass(frozen=True)
class MotionPlannerConfig(Config):
    """Entries of a cuRobo or XRDF document that are not in the URDF."""

    urdf_path: str = parameter("", "Path of the URDF as the planner shall find it; empty: ROBOT.urdf")
    base_link: str = parameter("", "Link that the planner works from; empty: the root link")
    tool_frames: tuple[str, ...] = parameter((), "Links that are moved to goals, the first first; empty: the tips")
    acceleration_limit: float = parameter(
        15.0, "Greatest acceleration of a joint [rad/s² or m/s²]", minimum=1e-6, maximum=1e6
    )
    jerk_limit: float = parameter(500.0, "Greatest jerk of a joint [rad/s³ or m/s³]", minimum=1e-6, maximum=1e9)


@dataclass(frozen=True)
class PlannerFacts:
    """A robot as planners see it.

    Attributes:
        base_link: where the planner works from.
        tool_frames: links that are moved to goals, at least one.
        joint_names: joints that move on their own, in the document's order.
        default_positions: of these joints [rad or m].
    """

    base_link: str
    tool_frames: tuple[str, ...]
    joint_names: tuple[str, ...]
    default_positions: tuple[float, ...]


def planner_facts(
    description: RobotDescription, config: MotionPlannerConfig, home: Mapping[str, float] | None = None
) -> PlannerFacts:
    """Facts for a planner; `home` gives default positions by joint, else zero moved into the limits.

    Raises:
        InvalidInputError: a base link or tool frame that the robot lacks.
    """
    base = config.base_link or description.root_link
    tools = config.tool_frames or _tips(description, description.root_link)
    for name, link in [("base_link", base), *(("tool_frames", tool) for tool in tools)]:
        if link not in description.links:
            raise InvalidInputError(name, repr(link), f"links of '{description.name}'")
    joints = [joint for joint in description.joints.values() if _moves_alone(joint)]
    given = home or {}
    positions = (given.get(joint.name, min(max(0.0, joint.lower), joint.upper)) for joint in joints)
    return PlannerFacts(base, tuple(tools), tuple(joint.name for joint in joints), tuple(map(float, positions)))


def _moves_alone(joint: Joint) -> bool:
    return joint.kind != "fixed" and joint.mimic is None


def _tips(description: RobotDescription, link: str) -> tuple[str, ...]:
    """The ends of the limbs: the last link before a gripper's fingers or the end of the chain."""
    children: dict[str, list[Joint]] = {}
    for joint in description.joints.values():
        children.setdefault(joint.parent, []).append(joint)

    def below(joint: Joint) -> list[Joint]:
        return [joint, *(lower for child in children.get(joint.child, []) for lower in below(child))]

    def follow(link: str) -> tuple[str, ...]:
        ahead = children.get(link, [])
        if len(ahead) > 1:
            movable = [joint for joint in ahead if any(lower.kind != "fixed" for lower in below(joint))]
            limbs = [joint for joint in movable if sum(map(_moves_alone, below(joint))) >= _LIMB_JOINTS]
            # Of one moving branch among fixed frames it is the moving one; of short branches only, none.
            ahead = limbs or (movable if len(movable) == 1 else [])
        return tuple(tip for joint in ahead for tip in follow(joint.child)) if ahead else (link,)

    return follow(link)
