"""State, timings and counts of a node on /diagnostics, and log lines that do not flood."""

from __future__ import annotations

import re
from collections.abc import Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from morphit_ros.ros.core.interfaces import DIAGNOSTICS

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
_NUMBER = re.compile(r"\d+(\.\d+)?")


def diagnostic_status(
    name: str, level: bytes, message: str, values: Mapping[str, object] | None = None
) -> DiagnosticStatus:
    """A status with its values as text; floats to six digits."""
    pairs = [
        KeyValue(key=key, value=f"{value:.6g}" if isinstance(value, float) else str(value))
        for key, value in (values or {}).items()
    ]
    return DiagnosticStatus(level=level, name=name, message=message, values=pairs)


class Diagnostics:
    """Publishes the latest status of a node at once and logs what changed.

    Args:
        node: publishes, logs and names the status.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._publisher = DIAGNOSTICS.publish(node)
        self._last_message = ""

    def report(
        self, level: bytes, message: str, values: Mapping[str, object] | None = None, periodic: bool = False
    ) -> None:
        """Publish a status; log it if its text differs from the last one.

        Args:
            level: how serious it is.
            message: what people read.
            values: timings and counts.
            periodic: said again every period: a text that differs from the last one in its numbers only is published,
                but not logged again.
        """
        stamp = self._node.get_clock().now().to_msg()
        array = DiagnosticArray(
            status=[diagnostic_status(self._node.get_fully_qualified_name(), level, message, values)]
        )
        array.header.stamp = stamp
        self._publisher.publish(array)
        said, self._last_message = self._last_message, message
        if message == said or (periodic and _NUMBER.sub("", message) == _NUMBER.sub("", said)):
            return
        logger = self._node.get_logger()
        # One statement each: rclpy refuses one call site that logs at several severities.
        if level == OK:
            logger.info(message)
        elif level == WARN:
            logger.warning(message)
        else:
            logger.error(message)
