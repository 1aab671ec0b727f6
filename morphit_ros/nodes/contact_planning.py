"""Pushes objects with the arm's hand: planned through contact, renewed while they are followed, through motion_gate."""

from __future__ import annotations

from rclpy.node import Node

from morphit_ros.compilation import telling_of_compilation
from morphit_ros.contact_planning.spinner import warm_up
from morphit_ros.contact_push.following import FollowConfig
from morphit_ros.contact_push.push_config import ContactPushConfig
from morphit_ros.ros.contact.server import ContactServer, ContactServerConfig
from morphit_ros.ros.core.diagnostics import Diagnostics
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.execution.robot_commands import CommandConfig

CONFIGS = (ContactServerConfig, ContactPushConfig, FollowConfig, CommandConfig)


class ContactPlanning(Node):
    """Action `contact_push`; it moves nothing before it is asked to, nor on a plan that did not succeed."""

    def __init__(self) -> None:
        super().__init__("contact_planning")
        config, push, follow, commands = declare_configs(self, CONFIGS)
        # Before the action is there: the first goal must not wait for compilers.
        with telling_of_compilation(self.get_logger().info):
            warm_up()
        self._server = ContactServer(self, config, push, follow, commands, Diagnostics(self))

    def end_motion(self) -> None:
        """The process ends: stop."""
        self._server.end()

    def motion_ended(self) -> bool:
        """Whether the stop has arrived."""
        return self._server.settled()


def main(args: list[str] | None = None) -> None:
    # Inputs and goals, the heart, and the work; no frozen process may keep a stop waiting.
    run_node(ContactPlanning, args, threads=4, datagrams=True)


if __name__ == "__main__":
    main()
