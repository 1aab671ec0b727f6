"""`morphit neural push`: plan a push to a goal and replay it.

Plan how a sphere pushes a resting object to a goal, replay the plan in MuJoCo with the object as convex pieces and,
for a box, with the simulated arm. The object is a box, or a density field.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.options import add_config, read_config
from morphit_ros.commands.output_files import PICTURES, ResultFiles, add_json, add_output, plain
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import progress_bar, say
from morphit_ros.compilation import telling_of_compilation
from morphit_ros.configuration import Config, parameter

if TYPE_CHECKING:
    from morphit_ros.neural.body import ContactBody
    from morphit_ros.neural.trajectory_optimization.push_plan import PushPlan
    from morphit_ros.simulation.objects import SimulatedObject

# The sphere begins this many of its radii away from the object.
_GAP = 0.5
# Radius of the sphere, in diagonals of the object.
_RADIUS = 0.1
# What plan, replay and, with an arm, workcell all take; and the shortest way that is a push [m].
_LARGEST_FRICTION, _LEAST_ARM_FRICTION, _SHORTEST_WAY = 2.0, 0.05, 1e-3
# Where there is no terminal, a line after so many steps of the optimiser.
_LINE_EVERY = 10


@dataclass(frozen=True)
class TaskConfig(Config):
    """What is pushed where."""

    size: tuple[float, ...] = parameter((0.06, 0.10, 0.04), "Of the box [m]", minimum=1e-4, maximum=1e3, length=3)
    mass: float = parameter(0.2, "Of the object [kg]", minimum=1e-6, maximum=1e6)
    goal: tuple[float, ...] = parameter((0.15, 0.03), "Way of the object [m]", length=2)
    friction: float = parameter(0.3, "Of object, ground and sphere")
    duration: float = parameter(2.4, "Of the push [s]", minimum=1e-3, maximum=1e4)
    iterations: int = parameter(1000, "Most steps of the optimiser in all", minimum=1, maximum=10**6)

    @property
    def box(self) -> tuple[float, float, float]:
        """The size of the box [m]."""
        x, y, z = self.size
        return x, y, z


def add_options(parser: CommandParser) -> None:
    parser.add_argument("field", nargs="?", metavar="FIELD", help="a field (.npz) in metres; none: a box")
    add_config(parser, TaskConfig, "size", "mass", "goal", "friction", "duration")
    parser.add_argument("--arm", metavar="ROBOT", help="also push a box with this arm of config/robots, such as panda")
    add_config(parser, TaskConfig, "iterations", none="until it converges")
    add_output(parser, "--picture", "the push from above (PNG)", suffixes=PICTURES)
    add_json(parser)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    task = read_config(options, TaskConfig)
    _check_options(options, task)
    if options.arm:
        _check_arm(options.arm, task)
    import numpy as np

    from morphit_ros.geometry.transforms import make_transform, matrix_from_quat_xyzw
    from morphit_ros.neural.trajectory_optimization.push_failure import explain_failure
    from morphit_ros.replay.push import Drive, ReplayConfig, pusher_motion, replay_push
    from morphit_ros.replay.push_picture import draw_push

    item, body, plan = _planned(options, task)
    ways: dict[str, Any] = {}
    report: dict[str, Any] = {
        "status": plan.status.name.lower(),
        **plain(plan, "message", "seconds", "iterations", "goal"),
        "planned_miss": plan.miss,
    }
    if plan.success:
        T_world_body = make_transform(matrix_from_quat_xyzw(plan.states[0, 0, 3:7]), plan.states[0, 0, :3])
        say("replay in MuJoCo")
        replay = replay_push(
            item, T_world_body, pusher_motion(plan), Drive.MOTION, ReplayConfig(friction=task.friction)
        )
        ways["MuJoCo"] = replay.positions
        report["mujoco_miss"] = float(np.linalg.norm(replay.positions[-1, :2] - plan.goal[:2]))
        if options.arm:
            say(f"push with {options.arm}")
            report |= _push_with_arm(options.arm, task, body, plan, ways)
    else:
        report["reason"] = explain_failure(plan)
    with ResultFiles() as files:
        if options.picture:
            say("picture")
            files.write("--picture", options.picture, lambda path: draw_push(body, plan, ways, path))
        if options.json != "-":
            _print_report(report)
        files.json(report, options.json)
    return 0 if plan.success and not report.get("arm_problem") else 1


def _check_options(options: argparse.Namespace, task: TaskConfig) -> None:
    """What needs neither the object nor a robot's model."""
    import math

    from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
    from morphit_ros.neural.contact.parameters import GRAVITY

    if options.field and options.arm:
        raise InvalidInputError("--arm", options.arm, "no FIELD", "The workcell's object is a box.")
    if options.field and not Path(options.field).is_file():
        raise ResourceNotFoundError(options.field, [], "Give a field that `morphit neural train` wrote.")
    # The plan takes more than the replay and the workcell do.
    least, most = (_LEAST_ARM_FRICTION if options.arm else 0.0), _LARGEST_FRICTION
    if not least <= task.friction <= most:
        raise InvalidInputError("--friction", task.friction, f"{least:g} to {most:g}")
    length = math.hypot(*task.goal)
    given = "{:g} {:g}".format(*task.goal)
    if not (math.isfinite(length) and length >= _SHORTEST_WAY):
        raise InvalidInputError("--goal", given, f"a way of {_SHORTEST_WAY:g} m or more")
    # However it is struck, friction alone stops it: from speed μ g t in the time t, on half of that times t.
    stopped = 0.5 * task.friction * GRAVITY * task.duration**2
    if length > stopped:
        raise InvalidInputError(
            "--goal", given, f"a way of at most {stopped:.3g} m, on which friction {task.friction:g} stops the "
            f"object within {task.duration:g} s", "Choose a nearer goal, a longer --duration or more --friction.",
        )  # fmt: skip
    if not options.field:
        _check_speed(task, math.hypot(*task.size))


def _check_arm(arm: str, task: TaskConfig) -> None:
    """The robot's name and its reach; before the simulator is loaded."""
    from morphit_ros.robot.configuration import RobotConfiguration

    robot = RobotConfiguration.load(arm)

    import numpy as np

    from morphit_ros.replay.push_reach import check_push_reach

    way = np.array(task.goal)
    size = np.array(task.size)
    behind = 0.5 * float(np.abs(way) @ size[:2] / np.hypot(*way)) + _GAP * _RADIUS * float(np.linalg.norm(size))
    check_push_reach(robot, way, behind, 0.5 * float(size[2]))


def _check_speed(task: TaskConfig, size: float) -> None:
    """Refuse a way on which the sphere would move by more than its radius in a step: it could pass through things."""
    from math import hypot

    from morphit_ros.errors import InvalidInputError
    from morphit_ros.neural.contact.parameters import largest_implicit_step

    radius = _RADIUS * size
    most = radius * task.duration / largest_implicit_step(size)
    if hypot(*task.goal) > most:
        raise InvalidInputError(
            "--goal", "{:g} {:g}".format(*task.goal), f"a way of at most {most:.3g} m in {task.duration:g} s, "
            f"on which the sphere moves by less than its radius, {radius:.3g} m, in a step of the simulation",
            "Choose a nearer goal or a longer --duration.",
        )  # fmt: skip


@contextmanager
def _planning() -> Iterator[Callable[[int, float, float], None]]:
    """Tells of the optimiser's steps: a bar in a terminal, a line now and then elsewhere."""
    say("planning")
    with progress_bar("planning", "step") as bar:

        def progress(iteration: int, cost: float, miss: float) -> None:
            text = f"cost {cost:.4g}, {1e3 * miss:.1f} mm from the goal"
            bar(iteration, text)
            if not sys.stderr.isatty() and iteration % _LINE_EVERY == 0:
                say(f"planning, step {iteration}: {text}")

        yield progress


def _planned(options: argparse.Namespace, task: TaskConfig) -> tuple[SimulatedObject, ContactBody, PushPlan]:
    """The object, its body and the plan; the object starts where the workcell has it."""
    import numpy as np

    from morphit_ros.geometry.transforms import make_transform, matrix_from_quat_xyzw
    from morphit_ros.neural.dynamics.state import BodyState
    from morphit_ros.neural.trajectory_optimization.push import plan_push, rest_on_plane
    from morphit_ros.neural.trajectory_optimization.push_config import PushConfig
    from morphit_ros.neural.trajectory_optimization.pusher_start import place_pusher
    from morphit_ros.replay.push import body_in_pieces
    from morphit_ros.replay.push_reach import START

    say(f"object: {options.field or 'box'}")
    if options.field:
        from morphit_ros.commands.neural_field import load_body
        from morphit_ros.simulation.convex_pieces import convex_pieces

        solid, body = load_body(options.field, task.mass)
        T_body_field = make_transform(translation=-body.center_of_mass)
        _check_speed(task, body.size)
        pieces = convex_pieces(solid.surface.transformed(T_body_field))
    else:
        from morphit_ros.replay.panda_push import box_for_push

        standing, body = box_for_push(task.box, task.mass)
        T_body_object = make_transform(translation=-standing.center_of_mass)
        pieces = [piece.transformed(T_body_object) for piece in standing.pieces]
    item = body_in_pieces(body, pieces, options.field or "box")
    radius = _RADIUS * body.size
    way = np.array(task.goal)
    config = PushConfig.scaled(body, float(np.hypot(*way)), task.duration, task.friction, radius)
    if options.iterations is not None:
        config = replace(config, optimization=replace(config.optimization, total_iterations=task.iterations))
    say("resting pose")
    lowest = float(body.points[:, 2].min())
    start = rest_on_plane(body, BodyState(np.array([*START, 1e-3 * body.size - lowest])), config)
    turned = body.points @ matrix_from_quat_xyzw(start.quat_xyzw).T
    pusher = place_pusher(start, turned, way, radius, task.friction, _GAP)
    with _planning() as progress:
        plan = plan_push(body, start, start.position[:2] + way, pusher, config=config, progress=progress)
    return item, body, plan


def _push_with_arm(
    arm: str, task: TaskConfig, body: ContactBody, plan: PushPlan, ways: dict[str, Any]
) -> dict[str, Any]:
    import numpy as np

    from morphit_ros.replay.panda_push import PushingArm, box_for_push, workcell_for_push

    item, _ = box_for_push(task.box, task.mass)
    with workcell_for_push(item, task.friction, arm) as workcell:
        done = PushingArm(arm).push(workcell, body, plan)
    if done.problem:
        return {"arm_problem": done.problem}
    ways[arm] = done.positions
    return {
        "arm_miss": float(np.linalg.norm(done.positions[-1, :2] - plan.goal[:2])),
        "arm_prediction_error": float(np.linalg.norm((done.positions[-1] - done.predicted)[:2])),
    }


def _print_report(report: dict[str, Any]) -> None:
    print(f"{report['status']}: {report['message']}")
    if "reason" in report:
        print(f"  {'why':<26}{report['reason']}")
    print(f"  {'planned in':<26}{report['seconds']:.1f} s, {report['iterations']} steps of the optimiser")
    for key, text in (
        ("planned_miss", "plan, from the goal"),
        ("mujoco_miss", "MuJoCo, from the goal"),
        ("arm_miss", "arm, from the goal"),
        ("arm_prediction_error", "arm, from its prediction"),
    ):
        if key in report:
            print(f"  {text:<26}{1e3 * report[key]:.1f} mm")
    if "arm_problem" in report:
        print(f"  {'arm':<26}{report['arm_problem']}")
