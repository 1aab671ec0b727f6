"""The simulated cover: motors that turn as told, joints that stay closed, and what its sensors read."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rclpy.node import Node
from sensor_msgs.msg import JointState as JointStateMsg
from std_msgs.msg import Float64MultiArray

from morphit_ros.configuration import Config, parameter
from morphit_ros.cover.noise import PAPER_NOISE, NoiseConfig
from morphit_ros.cover.simulated import ENCODERS, SimulatedCover
from morphit_ros.errors import InvalidInputError
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import steady_timer
from morphit_ros.ros.core.diagnostics import ERROR, OK, WARN, Diagnostics
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.cover.loop import PeriodicThread, settle_process
from morphit_ros.ros.cover.messages import pose_array, rates_from_message
from morphit_ros.ros.cover.model import CoverModelConfig, load_model


@dataclass(frozen=True)
class CoverSimConfig(Config):
    """How the cover is simulated and published."""

    rate: float = parameter(100.0, "Rate of the simulation and of what it publishes [Hz]", minimum=1.0, maximum=1000.0)
    publish: str = parameter(
        "both",
        "What is measured: angles of joints, poses of all nodes, or both",
        choices=("both", "joint_states", "poses"),
    )
    encoders: str = parameter(
        "joints", "Axes with encoders: all of every joint, the fold axes and those of motors, or those of motors alone",
        choices=ENCODERS,
    )  # fmt: skip
    command_timeout: float = parameter(
        0.1, "Motors hold still when the newest command is older than this [s]", minimum=1e-3, maximum=10.0
    )
    paper_noise: bool = parameter(False, "The paper's errors of motors and joint angles, instead of those below")
    seed: int = parameter(0, "Seed of the noise", minimum=0, maximum=2**31 - 1)


CONFIGS = (CoverSimConfig, CoverModelConfig, NoiseConfig)


class CoverSim(Node):
    """Steps the cover in a thread of its own."""

    def __init__(self) -> None:
        super().__init__("cover_sim")
        self._config, model_config, noise = declare_configs(self, CONFIGS)
        self._diagnostics = Diagnostics(self)
        model = load_model(model_config)
        self._cover, self._frame, self._name = model.cover, model_config.cover_frame, model.name
        period = 1.0 / self._config.rate
        self._simulated = SimulatedCover(
            model.cover, model.state, PAPER_NOISE if self._config.paper_noise else noise, self._config.seed,
            self._config.encoders, period, self._config.command_timeout,
        )  # fmt: skip
        self._joint_states = interfaces.COVER_JOINT_STATES.publish(self, depth=1)
        self._poses = interfaces.COVER_NODE_POSES.publish(self, depth=1)
        interfaces.COVER_COMMANDS.subscribe(self, self._on_command, depth=1)
        # Once before the first period: what is compiled or loaded on first use.
        self._publish()
        self._thread = PeriodicThread("cover simulation", period, self._advance, self._fail)
        settle_process()
        self._thread.start()
        steady_timer(self, 1.0, self._report)
        self._report()

    def _on_command(self, message: Float64MultiArray) -> None:
        try:
            self._simulated.command(rates_from_message(message, self._cover), time.monotonic())
        except InvalidInputError as error:
            self._simulated.refuse(f"command refused, motors hold still: {error}")

    def _advance(self, now: float, _late: float) -> None:
        self._simulated.advance(now)
        self._publish()

    def _publish(self) -> None:
        state = self._simulated.measure()
        stamp = self.get_clock().now().to_msg()
        if self._config.publish != "poses":
            angles = self._simulated.angles(state).tolist()
            message = JointStateMsg(name=self._simulated.axis_names, position=angles)
            message.header.stamp = stamp
            self._joint_states.publish(message)
        if self._config.publish != "joint_states" and self._poses.get_subscription_count():
            self._poses.publish(pose_array(state, self._cover, self._frame, stamp))

    def _fail(self, error: Exception) -> None:
        self._simulated.failure = f"internal error, simulation ended: {type(error).__name__}: {error}"

    def _report(self) -> None:
        figures, simulated = self._thread.figures(), self._simulated
        values = {
            "cover": self._name, "commands": simulated.commands, "refused": simulated.refused,
            "held still": simulated.holds, "moving": simulated.moving, "periods": figures.count,
            "missed share": figures.missed_share, "parts without decision": simulated.undecided_parts,
        }  # fmt: skip
        if simulated.failure:
            self._diagnostics.report(ERROR, simulated.failure, values)
        elif simulated.refusal:
            self._diagnostics.report(WARN, simulated.refusal, values)
        else:
            commanded = time.monotonic() - simulated.command_time < 1.0
            text = "commanded" if commanded else "no commands: motors hold still"
            self._diagnostics.report(OK, f"simulating {self._name}: {text}", values)

    def end_motion(self) -> None:
        """The process ends: nothing is published any more."""
        self._thread.stop()

    def motion_ended(self) -> bool:
        """Nothing has to be waited for."""
        return not self._thread.alive

    def destroy_node(self) -> None:
        self._thread.stop()
        super().destroy_node()


def main(args: list[str] | None = None) -> None:
    # One thread for callbacks; the simulation has its own.
    run_node(CoverSim, args, threads=1)


if __name__ == "__main__":
    main()
