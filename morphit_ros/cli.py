"""`morphit`: the package without a ROS graph, and its jobs without ros2 launch.

Exit status: 0 success, 1 no result (no grasp, a job that failed), 2 a mistake in the input.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from morphit_ros.commands import (
    arm,
    calibrate_poses,
    calibrate_record,
    calibrate_simulate,
    calibrate_solve,
    check,
    cloth,
    contact_push,
    contact_spinner,
    cover_place,
    cover_run,
    cover_torque,
    cover_view,
    demo,
    distance,
    grasp,
    kernels,
    neural_identify,
    neural_import,
    neural_push,
    neural_record,
    neural_train,
    record,
    replay,
    robot_init,
    sample,
    show,
    sketch,
    spheres_compare,
    spheres_export,
    spheres_fit,
    spheres_front,
    spheres_library,
    spheres_view,
    superovoid_fit,
    up,
)
from morphit_ros.commands.output_files import check_outputs
from morphit_ros.commands.parser import CommandParser, add_command, add_group
from morphit_ros.dependencies import needed_for
from morphit_ros.errors import MorphitError

# Whatever takes time to import, commands import when they are completed or run. A group has a name, a summary, a
# description and commands.
_COMMANDS = (
    up,
    check,
    record,
    replay,
    arm,
    ("robot", "files of a robot of your own", "Files that describe a robot and its gripper.", (robot_init,)),
    (
        "calibrate",
        "find where the cameras stand, with the robot's arm as the target",
        "Where two depth cameras stand on a robot: move the arm, record, solve; no board is needed.",
        (calibrate_record, calibrate_solve, calibrate_poses, calibrate_simulate),
    ),
    (
        "cover",
        "morphing covers: run a case, place motors, weigh, watch",
        "A cover of plates that changes a robot's shape: its controller in simulation, and its motors.",
        (cover_run, cover_place, cover_torque, cover_view),
    ),
    (
        "contact",
        "plans through contact: push a box with an arm, turn a disk",
        "Motions that move objects by touching them with any part of the arm, found by trajectory optimisation.",
        (contact_push, contact_spinner),
    ),
    cloth,
    demo,
    show,
    grasp,
    (
        "spheres",
        "sphere models of robots",
        "Sphere models of robots.",
        (spheres_fit, spheres_front, spheres_view, spheres_export, spheres_compare, spheres_library),
    ),
    ("superovoid", "superovoid models of robots", "Superovoid models.", (superovoid_fit,)),
    distance,
    sketch,
    (
        "neural",
        "record, import, learn, identify and push objects known only from cameras",
        "Density fields of objects from posed pictures: record in simulation or import, train, identify, push.",
        (neural_record, neural_import, neural_train, neural_identify, neural_push),
    ),
    sample,
    kernels,
)


def make_parser() -> CommandParser:
    """The parser of the whole command line."""
    parser = CommandParser(
        prog="morphit",
        description="A sense of shape for robots: spheres for links, contact-stable grasps, and whole jobs.",
        epilog="Exit status: 0 success, 1 no result, 2 a mistake in the input. --help after a command tells more.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        if isinstance(command, tuple):
            add_group(commands, *command)
        else:
            add_command(commands, command)
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    try:
        with needed_for("this command"):
            options = make_parser().parse_args(sys.argv[1:] if words is None else words)
            check_outputs(options)
            status: int = options.run(options)
        sys.stdout.flush()
        return status
    except MorphitError as error:
        print(f"morphit: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (`| head`) has gone: nothing more to say, and nothing to flush at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
