"""All that a graph publishes on one page, the arm asked for by its buttons, and whom the job waits for."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node
from std_msgs.msg import String
from trajectory_msgs.msg import MultiDOFJointTrajectory
from visualization_msgs.msg import MarkerArray

from morphit_interfaces.msg import CoverState, MotionPlan, NeuralObject, SphereModel, SuperovoidModel
from morphit_ros.display.job_panel import NO_TARGET, STOP, JobPanel
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.semantics import load_semantic_description
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import steady_timer
from morphit_ros.ros.core.conversions import point_rows
from morphit_ros.ros.core.endpoints import Topic
from morphit_ros.ros.core.frames import BaseFrameConfig, CameraFrameConfig
from morphit_ros.ros.core.job_nodes import JobNodes
from morphit_ros.ros.distance.clearance_watch import Clearance, ClearanceWatch
from morphit_ros.ros.execution.arm_controls import ArmAnswer, ArmControls
from morphit_ros.ros.execution.asking import SERVER
from morphit_ros.ros.scene.view import WorkcellViewer

# Time between two looks at the nodes and at the clearance [s].
_PERIOD = 0.5


class SystemViewer(WorkcellViewer):
    """The workcell, what else is published, and the job. Covers and neural objects are loaded when one comes.

    Args:
        node: subscribes, and asks.
        port, max_points, robot, world_frame, base, cameras: as of `WorkcellViewer`.
        job_nodes: names of the nodes that make up the job.
        controls: whether the page has buttons, and takes clicks.
        node_timeout: silence after which a node counts as hung [s].
    """

    def __init__(
        self,
        node: Node,
        port: int,
        max_points: int,
        robot: str,
        world_frame: str,
        base: BaseFrameConfig,
        cameras: CameraFrameConfig,
        job_nodes: Sequence[str],
        controls: bool,
        node_timeout: float,
    ) -> None:
        super().__init__(node, port, max_points, robot, world_frame, base, cameras)
        self._world_frame = world_frame
        self._namespace = node.get_namespace().rstrip("/")
        self._nodes = JobNodes(node, sorted({*job_nodes, *((SERVER,) if controls else ())}), node_timeout)
        self._panel: JobPanel = self.scene.add_job(self._press if controls else None)
        self.controls: ArmControls | None = None
        if controls:
            self.controls = ArmControls(node, self._nodes.lives, self._on_answer, world_frame)
            self.scene.on_target(self._choose)
        self._clearance = ClearanceWatch(node, self._show_clearance)
        self._neural: Any = None
        self._cover: Any = None
        # Whether somebody has told the state of a job.
        self._told = False
        self.topics = {
            **self.topics,
            interfaces.SUPEROVOID_MODEL: self._on_superovoids,
            interfaces.MOTION_PLAN: self._show_motion,
            interfaces.TASK_STATE: self._show_task,
            interfaces.CONTACT_MARKERS: self._show_contact,
            interfaces.NEURAL_OBJECT: self._show_neural_object,
            interfaces.NEURAL_MOTION: self._show_neural_motion,
            interfaces.COVER_DESCRIPTION: self._show_cover,
            interfaces.COVER_STATE: self._show_cover_state,
        }
        steady_timer(node, _PERIOD, self._look)

    def is_ready(self, topic: Topic) -> bool:
        if topic is interfaces.NEURAL_MOTION:
            return self._neural is not None
        return super().is_ready(topic)

    def close(self) -> None:
        for part in (self._neural, self._cover):
            if part is not None:
                part.scene.close()
        super().close()

    # The job

    def _look(self) -> None:
        for status in self._nodes.take():
            if self._neural is not None and status.name == self._neural.node_name:
                self._neural.show_status(status)
            # What only pushes has nobody else who tells its stages.
            if status.name == f"{self._namespace}/contact_planning" and not self._told:
                self.scene.set_status(status.message, {}, failed=status.level != DiagnosticStatus.OK)
        waiting = self._nodes.waiting()
        self._panel.set_nodes(self._nodes.rows(), waiting)
        if self.controls is not None:
            self._panel.set_enabled(self._nodes.is_ready(SERVER) and not self.controls.running)
        if self.scene.is_watched:
            self._clearance.ask()

    def _press(self, name: str) -> None:
        assert self.controls is not None
        if name == STOP:
            self.controls.stop()
        elif name == NO_TARGET:
            self._choose(None)
        else:
            self.controls.ask(name)

    def _choose(self, point: Array | None) -> None:
        assert self.controls is not None
        name = self.scene.set_target(point)
        self.controls.choose(point, name)
        place = "" if point is None else f"at {' '.join(f'{value:.3f}' for value in point)} m"
        self._panel.set_target(f"{name} {place}".strip())

    def _on_answer(self, answer: ArmAnswer) -> None:
        self._panel.say(answer.text, answer.failed)

    def _show_clearance(self, clearance: Clearance) -> None:
        self._panel.add_clearance(monotonic(), clearance.world, clearance.own, clearance.names)
        if clearance.points is None:
            self.scene.clear("distances")
        else:
            points = transform_points(self._base.T_world_base(self._robot.base_link), clearance.points)
            self.scene.set_nearest_pair(points, float(np.nanmin([clearance.world, clearance.own])))

    def _show_job_state(self, message: DiagnosticStatus) -> None:
        self._told = True
        super()._show_job_state(message)

    def _show_motion(self, message: MotionPlan) -> None:
        trees = point_rows(message.start_tree), point_rows(message.goal_tree)
        T_world_root = self._base.T_world_base(self._robot.base_link)
        self.scene.set_motion((point_rows(message.way), np.array(message.clearance)), trees, T_world_root)
        self._panel.set_plan(message.message, message.certificate, message.success)

    def _show_task(self, message: DiagnosticStatus) -> None:
        tree = [(pair.key, pair.value) for pair in message.values]
        self._panel.set_task(message.message, tree, message.level != DiagnosticStatus.OK)

    def _show_contact(self, message: MarkerArray) -> None:
        drawn = {marker.ns: point_rows(marker.points) for marker in message.markers}
        none = np.zeros((0, 3))
        self.scene.set_contact(*(drawn.get(name, none) for name in ("object", "way", "forces")))

    # Models

    def _show_robot(self, message: String) -> None:
        super()._show_robot(message)
        semantics = self._robot.semantic_description
        if semantics:
            description = load_robot_description(message.data)
            self._clearance.group = load_semantic_description(semantics).group_with(self._robot.arm_joints, description)

    def _show_spheres(self, message: SphereModel) -> None:
        self._nodes.model(interfaces.SPHERE_MODEL.name, message.content_hash)
        super()._show_spheres(message)

    def _on_superovoids(self, message: SuperovoidModel) -> None:
        self._nodes.model(interfaces.SUPEROVOID_MODEL.name, message.content_hash)

    # Parts that not every graph has

    def _show_neural_object(self, message: NeuralObject) -> None:
        if self._neural is None:
            from morphit_ros.ros.neural.view import NeuralViewer

            self._neural = NeuralViewer(0, f"{self._namespace}/neural_object", self.scene)
        self._neural.show_object(message)

    def _show_neural_motion(self, message: MultiDOFJointTrajectory) -> None:
        self._neural.show_motion(message)

    def _show_cover(self, message: String) -> None:
        from morphit_ros.ros.cover.messages import cover_from_description

        # One that the arm wears is drawn with the arm's spheres.
        if cover_from_description(message.data)[2].get("frame", self._world_frame) != self._world_frame:
            return
        if self._cover is None:
            from morphit_ros.ros.cover.view import CoverViewer

            self._cover = CoverViewer(page=self.scene)
        self._cover.show_description(message)

    def _show_cover_state(self, message: CoverState) -> None:
        if self._cover is not None:
            self._cover.show_state(message)
