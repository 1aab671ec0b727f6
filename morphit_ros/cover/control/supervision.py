"""The controller under supervision: what a machine may be told, period after period, and when its motors stand still.

Around `CoverController`: measurements become configurations (`tracking`), targets are examined before they count, far
ones are reached through a passage, rates are checked once more, and every stop has a reason and a way back. Nothing
here keeps time by itself: callers say when it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.cover.control.controller import ControllerConfig, CoverController, StepResult
from morphit_ros.cover.control.course import Course, SupervisionConfig, examine_course, plan_course
from morphit_ros.cover.control.reach import Reach
from morphit_ros.cover.control.stops import STOP_OF_STEP, Stop, WayBack
from morphit_ros.cover.control.tracking import JointTracker, PoseTracker, TrackedState
from morphit_ros.cover.detour import Detour
from morphit_ros.cover.goals.surfaces import MeshTarget
from morphit_ros.cover.goals.targets import HeightTarget, SurfaceTarget, TargetSample
from morphit_ros.cover.kinematics.null_space import NullSpaceSolver
from morphit_ros.cover.model import Cover
from morphit_ros.cover.state import CoverState
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array

__all__ = ["Course", "Cycle", "Measurement", "Stop", "SupervisedController", "SupervisionConfig", "WayBack"]


@dataclass(frozen=True)
class Measurement:
    """What was read of a cover at once; nothing in it has been checked.

    Attributes:
        angles: (K,) of joint axes [rad]; or
        positions, rotations: (N, 3) [m] and (N, 3, 3) of the nodes in the world frame.
        axes: (K, 2) joints and axes of the angles.
        problem: why the message cannot be used, or empty.
    """

    angles: Array | None = None
    axes: NDArray[np.int64] | None = None
    positions: Array | None = None
    rotations: Array | None = None
    problem: str = ""


@dataclass(frozen=True)
class Cycle:
    """One period.

    Attributes:
        rates: (M,) what to command [rad/s]; zero unless `stop` is None.
        stop: why motors stand still, None where they may turn.
        message: more about the stop, or empty.
        target_time: t of the target [s]; 0 without one.
        result: the controller's step, None where none was made.
        course: the target that it was made for, None without one.
    """

    rates: Array
    stop: Stop | None
    message: str
    target_time: float
    result: StepResult | None
    course: Course | None


class SupervisedController:
    """Commands for a cover, or the reason why there are none.

    `cycle` and `resume` belong to one thread; `set_target` may be called from another.

    Args:
        cover, state: with motors; where the cover is taken to be before anything is read.
        controller: gains, weights and limits; its `period` is that of the cycles.
        config: when to stop.
    """

    def __init__(
        self,
        cover: Cover,
        state: CoverState,
        controller: ControllerConfig | None = None,
        config: SupervisionConfig | None = None,
    ) -> None:
        self.cover = cover
        self.state = state
        self.config = config or SupervisionConfig()
        self.controller_config = controller or ControllerConfig()
        self._null_space = NullSpaceSolver(cover)
        self._controller = CoverController(cover, self.controller_config, null_space=self._null_space)
        self._poses = PoseTracker(cover, self.config.pose_tolerance, self._null_space)
        self._joints: JointTracker | None = None
        self._joints_axes: ArrayLike | None = None
        self._course: Course | None = None
        self._nothing = np.zeros(len(cover.motors))
        self._begun: Course | None = None
        self.resume()

    @property
    def course(self) -> Course | None:
        """The target that counts."""
        return self._course

    @property
    def stop(self) -> Stop | None:
        """Why motors stand still."""
        return self._stop

    def resume(self) -> None:
        """Forget all stops, as an activation does: the next state decides. The target begins anew."""
        self._controller.reset()
        self._stop: Stop | None = Stop.NO_STATE
        self._message = ""
        self._good = self.config.recovery_states - 1

    def take(self, measurement: Measurement) -> None:
        """Take over a configuration before anything moves.

        Raises:
            InvalidInputError: a measurement that cannot be used.
        """
        tracked = self._track(measurement)
        if not tracked.success:
            raise InvalidInputError("state", tracked.message, "a consistent state of the cover")
        self.state = tracked.state

    def rehearse(self) -> None:
        """A period towards a plane, from angles and from poses, and a mesh: all that the first use compiles or loads.

        Leaves nothing behind but the course, which is a plane: rehearse a copy.
        """
        cover, state = self.cover, self.state
        axes = cover.motors
        angles = JointTracker(cover, axes).angles(state.rotations)
        for measurement in (
            Measurement(angles=angles, axes=axes),
            Measurement(positions=state.positions(cover), rotations=state.rotations.copy()),
        ):
            self._course = Course(HeightTarget("0*x"), HeightTarget("0*x"), 0.0, 0.0, "plane", "", "direct")
            self.resume()
            self.cycle(measurement, 0.0, 0.0)
        positions = state.positions(cover)
        corners = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
        MeshTarget(TriangleMesh(corners, np.array([[0, 1, 2]]))).sample(positions, 0.0)

    def set_target(
        self, target: SurfaceTarget, name: str, now: float, approach: str = "", forecast: Reach | None = None,
        detour: Detour | None = None,
    ) -> Course:  # fmt: skip
        """Accept a target, which counts from the next cycle on. If it is refused the last one stays.

        Args:
            target: in the world frame.
            name: for people.
            now: by the clock of `cycle` [s].
            approach: instead of the configuration's.
            forecast: how near the cover comes to it, if that is known.
            detour: a way to it over a shape in between, if one ends nearer; it is taken instead.

        Raises:
            InvalidInputError: not finite, not through the father node, or too far away to be followed.
        """
        course = replace(self.plan(target, name, now, approach), forecast=forecast)
        if detour is not None and detour.formula:
            self.examine(detour.target)
            course = replace(
                course, target=detour.target, duration=detour.end, way=detour.description, forecast=detour.reached
            )
        self._course = course
        return course

    def plan(self, target: SurfaceTarget, name: str, now: float, approach: str = "") -> Course:
        """What `set_target` would make of a target, without a forecast.

        Raises:
            InvalidInputError: as `set_target`.
        """
        return self._plan(target, name, now, approach or self.config.approach)

    def leave_target(self) -> None:
        """Have no target: motors stand still until there is one."""
        self._course = None

    def examine(self, target: SurfaceTarget) -> TargetSample:
        """The target at the nodes now, if it can be one; see `course.examine_course`."""
        return examine_course(self.cover, self.state, target, self.config)

    def _plan(self, target: SurfaceTarget, name: str, now: float, approach: str) -> Course:
        rate_limit = self.controller_config.rate_limit
        return plan_course(self.cover, self.state, target, name, now, approach, self.config, rate_limit)

    def cycle(self, measurement: Measurement | None, age: float, now: float) -> Cycle:
        """One period.

        Args:
            measurement: the newest; None if there was none yet, or none since the last cycle (then `age` decides).
            age: of the newest measurement [s].
            now: [s].
        """
        if age > self.config.state_timeout * self.controller_config.period:
            if self._stop is not Stop.NO_STATE or measurement is not None:
                return self.halt(Stop.STALE, self.config.too_old(age, self.controller_config.period), now)
            return self._cycle(None, now)
        if measurement is not None:
            tracked = self._track(measurement)
            if not tracked.success:
                return self.halt(Stop.BAD_STATE, tracked.message, now)
            self.state = tracked.state
            self._good += 1
        return self._move(now)

    def _move(self, now: float) -> Cycle:
        stop = self._stop
        if stop is not None and stop.way_back is WayBack.STATES:
            if self._good < self.config.recovery_states:
                return self._cycle(None, now)
            self._free()
        course = self._course
        if course is None:
            return self.halt(Stop.NO_TARGET, "", now)
        if stop is not None and stop.way_back is WayBack.TARGET and course is not self._begun:
            self._free()
        if self._stop is not None:
            return self._cycle(None, now)
        self._begun = course
        time = now - course.start
        result = self._controller.step(self.state, course.target, time, course.forecast, time < course.duration)
        if not result.status.moves:
            text = result.message or result.status.value
            return self.halt(STOP_OF_STEP[result.status], text, now, result)
        away = float(result.distances[self.cover.father])
        if away > 0.5 * self.cover.pitch:
            return self.halt(Stop.TARGET, f"{away * 1e3:.0f} mm from the father node", now, result)
        if not np.isfinite(result.rates).all():
            return self.halt(Stop.BAD_RATES, "", now, result)
        limit = self.controller_config.rate_limit
        return self._cycle(np.clip(result.rates, -limit, limit), now, result)

    def halt(self, stop: Stop, message: str, now: float, result: StepResult | None = None) -> Cycle:
        """Stop for a reason. A stop that only an activation ends is not replaced by a lesser one."""
        if self._stop is None or self._stop.way_back is not WayBack.ACTIVATION:
            if self._stop is not stop:
                self._controller.reset()
            self._stop, self._message = stop, message
        self._good = 0
        return self._cycle(None, now, result)

    def _free(self) -> None:
        self._stop, self._message = None, ""
        self._controller.reset()

    def _cycle(self, rates: Array | None, now: float, result: StepResult | None = None) -> Cycle:
        # Another thread may have set a new one since the step.
        course = self._course if result is None else self._begun
        time = 0.0 if course is None else now - course.start
        return Cycle(self._nothing if rates is None else rates, self._stop, self._message, time, result, course)

    def _track(self, measurement: Measurement) -> TrackedState:
        if measurement.problem:
            return TrackedState(self.state, np.inf, False, measurement.problem)
        try:
            if measurement.angles is not None and measurement.axes is not None:
                return self._tracker(measurement.axes).estimate(measurement.angles, self.state)
            if measurement.positions is not None and measurement.rotations is not None:
                return self._poses.estimate(measurement.positions, measurement.rotations, self.state)
        except InvalidInputError as error:
            return TrackedState(self.state, np.inf, False, str(error))
        return TrackedState(self.state, np.inf, False, "nothing was measured")

    def _tracker(self, axes: ArrayLike) -> JointTracker:
        # Messages of one source have the same axes all the time, often the same array.
        if self._joints is None or (axes is not self._joints_axes and not np.array_equal(axes, self._joints.axes)):
            self._joints = JointTracker(self.cover, axes, self.config.angle_tolerance, null_space=self._null_space)
        self._joints_axes = axes
        return self._joints
