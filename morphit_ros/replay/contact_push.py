"""A push with an arm's hand or forearm, planned through contact, replayed in MuJoCo with the meshes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from morphit_ros.contact_planning.planner import ContactPlan
from morphit_ros.contact_push.following import DEFAULT_CONFIG, FollowConfig
from morphit_ros.contact_push.push import ContactPush
from morphit_ros.contact_push.push_config import ContactPushConfig
from morphit_ros.contact_push.turning import lying_pose
from morphit_ros.geometry.primitives import sphere_mesh
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy, rotation_angle
from morphit_ros.replay.panda_push import box_for_push
from morphit_ros.simulation.objects import SimulatedObject, load_object
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig

# Time between two measured poses that a velocity is of, and time for the object to come to rest [s].
_BETWEEN, _REST = 0.02, 0.5
# The hand holds by so much [N], and opens within so long [s].
_GRIP, _OPENING = 20.0, 0.5
# Slower than this an object rests [m/s].
_AT_REST = 0.01
_COLOR = (0.75, 0.30, 0.25)
# Of a ball's mesh around: facets of 3 mm, on which it comes to rest below 2 cm/s by itself.
_SEGMENTS = 96


@dataclass(frozen=True)
class PushReplay:
    """Where the object ends in MuJoCo.

    Attributes:
        miss: of its centre from the goal, on the table [m].
        turn: of a box from its heading, a bottle's axis from the vertical; 0 for a ball [rad].
        speed: of its centre at the end [m/s].
        renewed, refused: plans while it was pushed that were followed, and that were not.
        success: it rests within the tolerances.
    """

    miss: float
    turn: float
    speed: float
    renewed: int
    refused: int
    success: bool


def replay_push(
    push: ContactPush,
    plan: ContactPlan,
    following: FollowConfig | None = DEFAULT_CONFIG,
    off: Sequence[float] = (0.0, 0.0, 0.0),
) -> PushReplay:
    """Move the simulated arm as planned; its meshes push the object, by MuJoCo's own contact.

    Args:
        following: how the plan is renewed meanwhile, from the simulated arm and object; None: it is carried out as it
            is, and so is always what the hand holds: that goes where the hand goes.
        off: of the object from where the plan believes it, x and y [m] and its heading [rad].

    Raises:
        InvalidInputError: a plan that did not succeed: nothing may move on it.
    """
    config, joints = push.config, push.robot.arm_joints
    follower = push.follower(plan, following or DEFAULT_CONFIG)
    following = None if push.holds else following
    item, offset = simulated_object(config)
    x, y, yaw = np.array([*config.start, push.heading]) + off
    cell: dict[str, Any] = {"object_x": float(x), "object_y": float(y), "object_yaw": float(yaw)}
    renewed = refused = 0
    with Workcell(
        WorkcellConfig(robot=push.robot.name, friction=push.planning.law.friction, **cell), item=item
    ) as workcell:

        def measured() -> Array:
            return push.measured(workcell.joint_state().as_dict(), workcell.object_pose() @ offset)

        workcell.place(dict(zip(joints, push.start, strict=False)) | dict(push.fixed))
        workcell.command_gripper(0.0 if push.holds else push.aperture, _GRIP)
        workcell.step(0.2)
        began = workcell.time
        workcell.command_trajectory(follower.trajectory)
        while following is not None:
            time, here = workcell.time - began, measured()
            if follower.over(time, here) or follower.given_up:
                break
            fresh = follower.renew(time, here)
            renewed, refused = renewed + fresh, refused + (not fresh)
            workcell.step(following.period)
            if fresh:
                trajectory = follower.trajectory
                workcell.command_trajectory(replace(trajectory, start=began + trajectory.start))
        if follower.given_up:
            workcell.stop_motion()
        end = began + follower.trajectory.start + follower.trajectory.duration
        workcell.step(max(0.0, end - workcell.time))
        if push.holds:
            workcell.command_gripper(push.widest)
            workcell.step(_OPENING)
        if push.lies and not follower.given_up:
            leaving = push.raised(follower.trajectory.positions[-1])
            workcell.command_trajectory(leaving)
            workcell.step(leaving.duration)
        workcell.step(_REST)
        before = measured()
        workcell.step(_BETWEEN)
        last, after = workcell.object_pose() @ offset, measured()
    place, wanted = slice(len(joints), len(joints) + 2), matrix_from_rpy((0.0, 0.0, push.heading))
    miss = float(np.linalg.norm(after[place] - push.planner.goal.positions[place]))
    speed = float(np.linalg.norm(after[place] - before[place])) / _BETWEEN
    turns = {"box": float(rotation_angle(last[:3, :3] @ wanted.T)), "ball": 0.0, "forearm_ball": 0.0}
    turn = turns.get(config.object, float(np.arccos(np.clip(last[2, 2], -1.0, 1.0))))
    success = miss <= config.position_tolerance and np.degrees(turn) <= config.rotation_tolerance and speed <= _AT_REST
    return PushReplay(miss, turn, speed, renewed, refused, bool(success))


def simulated_object(config: ContactPushConfig) -> tuple[SimulatedObject, Array]:
    """What is pushed, for the workcell, and the pose in it of the frame that it is planned in (4, 4)."""
    if config.object == "lying_bottle":
        bottle = load_object("bottle", config.mass)
        T_lying_center = lying_pose(np.zeros(2), 0.0, bottle.center_of_mass[2])
        return bottle.transformed(T_lying_center @ make_transform(translation=-bottle.center_of_mass)), T_lying_center
    item = _standing_object(config)
    return item, make_transform(translation=[0.0, 0.0, item.center_of_mass[2]])


def _standing_object(config: ContactPushConfig) -> SimulatedObject:
    if config.object == "bottle":
        return load_object("bottle", config.mass)
    if config.object == "box":
        width, depth, height = config.size
        return box_for_push((width, depth, height), config.mass)[0]
    radius = 0.5 * config.size[0]
    center = np.array([0.0, 0.0, radius])
    mesh = sphere_mesh(radius, _SEGMENTS).transformed(make_transform(translation=center))
    inertia = 0.4 * config.mass * radius**2 * np.eye(3)
    return SimulatedObject("ball", mesh, [mesh], config.mass, None, _COLOR, center, inertia)
