"""Find out what motions are planned with, in a process of its own that takes only the time that nobody wants.

`python -m morphit_ros.motion.cover_fits [LINK ...]`, told the links of the hand, reads a URDF from its standard input,
up to a zero byte, and writes to its standard output what `KnownCovers` is of it, pickled, or the words of the error if
there is none. It ends then, or when whoever started it closes that input or dies.

Fits, tests of pairs and surfaces take seconds, in long calls that let no other thread of their process run: a node
whose heartbeats an arm waits for must not make them.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Sequence

from morphit_ros.errors import MorphitError
from morphit_ros.motion.refinement import KnownCovers
from morphit_ros.robot.description import RobotDescription, load_robot_description
from morphit_ros.robot.kinematics import KinematicModel

_END = b"\0"


def start_fits(description: RobotDescription, hand: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """The process for a robot and the links of its hand; `terminate` ends it."""
    # Away from the terminal, whose Ctrl-C is for those who say how they end: this one ends with its input.
    command = [sys.executable, "-m", __name__, *hand]
    # Nor does it keep the starter's output open, which others may read to its end.
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, start_new_session=True)
    assert process.stdin is not None
    # It may have ended already: it says nothing then.
    try:
        process.stdin.write(description.xml.encode() + _END)
        process.stdin.flush()
    except BrokenPipeError:
        pass
    return process


def finished_covers(process: subprocess.Popen[bytes]) -> KnownCovers:
    """What a process of `start_fits` found out; waits for it.

    Raises:
        MorphitError: the robot has no covers, or the process ended before it knew.
    """
    assert process.stdout is not None
    with process.stdout:
        said = process.stdout.read()
    status = process.wait()
    if status != 0 or not said:
        raise MorphitError(f"the process that fits covers ended with status {status}")
    # It is this package's own process, started above: nobody else writes there.
    found = pickle.loads(said)
    if not isinstance(found, KnownCovers):
        raise MorphitError(str(found))
    return found


def main() -> int:
    os.nice(19)
    # What a library may print is no answer.
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    text = bytearray()
    while not text.endswith(_END):
        piece = os.read(0, 1 << 16)
        if not piece:
            return 0
        text += piece

    def end_with_starter() -> None:
        while os.read(0, 1):
            pass
        os._exit(0)

    threading.Thread(target=end_with_starter, daemon=True).start()
    found: KnownCovers | str
    try:
        robot = KinematicModel(load_robot_description(bytes(text[:-1]).decode()))
        found = KnownCovers.of_robot(robot, hand=[link for link in sys.argv[1:] if link in robot.description.links])
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told to whoever waits for the covers
        found = str(error) if isinstance(error, MorphitError) else f"{type(error).__name__}: {error}"
    with answer:
        pickle.dump(found, answer, protocol=pickle.HIGHEST_PROTOCOL)
    return 0


if __name__ == "__main__":
    sys.exit(main())
