"""Which joints of a description are an arm and which the fingers of its hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import Joint

# Roots that stand for the surroundings and are no part of the robot.
_SURROUNDINGS = ("world", "map", "odom")
# Fingers are parallel within this: cosine of an angle of 1°.
_PARALLEL = 0.99985
# How authors call joints of hands.
_FINGER_WORDS = ("grip", "finger", "thumb")
_MOVES = ("revolute", "continuous", "prismatic")


@dataclass(frozen=True)
class ArmParts:
    """An arm with a hand of two sliding fingers.

    Attributes:
        base_link: the highest link that stands still below the arm.
        arm_joints: from the base outwards.
        standing_joints: joints below the base, which stand at zero.
        hand_links: links that are fixed to the one that carries the fingers, without the arm's own last link.
        palm_link: the link that carries the fingers.
        fingers: the two joints, in the order of the description.
        finger_links: all links that move with each.
    """

    base_link: str
    arm_joints: tuple[str, ...]
    standing_joints: tuple[str, ...]
    hand_links: tuple[str, ...]
    palm_link: str
    fingers: tuple[Joint, Joint]
    finger_links: tuple[tuple[str, ...], tuple[str, ...]]


def find_parts(model: KinematicModel, tip: str | None = None, arm: Sequence[str] = ()) -> ArmParts:
    """The arm and the hand of a robot.

    Args:
        model: the robot.
        tip: a link of the hand that is meant, where there are several; None: the only one.
        arm: the arm's joints, where the chain is not all of the joints behind the last branching.

    Raises:
        InvalidInputError: no hand of two sliding fingers, or several and no choice among them; fingers that turn; an
            unknown tip; or joints that are not the chain's last ones. Says what there is.
    """
    description = model.description
    if tip is not None:
        model.check_link(tip)
    pairs = list(_finger_pairs(model))
    hands = [pair for pair in pairs if tip is None or tip in _fixed_to(description, pair[0].parent)]
    if arm:
        hands = [pair for pair in hands if arm[-1] in _joints_above(description, pair[0].parent)]
    if not hands:
        raise _no_hand(description, tip, arm, pairs)
    if len(hands) > 1:
        palms = ", ".join(f"--tip {first.parent}" for first, _ in hands)
        raise InvalidInputError("arms", f"{len(hands)} with a hand", "one", f"Choose one: {palms}.")
    fingers = hands[0]
    palm = fingers[0].parent
    chain = _joints_above(description, palm)[::-1]
    joints = tuple(arm) or _own_joints(description, chain, fingers)
    if not joints or tuple(chain[-len(joints) :]) != joints:
        bound = f"the last of the chain to '{palm}': {', '.join(chain) or 'which has no joints'}"
        raise InvalidInputError("--arm", ", ".join(joints) or "no joint", bound)
    hand = [link for link in _fixed_to(description, palm) if description.links[link].collisions]
    last = description.joints[joints[-1]].child
    return ArmParts(
        base_link=_base_link(description, description.joints[joints[0]].parent),
        arm_joints=joints,
        standing_joints=tuple(chain[: -len(joints)]),
        hand_links=tuple(link for link in hand if link != last or len(hand) == 1) or (palm,),
        palm_link=palm,
        fingers=fingers,
        finger_links=tuple(tuple(_below(description, finger.child)) for finger in fingers),  # type: ignore[arg-type]
    )


def tip_candidates(description: RobotDescription, palm: str) -> list[str]:
    """Links without geometry that are fixed to a palm, and nothing is behind them: frames that a maker put there."""
    carrying = {joint.parent for joint in description.joints.values()}
    return [
        name
        for name in _fixed_to(description, palm)
        if name not in carrying and not description.links[name].collisions and not description.links[name].visuals
    ]


def _finger_pairs(model: KinematicModel) -> Iterator[tuple[Joint, Joint]]:
    """Pairs of sliding joints of one link on one line, that nothing else moves behind and that keep apart."""
    joints = [joint for joint in model.description.joints.values() if joint.kind == "prismatic"]
    for number, first in enumerate(joints):
        for second in joints[number + 1 :]:
            if second.parent != first.parent or not all(_is_last(model.description, each) for each in (first, second)):
                continue
            axes = [joint.T_parent_child[:3, :3] @ joint.axis for joint in (first, second)]
            travels = [joint.upper - joint.lower for joint in (first, second)]
            apart = first.T_parent_child[:3, 3] - second.T_parent_child[:3, 3]
            # Springs of wheels slide beside each other; fingers may begin at one place and part.
            beside = np.linalg.norm(apart - axes[0] * (apart @ axes[0])) > sum(travels)
            if abs(axes[0] @ axes[1]) > _PARALLEL and min(travels) > 0.0 and not beside:
                yield first, second


def _no_hand(
    description: RobotDescription, tip: str | None, arm: Sequence[str], pairs: Sequence[tuple[Joint, Joint]]
) -> InvalidInputError:
    bound = "a hand of two fingers that slide on one line"
    if pairs:
        palms = ", ".join(f"--tip {first.parent}" for first, _ in pairs)
        chosen = tip if tip is not None else ", ".join(arm)
        return InvalidInputError("--tip" if tip is not None else "--arm", repr(chosen), bound, f"There are: {palms}.")
    moving = [joint for joint in description.joints.values() if joint.kind in _MOVES]
    named = [
        joint
        for joint in description.joints.values()
        if joint.kind != "prismatic" and any(word in joint.name.lower() for word in _FINGER_WORDS)
    ]
    for kind, fingers, remedy in (
        ("turn", [joint.name for joint in named if joint.kind in _MOVES],
         "Planner and simulation know no other hands yet: mount a parallel gripper."),
        ("are fixed", [joint.name for joint in named if joint.kind == "fixed" and "finger" in joint.name.lower()],
         "Give the description in which they move."),
    ):  # fmt: skip
        if fingers:
            found = f"fingers that {kind} ({', '.join(fingers[:4])}{', …' if len(fingers) > 4 else ''})"
            return InvalidInputError("gripper", found, bound, remedy)
    sliding = [joint.name for joint in moving if joint.kind == "prismatic"]
    found = f"none among {len(moving)} joints" + (f"; sliding: {', '.join(sliding)}" if sliding else "")
    return InvalidInputError("gripper", found, bound, "Mount the gripper's description on the arm's last link.")


def _own_joints(description: RobotDescription, chain: Sequence[str], fingers: Sequence[Joint]) -> tuple[str, ...]:
    """The joints of a chain that carry nothing but its hand: those behind the last branching."""
    ends = {finger.name for finger in fingers}
    for start in range(len(chain)):
        joint = description.joints[chain[start]]
        below = {
            other.name
            for other in description.joints.values()
            if other.kind in _MOVES and other.parent in set(_below(description, joint.child))
        }
        if below <= ends | set(chain[start + 1 :]):
            return tuple(chain[start:])
    return ()


def _base_link(description: RobotDescription, link: str) -> str:
    while (joint := description.parent_joint(link)) is not None and joint.kind == "fixed":
        above = description.links[joint.parent]
        is_surroundings = description.parent_joint(above.name) is None and above.name in _SURROUNDINGS
        if is_surroundings:
            break
        link = above.name
    return link


def _joints_above(description: RobotDescription, link: str) -> list[str]:
    """The joints that move a link, the nearest first."""
    found = []
    while (joint := description.parent_joint(link)) is not None:
        if joint.kind in _MOVES:
            found.append(joint.name)
        link = joint.parent
    return found


def _below(description: RobotDescription, link: str, fixed: bool = False) -> list[str]:
    """A link and all that it carries, or only what is fixed to it."""
    found = [link]
    for name in found:
        found += [
            joint.child
            for joint in description.joints.values()
            if joint.parent == name and (joint.kind == "fixed" or not fixed)
        ]
    return found


def _fixed_to(description: RobotDescription, link: str) -> list[str]:
    """All links that are one body with a link."""
    while (joint := description.parent_joint(link)) is not None and joint.kind == "fixed":
        link = joint.parent
    return _below(description, link, fixed=True)


def _is_last(description: RobotDescription, joint: Joint) -> bool:
    links = set(_below(description, joint.child))
    return not any(other.parent in links and other.kind in _MOVES for other in description.joints.values())
