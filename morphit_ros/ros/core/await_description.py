"""Runs a command once a robot description has come, and hands it that as a parameter.

``python -m morphit_ros.ros.core.await_description COMMAND … --ros-args …``: what the ROS arguments say of names holds
for the topic ``robot_description`` too. move_group heeds no signal while it waits for a description itself.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

_NODE = "await_description"
# Python handles a signal when the main thread is back from waiting in C [s].
_LONGEST_WAIT = 0.1
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Python ignores these, and what it becomes would.
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)

# Kept besides the exception: one that is raised where C code calls back is lost there, or comes out as another.
_received: list[int] = []


def _interrupt(number: int, frame: object) -> NoReturn:
    # Ends what is being imported, too.
    _received.append(number)
    raise KeyboardInterrupt


def _note(number: int, frame: object) -> None:
    _received.append(number)


def _heed(handler: Callable[[int, object], None]) -> None:
    for number in _SIGNALS:
        signal.signal(number, handler)


def await_description(words: Sequence[str]) -> str:
    """The text of the first description on the topic as the command's ROS arguments name it."""
    import rclpy
    from rclpy.signals import SignalHandlerOptions

    from morphit_ros.ros.core.interfaces import ROBOT_DESCRIPTION

    texts: list[str] = []
    # rclpy's own handlers would close the context while the node is being made.
    rclpy.init(args=list(words), signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node(_NODE, start_parameter_services=False, enable_rosout=False)
    try:
        ROBOT_DESCRIPTION.subscribe(node, lambda message: texts.append(message.data))
        print(f"waiting for {node.resolve_topic_name(ROBOT_DESCRIPTION.name)}", flush=True)
        # The first round makes an executor, which complains when it is interrupted half made.
        _heed(_note)
        while not texts:
            rclpy.spin_once(node, timeout_sec=_LONGEST_WAIT)
            if _received:
                raise KeyboardInterrupt
    finally:
        _heed(_interrupt)
        # Off the graph: others would take it for alive until its lease runs out.
        node.destroy_node()
        rclpy.shutdown()
    return texts[0]


def become(command: Sequence[str], description: str) -> NoReturn:
    """Run a command in place of this process, with a description as its parameter ``robot_description``."""
    import yaml

    # No file that somebody would have to remove: this one lasts as long as the process.
    held = os.memfd_create("robot_description", 0)
    content = {"/**": {"ros__parameters": {"robot_description": description}}}
    with os.fdopen(held, "w", encoding="utf-8", closefd=False) as file:
        yaml.safe_dump(content, file)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_DFL)
    words = [*command, "--ros-args", "--params-file", f"/proc/self/fd/{held}"]
    os.execv(words[0], words)


def main(words: Sequence[str]) -> None:
    """Wait, and become the command; status 0 if told to stop before."""
    # Both: a shell's background job has SIGINT ignored, and so has what it starts.
    _heed(_interrupt)
    try:
        become(words, await_description(words))
    except BaseException:
        if not _received:
            raise
        # It has done what it should.
        sys.exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
