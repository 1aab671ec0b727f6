"""The simulated cover: motors that turn as told, joints that stay closed, and what its sensors read."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import JointState as JointStateMsg
from std_msgs.msg import Float64MultiArray

from morphit_ros.configuration import Config, parameter
from morphit_ros.cover.control.tracking import JointTracker, axis_names, fold_axes
from morphit_ros.cover.kinematics.null_space import NullSpaceSolver
from morphit_ros.cover.noise import PAPER_NOISE, NoiseConfig, NoiseSource
from morphit_ros.cover.plant import CoverPlant
from morphit_ros.cover.state import CoverState
from morphit_ros.errors import InvalidInputError
from morphit_ros.ros.core import interfaces
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
        choices=("joints", "folds", "motors"),
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
        # One null space for plant and noise: without noise each configuration is decomposed once.
        null_space = NullSpaceSolver(model.cover)
        self._plant = CoverPlant(model.cover, model.state, null_space)
        self._noise = NoiseSource(model.cover, PAPER_NOISE if self._config.paper_noise else noise, self._config.seed)
        axes = self._sensed()
        self._encoders = JointTracker(model.cover, axes)
        self._names = axis_names(model.cover, axes)
        self._joint_states, self._poses = (
            self.create_publisher(topic.type, topic.name, topic.quality.profile(depth=1))
            for topic in (interfaces.COVER_JOINT_STATES, interfaces.COVER_NODE_POSES)
        )
        self._still = np.zeros(len(model.cover.motors))
        self._command, self._command_time = self._still, -np.inf
        self._problem = self._failure = ""
        self._commands = self._refused = self._holds = 0
        self._moving = False
        commands = interfaces.COVER_COMMANDS
        self.create_subscription(commands.type, commands.name, self._on_command, commands.quality.profile(depth=1))
        # Once before the first period: what is compiled or loaded on first use.
        self._step(0.0)
        self._publish()
        self._thread = PeriodicThread("cover simulation", 1.0 / self._config.rate, self._advance, self._fail)
        settle_process()
        self._thread.start()
        self.create_timer(1.0, self._report, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self._report()

    def _sensed(self) -> np.ndarray:
        cover = self._cover
        if self._config.encoders == "motors":
            return cover.motors
        if self._config.encoders == "folds":
            # Motors must be read; a few turn other axes than folds.
            return np.unique(np.concatenate([cover.motors, fold_axes(cover)]), axis=0)
        joints, axes = np.divmod(np.arange(3 * cover.joint_count), 3)
        return np.stack([joints, axes], axis=1)

    def _on_command(self, message: Float64MultiArray) -> None:
        try:
            self._command, self._command_time = rates_from_message(message, self._cover), time.monotonic()
            self._commands += 1
        except InvalidInputError as error:
            # Nobody knows what was meant: hold still.
            self._command, self._command_time = self._still, -np.inf
            self._refused += 1
            self._problem = f"command refused, motors hold still: {error}"

    def _advance(self, now: float, _late: float) -> None:
        rates = self._command
        if now - self._command_time > self._config.command_timeout:
            if np.any(rates):
                self._holds += 1
            self._command = rates = self._still
        elif self._problem:
            self._problem = ""
        self._moving = bool(np.any(rates))
        self._step(1.0 / self._config.rate, rates)
        self._publish()

    def _step(self, period: float, rates: np.ndarray | None = None) -> None:
        if rates is None or not np.any(rates):
            return
        if not self._plant.step(self._noise.actuate(rates), period):
            self._failure = "no closed configuration follows from the command: the cover stands still"
        else:
            self._failure = ""

    def _publish(self) -> None:
        state: CoverState = self._noise.measure(self._plant.state)
        stamp = self.get_clock().now().to_msg()
        if self._config.publish != "poses":
            message = JointStateMsg(name=self._names, position=self._encoders.angles(state.rotations).tolist())
            message.header.stamp = stamp
            self._joint_states.publish(message)
        if self._config.publish != "joint_states" and self._poses.get_subscription_count():
            self._poses.publish(pose_array(state, self._cover, self._frame, stamp))

    def _fail(self, error: Exception) -> None:
        self._failure = f"internal error, simulation ended: {type(error).__name__}: {error}"

    def _report(self) -> None:
        figures = self._thread.figures()
        values = {
            "cover": self._name, "commands": self._commands, "refused": self._refused, "held still": self._holds,
            "moving": self._moving, "periods": figures.count, "missed share": figures.missed_share,
            "parts without decision": self._plant.slack_parts,
        }  # fmt: skip
        if self._failure:
            self._diagnostics.report(ERROR, self._failure, values)
        elif self._problem:
            self._diagnostics.report(WARN, self._problem, values)
        else:
            text = "commanded" if time.monotonic() - self._command_time < 1.0 else "no commands: motors hold still"
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
