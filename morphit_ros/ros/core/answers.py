"""Answers of services, asked for until one comes."""

from __future__ import annotations

from time import monotonic
from typing import Any

from rclpy.client import Client
from rclpy.executors import Executor
from rclpy.task import Future

# Longest wait between two looks at the answers [s].
_LOOK = 0.1


def ask(client: Client, request: Any, executor: Executor, timeout: float = 30.0, repeat_after: float = 5.0) -> Any:
    """The answer of a service, which is asked again while none comes.

    A client sees a service as soon as its own side of the connection is there. The middleware drops an answer if the
    server's side is not there 0.1 s after the request was worked off, which happens to first requests on a loaded
    machine. So asking has to be repeated; and since a busy server works off one request after the other, the answer
    to any of them counts: a client that only takes the last one's would never see it come.

    Args:
        client: of a service for which being asked twice is as good as being asked once.
        request: to send.
        executor: spun here; has the client's node.
        timeout: longest wait for the service and its answer [s].
        repeat_after: time without an answer after which to ask again [s].

    Returns:
        The first answer; None if there is none in time.
    """
    end = monotonic() + timeout
    asked: list[Future] = []
    again = 0.0
    while monotonic() < end:
        if monotonic() >= again and client.service_is_ready():
            asked.append(client.call_async(request))
            again = monotonic() + repeat_after
        executor.spin_once(timeout_sec=_LOOK)
        answered = next((future for future in asked if future.done()), None)
        if answered is not None:
            for future in asked:
                client.remove_pending_request(future)
            return answered.result()
    return None
