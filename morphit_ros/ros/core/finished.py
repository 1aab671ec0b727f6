"""How a node ends its own process."""

from __future__ import annotations


class NodeFinished(Exception):
    """Raised in a callback by a node that has done its work; ends the process.

    Args:
        exit_status: of the process.
    """

    def __init__(self, exit_status: int) -> None:
        self.exit_status = exit_status
        super().__init__(f"exit status {exit_status}")
