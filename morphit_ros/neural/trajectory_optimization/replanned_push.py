"""A push whose plan is made anew every few steps from where things are seen."""

from __future__ import annotations

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.trajectory_optimization.push import replan_push
from morphit_ros.neural.trajectory_optimization.push_plan import PlanOrigin, PushPlan


class ReplanningPush:
    """Forces of a plan that is made anew every few steps from what is seen: feedback for a replay or a robot."""

    def __init__(
        self, body: ContactBody, plan: PushPlan, every: int = 5, iterations: int = 6, time_limit: float = 0.0
    ) -> None:
        """
        Args:
            body: as it was planned for.
            plan: of the whole push.
            every: steps from one look to the next.
            iterations: bound on the optimiser's work at a look.
            time_limit: see `replan_push` [s].

        Raises:
            InvalidInputError: `every` or `iterations` below one.
        """
        for name, value in (("every", every), ("iterations", iterations)):
            if value < 1:
                raise InvalidInputError(name, value, "at least 1")
        self._body, self._plan, self._every = body, plan, every
        self._effort = iterations, time_limit
        self._first = 0
        self.seconds: list[float] = []
        """What planning took at each look [s]."""
        self.origins: list[PlanOrigin] = []
        """Whether the plan of each look was made anew or kept."""

    def __call__(self, index: int, states: Array) -> Array:
        """(3,) force on the sphere [N] in step `index` of the whole push, seen (2, 13) of object and sphere."""
        if index > 0 and index % self._every == 0:
            self._plan = replan_push(self._body, self._plan, index - self._first, states, *self._effort)
            self._first = index
            self.seconds.append(self._plan.seconds)
            self.origins.append(self._plan.origin)
        return self._plan.forces[index - self._first]
