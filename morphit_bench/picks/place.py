"""Picks that end with the object put down, and how far from where it should stand it then stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from morphit_bench.picks.outcome import PickResult
from morphit_bench.picks.pick import PickJob, follow
from morphit_bench.picks.views import ObjectView
from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.contact_watch import FreeMotion
from morphit_ros.execution.handling import PUSHING, HandRequest, HandSequence, HandStage, HandUpdate
from morphit_ros.execution.held import HeldGrasp, Surroundings
from morphit_ros.execution.pick import PickRequest
from morphit_ros.execution.places import PlaceRegion, free_places
from morphit_ros.execution.pushing import Push
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.geometry.transforms import Array, invert_transform, rotation_angle
from morphit_ros.grasping import GraspPlan
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.solids import Solid
from morphit_ros.simulation.workcell import Workcell

# Bounds of a place that counts [m], [rad].
MAX_OFFSET, MAX_TURN = 0.005, np.radians(5.0)
# Time for an object that was let go of to come to rest [s].
_REST = 1.0
# Of the straight way down; and of all that putting down may take [s].
_HEIGHT, _LONGEST = 0.1, 60.0
_PUTTING_DOWN = HandStage.TRANSFER, HandStage.SET_DOWN, HandStage.RELEASE, HandStage.RETREAT


@dataclass(frozen=True)
class PlaceResult:
    """What became of a pick and a place.

    Attributes:
        pick: what became of the pick; where it failed nothing was placed.
        stage: of the place where it failed: request, a stage of the hand's sequence, or result; empty on success.
        message: the cause of a failure.
        offset: from where it should stand, its centre of mass [m].
        turn: the same as an angle [rad].
        lean: of its own vertical, as it stood, from the vertical [rad].
        durations: stage → simulated seconds.
    """

    pick: PickResult
    stage: str = ""
    message: str = ""
    offset: float = float("nan")
    turn: float = float("nan")
    lean: float = float("nan")
    durations: dict[str, float] = field(default_factory=dict)

    @property
    def success(self) -> bool:
        """Whether it was picked, and stands within the bounds of where it should."""
        return self.pick.success and not self.stage


def pick_and_place(
    job: PickJob, workcell: Workcell, T_world_region: Array, size: Array, setting: str = "observed", seed: int = 0
) -> PlaceResult:
    """Pick the object of a workcell, and put it into a region.

    Args:
        job: the robot.
        workcell: at rest.
        T_world_region, size: of `PlaceRegion`, in the world.
        setting, seed: of `PickJob.pick`.
    """
    before = workcell.object_pose()
    seen: list[tuple[ObjectView, GraspPlan]] = []
    pick = job.pick(workcell, setting, seed=seed, on_plan=lambda view, plan: seen.append((view, plan)))
    if not pick.success:
        return PlaceResult(pick)
    view, plan = seen[-1]
    number = next(n for n, g in enumerate(plan.grasps) if g.T_world_gripper.tolist() == pick.T_world_gripper)
    held = held_grasp(job, workcell, view, job.request(workcell, view, plan), number)
    try:
        places = free_places(held, PlaceRegion(invert_transform(workcell.T_world_base) @ T_world_region, size))
    except InvalidInputError as error:
        return PlaceResult(pick, "request", str(error))
    update, put_down, durations = put_down_at(job, workcell, held, places)
    result = PlaceResult(pick, durations=durations)
    if not update.success or put_down is None:
        failed = (update.failed_stage or update.stage).value
        return replace(result, stage=failed, message=update.message or "no end within the time limit")
    workcell.step(_REST)
    chosen = min(places, key=lambda place: float(np.linalg.norm((place - put_down)[:3])))
    return _judged(result, workcell, before, chosen @ invert_transform(held.T_base_gripper))


def held_grasp(job: PickJob, workcell: Workcell, view: ObjectView, request: PickRequest, number: int) -> HeldGrasp:
    """What a pick knows of what it has lifted.

    Args:
        job: the robot.
        workcell: with the object in the hand.
        view: of the object before.
        request: of the pick.
        number: of the candidate that was executed.
    """
    T_base_world, state = invert_transform(workcell.T_world_base), workcell.joint_state()
    planned = request.candidates[number]
    assert view.cloud is not None
    points = view.cloud.transformed(invert_transform(planned.T_base_gripper) @ T_base_world).points
    positions = state.as_dict()
    aperture = job.robot.aperture(positions) or 0.0
    return HeldGrasp(
        planned.T_base_gripper,
        planned.T_base_pregrasp,
        aperture,
        0.02,
        planned.open_aperture,
        points,
        Surroundings(request.table, request.obstacles),
    )


def put_down_at(
    job: PickJob,
    workcell: Workcell,
    held: HeldGrasp,
    places: Sequence[Array],
    height: float = _HEIGHT,
    solids: Sequence[Solid] = (),
    opens_further: float = 0.0,
    config: SequenceConfig | None = None,
) -> tuple[HandUpdate, Array | None, dict[str, float]]:
    """The end of the hand's sequence, where it let go (4, 4), and stage → simulated seconds.

    Args:
        job: the robot.
        workcell: with the object in the hand.
        held: what the hand holds.
        places: (4, 4) of the gripper where it may let go, best first.
        height: of the straight way down [m].
        solids: what is known to be there, in the base frame.
        opens_further: than before the grasp [m].
        config: speeds and times; None for the defaults. What the pick has weighed (`held.load`) is weighed again.
    """
    request = HandRequest(
        _PUTTING_DOWN, _gripper_pose(job), held, held.around, tuple(solids), places=tuple(places), height=height,
        aperture=held.open_aperture + opens_further,
    )  # fmt: skip
    return _run(job, workcell, request, config)


def recover(
    job: PickJob,
    workcell: Workcell,
    around: Surroundings,
    target: str,
    solids: Sequence[Solid] = (),
    config: SequenceConfig | None = None,
) -> bool:
    """Open the hand where it is, go up and home, as the action `recover` does with `open`; whether that went well.

    Args:
        job: the robot.
        workcell: with the hand anywhere.
        around: what stands there, in the base frame.
        target: of these, what the hand may touch on its way up; empty for nothing.
        solids: what is known to be there, in the base frame.
        config: speeds and times; None for the defaults.
    """
    stages = HandStage.RELEASE, HandStage.RETREAT, HandStage.HOME
    request = HandRequest(stages, _gripper_pose(job), None, around, tuple(solids), target, height=_HEIGHT)
    return bool(_run(job, workcell, request, config)[0].success)


def push_aside(
    job: PickJob,
    workcell: Workcell,
    ways: Sequence[Push],
    target: str,
    around: Surroundings,
    solids: Sequence[Solid] = (),
    config: SequenceConfig | None = None,
) -> tuple[HandUpdate, dict[str, float]]:
    """Push an object the first way that the arm can: the end of the hand's sequence, stage → simulated seconds.

    Args:
        job: the robot.
        workcell: with an empty hand.
        ways: of `execution.pushing.pushes`.
        target: name of the object among the obstacles around.
        around: what stands there, in the base frame.
        solids: what is known to be there, in the base frame.
        config: speeds and times; None for the defaults.
    """
    request = HandRequest(
        PUSHING, _gripper_pose(job), None, around, tuple(solids), target, height=_HEIGHT, pushes=tuple(ways)
    )
    update, _, durations = _run(job, workcell, request, config)
    return update, durations


def _gripper_pose(job: PickJob) -> Callable[[Mapping[str, float]], Array]:
    return partial(job.robot.gripper_pose, KinematicModel(load_robot_description(job.robot.description)))


def _run(
    job: PickJob, workcell: Workcell, request: HandRequest, config: SequenceConfig | None
) -> tuple[HandUpdate, Array | None, dict[str, float]]:
    sequence = HandSequence(
        job.backend, job.robot, job.limits, config or SequenceConfig(), "simulated clock", FreeMotion(), job.scale
    )
    sequence.start(request, workcell.joint_state(), workcell.time)
    update, durations = follow(workcell, sequence, _LONGEST)
    return update, sequence.put_down, durations


def _judged(result: PlaceResult, workcell: Workcell, before: Array, T_base_moved: Array) -> PlaceResult:
    T_world_base = workcell.T_world_base
    expected = T_world_base @ T_base_moved @ invert_transform(T_world_base) @ before
    pose, center = workcell.object_pose(), np.append(workcell.object.center_of_mass, 1.0)
    offset = float(np.linalg.norm(((pose - expected) @ center)[:3]))
    turn = rotation_angle(expected[:3, :3].T @ pose[:3, :3])
    # The vertical in the object's frame, before and now.
    lean = float(np.arccos(np.clip(before[2, :3] @ pose[2, :3], -1.0, 1.0)))
    result = replace(result, offset=offset, turn=turn, lean=lean)
    if workcell.diverged:
        return replace(result, stage="simulation", message="the physics diverged")
    if offset <= MAX_OFFSET and turn <= MAX_TURN:
        return result
    text = f"{1e3 * offset:.1f} mm and {np.degrees(turn):.1f}° from its place, leaning by {np.degrees(lean):.1f}°"
    return replace(result, stage="result", message=text)
