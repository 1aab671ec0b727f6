"""An object known as a density field: built from clouds or images, its inertia, its motion when pushed, as services."""

from __future__ import annotations

from dataclasses import dataclass

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node

from morphit_interfaces.action import BuildNeuralObject
from morphit_interfaces.msg import SegmentedObjectArray, TablePlane
from morphit_ros.compilation import telling_of_compilation
from morphit_ros.configuration import Config, parameter
from morphit_ros.neural.objects.push_scene import PredictionConfig
from morphit_ros.neural.objects.warm_up import warm_up
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.diagnostics import ACTIVE, ERROR, OK, STATE, WARN, Diagnostics
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.requests import Requests
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.neural.builds import BUILD_SHARE, BUILD_STAGE, NeuralBuilds
from morphit_ros.ros.neural.messages import PlacedObject
from morphit_ros.ros.neural.server import INERTIA_ERROR, MASS_ERROR, NeuralServer, TrackConfig
from morphit_ros.ros.neural.sources import BuildConfig, Progress, built, learned, read_goal


@dataclass(frozen=True)
class NeuralObjectConfig(Config):
    """How the node reports."""

    diagnostics_period: float = parameter(1.0, "Time between two reports [s]", minimum=0.1, maximum=60.0)


CONFIGS = (NeuralObjectConfig, BuildConfig, PredictionConfig, TrackConfig)


class NeuralObject(Node):
    """Builds in one worker; services use the last good object meanwhile."""

    def __init__(self) -> None:
        super().__init__("neural_object")
        config, self._build_config, push_config, track_config = declare_configs(self, CONFIGS)
        self._diagnostics = Diagnostics(self)
        self._objects: SegmentedObjectArray | None = None
        self._table: TablePlane | None = None
        self._counts = {"built": 0, "not built": 0}
        self._problem = ""
        # Before the first request: it must not wait for compilers.
        with telling_of_compilation(self.get_logger().info):
            warm_up()
        self._server = NeuralServer(self, push_config, track_config)
        interfaces.OBJECTS.subscribe(self, self._on_objects)
        interfaces.TABLE.subscribe(self, self._on_table)
        self._builds = NeuralBuilds(self, self._build, self._server.take, lambda: self._server.placed, self._on_built)
        self._action = interfaces.BUILD_NEURAL_OBJECT.take(self, self._builds.add)
        # A long prediction must not keep a goal from being accepted or cancelled.
        self._requests = Requests(self, MutuallyExclusiveCallbackGroup())
        self._requests.serve(interfaces.ESTIMATE_INERTIA, self._server.estimate)
        self._requests.serve(interfaces.SIMULATE_PUSH, self._server.simulate)
        self._requests.serve(interfaces.IDENTIFY, self._server.identify)
        self.create_timer(config.diagnostics_period, self._report)
        self._report()

    def _on_objects(self, message: SegmentedObjectArray) -> None:
        self._objects = message

    def _on_table(self, message: TablePlane) -> None:
        self._table = message

    def _build(self, request: BuildNeuralObject.Goal, progress: Progress) -> tuple[PlacedObject, float]:
        views = read_goal(request, self._build_config, self._objects, self._table)
        found = learned(views, request, progress)
        progress("solid", 0.0, found.loss)
        return built(request, views, found, self._build_config), found.loss

    def _on_built(self, good: bool, words: str) -> None:
        self._counts["built" if good else "not built"] += 1
        self._problem = "" if good else words
        self._report()

    def _report(self) -> None:
        values: dict[str, object] = {
            **self._counts,
            **self._requests.values(),
            "builds waiting": self._builds.waiting,
            # Without an object it is ready all the same.
            STATE: ACTIVE,
        }
        summary, stage = self._server.summary, self._builds.stage
        if stage:
            summary = f"{summary}; building: {stage}"
            values |= {BUILD_STAGE: stage, BUILD_SHARE: self._builds.share}
        if self._server.placed is not None:
            inertia = self._server.placed.known.inertia
            values |= {MASS_ERROR: float(inertia.mass_error), INERTIA_ERROR: float(inertia.inertia_error)}
        if self._problem:
            self._diagnostics.report(ERROR, self._problem, values)
        else:
            placed = self._server.placed
            self._diagnostics.report(WARN if placed is None or placed.doubts else OK, summary, values)


def main(args: list[str] | None = None) -> None:
    # Inputs and goals, answers, and the worker.
    run_node(NeuralObject, args, threads=3)


if __name__ == "__main__":
    main()
