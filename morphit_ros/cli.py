"""`morphit`: the package without a ROS graph, and its jobs without ros2 launch.

Exit status: 0 success, 1 no result (no grasp, a job that failed), 2 a mistake in the input.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from morphit_ros.commands import cover, demo, distance, grasp, kernels, neural, sample, spheres, superovoid, up
from morphit_ros.commands.output_files import check_outputs
from morphit_ros.commands.parser import CommandParser
from morphit_ros.errors import MorphitError

# Each adds its parsers; whatever takes time to import, they import when they are completed or run.
_COMMANDS = (up, cover, demo, grasp, spheres, superovoid, distance, neural, sample, kernels)


def make_parser() -> CommandParser:
    """The parser of the whole command line."""
    parser = CommandParser(
        prog="morphit",
        description="A sense of shape for robots: spheres for links, contact-stable grasps, and whole jobs.",
        epilog="Exit status: 0 success, 1 no result, 2 a mistake in the input. --help after a command tells more.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_parser(commands)
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    try:
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
