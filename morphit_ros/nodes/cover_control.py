"""Controls a morphing cover. A lifecycle node: motors turn only while it is active, and stop on every doubt."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

from rclpy.lifecycle import LifecycleNodeMixin, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node

from morphit_interfaces.msg import CoverTarget
from morphit_ros.configuration import Config, parameter
from morphit_ros.cover.control.controller import ControllerConfig
from morphit_ros.cover.control.forecast_process import forecasts_of
from morphit_ros.cover.control.supervision import SupervisedController, SupervisionConfig
from morphit_ros.errors import MorphitError
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.autostart import Autostart
from morphit_ros.ros.core.clocks import steady_timer
from morphit_ros.ros.core.diagnostics import ERROR, OK
from morphit_ros.ros.core.log_writer import QUIET_ARGUMENTS
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.cover.display import CoverDisplay, CoverDisplayConfig
from morphit_ros.ros.cover.driver import CoverDriver, warm_up
from morphit_ros.ros.cover.messages import follow_states
from morphit_ros.ros.cover.model import CoverModelConfig, load_model
from morphit_ros.ros.cover.outputs import CoverOutputs
from morphit_ros.ros.cover.report import CoverReport
from morphit_ros.ros.cover.target_input import TargetInput


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
        config, model_config, controller, supervision, display = declare_configs(self, CONFIGS)
        self._model = model = load_model(model_config)
        # A case brings settings of the controller with it; parameters that were given win.
        asked = {name: value for name, value in model.controller.items() if name not in self._parameter_overrides}
        controller = replace(controller, **asked)
        frame = model_config.cover_frame
        self._supervised = SupervisedController(model.cover, model.state, controller, supervision)
        self._outputs = CoverOutputs(self, self._supervised, config.publish_trajectory)
        self._driver = CoverDriver(self._supervised, self._outputs.command, len(model.cover.motors))
        self._forecasts = forecasts_of(model.cover, model.state, controller, supervision)
        forecast_made = self.create_guard_condition(self._on_forecast)
        self._targets = TargetInput(
            self._supervised, self._driver.gate, model, config.target, frame, self._forecasts, forecast_made.trigger
        )
        self._display = CoverDisplay(self, display, model.cover, frame, controller.rate_limit, model.body)
        self._report = CoverReport(
            self, self._driver, self._supervised, self._display, self._targets, config.diagnostics_period, model.name
        )
        follow_states(self, config.state_source, model.cover, frame, self._driver.receive)
        interfaces.COVER_TARGET.subscribe(self, self._on_target, depth=1)
        self._outputs.describe(model, self._display)
        steady_timer(self, 1.0 / display.display_rate, self._show)
        self._autostart = Autostart(self, lambda: self._driver.received > 0) if config.autostart else None

    def _on_target(self, message: CoverTarget) -> None:
        self._targets.receive(message)
        self._report.say_now()

    def _on_forecast(self) -> None:
        self._targets.settle()
        self._report.say_now()

    def _show(self) -> None:
        figures, rates = self._driver.figures(), self._driver.gate.last_rates
        self._display.show(self._supervised, self._driver.cycle, rates, figures, self._report.status())
        self._report.refresh()

    # Lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        warm_up(self._supervised)
        self._report.say(OK, f"configured: {self._model.name} with {len(self._model.cover.motors)} motors")
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            self._driver.look()
            self._targets.activate()
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
        return self._outputs.settled()

    def destroy_node(self) -> None:
        self._driver.halt()
        if self._forecasts is not None:
            self._forecasts.close()
        self._report.close()
        super().destroy_node()


def main(args: list[str] | None = None) -> None:
    # Neither a frozen process nor a paused terminal may keep commands waiting.
    # One thread for callbacks; commands have their own.
    run_node(CoverControl, [*(sys.argv if args is None else args), *QUIET_ARGUMENTS], threads=1, datagrams=True)


if __name__ == "__main__":
    main()
