"""`morphit neural push`: plan how to push an object to a goal, and try the plan in MuJoCo."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.output_files import check_output
from morphit_ros.commands.reports import add_json_option, say, write_json
from morphit_ros.compilation import telling_of_compilation

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


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "push",
        help="plan a push to a goal and replay it",
        description=(
            "Plan how a sphere pushes a resting object to a goal, replay the plan in MuJoCo with the object as convex "
            "pieces and, for a box, with the simulated arm. The object is a box, or a density field."
        ),
    )
    parser.add_argument("field", nargs="?", metavar="FIELD", help="a field (.npz) in metres; none: a box")
    parser.add_argument(
        "--size", type=float, nargs=3, default=(0.06, 0.10, 0.04), metavar="M", help="of the box (default: .06 .10 .04)"
    )
    parser.add_argument("--mass", type=float, default=0.2, metavar="KG", help="of the object (default: %(default)s)")
    parser.add_argument(
        "--goal", type=float, nargs=2, default=(0.15, 0.03), metavar="M", help="way of the object (default: .15 .03)"
    )
    parser.add_argument(
        "--friction", type=float, default=0.3, metavar="MU", help="of object, ground and sphere (default: %(default)s)"
    )
    parser.add_argument("--duration", type=float, default=2.4, metavar="S", help="of the push (default: %(default)s)")
    parser.add_argument("--arm", metavar="ROBOT", help="also push a box with this arm of config/robots, such as panda")
    parser.add_argument(
        "--iterations", type=int, metavar="N", help="most steps of the optimiser in all (default: until it converges)"
    )
    parser.add_argument("--picture", metavar="FILE", help="the push from above (PNG)")
    add_json_option(parser)
    parser.set_defaults(run=run)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    _check_options(options)
    if options.arm:
        _check_arm(options)
    import numpy as np

    from morphit_ros.geometry.transforms import make_transform, matrix_from_quat_xyzw
    from morphit_ros.neural.trajectory_optimization.push_failure import explain_failure
    from morphit_ros.replay.push import Drive, ReplayConfig, pusher_motion, replay_push
    from morphit_ros.replay.push_picture import draw_push

    item, body, plan = _planned(options)
    ways: dict[str, Any] = {}
    report: dict[str, Any] = {
        "status": plan.status.name.lower(),
        "message": plan.message,
        "seconds": plan.seconds,
        "iterations": plan.iterations,
        "goal": plan.goal.tolist(),
        "planned_miss": plan.miss,
    }
    if plan.success:
        T_world_body = make_transform(matrix_from_quat_xyzw(plan.states[0, 0, 3:7]), plan.states[0, 0, :3])
        say("replay in MuJoCo")
        replay = replay_push(
            item, T_world_body, pusher_motion(plan), Drive.MOTION, ReplayConfig(friction=options.friction)
        )
        ways["MuJoCo"] = replay.positions
        report["mujoco_miss"] = float(np.linalg.norm(replay.positions[-1, :2] - plan.goal[:2]))
        if options.arm:
            say(f"push with {options.arm}")
            report |= _push_with_arm(options, body, plan, ways)
    else:
        report["reason"] = explain_failure(plan)
    if options.picture:
        say("picture")
        draw_push(body, plan, ways, options.picture)
    if options.json != "-":
        _print_report(report)
    if options.json:
        write_json(report, options.json)
    return 0 if plan.success and not report.get("arm_problem") else 1


def _check_options(options: argparse.Namespace) -> None:
    """What needs neither the object nor a robot's model."""
    import math

    from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
    from morphit_ros.neural.contact.parameters import GRAVITY

    if options.field and options.arm:
        raise InvalidInputError("--arm", options.arm, "no FIELD", "The workcell's object is a box.")
    if options.field and not Path(options.field).is_file():
        raise ResourceNotFoundError(options.field, [], "Give a field that `morphit neural train` wrote.")
    for option, file in (("--picture", options.picture), ("--json", options.json)):
        check_output(option, None if file == "-" else file)
    lengths = [("--size", length) for length in options.size]
    for option, number in (*lengths, ("--mass", options.mass), ("--duration", options.duration)):
        if not (math.isfinite(number) and number > 0.0):
            raise InvalidInputError(option, number, "a positive number")
    if options.iterations is not None and options.iterations < 1:
        raise InvalidInputError("--iterations", options.iterations, "1 or more")
    # The plan takes more than the replay and the workcell do.
    least, most = (_LEAST_ARM_FRICTION if options.arm else 0.0), _LARGEST_FRICTION
    if not least <= options.friction <= most:
        raise InvalidInputError("--friction", options.friction, f"{least:g} to {most:g}")
    length = math.hypot(*options.goal)
    given = "{:g} {:g}".format(*options.goal)
    if not (math.isfinite(length) and length >= _SHORTEST_WAY):
        raise InvalidInputError("--goal", given, f"a way of {_SHORTEST_WAY:g} m or more")
    # However it is struck, friction alone stops it: from speed μ g t in the time t, on half of that times t.
    stopped = 0.5 * options.friction * GRAVITY * options.duration**2
    if length > stopped:
        raise InvalidInputError(
            "--goal", given, f"a way of at most {stopped:.3g} m, on which friction {options.friction:g} stops the "
            f"object within {options.duration:g} s", "Choose a nearer goal, a longer --duration or more --friction.",
        )  # fmt: skip
    if not options.field:
        _check_speed(options, math.hypot(*options.size))


def _check_arm(options: argparse.Namespace) -> None:
    """The robot's name and its reach; before the simulator is loaded."""
    from morphit_ros.robot.configuration import RobotConfiguration

    robot = RobotConfiguration.load(options.arm)

    import numpy as np

    from morphit_ros.replay.push_reach import check_push_reach

    way = np.array(options.goal)
    size = np.array(options.size)
    behind = 0.5 * float(np.abs(way) @ size[:2] / np.hypot(*way)) + _GAP * _RADIUS * float(np.linalg.norm(size))
    check_push_reach(robot, way, behind, 0.5 * float(size[2]))


def _check_speed(options: argparse.Namespace, size: float) -> None:
    """Refuse a way on which the sphere would move by more than its radius in a step: it could pass through things."""
    from math import hypot

    from morphit_ros.errors import InvalidInputError
    from morphit_ros.neural.contact.parameters import largest_implicit_step

    radius = _RADIUS * size
    most = radius * options.duration / largest_implicit_step(size)
    if hypot(*options.goal) > most:
        raise InvalidInputError(
            "--goal", "{:g} {:g}".format(*options.goal), f"a way of at most {most:.3g} m in {options.duration:g} s, "
            f"on which the sphere moves by less than its radius, {radius:.3g} m, in a step of the simulation",
            "Choose a nearer goal or a longer --duration.",
        )  # fmt: skip


@contextmanager
def _planning() -> Iterator[Callable[[int, float, float], None]]:
    """Tells of the optimiser's steps: a bar in a terminal, a line now and then elsewhere."""
    from tqdm import tqdm

    terminal = sys.stderr.isatty()
    say("planning")
    with tqdm(desc="planning", unit="step", disable=not terminal) as bar:

        def progress(iteration: int, cost: float, miss: float) -> None:
            text = f"cost {cost:.4g}, {1e3 * miss:.1f} mm from the goal"
            bar.set_postfix_str(text, refresh=False)
            bar.update(iteration - bar.n)
            if not terminal and iteration % _LINE_EVERY == 0:
                say(f"planning, step {iteration}: {text}")

        yield progress


def _planned(options: argparse.Namespace) -> tuple[SimulatedObject, ContactBody, PushPlan]:
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

        solid, body = load_body(options.field, options.mass)
        T_body_field = make_transform(translation=-body.center_of_mass)
        _check_speed(options, body.size)
        pieces = convex_pieces(solid.surface.transformed(T_body_field))
    else:
        from morphit_ros.replay.panda_push import box_for_push

        standing, body = box_for_push(tuple(options.size), options.mass)
        T_body_object = make_transform(translation=-standing.center_of_mass)
        pieces = [piece.transformed(T_body_object) for piece in standing.pieces]
    item = body_in_pieces(body, pieces, options.field or "box")
    radius = _RADIUS * body.size
    way = np.array(options.goal)
    config = PushConfig.scaled(body, float(np.hypot(*way)), options.duration, options.friction, radius)
    if options.iterations is not None:
        config = replace(config, optimization=replace(config.optimization, total_iterations=options.iterations))
    say("resting pose")
    lowest = float(body.points[:, 2].min())
    start = rest_on_plane(body, BodyState(np.array([*START, 1e-3 * body.size - lowest])), config)
    turned = body.points @ matrix_from_quat_xyzw(start.quat_xyzw).T
    pusher = place_pusher(start, turned, way, radius, options.friction, _GAP)
    with _planning() as progress:
        plan = plan_push(body, start, start.position[:2] + way, pusher, config=config, progress=progress)
    return item, body, plan


def _push_with_arm(
    options: argparse.Namespace, body: ContactBody, plan: PushPlan, ways: dict[str, Any]
) -> dict[str, Any]:
    import numpy as np

    from morphit_ros.replay.panda_push import PushingArm, box_for_push, workcell_for_push

    item, _ = box_for_push(tuple(options.size), options.mass)
    with workcell_for_push(item, options.friction, options.arm) as workcell:
        done = PushingArm(options.arm).push(workcell, body, plan)
    if done.problem:
        return {"arm_problem": done.problem}
    ways[options.arm] = done.positions
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
