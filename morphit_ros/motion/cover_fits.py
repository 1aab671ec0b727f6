"""Fit the covers that motions are planned with, in a process of its own that takes only the time that nobody wants.

`python -m morphit_ros.motion.cover_fits` reads a URDF from its standard input, up to a zero byte, and leaves the fits
in the cache. It ends when they are there, or when whoever started it closes that input or dies.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from morphit_ros.motion.model import covering_spheres
from morphit_ros.motion.refinement import COUNTS
from morphit_ros.robot.description import RobotDescription, load_robot_description

_END = b"\0"


def start_fits(description: RobotDescription) -> subprocess.Popen[bytes]:
    """The process for a robot; `terminate` ends it."""
    process = subprocess.Popen(
        [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    # It may have ended already: its status says so.
    try:
        process.stdin.write(description.xml.encode() + _END)
        process.stdin.flush()
    except BrokenPipeError:
        pass
    return process


def main() -> int:
    os.nice(19)
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
    description = load_robot_description(bytes(text[:-1]).decode())
    for count in COUNTS:
        covering_spheres(description, count)
    return 0


if __name__ == "__main__":
    sys.exit(main())
