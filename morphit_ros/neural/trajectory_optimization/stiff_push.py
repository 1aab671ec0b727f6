"""Push plans for contact as hard as real objects': a soft plan first, then harder and finer ones that begin with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.contact.parameters import ContactParameters, largest_implicit_step
from morphit_ros.neural.dynamics.state import BodyState
from morphit_ros.neural.trajectory_optimization.ilqr import TrajectoryStatus
from morphit_ros.neural.trajectory_optimization.push import plan_push, rest_on_plane
from morphit_ros.neural.trajectory_optimization.push_config import PushConfig
from morphit_ros.neural.trajectory_optimization.push_plan import PushPlan


@dataclass(frozen=True)
class StiffnessStage:
    """How hard contact is, and how long the plan is polished with it.

    Attributes:
        spring, damper, width: as in `ContactParameters`. The ratio of damper and spring keeps the sphere from
            bouncing off; a narrow width keeps the patch of contact small, so that the object can turn about it.
        step: longest step of the simulation, relative to the longest that it takes.
        penalty: of the constraints to begin with: the nearer a plan is, the more they can weigh.
        iterations: most steps of the optimiser.
    """

    spring: float
    damper: float
    width: float
    step: float
    penalty: float
    iterations: int

    def halfway_to(self, other: StiffnessStage) -> StiffnessStage:
        """A stage between two, by geometric means."""
        logarithms = 0.5 * (np.log(astuple(self)) + np.log(astuple(other)))
        spring, damper, width, step, penalty, iterations = np.exp(logarithms).tolist()
        return StiffnessStage(spring, damper, width, step, penalty, round(iterations))


# The last stage agrees with MuJoCo: six pushes of a bunny by the same forces end 4 to 35 mm apart.
STAGES = (
    StiffnessStage(spring=3e5, damper=3e6, width=3e-4, step=0.125, penalty=10.0, iterations=40),
    StiffnessStage(spring=1e6, damper=1e7, width=1e-4, step=0.0625, penalty=100.0, iterations=60),
)
_COST_TOLERANCE = 1e-3
# A body is put down from this height, in its sizes.
_DROP = 2e-3


def plan_stiff_push(
    body: ContactBody,
    surface: ContactBody,
    start: BodyState,
    goal: ArrayLike,
    pusher_start: ArrayLike,
    pusher_goal: ArrayLike | None = None,
    config: PushConfig | None = None,
    progress: Callable[[int, float, float], None] | None = None,
) -> PushPlan:
    """Plan a push that holds where contact is hard.

    A plan with soft contact tells how about to push, and costs little; but soft contact holds an object straight that
    would turn away. A plan with hard contact has no use for a bad guess. So: `plan_push` as `config` says, then one
    plan for each of `STAGES`, each beginning with the forces of the one before; where one does not reach the goal, by
    way of a stage in between. It takes two to seven times as long as the first plan alone, with one in between up to
    17 times.

    Args:
        body: contact points for the soft plan.
        surface: the same body with points all over its surface (`surface_body`).
        start, goal, pusher_start, pusher_goal, config, progress: as in `plan_push`; the object lies down anew in every
            stage, since softer contact keeps it a little higher.

    Returns:
        the last plan, whose config is the last stage's: `replan_push` takes it with `surface`.

    Raises:
        InvalidInputError: as `plan_push` and `rest_on_plane`.
    """
    settings = config or PushConfig()
    began, steps = perf_counter(), 0

    def tell(iteration: int, cost: float, miss: float) -> None:
        if progress is not None:
            progress(steps + iteration, cost, miss)

    def harder(stage: StiffnessStage, before: PushPlan, lying: BodyState) -> tuple[PushPlan, BodyState]:
        nonlocal steps
        chosen = staged(settings, stage, surface.size)
        above = np.add(lying.position, [0.0, 0.0, _DROP * surface.size])
        lying = rest_on_plane(surface, BodyState(above, lying.quat_xyzw), chosen)
        plan = plan_push(surface, lying, goal, pusher_start, before.pusher_goal, chosen, before.forces, tell)
        steps += plan.iterations
        return plan, lying

    plan, lying = plan_push(body, start, goal, pusher_start, pusher_goal, settings, progress=tell), start
    steps += plan.iterations
    for previous, stage in zip((None, *STAGES), STAGES, strict=False):
        found = harder(stage, plan, lying)
        if found[0].status is TrajectoryStatus.INFEASIBLE and previous is not None:
            # It left its guess for a cheaper push that does not reach the goal: contact hardened too much at once.
            again = harder(stage, *harder(previous.halfway_to(stage), plan, lying))
            found = min(found, again, key=lambda item: item[0].miss)
        plan, lying = found
    return replace(plan, seconds=perf_counter() - began, iterations=steps)


def staged(config: PushConfig, stage: StiffnessStage, size: float) -> PushConfig:
    """A push with the contact, the step and the optimiser's effort of a stage, for a body of this size [m]."""
    longest = stage.step * largest_implicit_step(size)
    contact = config.contact.to_flat() | {
        "spring": stage.spring, "damper": stage.damper, "indicator_width": stage.width
    }  # fmt: skip
    optimization = replace(
        config.optimization,
        cost_tolerance=max(config.optimization.cost_tolerance, _COST_TOLERANCE),
        initial_penalty=stage.penalty,
        total_iterations=stage.iterations,
    )
    return replace(
        config,
        substeps=max(config.substeps, int(np.ceil(config.timestep / longest))),
        contact=ContactParameters(**contact),
        optimization=optimization,
    )
