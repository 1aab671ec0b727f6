"""Friction, mass, inertia and centre of mass of a known object from how it was seen to move on a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.rotations import aligned_quats, cross_matrices, invert_quats, multiply_quats, rotation_vectors
from morphit_ros.geometry.transforms import Array, check_transform, matrix_from_quat_xyzw
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.dynamics.simulate import rollout_derivatives, simulate
from morphit_ros.neural.identification.experiments import Experiment
from morphit_ros.neural.identification.identification_config import IdentificationConfig
from morphit_ros.neural.identification.identify import IdentificationResult, identify
from morphit_ros.neural.identification.motion import TANGENT, Prediction
from morphit_ros.neural.identification.tracks import PoseTrack
from morphit_ros.neural.identification.unknowns import Unknown
from morphit_ros.neural.objects.known_object import CENTER_NAMES, KnownObject
from morphit_ros.neural.objects.object_states import shifted, state_of_pose, steps_between
from morphit_ros.neural.objects.push_scene import OBJECT, PUSHER, TABLE, PushScene, check_pusher
from morphit_ros.neural.objects.resting_start import directions_on_table, resting_pose

# Half the difference of the centre of mass for derivatives, in sizes of the object.
_CENTER_STEP = 2e-5
# A mass is looked for within this factor both ways.
_MASS_FACTOR = 20.0
# Poses of a track are rounded more than those of a program.
_RIGID_TOLERANCE = 1e-3
_MODEL_NAMES = {
    "friction": f"friction:{OBJECT}/{TABLE}",
    "pusher_friction": f"friction:{OBJECT}/{PUSHER}",
    "mass": f"mass_scale:{OBJECT}",
    "inertia_scale": f"inertia_scale:{OBJECT}",
}
PARAMETERS = ("friction", "pusher_friction", "mass", "inertia_scale", *CENTER_NAMES[:2])
"""What can be identified; of the centre of mass the two coordinates of its own frame."""


@dataclass(frozen=True)
class PushMotion:
    """`identification.motion.Motion` of the object's own frame, whatever its centre of mass.

    State and poses are those of the own frame: its origin's place and velocity in the world, its orientation and its
    angular velocity in its own axes. So a track stays the same track while the centre of mass is being looked for.

    Attributes:
        scene: object, table, pusher.
        body: its points in contact.
        start_time: of the first observation [s].
    """

    scene: PushScene
    body: ContactBody
    start_time: float

    @property
    def bodies(self) -> int:
        """One: the pusher's motion is known."""
        return 1

    def predict(self, names: Sequence[str], values: Array, start: Array, times: Array) -> Prediction:
        """See `Motion`."""
        none = Prediction.none(len(times), 1, len(names))
        step, steps = steps_between(times, self.scene.longest_step)
        given = dict(zip(names, np.asarray(values, dtype=np.float64).tolist(), strict=True))
        smooth = [name for name in names if name not in CENTER_NAMES]
        rolled = self._roll(given, smooth, start[0], step, steps)
        if rolled is None:
            return none
        states, by_start, by_smooth = rolled
        by_parameters = np.zeros((len(states), 6, len(names)))
        for column, name in enumerate(names):
            if name in smooth:
                by_parameters[:, :, column] = by_smooth[:, :, smooth.index(name)]
            else:
                slope = self._by_center(given, name, start[0], step, steps)
                if slope is None:
                    return none
                by_parameters[:, :, column] = slope
        at = (np.asarray(times) - times[0]) / step
        return Prediction(
            _between(states[:, :3], at)[:, None],
            _unit(_between(aligned_quats(states[:, 3:7]), at))[:, None],
            _between(by_parameters, at)[:, None],
            _between(by_start, at)[:, None],
        )

    def poses(self, names: Sequence[str], values: Array, start: Array, times: Array) -> tuple[Array, Array]:
        """See `PosedMotion`; infinite positions of a motion that cannot be computed."""
        step, steps = steps_between(times, self.scene.longest_step)
        given = dict(zip(names, np.asarray(values, dtype=np.float64).tolist(), strict=True))
        states = self._poses(given, start[0], step, steps)
        if states is None:
            return np.full((len(times), 1, 3), np.inf), np.full((len(times), 1, 4), 0.5)
        at = (np.asarray(times) - times[0]) / step
        return _between(states[:, :3], at)[:, None], _unit(_between(aligned_quats(states[:, 3:7]), at))[:, None]

    def _roll(
        self, given: Mapping[str, float], smooth: Sequence[str], start: Array, step: float, steps: int
    ) -> tuple[Array, Array, Array] | None:
        """States (T, 7) of the own frame, derivatives by start (T, 6, 12) and by the smooth parameters (T, 6, K).

        None if the rollout stopped early.
        """
        body, center = self._body(given)
        world = self.scene.world(body, self.start_time, step, steps)
        names, factors = self._model_values(smooth)
        first = np.array([_body_state(start, center), *self.scene.pusher_state()])
        rollout = rollout_derivatives(
            world, first, steps, self.scene.controls(self.start_time, step, steps), names=names,
            values=[given[name] * factor for name, factor in zip(smooth, factors, strict=True)],
        )  # fmt: skip
        if rollout.result.status != "completed":
            return None
        states = rollout.result.states[:, 0]
        by_state, by_names = rollout.chained()
        inward, outward = _start_slope(start, center), _pose_slope(states, center)
        by_start = outward @ by_state[:, :TANGENT, :TANGENT] @ inward
        by_names = outward @ by_names[:, :TANGENT] * np.array(factors)
        return _own_poses(states, center), by_start, by_names

    def _by_center(self, given: Mapping[str, float], name: str, start: Array, step: float, steps: int) -> Array | None:
        """(T, 6) derivative of the own frame's pose by a coordinate of the centre of mass, by central differences.

        None if a rollout stopped early.
        """
        width = _CENTER_STEP * self.body.size
        low, high = (
            self._poses({**given, name: given[name] + side * width}, start, step, steps) for side in (-1.0, 1.0)
        )
        if low is None or high is None:
            return None
        turned = rotation_vectors(multiply_quats(invert_quats(low[:, 3:]), high[:, 3:]))
        return np.concatenate([high[:, :3] - low[:, :3], turned], axis=1) / (2.0 * width)

    def _poses(self, given: Mapping[str, float], start: Array, step: float, steps: int) -> Array | None:
        body, center = self._body(given)
        smooth = [name for name in given if name not in CENTER_NAMES]
        names, factors = self._model_values(smooth)
        result = simulate(
            self.scene.world(body, self.start_time, step, steps),
            np.array([_body_state(start, center), *self.scene.pusher_state()]), steps,
            self.scene.controls(self.start_time, step, steps), names=names,
            values=[given[name] * factor for name, factor in zip(smooth, factors, strict=True)],
        )  # fmt: skip
        return _own_poses(result.states[:, 0], center) if result.status == "completed" else None

    def _body(self, given: Mapping[str, float]) -> tuple[ContactBody, Array]:
        center = np.array([given.get(name, self.body.center_of_mass[axis]) for axis, name in enumerate(CENTER_NAMES)])
        return shifted(self.body, center, self.body.mass, self.body.inertia), center

    def _model_values(self, names: Sequence[str]) -> tuple[list[str], list[float]]:
        """Names in the model, and what a value is multiplied with there."""
        factors = [1.0 / self.body.mass if name == "mass" else 1.0 for name in names]
        return [_MODEL_NAMES[name] for name in names], factors


def push_experiment(scene: PushScene, times: Array, poses: Array) -> Experiment:
    """An observed motion as identification takes it.

    The first pose is seen no better than the others. An object that lies still at first begins where the table holds
    it, at rest; its place and its turn there are estimated along. Of one that moves the first pose and velocities are.

    Args:
        scene: object, table, pusher.
        times: (T,) increasing [s]; the pusher's motion is of the same clock.
        poses: (T, 4, 4) of the object's own frame in the world.

    Raises:
        InvalidInputError: a track that is none: too short, of other shapes, times that do not increase, poses that are
            not finite or not rigid (with the row); or a pusher that starts within the object.
    """
    from scipy.spatial.transform import Rotation

    track_poses = np.asarray(poses, dtype=np.float64)
    if track_poses.ndim != 3 or track_poses.shape[1:] != (4, 4) or len(track_poses) != np.size(times):
        found = f"shape {track_poses.shape} with {np.size(times)} times"
        raise InvalidInputError("track poses", found, "(T, 4, 4), one for each time")
    for row, pose in enumerate(track_poses):
        check_transform(pose, f"track pose in row {row}", _RIGID_TOLERANCE)
    quats = Rotation.from_matrix(track_poses[:, :3, :3]).as_quat() if len(track_poses) else np.empty((0, 4))
    track = PoseTrack(np.asarray(times, dtype=np.float64), track_poses[:, :3, 3], quats)
    check_pusher(scene, track_poses[0])
    motion = PushMotion(scene, scene.known.body(scene.config.contact_points), float(times[0]))
    lying = resting_pose(scene, track)
    if lying is None:
        return Experiment(motion, (track,), knowledge="unknown")
    start = state_of_pose(lying, np.zeros(3))
    return Experiment(motion, (track,), start[None], directions=directions_on_table(scene.T_world_table, lying))


def identify_push(
    scene: PushScene,
    times: Array,
    poses: Array,
    parameters: Sequence[str] = ("friction",),
    config: IdentificationConfig | None = None,
) -> IdentificationResult:
    """Identify parameters of an object from one observed motion on a table; `push_experiment` and `identify` for more.

    Args:
        scene, times, poses: see `push_experiment`.
        parameters: any of `PARAMETERS`.
        config: noise and search.

    Raises:
        InvalidInputError: an unknown parameter, a track that is none or too short, an object that is deep in the table
            at its start.
    """
    unknowns = [unknown_of(name, scene) for name in parameters]
    return identify(push_experiment(scene, times, poses), unknowns, config)


def unknown_of(name: str, scene: PushScene) -> Unknown:
    """Start and bounds of a parameter.

    Raises:
        InvalidInputError: it is none of `PARAMETERS`.
    """
    known = scene.known
    if name == "friction":
        return Unknown(name, min(scene.used_friction, 1.5), 0.0, 1.5)
    if name == "pusher_friction":
        if scene.pusher is None:
            raise InvalidInputError("parameters", "'pusher_friction' without a pusher", "a pusher, or others")
        return Unknown(name, min(scene.config.pusher_friction, 1.5), 0.0, 1.5)
    if name == "mass":
        return Unknown(name, known.inertia.mass, known.inertia.mass / _MASS_FACTOR, known.inertia.mass * _MASS_FACTOR)
    if name == "inertia_scale":
        return Unknown(name, 1.0, 0.1, 10.0)
    if name in CENTER_NAMES[:2]:
        axis = CENTER_NAMES.index(name)
        # It lies within the object, whatever it is made of.
        low, high = known.solid.surface.bounds[:, axis].tolist()
        inner = 0.02 * (high - low)
        return Unknown(name, float(np.clip(known.inertia.center_of_mass[axis], low + inner, high - inner)), low, high)
    raise InvalidInputError("parameters", f"'{name}'", f"some of {', '.join(PARAMETERS)}")


def with_result(known: KnownObject, result: IdentificationResult) -> KnownObject:
    """The object with what the motion told of it; what it did not tell stays."""
    told = {name: value for name, value in result.values.items() if name not in result.unidentifiable}
    return known.identified(told, {name: result.standard_deviations[name] for name in told})


def _body_state(start: Array, center: Array) -> Array:
    """(13,) state of the body from that of the own frame."""
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = matrix_from_quat_xyzw(start[3:7]), start[:3]
    return state_of_pose(pose, center, start[7:10], start[10:])


def _own_poses(states: Array, center: Array) -> Array:
    """(T, 7) position and quaternion of the own frame."""
    from scipy.spatial.transform import Rotation

    return np.concatenate([states[:, :3] - Rotation.from_quat(states[:, 3:7]).apply(center), states[:, 3:7]], axis=1)


def _start_slope(start: Array, center: Array) -> Array:
    """(12, 12) tangent of the body's state by that of the own frame's."""
    rotation, spin = matrix_from_quat_xyzw(start[3:7]), start[10:]
    slope = np.eye(TANGENT)
    slope[0:3, 3:6] = -rotation @ cross_matrices(center)
    slope[6:9, 3:6] = -rotation @ cross_matrices(np.cross(spin, center))
    slope[6:9, 9:12] = -rotation @ cross_matrices(center)
    return slope


def _pose_slope(states: Array, center: Array) -> Array:
    """(T, 6, 12) tangent of the own frame's pose by that of the body's state."""
    from scipy.spatial.transform import Rotation

    slope = np.zeros((len(states), 6, TANGENT))
    slope[:, :, :6] = np.eye(6)
    slope[:, 0:3, 3:6] = Rotation.from_quat(states[:, 3:7]).as_matrix() @ cross_matrices(center)
    return slope


def _between(values: Array, at: Array) -> Array:
    """Rows of values (T, …) at fractional indices (N,), linear in between."""
    last = len(values) - 1
    low = np.clip(np.floor(at + 1e-9).astype(np.int64), 0, max(last - 1, 0))
    share = np.clip(at - low, 0.0, 1.0).reshape(-1, *[1] * (values.ndim - 1))
    return np.asarray(values[low] * (1.0 - share) + values[np.minimum(low + 1, last)] * share)


def _unit(quats: Array) -> Array:
    return np.asarray(quats / np.linalg.norm(quats, axis=1, keepdims=True))
