"""ROS domains of jobs that need no other: a simulated pick must not meet the robot of another job on this machine."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterable, Iterator

from morphit_ros.bringup.job import NodeDescription, WhenEnded
from morphit_ros.errors import InvalidInputError
from morphit_ros.resources import hold_name

VARIABLE = "ROS_DOMAIN_ID"
# Above 101 their ports would be those that Linux gives to programs that ask for any; below 40 people choose theirs.
_DOMAINS = range(40, 102)
# Ports of the DDS standard: of all participants of a domain, and of the first two by themselves.
_FIRST_PORT, _PORTS_A_DOMAIN, _PORTS = 7400, 250, (0, 10, 12)


def stands_alone(nodes: Iterable[NodeDescription]) -> bool:
    """Whether nobody else has to reach a job: it ends by itself and simulates what it commands, or it shows."""
    described = list(nodes)
    if any(node.executable == "player" for node in described):
        return len(described) > 1
    simulated = any(node.executable.endswith("_sim") for node in described)
    return simulated and any(node.when_ended is WhenEnded.END_JOB for node in described)


@contextlib.contextmanager
def own_domain() -> Iterator[str]:
    """A domain that nobody on this machine uses, for as long as this lasts.

    Raises:
        InvalidInputError: all are taken.
    """
    first = os.getpid() % len(_DOMAINS)
    for domain in (*_DOMAINS[first:], *_DOMAINS[:first]):
        with hold_name("domains", str(domain)) as held:
            if held and not any(_is_taken(_FIRST_PORT + _PORTS_A_DOMAIN * domain + port) for port in _PORTS):
                yield str(domain)
                return
    raise InvalidInputError(VARIABLE, "all of 40 to 101 taken", "one to be free", f"Set {VARIABLE} yourself.")


def _is_taken(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return True
    return False
