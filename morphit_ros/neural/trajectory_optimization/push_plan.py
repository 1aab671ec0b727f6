"""A planned push: the sphere's motion and forces, and where the object goes."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.dynamics.state import subtract_states
from morphit_ros.neural.trajectory_optimization.ilqr import TrajectoryStatus
from morphit_ros.neural.trajectory_optimization.push_config import PushConfig


class PlanOrigin(enum.Enum):
    """Where a plan comes from; what planning anew returns is never judged worse than the rest of the old plan."""

    PLANNED = "planned as a whole"
    ANEW = "made anew from where object and sphere were seen: better than the rest of the old plan"
    KEPT = "the rest of the old plan, from where object and sphere were seen: nothing better was found"
    UNJUDGED = "the rest of the old plan as it was planned: the simulation refuses what was seen"


# The time between two looks is longer than what planning took by this factor.
_MARGIN = 1.25


@dataclass(frozen=True)
class PushPlan:
    """A motion of the sphere and where the object goes with it.

    Attributes:
        status: outcome of the optimisation.
        message: for people.
        config: of the task.
        goal: (3,) wanted position of the object's centre of mass [m].
        times: (T + 1,) [s].
        states: (T + 1, 2, 13) of object and sphere, as in `BodyState.flat`.
        forces: (T, 3) on the sphere's centre, besides what carries its weight [N].
        gains: (T, 3, 24) feedback [N]: forces + gains (x − states) in tangents.
        cost: of the trajectory, as the paper counts it.
        violation: the worst violation of the goal [`length`, and speeds in its root].
        iterations: of the optimiser.
        seconds: that planning took.
        goal_quat_xyzw: (4,) how the object should lie there; counts in the cost only.
        pusher_goal: (3,) wanted position of the sphere's centre [m].
        origin: whether it was made anew or kept.
        multipliers: of the goal's constraints, with which planning anew begins.
    """

    status: TrajectoryStatus
    message: str
    config: PushConfig
    goal: Array
    times: Array
    states: Array
    forces: Array
    gains: Array
    cost: float
    violation: float
    iterations: int
    seconds: float
    goal_quat_xyzw: Array
    pusher_goal: Array
    origin: PlanOrigin = PlanOrigin.PLANNED
    multipliers: tuple[Array, ...] = ()

    @property
    def period(self) -> float:
        """Shortest time between two looks for which planning took no longer: whole steps of the plan [s]."""
        step = self.config.timestep
        return step * max(1, int(np.ceil(_MARGIN * self.seconds / step)))

    @property
    def success(self) -> bool:
        """Whether the goal is reached to within the optimiser's tolerance."""
        if self.origin is PlanOrigin.UNJUDGED:
            return False
        return self.status in (TrajectoryStatus.CONVERGED, TrajectoryStatus.FEASIBLE)

    @property
    def object_positions(self) -> Array:
        """(T + 1, 3) of the centre of mass [m]."""
        return self.states[:, 0, :3]

    @property
    def object_quats_xyzw(self) -> Array:
        """(T + 1, 4)."""
        return self.states[:, 0, 3:7]

    @property
    def pusher_positions(self) -> Array:
        """(T + 1, 3) of the sphere's centre [m]."""
        return self.states[:, 1, :3]

    @property
    def pusher_velocities(self) -> Array:
        """(T + 1, 3) [m/s]."""
        return self.states[:, 1, 7:10]

    def force(self, index: int, states: Array) -> Array:
        """(3,) force on the sphere in a step, with feedback on where object and sphere are: states (2, 13) [N]."""
        away = subtract_states(states, self.states[index])
        force = self.forces[index] + self.gains[index] @ away
        largest = self.config.largest_force or np.inf
        return np.clip(force, -largest, largest)

    @property
    def miss(self) -> float:
        """Distance of the object from its goal at the end [m]."""
        return float(np.linalg.norm(self.object_positions[-1] - self.goal))
