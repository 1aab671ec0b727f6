"""Services that answer every request with success and message, and what diagnostics say of them."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node

from morphit_ros.errors import MorphitError
from morphit_ros.ros.core.endpoints import Service


class Requests:
    """Serves, counts and times.

    Args:
        node: owner of the services.
        group: of their callbacks.
    """

    def __init__(self, node: Node, group: CallbackGroup | None = None) -> None:
        self._node, self._group = node, group
        self._count = self._refused = 0
        self._seconds = 0.0

    def serve(self, service: Service, compute: Callable[[Any, Any], str]) -> None:
        """Offer a service.

        Args:
            service: whose response has `success`, `message` and perhaps `computation_time` [s].
            compute: fills in a response to a request and says in words what was done, or raises a MorphitError: the
                response then says why, and nothing else.
        """
        service.serve(self._node, lambda request, response: self._answer(compute, request, response), self._group)

    def values(self) -> dict[str, object]:
        """Counts, and what the last request took, for diagnostics."""
        return {"requests": self._count, "refused": self._refused, "last request [s]": self._seconds}

    def _answer(self, compute: Callable[[Any, Any], str], request: Any, response: Any) -> Any:
        start = perf_counter()
        try:
            response.message = compute(request, response)
            response.success = True
        except MorphitError as error:
            response = type(response)(message=str(error))
            self._refused += 1
            self._node.get_logger().warning(f"request refused: {error}", throttle_duration_sec=5.0)
        self._count += 1
        self._seconds = perf_counter() - start
        if hasattr(response, "computation_time"):
            response.computation_time = self._seconds
        return response
