"""A suction cup in the simulation: its lip on a bellows, the seal on the true surface, and what the vacuum holds.

The lip is a ring on a spring along the cup's axis, and on stiff ones about the axes across. While the pump runs, rays
along the axis find the surface that is seen below the lip, 2 mm wide, and inside of it. Soft as it is, the lip lies on
the mean of what is under its width, at 32 places. It seals where all rays meet one object, no place of it further away
than the lip reaches at rest, nothing nearer than its stroke lets it yield, and neighbours and the axis within the
bounds of the cup's file. So a cup seals on a bent surface only once it is pressed. What is sealed is joined to the lip;
force and torque that go through the joint are held against the load that the planner says the vacuum holds, and what
exceeds it breaks the seal. Real bellows also draw together under vacuum, which these do not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, quat_xyzw_from_matrix
from morphit_ros.grasping.suction.cup import SuctionCup
from morphit_ros.grasping.suction.load import wrench_load
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.simulation.rendering import import_mujoco
from morphit_ros.simulation.robot_model import (
    COLLISION_GROUP,
    OBJECT_GROUP,
    PREFIX,
    ROBOT_CONTACT,
    VISUAL_GROUP,
    place,
)

# Names in the workcell's model; no link of a description is called so.
LIP = "lip of the cup"
# Of the lip [kg], and what it is felt with about axes across the cup's [kg m²].
_LIP_MASS, _LIP_TURNING = 0.01, 5e-4
# The lip yields by this angle, half a millimetre at its edge, to the moment that would lift it off [rad]: an object
# that is lifted a hair askew would else bear on it with all of its weight.
_TILT = 0.035
# Places of the ring, as of the planner's; pieces that it consists of; radius of these [m].
_VERTICES, _PIECES, _ROUND = 32, 16, 0.001
# Width of the lip [m], and rays across it and to each side along it by which a place of it is felt.
_WIDTH, _ACROSS, _ALONG = 0.002, 3, 1
# Rings inside the lip where there must be surface, as shares of its radius, and places of each.
_INSIDE, _INSIDE_PLACES = (0.0, 0.35, 0.7), (1, 8, 16)
# The vacuum draws the lip by this much [m].
_DRAWN = 3e-4
# Time in which the pump makes two thirds of its vacuum, share from which it is sensed, time that a load is averaged
# over, for contacts rattle, and time between two looks whether the lip seals [s].
_RISE, _SENSED, _LOAD_TIME, _LOOK = 0.08, 0.6, 0.01, 0.02


def add_cup(spec: Any, robot: RobotConfiguration, cup: SuctionCup, friction: float) -> None:
    """Put the lip of a cup at the tip of a robot's mujoco.MjSpec."""
    mujoco = import_mujoco()
    body = spec.body(robot.tip_link).add_body(name=LIP)
    place(body, robot.T_tip_gripper)
    body.gravcomp = 1.0
    body.mass, body.inertia, body.explicitinertial = _LIP_MASS, [_LIP_MASS * cup.cup_radius**2] * 3, True
    tilting = 0.5 * cup.cup_radius * cup.force / _TILT
    for number, axis in enumerate(([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])):
        body.add_joint(
            name=f"{LIP} {number}", type=mujoco.mjtJoint.mjJNT_HINGE, axis=axis, pos=[0.0, 0.0, -cup.bellows_stroke],
            stiffness=[tilting, 0.0, 0.0], damping=[2.0 * math.sqrt(tilting * _LIP_TURNING), 0.0, 0.0],
            armature=_LIP_TURNING,
        )  # fmt: skip
    stiffness = cup.bellows_force / cup.bellows_stroke
    body.add_joint(
        name=LIP, type=mujoco.mjtJoint.mjJNT_SLIDE, axis=[0.0, 0.0, 1.0], limited=mujoco.mjtLimited.mjLIMITED_TRUE,
        range=[-cup.bellows_stroke, 0.0], stiffness=[stiffness, 0.0, 0.0],
        damping=[2.0 * math.sqrt(stiffness * _LIP_MASS), 0.0, 0.0], solref_limit=[0.005, 1.0],
    )  # fmt: skip
    middle = _ring(cup.cup_radius - _ROUND, _PIECES)
    for first, second in zip(middle, np.roll(middle, -1, axis=0), strict=True):
        geom = body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_CAPSULE, fromto=[*first, -_ROUND, *second, -_ROUND], size=[_ROUND, 0.0, 0.0],
            group=COLLISION_GROUP, mass=0.0, friction=[friction, 0.005, 0.0001],
        )  # fmt: skip
        for attribute, value in ROBOT_CONTACT.items():
            setattr(geom, attribute, value)
    height = 0.5 * cup.bellows_stroke
    body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_CYLINDER, pos=[0.0, 0.0, -height], size=[cup.cup_radius, height, 0.0],
        group=VISUAL_GROUP, contype=0, conaffinity=0, mass=0.0, rgba=[0.15, 0.30, 0.55, 1.0],
    )  # fmt: skip


def add_seals(spec: Any, objects: Sequence[str]) -> None:
    """A joint between the lip and each body that it may seal on, not active; the robot is attached already."""
    mujoco = import_mujoco()
    for name in objects:
        spec.add_equality(
            name=f"{LIP} on {name}", type=mujoco.mjtEq.mjEQ_WELD, objtype=mujoco.mjtObj.mjOBJ_BODY,
            name1=PREFIX + LIP, name2=name, active=False, solref=[0.005, 1.0], solimp=[0.95, 0.99, 0.001, 0.5, 2.0],
        )  # fmt: skip


def _ring(radius: float, count: int) -> Array:
    angles = np.arange(count) * (2.0 * math.pi / count)
    return radius * np.column_stack([np.cos(angles), np.sin(angles)])


class SimulatedCup:
    """Pump, valve and vacuum switch of a cup.

    Args:
        model, data: of MuJoCo.
        cup: its figures, the planner's too.
        objects: names of the bodies that it may seal on.

    Attributes:
        sealed_on: name of the body that the lip seals on, None for none.
        broken_by: what ended the last seal that was lost: pull, shear or moment; empty if none was.
    """

    def __init__(self, model: Any, data: Any, cup: SuctionCup, objects: Sequence[str]) -> None:
        self._mujoco, self._model, self._cup = import_mujoco(), model, cup
        self._lip, joint = model.body(PREFIX + LIP).id, model.joint(PREFIX + LIP)
        self._slide = int(joint.qposadr[0])
        self._bodies = {model.body(name).id: name for name in objects}
        self._welds = {name: model.equality(f"{LIP} on {name}").id for name in objects}
        self._soft = np.flatnonzero((model.geom_bodyid == self._lip) & (model.geom_group == COLLISION_GROUP))
        self._touching(True)
        self._edge = _ring(cup.cup_radius, _VERTICES)
        radii = np.linspace(max(cup.cup_radius - _WIDTH, 0.5 * cup.cup_radius), cup.cup_radius, _ACROSS)
        self._lip_places = np.concatenate([_ring(radius, _VERTICES) for radius in radii])
        self._inside = np.concatenate(
            [_ring(share * cup.cup_radius, count) for share, count in zip(_INSIDE, _INSIDE_PLACES, strict=True)]
        )
        self._on, self._vacuum, self._since_look = False, 0.0, math.inf
        self._load = np.zeros(6)
        self.sealed_on: str | None = None
        self.broken_by = ""
        for weld in self._welds.values():
            data.eq_active[weld] = 0

    @property
    def sensed(self) -> bool:
        """Whether the vacuum switch has vacuum."""
        return self._vacuum >= _SENSED

    def compression(self, data: Any) -> float:
        """By which the lip has yielded [m]."""
        return -float(data.qpos[self._slide])

    def switch(self, on: bool) -> None:
        """Run the pump, or let air in."""
        self._on = on

    def update(self, data: Any, timestep: float) -> None:
        """Before the next step: build the vacuum up, seal, or lose hold."""
        if not self._on:
            if self.sealed_on is not None:
                self._part(data)
            return
        if self.sealed_on is None:
            self._since_look += timestep
            if self._since_look >= _LOOK:
                self._since_look = 0.0
                self._seal(data)
            return
        self._vacuum += (1.0 - self._vacuum) * timestep / _RISE
        self._load += (self._joint_load(data) - self._load) * min(timestep / _LOAD_TIME, 1.0)
        if self.sensed:
            held = replace(self._cup, vacuum=self._vacuum * self._cup.vacuum)
            # About the lip, in its frame: z is its axis, and what pulls the object pulls against it.
            load = wrench_load(held, np.array([0.0, 0.0, 1.0]), self._load[:3], self._load[3:], self._friction)
            if load.times < 1.0:
                self.broken_by = load.limit
                self._part(data)

    def _lip_pose(self, data: Any) -> Array:
        """``T_world_lip`` (4, 4)."""
        return make_transform(data.xmat[self._lip].reshape(3, 3), data.xpos[self._lip])

    def surface_heights(self, data: Any) -> tuple[Array, Array, str | None]:
        """Surface below the ring (32,) and inside it (K,), along the axis from the lip at rest, positive away from the
        cup [m]; not a number where there is none. The name of the object if all is of one."""
        pose, reach = self._lip_pose(data), self._cup.cup_radius
        back = self._cup.cup_length
        # The lip's frame yields with it: what is meant is its place at rest.
        rest = -float(data.qpos[self._slide])
        axis = np.ascontiguousarray(pose[:3, 2])
        group = np.array([index == OBJECT_GROUP for index in range(6)], dtype=np.uint8)
        places, heights, found = np.concatenate([self._lip_places, self._inside]), [], set[int]()
        geom = np.empty(1, dtype=np.int32)
        for x, y in places:
            start = pose[:3, :3] @ np.array([x, y, rest - back]) + pose[:3, 3]
            distance = self._mujoco.mj_ray(self._model, data, start, axis, group, 1, self._lip, geom)
            body = int(self._model.geom_bodyid[geom[0]]) if geom[0] >= 0 else -1
            there = distance >= 0.0 and body in self._bodies and distance - back <= reach
            heights.append(distance - back if there else math.nan)
            found.add(body if there else -1)
        only = self._bodies.get(next(iter(found))) if len(found) == 1 else None
        count = len(self._lip_places)
        across = np.array(heights[:count]).reshape(_ACROSS, _VERTICES).mean(axis=0)
        edge = np.mean([np.roll(across, shift) for shift in range(-_ALONG, _ALONG + 1)], axis=0)
        return edge, np.array(heights[count:]), only

    def leak(self, data: Any) -> str:
        """Why the lip does not seal as it lies now, empty if it does."""
        return self._leak(*self.surface_heights(data))

    def _leak(self, edge: Array, inside: Array, name: str | None) -> str:
        cup = self._cup
        if name is None or not (np.isfinite(edge).all() and np.isfinite(inside).all()):
            return "edge or hole"
        if edge.max() > _DRAWN:
            return "not pressed"
        if min(edge.min(), inside.min()) < -cup.bellows_stroke:
            return "bellows stroke"
        length = 2.0 * cup.cup_radius * math.sin(math.pi / _VERTICES)
        if (np.hypot(np.diff(edge, append=edge[0]), length) / length - 1.0).max() > cup.lip_strain:
            return "lip strain"
        slope = 2.0 / _VERTICES / cup.cup_radius**2 * (self._edge.T @ edge)
        return "misaligned" if math.atan(float(np.linalg.norm(slope))) > cup.max_misalignment else ""

    def _seal(self, data: Any) -> None:
        edge, inside, name = self.surface_heights(data)
        if self._leak(edge, inside, name):
            return
        assert name is not None
        model, weld, pose = self._model, self._welds[name], self._lip_pose(data)
        body = next(number for number, known in self._bodies.items() if known == name)
        T_body_lip = invert_transform(make_transform(data.xmat[body].reshape(3, 3), data.xpos[body])) @ pose
        T_lip_body = invert_transform(T_body_lip)
        # Anchor in the object's frame and in the lip's, turn of the object in the lip's frame, torques in N m.
        model.eq_data[weld, :3], model.eq_data[weld, 3:6] = T_body_lip[:3, 3], 0.0
        model.eq_data[weld, 6:10] = quat_xyzw_from_matrix(T_lip_body[:3, :3])[[3, 0, 1, 2]]
        model.eq_data[weld, 10] = 1.0
        data.eq_active[weld] = 1
        # What holds is the joint, in which the lip's contacts are no load.
        self._touching(False)
        self.sealed_on, self._body, self._vacuum = name, body, 0.0
        self._load[:] = 0.0
        felt = np.flatnonzero((model.geom_bodyid == body) & (model.geom_group == COLLISION_GROUP))
        self._friction = float(model.geom_friction[felt, 0].max())

    def _part(self, data: Any) -> None:
        assert self.sealed_on is not None
        data.eq_active[self._welds[self.sealed_on]] = 0
        self._touching(True)
        self.sealed_on, self._vacuum = None, 0.0

    def _touching(self, whether: bool) -> None:
        model = self._model
        model.geom_contype[self._soft] = ROBOT_CONTACT["contype"] if whether else 0
        model.geom_conaffinity[self._soft] = ROBOT_CONTACT["conaffinity"] if whether else 0

    def _joint_load(self, data: Any) -> Array:
        """Force and torque about the middle of the lip (6,) that the object puts on the joint, in the lip's frame.

        Of the last step: pull along z is positive, as the weight of what hangs below.
        """
        model, mujoco = self._model, self._mujoco
        assert self.sealed_on is not None
        rows = (data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY) & (data.efc_id == self._welds[self.sealed_on])
        if not rows.any():
            return np.zeros(6)
        forces = np.zeros(model.nv)
        mujoco.mj_mulJacTVec(model, data, forces, np.where(rows, data.efc_force, 0.0))
        first = int(model.body_dofadr[self._body])
        # A free joint's force is in the world's frame, its torque about the body's origin in the body's.
        force = forces[first : first + 3]
        turn, origin = data.xmat[self._body].reshape(3, 3), data.xpos[self._body]
        pose = self._lip_pose(data)
        torque = turn @ forces[first + 3 : first + 6] + np.cross(origin - pose[:3, 3], force)
        # What the joint does to the object, the object does to the joint the other way round.
        return -np.concatenate([pose[:3, :3].T @ force, pose[:3, :3].T @ torque])
