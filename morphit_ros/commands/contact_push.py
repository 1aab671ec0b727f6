"""`morphit contact push`: an arm pushes a box or a bottle, or rolls a ball, to a goal on the table through contact.

The hand, or the forearm, starts at the object; the plan is replayed in MuJoCo with the robot's meshes, renewed on the
way by where the object is, unless --no-replay is given. Exit status 1: no plan that may be carried out, or a replay
that does not end at rest within the tolerances.
"""

from __future__ import annotations

import argparse

from morphit_ros.commands.contact_spinner import add_trajectory, plan_report, print_plan, write_trajectory
from morphit_ros.commands.options import add_config, read_config
from morphit_ros.commands.output_files import ResultFiles, add_json, plain
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import say
from morphit_ros.compilation import telling_of_compilation


def add_options(parser: CommandParser) -> None:
    from morphit_ros.contact_push.push_config import ContactPushConfig

    parser.add_argument("--robot", metavar="ROBOT", default="panda", help="an arm of config/robots (default: panda)")
    add_config(
        parser,
        ContactPushConfig,
        "object",
        "size",
        "mass",
        "start",
        "way",
        "position_tolerance",
        "rotation_tolerance",
        "time",
    )
    parser.add_argument("--no-replay", action="store_true", help="plan only")
    add_trajectory(parser)
    add_json(parser)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    from morphit_ros.contact_push.push_config import ContactPushConfig

    config = read_config(options, ContactPushConfig)
    import math

    from morphit_ros.contact_push.push import ContactPush
    from morphit_ros.replay.contact_push import replay_push

    say("spheres of the arm")
    push = ContactPush(config, options.robot)
    say("planning")
    plan = push.plan()
    report = plan_report(plan)
    good = plan.success
    if good and not options.no_replay:
        say("replay in MuJoCo")
        replay = replay_push(push, plan, push.following)
        report |= {
            "replayed_miss": replay.miss, "replayed_turn": replay.turn, "replayed_speed": replay.speed,
            **plain(replay, "renewed", "refused"),
        }  # fmt: skip
        good = replay.success
    with ResultFiles() as files:
        if options.trajectory and plan.success:
            names = [*push.robot.arm_joints, "x", "y", "z", "quat_x", "quat_y", "quat_z", "quat_w"]
            write_trajectory(files, options.trajectory, plan, names)
        if options.json != "-":
            print_plan(report)
            if "replayed_miss" in report:
                turn = math.degrees(report["replayed_turn"])
                print(f"  {'MuJoCo, from the goal':<26}{1e3 * report['replayed_miss']:.1f} mm, {turn:.1f}°")
        files.json(report, options.json)
    return 0 if good else 1
