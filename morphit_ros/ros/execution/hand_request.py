"""Goals of release, place, push, go_home and recover as requests of the hand sequence, in the robot's base frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from morphit_interfaces.action import GoHome, Place, Push, Recover, Release
from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.handling import PUSHING, HandRequest, HandStage
from morphit_ros.execution.held import HeldGrasp
from morphit_ros.execution.places import OPENS_FURTHER, PlaceRegion, free_places, standing_on_table
from morphit_ros.execution.pushing import Push as PushWay
from morphit_ros.geometry.transforms import Array
from morphit_ros.ros.execution.held_memory import HeldMemory
from morphit_ros.ros.execution.pick_request import TARGET, GoalReader

# Least and greatest way up or down that may be asked for [m].
_HEIGHTS = (0.01, 1.0)


def hand_request(
    goal: Any,
    memory: HeldMemory,
    reader: GoalReader,
    gripper_pose: Callable[[Mapping[str, float]], Array],
    height: float,
) -> HandRequest:
    """What a goal asks for.

    Args:
        goal: of one of the five actions.
        memory: what is held, and what stands around.
        reader: of poses.
        gripper_pose: ``T_base_gripper`` (4, 4) of joint positions.
        height: of ways up and down where the goal says none [m].

    Raises:
        InvalidInputError: a value out of range, a pose in another frame, nothing to put down, or no room for it; a
            push with something in the hand.
        UnknownTransformError: tf2 does not know the base.
    """
    places: tuple[Array, ...] = ()
    ways: tuple[PushWay, ...] = ()
    around, target = memory.around, memory.target
    aperture = 0.0
    if isinstance(goal, Release.Goal):
        stages: tuple[HandStage, ...] = (HandStage.RELEASE,)
        aperture = goal.aperture
        if not (np.isfinite(aperture) and 0.0 <= aperture <= 1.0):
            raise InvalidInputError("aperture", aperture, "in [0, 1] m")
    elif isinstance(goal, Place.Goal):
        stages = HandStage.TRANSFER, HandStage.SET_DOWN, HandStage.RELEASE, HandStage.RETREAT
        if memory.held is None:
            raise InvalidInputError(
                "place", memory.in_words(), "an object that pick or execute_grasp has lifted", "Use release or recover."
            )
        places = _places(goal, memory.held, reader)
        if goal.region.header.frame_id:
            aperture = memory.held.open_aperture + OPENS_FURTHER
    elif isinstance(goal, Push.Goal):
        stages = PUSHING
        if memory.held is not None:
            raise InvalidInputError("push", memory.in_words(), "an empty hand", "Use place or release.")
        found, around = reader.pushes(goal)
        ways, target = tuple(found), TARGET
    elif isinstance(goal, GoHome.Goal):
        stages = (HandStage.HOME,)
    else:
        assert isinstance(goal, Recover.Goal)
        stages = (*((HandStage.RELEASE,) if goal.open else ()), HandStage.RETREAT, HandStage.HOME)
    asked = getattr(goal, "height", 0.0)
    if asked and not (np.isfinite(asked) and _HEIGHTS[0] <= asked <= _HEIGHTS[1]):
        raise InvalidInputError("height", asked, f"0 or in [{_HEIGHTS[0]:g}, {_HEIGHTS[1]:g}] m")
    return HandRequest(
        stages, gripper_pose, memory.held, around, reader.solids(), target, aperture, places, asked or height, ways,
    )  # fmt: skip


def _places(goal: Place.Goal, held: HeldGrasp, reader: GoalReader) -> tuple[Array, ...]:
    pose, region = bool(goal.pose.header.frame_id), bool(goal.region.header.frame_id)
    if pose and region:
        raise InvalidInputError("pose, region", "both", "one of them, or neither for where it was grasped")
    if region:
        hand = reader.open_hand(held.open_aperture + OPENS_FURTHER)
        return tuple(free_places(held, PlaceRegion(reader.pose(goal.region), np.array(goal.region_size)), hand))
    return (standing_on_table(held, reader.pose(goal.pose)),) if pose else ()
