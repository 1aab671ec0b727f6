"""Controls a morphing cover. A lifecycle node: motors turn only while it is active, and stop on every doubt."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace

from geometry_msgs.msg import PoseArray
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNodeMixin, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from sensor_msgs.msg import JointState as JointStateMsg
from std_msgs.msg import String

from morphit_interfaces.msg import CoverTarget
from morphit_ros.configuration import Config, parameter
from morphit_ros.cover.actuation.motors import motor_angles
from morphit_ros.cover.control.controller import ControllerConfig
from morphit_ros.cover.control.supervision import Measurement, SupervisedController, SupervisionConfig
from morphit_ros.cover.goals.targets import Target
from morphit_ros.errors import MorphitError
from morphit_ros.geometry.transforms import Array
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import seconds_from_stamp
from morphit_ros.ros.core.diagnostics import ERROR, OK
from morphit_ros.ros.core.log_writer import QUIET_ARGUMENTS
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.cover.display import CoverDisplay, CoverDisplayConfig
from morphit_ros.ros.cover.driver import CoverDriver, warm_up
from morphit_ros.ros.cover.messages import (
    JointReader,
    description_text,
    formula_target,
    poses_measurement,
    rates_message,
    target_from_message,
    trajectory_message,
)
from morphit_ros.ros.cover.model import CoverModelConfig, load_model
from morphit_ros.ros.cover.report import CoverReport
from morphit_ros.ros.execution.motion_transport import use_datagrams


@dataclass(frozen=True)
class CoverControlConfig(Config):
    """What the node adds to the controller."""

    target: str = parameter(
        "", "Target until one is published: z = f(x, y, t), or x; y; z of u, v, t; empty: the case's, if there is one"
    )
    state_source: str = parameter(
        "joint_states", "Where the configuration comes from: angles of joints or poses of all nodes",
        choices=("joint_states", "poses"),
    )  # fmt: skip
    publish_trajectory: bool = parameter(False, "Also publish commands as a JointTrajectory of one point")
    autostart: bool = parameter(False, "Configure and activate by itself once states arrive")
    diagnostics_period: float = parameter(1.0, "Time between two reports [s]", minimum=0.1, maximum=60.0)


CONFIGS = (CoverControlConfig, CoverModelConfig, ControllerConfig, SupervisionConfig, CoverDisplayConfig)


class CoverControl(LifecycleNodeMixin, Node):
    """States and targets in, motor rates out, by a thread of its own (`CoverDriver`)."""

    def __init__(self) -> None:
        Node.__init__(self, "cover_control")
        LifecycleNodeMixin.__init__(self)
        self._config, self._model_config, controller, supervision, display = declare_configs(self, CONFIGS)
        self._model = model = load_model(self._model_config)
        # A case brings settings of the controller with it; parameters that were given win.
        asked = {name: value for name, value in model.controller.items() if name not in self._parameter_overrides}
        controller = replace(controller, **asked)
        self._cover, self._frame = model.cover, self._model_config.cover_frame
        self._supervised = SupervisedController(model.cover, model.state, controller, supervision)
        self._outputs = {
            topic: self.create_publisher(topic.type, topic.name, topic.quality.profile(depth=1))
            for topic in (
                interfaces.COVER_COMMANDS, interfaces.COVER_TRAJECTORY, interfaces.COVER_MOTORS,
                interfaces.COVER_DESCRIPTION,
            )
        }  # fmt: skip
        self._driver = CoverDriver(self._supervised, self._publish_rates, len(model.cover.motors))
        self._display = CoverDisplay(self, display, self._cover, self._frame, controller.rate_limit, model.body)
        self._report = CoverReport(
            self, self._driver, self._supervised, self._display, self._config.diagnostics_period, model.name
        )  # fmt: skip
        self._wanted: tuple[Target, str, str] | None = self._first_target()
        self._reader = JointReader(self._cover)
        by_angles = self._config.state_source == "joint_states"
        for topic, callback, depth in (
            (interfaces.COVER_JOINT_STATES, self._on_joint_states, 1 if by_angles else 0),
            (interfaces.COVER_NODE_POSES, self._on_node_poses, 0 if by_angles else 1),
            (interfaces.COVER_TARGET, self._on_target, 1),
        ):
            if depth:
                self.create_subscription(topic.type, topic.name, callback, topic.quality.profile(depth=depth))
        self._publish_cover()
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(1.0 / display.display_rate, self._show, clock=steady)
        self._autostart = (
            self.create_timer(0.5, self._start_when_ready, clock=steady) if self._config.autostart else None
        )

    # Lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        warm_up(self._supervised)
        self._report.say(OK, f"configured: {self._model.name} with {len(self._cover.motors)} motors")
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            self._driver.look()
            if self._wanted is not None:
                self._accept(*self._wanted)
            else:
                self._supervised.restart_target(time.monotonic())
            self._driver.start()
        except MorphitError as error:
            self._report.say(ERROR, f"not activated: {error}")
            return TransitionCallbackReturn.FAILURE
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._driver.halt()
        self._report.say(OK, "deactivated: motors stopped")
        return super().on_deactivate(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._driver.halt()
        return super().on_shutdown(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._driver.halt()
        return super().on_error(state)

    def end_motion(self) -> None:
        """The process ends: zeros, and nothing after them."""
        self._driver.halt()

    def motion_ended(self) -> bool:
        """Whether the zeros have reached all subscribers."""
        return bool(self._outputs[interfaces.COVER_COMMANDS].wait_for_all_acked(Duration(seconds=0.5)))

    def destroy_node(self) -> None:
        self._driver.halt()
        self._report.close()
        super().destroy_node()

    def _start_when_ready(self) -> None:
        if self._driver.received == 0:
            return
        if self._state_machine.current_state[1] == "unconfigured":
            self.trigger_configure()
            return  # states that came meanwhile are taken first
        if self.trigger_activate() == TransitionCallbackReturn.SUCCESS:
            self._autostart.cancel()

    # Inputs

    def _on_joint_states(self, message: JointStateMsg) -> None:
        self._driver.receive(self._reader.read(message), seconds_from_stamp(message.header.stamp))

    def _on_node_poses(self, message: PoseArray) -> None:
        measurement: Measurement = poses_measurement(message, self._cover, self._frame)
        self._driver.receive(measurement, seconds_from_stamp(message.header.stamp))

    def _on_target(self, message: CoverTarget) -> None:
        try:
            target, name = target_from_message(message, self._cover, self._frame)
            if self._driver.gate.is_open:
                self._accept(target, name, "")
            else:
                # Where the cover is by then decides whether it can be reached.
                self._supervised.examine(target)
                self._wanted = target, name, ""
            self._report.refusal = ""
        except MorphitError as error:
            kept = self._supervised.course.description if self._supervised.course else None
            kept = self._wanted[1] if self._wanted else kept
            self._report.refusal = (
                f"target refused, {f'the last one is kept ({kept})' if kept else 'there is none'}: {error}"
            )
        self._report.say_now()

    def _first_target(self) -> tuple[Target, str, str] | None:
        if self._config.target:
            return *formula_target(self._config.target, self._cover), ""
        if self._model.target is not None:
            # The paper's cases go straight to their targets.
            return self._model.target, f"target of {self._model.name}", "direct"
        return None

    def _accept(self, target: Target, name: str, approach: str) -> None:
        self._supervised.set_target(target, name, time.monotonic(), approach)
        self._wanted = None

    # Outputs

    def _publish_rates(self, rates: Array) -> None:
        self._outputs[interfaces.COVER_COMMANDS].publish(rates_message(rates))
        if self._config.publish_trajectory:
            angles = motor_angles(self._cover, self._supervised.state.rotations)
            period = self._supervised.controller_config.period
            message = trajectory_message(self._cover.motor_labels, angles, rates, period)
            self._outputs[interfaces.COVER_TRAJECTORY].publish(message)

    def _publish_cover(self) -> None:
        model = self._model
        angles = motor_angles(model.cover, model.state.rotations)
        motors = JointStateMsg(name=model.cover.motor_labels, position=angles.tolist())
        motors.header.stamp = self.get_clock().now().to_msg()
        self._outputs[interfaces.COVER_MOTORS].publish(motors)
        text = description_text(model.cover, model.state, self._display.description())
        self._outputs[interfaces.COVER_DESCRIPTION].publish(String(data=text))

    def _show(self) -> None:
        figures = self._driver.figures()
        rates = self._driver.gate.last_rates
        self._display.show(self._supervised, self._driver.cycle, rates, figures, self._report.status())
        self._report.refresh()


def main(args: list[str] | None = None) -> None:
    # Neither a frozen process nor a paused terminal may keep commands waiting.
    use_datagrams()
    # One thread for callbacks; commands have their own.
    run_node(CoverControl, [*(sys.argv if args is None else args), *QUIET_ARGUMENTS], threads=1)


if __name__ == "__main__":
    main()
