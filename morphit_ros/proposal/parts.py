"""Which joints of a description are an arm and which the fingers of its hand."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
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
    """An arm with a hand of two fingers.

    Attributes:
        base_link: the highest link that stands still below the arm.
        arm_joints: from the base outwards.
        standing_joints: joints below the base, which stand at zero.
        hand_links: links that are fixed to the one that carries the fingers, without the arm's own last link.
        palm_link: the link that carries the fingers.
        fingers: the two joints, in the order of the description; of a linkage those that carry the pads, and first the
            one that turns by itself.
        finger_links: all links that move with each.
        turning: whether the fingers turn.
    """

    base_link: str
    arm_joints: tuple[str, ...]
    standing_joints: tuple[str, ...]
    hand_links: tuple[str, ...]
    palm_link: str
    fingers: tuple[Joint, Joint]
    finger_links: tuple[tuple[str, ...], tuple[str, ...]]
    turning: bool = False


@dataclass(frozen=True)
class _FingerPair:
    """Two fingers: their joints, the links of each, whether they turn, and the names of all joints of the hand."""

    joints: tuple[Joint, Joint]
    links: tuple[tuple[str, ...], tuple[str, ...]]
    turning: bool
    all_joints: frozenset[str]


def find_parts(model: KinematicModel, tip: str | None = None, arm: Sequence[str] = ()) -> ArmParts:
    """The arm and the hand of a robot.

    Args:
        model: the robot.
        tip: a link of the hand that is meant, where there are several; None: the only one.
        arm: the arm's joints, where the chain is not all of the joints behind the last branching.

    Raises:
        InvalidInputError: no hand of two fingers, or several and no choice among them; fingers that turn each for
            themselves; an unknown tip; or joints that are not the chain's last ones. Says what there is.
    """
    description = model.description
    if tip is not None:
        model.check_link(tip)
    pairs = [*_sliding_pairs(model), *_turning_pairs(model)]
    hands = [pair for pair in pairs if tip is None or tip in _fixed_to(description, pair.joints[0].parent)]
    if arm:
        hands = [pair for pair in hands if arm[-1] in _joints_above(description, pair.joints[0].parent)]
    if not hands:
        raise _no_hand(description, tip, arm, pairs)
    if len(hands) > 1:
        palms = ", ".join(f"--tip {pair.joints[0].parent}" for pair in hands)
        raise InvalidInputError("arms", f"{len(hands)} with a hand", "one", f"Choose one: {palms}.")
    pair = hands[0]
    palm = pair.joints[0].parent
    chain = _joints_above(description, palm)[::-1]
    joints = tuple(arm) or _own_joints(description, chain, pair.all_joints)
    if not joints or tuple(chain[-len(joints) :]) != joints:
        bound = f"the last of the chain to '{palm}': {', '.join(chain) or 'which has no joints'}"
        raise InvalidInputError("--arm", ", ".join(joints) or "no joint", bound)
    moved = {link for links in pair.links for link in links}
    hand = [link for link in _fixed_to(description, palm) if description.links[link].collisions and link not in moved]
    last = description.joints[joints[-1]].child
    return ArmParts(
        base_link=_base_link(description, description.joints[joints[0]].parent),
        arm_joints=joints,
        standing_joints=tuple(chain[: -len(joints)]),
        hand_links=tuple(link for link in hand if link != last or len(hand) == 1) or (palm,),
        palm_link=palm,
        fingers=pair.joints,
        finger_links=pair.links,
        turning=pair.turning,
    )


def tip_candidates(description: RobotDescription, palm: str) -> list[str]:
    """Links without geometry that are fixed to a palm, and nothing is behind them: frames that a maker put there."""
    carrying = {joint.parent for joint in description.joints.values()}
    return [
        name
        for name in _fixed_to(description, palm)
        if name not in carrying and not description.links[name].collisions and not description.links[name].visuals
    ]


def _sliding_pairs(model: KinematicModel) -> Iterator[_FingerPair]:
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
                links = tuple(_below(model.description, first.child)), tuple(_below(model.description, second.child))
                yield _FingerPair((first, second), links, False, frozenset((first.name, second.name)))


def _turning_pairs(model: KinematicModel) -> Iterator[_FingerPair]:
    """Two joints of one link that turn about parallel axes and carry the most links of what one motor, or two that are
    called fingers', move there; the other links of the linkage belong to the finger on whose side they are."""
    description = model.description
    groups: dict[str, list[Joint]] = {}
    for joint in description.joints.values():
        if joint.kind in _MOVES:
            groups.setdefault(_fixed_to(description, joint.parent)[0], []).append(joint)
    # Hands of fingertips on fingers are parts of hands.
    taken: set[str] = set()
    for palm, branches in sorted(groups.items(), key=lambda item: len(_joints_above(description, item[0]))):
        below = {link for branch in branches for link in _below(description, branch.child)}
        if palm in taken:
            continue
        shaped = {branch.name: len(_shaped(description, branch.child)) for branch in branches}
        moving = [branch for branch in branches if shaped[branch.name]]
        carried = {link for branch in moving for link in _below(description, branch.child)}
        inner = [joint for joint in description.joints.values() if joint.kind in _MOVES and joint.child in carried]
        if len(moving) < 2 or not all(joint.kind in ("revolute", "prismatic") for joint in inner):
            continue
        motors = {int(model.motions.variables[model.link_joints[joint.child][0]]) for joint in inner}
        if len(motors) > 2 or (len(motors) == 2 and not all(map(_sounds_like_a_finger, moving))):
            continue
        turning = sorted((joint for joint in moving if joint.kind == "revolute"), key=lambda joint: -shaped[joint.name])
        # A third finger is as large as the others.
        if len(turning) < 2 or (len(turning) > 2 and shaped[turning[2].name] == shaped[turning[1].name]):
            continue
        first, second = sorted(turning[:2], key=lambda joint: joint.mimic is not None)
        places = [_place(model, joint) for joint in (first, second)]
        if abs(places[0][1] @ places[1][1]) < _PARALLEL:
            continue
        apart, middle = places[0][0] - places[1][0], 0.5 * (places[0][0] + places[1][0])
        sides: tuple[list[str], list[str]] = ([], [])
        for joint in moving:
            beside = int((_place(model, joint)[0] - middle) @ apart < 0.0)
            side = [first, second].index(joint) if joint in (first, second) else beside
            sides[side].extend(_below(description, joint.child))
        taken |= below
        names = frozenset(
            joint.name for joint in description.joints.values() if joint.kind in _MOVES and joint.child in below
        )
        yield _FingerPair((first, second), (tuple(sides[0]), tuple(sides[1])), True, names)


def _place(model: KinematicModel, joint: Joint) -> tuple[Array, Array]:
    """Origin (3,) and axis (3,) of a joint in the frame of the first of the links that are fixed to its parent."""
    T = model.link_joints[joint.parent][1] @ joint.T_parent_child
    return T[:3, 3], T[:3, :3] @ joint.axis


def _shaped(description: RobotDescription, link: str) -> list[str]:
    """Of a link and all that it carries, those with geometry."""
    return [
        name
        for name in _below(description, link)
        if description.links[name].collisions or description.links[name].visuals
    ]


def _sounds_like_a_finger(joint: Joint) -> bool:
    return any(word in f"{joint.name} {joint.child}".lower() for word in _FINGER_WORDS)


def _no_hand(
    description: RobotDescription, tip: str | None, arm: Sequence[str], pairs: Sequence[_FingerPair]
) -> InvalidInputError:
    bound = "a hand of two fingers that slide on one line, or that one motor turns"
    if pairs:
        palms = ", ".join(f"--tip {pair.joints[0].parent}" for pair in pairs)
        chosen = tip if tip is not None else ", ".join(arm)
        return InvalidInputError("--tip" if tip is not None else "--arm", repr(chosen), bound, f"There are: {palms}.")
    moving = [joint for joint in description.joints.values() if joint.kind in _MOVES]
    named = [
        joint
        for joint in description.joints.values()
        if joint.kind != "prismatic" and any(word in joint.name.lower() for word in _FINGER_WORDS)
    ]
    jaws = [joint for joint in named if joint.kind in _MOVES]
    if jaws and all(_is_alone(description, joint, moving) for joint in jaws):
        found = f"one finger that turns ({', '.join(joint.name for joint in jaws[:4])}) against one that stands"
        return InvalidInputError("gripper", found, bound, "Planner and simulation close both pads alike.")
    for kind, fingers, remedy in (
        ("turn", [joint.name for joint in named if joint.kind in _MOVES],
         "Planner and simulation know no other hands: three fingers, or joints that move each for themselves."),
        ("are fixed", [joint.name for joint in named if joint.kind == "fixed" and "finger" in joint.name.lower()],
         "Give the description in which they move."),
    ):  # fmt: skip
        if fingers:
            found = f"fingers that {kind} ({', '.join(fingers[:4])}{', …' if len(fingers) > 4 else ''})"
            return InvalidInputError("gripper", found, bound, remedy)
    sliding = [joint.name for joint in moving if joint.kind == "prismatic"]
    found = f"none among {len(moving)} joints" + (f"; sliding: {', '.join(sliding)}" if sliding else "")
    return InvalidInputError("gripper", found, bound, "Mount the gripper's description on the arm's last link.")


def _is_alone(description: RobotDescription, joint: Joint, others: Sequence[Joint]) -> bool:
    """Whether none of other joints begins at the body that a joint begins at, or at one that it carries."""
    bodies = {*_fixed_to(description, joint.parent), *_below(description, joint.child)}
    return not any(other.parent in bodies for other in others if other is not joint)


def _own_joints(description: RobotDescription, chain: Sequence[str], hand: Collection[str]) -> tuple[str, ...]:
    """The joints of a chain that carry nothing but its hand's joints: those behind the last branching."""
    ends = set(hand)
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
