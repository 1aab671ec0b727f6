"""At what torque about the closing direction an object turns in the simulated hand, beside what theory says.

A gripper without an arm closes with a force N on an object that floats between its pads, and a torque about the closing
direction grows until the object has turned by some degrees. Theory, with friction μ at both pads:

- *flat*: faces larger than the pads, even pressure on a rectangle of sides a and b: M = 2 μ N ℓ, ℓ the mean distance
  from the middle, 0.3826 a for a square (Howe and Cutkosky 1996, section 2).
- *edge*: edges along the pads' height h, even pressure on a line: M = 2 μ N h / 4 (the same, in one dimension).
- *ball*: Hertz's pressure on circles of radius b: M = 2 μ N 3π/16 b, b³ = 3 N R / 4 E* (Johnson 1985, Contact
  Mechanics, chapter 4; the integral of μ p r over the circle).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from morphit_bench.picks.flying_gripper import flying_gripper
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.primitives import box_mesh, sphere_mesh
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, matrix_from_rpy, rotation_angle
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.simulation.objects import SimulatedObject
from morphit_ros.simulation.pad_patches import hertz_radius
from morphit_ros.simulation.rendering import import_mujoco
from morphit_ros.simulation.scene import OBJECT_BODY
from morphit_ros.simulation.solids import convex_hull
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig

SHAPES = ("flat", "edge", "ball")
_RADIUS, _MASS = 0.021, 0.1
# What is gripped ends this far beyond the pads: higher up it would meet the palm [m].
_MARGIN = 0.002
# The ramp begins at this share of what theory says and grows by another one a second; slower ones find creep.
_BEGIN, _RATE = 0.3, 0.25
_SLIPPED, _SLID = np.radians(3.0), 0.002


@dataclass(frozen=True)
class SlipResult:
    """Where an object began to turn.

    Attributes:
        torque: at which it had turned by 3° [Nm].
        theory: what even (flat, edge) or Hertz's (ball) pressure holds [Nm].
    """

    torque: float
    theory: float

    @property
    def ratio(self) -> float:
        """Of both."""
        return self.torque / self.theory


def slip_torque(
    shape: str,
    gripper: str = "franka_hand",
    force: float = 40.0,
    friction: float = 0.5,
    timestep: float = 0.002,
    solver: str = "newton",
) -> SlipResult:
    """Raise the torque about the closing direction until the object turns.

    Args:
        shape: one of `SHAPES`.
        gripper: of config/grippers.
        force: of the fingers [N].
        friction: of the pads on the object.
        timestep: of the simulation [s].
        solver: newton or cg.

    Raises:
        InvalidInputError: an unknown shape or solver.
    """
    with _held(shape, gripper, force, friction, timestep, solver) as workcell:
        theory = 2.0 * friction * force * _lever(shape, workcell.two_fingers, force)
        body, data = workcell._model.body(OBJECT_BODY).id, workcell._data
        start = _in_hand(workcell)[:3, :3]
        torque = _BEGIN * theory
        while torque < 5.0 * theory:
            torque += _RATE * theory * timestep
            data.xfrc_applied[body, 3:] = [0.0, torque, 0.0]
            workcell.step(timestep)
            if rotation_angle(start.T @ _in_hand(workcell)[:3, :3]) > _SLIPPED:
                break
    return SlipResult(torque, theory)


def slip_force(
    shape: str, force: float = 40.0, friction: float = 0.5, timestep: float = 0.002, solver: str = "newton"
) -> SlipResult:
    """The same for a force across the closing direction, in `torque` and `theory` [N]; theory is Coulomb's 2 μ N."""
    theory = 2.0 * friction * force
    with _held(shape, "franka_hand", force, friction, timestep, solver) as workcell:
        body, data = workcell._model.body(OBJECT_BODY).id, workcell._data
        start = _in_hand(workcell)[2, 3]
        pull = _BEGIN * theory
        while pull < 5.0 * theory:
            pull += _RATE * theory * timestep
            data.xfrc_applied[body, :3] = [0.0, 0.0, pull]
            workcell.step(timestep)
            if abs(_in_hand(workcell)[2, 3] - start) > _SLID:
                break
    return SlipResult(pull, theory)


def _in_hand(workcell: Workcell) -> Array:
    """Pose of the object in the palm's frame, whose drives give way a little (4, 4)."""
    return invert_transform(workcell.link_pose("palm")) @ workcell.object_pose()


def _lever(shape: str, gripper: Gripper, force: float) -> float:
    if shape == "ball":
        return float(3.0 * np.pi / 16.0 * hertz_radius(force, _RADIUS))
    # The flat inner face of a finger, as far as the object reaches; its boxes may differ a little from the pads' sizes.
    flat = [box for box in gripper.finger_boxes if abs(box.center[1] - 0.5 * box.size[1]) < 1e-4]
    width = min(box.size[0] for box in flat)
    end = _half_height(gripper)
    low = max(-end, min(box.center[2] - 0.5 * box.size[2] for box in flat))
    high = min(end, max(box.center[2] + 0.5 * box.size[2] for box in flat))
    if shape == "edge":
        return float(high - low) / 4.0
    # A fine grid: no formula of the simulation's own is used.
    x, z = np.meshgrid(*((np.arange(400) + 0.5) / 400 * side - side / 2 for side in (width, high - low)))
    return float(np.hypot(x, z).mean())


def _half_height(gripper: Gripper) -> float:
    """Of flat and edged objects [m]."""
    return gripper.pad_height / 2.0 + _MARGIN


def _held(shape: str, gripper: str, force: float, friction: float, timestep: float, solver: str) -> Workcell:
    """A workcell without gravity in which the fingers have closed on the object."""
    solvers: dict[str, Any] = {
        "newton": import_mujoco().mjtSolver.mjSOL_NEWTON,
        "cg": import_mujoco().mjtSolver.mjSOL_CG,
    }
    if solver not in solvers:
        raise InvalidInputError("solver", repr(solver), f"one of {', '.join(solvers)}")
    pads = Gripper.load(gripper)
    item = _object(shape, 2.0 * _half_height(pads))
    config = WorkcellConfig(friction=friction, timestep=timestep)
    workcell = Workcell(config, flying_gripper(pads), item)
    model, data = workcell._model, workcell._data
    model.opt.gravity[:], model.opt.solver = 0.0, solvers[solver]
    joint = model.joint(OBJECT_BODY)
    data.qpos[joint.qposadr[0] : joint.qposadr[0] + 3] = workcell.link_pose("palm")[:3, 3] - item.center_of_mass
    data.qpos[joint.qposadr[0] + 3 : joint.qposadr[0] + 7] = [1.0, 0.0, 0.0, 0.0]
    data.qvel[:] = 0.0
    workcell.command_gripper(workcell.two_fingers.aperture_min, force)
    workcell.step(0.9)
    return workcell


def _object(shape: str, height: float) -> SimulatedObject:
    if shape not in SHAPES:
        raise InvalidInputError("shape", repr(shape), f"one of {', '.join(SHAPES)}")
    mesh: TriangleMesh
    if shape == "flat":
        mesh, middle = box_mesh(np.array([0.06, 0.03, height])), height / 2.0
    elif shape == "edge":
        turned = make_transform(matrix_from_rpy((0.0, 0.0, np.pi / 4.0)))
        mesh, middle = box_mesh(np.array([0.02, 0.02, height])).transformed(turned), height / 2.0
    else:
        mesh, middle = sphere_mesh(_RADIUS), _RADIUS
    mesh = mesh.transformed(make_transform(translation=(0.0, 0.0, middle)))
    piece = convex_hull(mesh.vertices)
    center = np.array([0.0, 0.0, middle])
    return SimulatedObject(shape, mesh, [piece], _MASS, None, (0.6, 0.6, 0.6), center, 1e-4 * np.eye(3))
