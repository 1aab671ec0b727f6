"""The browser view of a plan's candidates: what became of each, one of them in full, to be copied."""

from __future__ import annotations

import html
import json
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from morphit_ros.display.display_list import PointsItem, SolidsItem
from morphit_ros.display.drawings.grasps import FINGER_COLORS, PALM_COLOR, approach_items, fork, gripper_item
from morphit_ros.display.layers import Lights
from morphit_ros.display.panel import BAD_COLOR, GOOD_COLOR, table_html, titled_html
from morphit_ros.display.sampling import typical_spacing
from morphit_ros.display.served_scene import ServedScene
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.transforms import Array, invert_transform, plane_axes, quat_xyzw_from_matrix, transform_points

if TYPE_CHECKING:
    from morphit_ros.geometry.support_plane import SupportPlaneLike
    from morphit_ros.grasping.candidate_record import Candidate, CandidateRecord
    from morphit_ros.grasping.grasp import GraspPlan
    from morphit_ros.grasping.gripper import Gripper

ALL = "all"
FORMATS = ("text", "YAML", "JSON")
_OFFERED_COLOR, _CHOSEN_COLOR = (60, 190, 130), (255, 64, 112)
_OTHER_COLORS = (
    (214, 92, 72), (232, 162, 52), (150, 112, 214), (72, 140, 220), (190, 190, 90), (205, 110, 170), (110, 175, 185),
    (160, 160, 160),
)  # fmt: skip
_CLOUD_COLOR, _TABLE_COLOR, _OBSTACLE_COLOR = (0.93, 0.80, 0.55), (0.36, 0.39, 0.43), (0.55, 0.62, 0.72)
# Of a fork's prongs, and half of the table's thickness [m]; what the table reaches beyond the object [m].
_PRONG, _THICKNESS, _AROUND = 0.0007, 0.001, 0.15
# Forks are drawn no narrower [m].
_LEAST_OPENING = 0.004
# Of the obstacles that are shown.
_MOST_POINTS = 50_000


class CandidateScene(ServedScene):
    """A browser view of a record: candidates by outcome, one as the gripper, its pose and figures as text."""

    layers: ClassVar = {
        "object": "Object", "table": "Table", "obstacles": "Obstacles", "candidates": "Candidates", "grasps": "Chosen",
    }  # fmt: skip
    lights = Lights(environment=0.15, ambient=0.35, sun=1.0)
    title = "morphit grasp"

    def __init__(
        self,
        record: CandidateRecord,
        plan: GraspPlan,
        gripper: Gripper,
        cloud: PointCloud,
        table: SupportPlaneLike | None = None,
        obstacles: Array | None = None,
        host: str = "127.0.0.1",
        port: int = 8080,
    ) -> None:
        """Start serving; the first candidate is chosen.

        Args:
            record, plan: of one call of `plan_grasps`.
            gripper, cloud, table: that were planned with.
            obstacles: (M, 3) points of other things [m].
            host, port: as of `ServedScene`.

        Raises:
            InvalidInputError, MissingDependencyError: as of `ServedScene`.
        """
        super().__init__(host, port)
        self._record, self._plan, self._gripper, self._points = record, plan, gripper, cloud.points
        outcomes = record.outcomes
        others = [outcome for outcome in outcomes if outcome != "offered"]
        self._colors: dict[str, tuple[int, int, int]] = {
            outcome: _OTHER_COLORS[number % len(_OTHER_COLORS)] for number, outcome in enumerate(others)
        } | {"offered": _OFFERED_COLOR}
        self._labels = {f"{outcome} ({count})": outcome for outcome, count in outcomes.items()}
        self._whole = f"{ALL} ({len(record.candidates)})"
        self._listed = list(record.candidates)
        self._number, self._format, self._showing = 0, FORMATS[0], threading.local()
        self._draw_surroundings(cloud, table, obstacles)
        self._add_controls()
        self.choose_outcome(next(iter(outcomes), ALL))

    @property
    def chosen(self) -> Candidate | None:
        """The candidate that is shown in full; None where there is none."""
        return self._listed[self._number] if self._listed else None

    @property
    def text(self) -> str:
        """What is shown of it to be copied."""
        return "" if self.chosen is None else candidate_text(self.chosen, self._format)

    def choose_outcome(self, outcome: str) -> None:
        """List the candidates of an outcome, or `ALL`, and choose the first of them.

        Raises:
            InvalidInputError: no candidate has this outcome.
        """
        known = (ALL, *self._record.outcomes)
        if outcome not in known:
            raise InvalidInputError("outcome", repr(outcome), f"one of {', '.join(known)}")
        with self._lock:
            self._listed = [one for one in self._record.candidates if outcome in (ALL, one.outcome)]
            self._number = 0
            self._show(lambda: setattr(self._outcome, "value", self._label(outcome)))

    def choose(self, number: int) -> None:
        """Choose the candidate of this number in the list, from 0.

        Raises:
            InvalidInputError: the list has no such number.
        """
        with self._lock:
            if not 0 <= number < len(self._listed):
                raise InvalidInputError("number", number, f"0 to {len(self._listed) - 1}")
            self._number = number
            self._show()

    def choose_format(self, name: str) -> None:
        """Show the text as one of `FORMATS`."""
        with self._lock:
            self._format = name
            self._show()

    def _label(self, outcome: str) -> str:
        return next((label for label, name in self._labels.items() if name == outcome), self._whole)

    def _add_controls(self) -> None:
        gui = self._server.gui
        # Before the account of the plan, which is long.
        with gui.add_folder("Candidates", order=-1.0):
            self._outcome = gui.add_dropdown("Outcome", [*self._labels, self._whole])
            self._slider = gui.add_slider("Number", 1, 2, 1, 1, hint="Or click on a fork")
            self._checks = gui.add_html("")
            self._format_list = gui.add_dropdown("Copy as", FORMATS)
            self._text = gui.add_text("", "", multiline=True, hint="Pose, score and checks, to be copied")
        self._server.panel.set_content(self._account())
        self._listen(self._outcome, lambda label: self.choose_outcome(self._labels.get(label, ALL)))
        self._listen(self._slider, lambda value: self.choose(min(int(value), max(len(self._listed), 1)) - 1))
        self._listen(self._format_list, self.choose_format)

    def _listen(self, control: Any, act: Callable[[Any], None]) -> None:
        """Call `act` when somebody, and not `_show`, has changed the control; that one calls back in its own thread."""
        control.on_update(lambda _: None if getattr(self._showing, "now", False) else act(control.value))

    def _show(self, more: Callable[[], None] = lambda: None) -> None:
        if self._closed:
            return
        self._showing.now = True
        try:
            more()
            self._slider.max = max(len(self._listed), 2)
            self._slider.value = self._number + 1
            self._slider.disabled = len(self._listed) < 2
            self._format_list.value, self._text.value = self._format, self.text
        finally:
            self._showing.now = False
        self._draw_forks()
        self._draw_chosen()
        self._checks.content = self._chosen_html()

    def _draw_surroundings(self, cloud: PointCloud, table: SupportPlaneLike | None, obstacles: Array | None) -> None:
        points = cloud.points
        center, extent = points.mean(axis=0), float(np.linalg.norm(np.ptp(points, axis=0)))
        up: Array = np.array([0.0, 0.0, 1.0]) if table is None else np.asarray(table.T_world_table)[:3, 2]
        colors = _CLOUD_COLOR if cloud.colors is None else cloud.colors / 255.0
        items: list[Any] = [PointsItem("object/points", colors, points, 1.2 * typical_spacing(points))]
        if table is not None:
            local = transform_points(invert_transform(table.T_world_table), points)[:, :2]
            low, high = local.min(axis=0) - _AROUND, local.max(axis=0) + _AROUND
            middle = np.array([[*(0.5 * (low + high)), -_THICKNESS]])
            size = np.array([[*(high - low), 2.0 * _THICKNESS]])
            items.append(
                SolidsItem("table/top", _TABLE_COLOR, "box", middle, size, pose=np.asarray(table.T_world_table))
            )
        if obstacles is not None and len(obstacles):
            shown = obstacles[:: 1 + len(obstacles) // _MOST_POINTS]
            items.append(PointsItem("obstacles/points", _OBSTACLE_COLOR, shown, 0.002))
        self._server.scene.set_up_direction(up)
        self._server.draw(items)
        across, along = plane_axes(up)
        reach = max(extent, 0.12) + 0.2
        self.set_camera(center + reach * (0.9 * across + 0.75 * along + 0.75 * up), center)

    def _draw_forks(self) -> None:
        """One mesh for all: its fingers are drawn apart by the aperture, as a scale along y."""
        if not self._listed:
            self._server.remove("candidates/forks")
            return
        poses = np.array([one.T_world_gripper for one in self._listed])
        turns = np.array([quat_xyzw_from_matrix(pose[:3, :3]) for pose in poses])
        scales = np.ones((len(poses), 3))
        scales[:, 1] = [max(one.aperture, _LEAST_OPENING) for one in self._listed]
        colors = np.array([self._colors[one.outcome] for one in self._listed], dtype=np.uint8)
        colors[self._number] = _CHOSEN_COLOR
        vertices, faces = _fork_mesh(self._gripper)
        added = self._server.put(
            "candidates/forks",
            self._server.scene.add_batched_meshes_simple,
            vertices=vertices,
            faces=faces,
            batched_wxyzs=turns[:, [3, 0, 1, 2]].astype(np.float32),
            batched_positions=poses[:, :3, 3].astype(np.float32),
            batched_scales=scales.astype(np.float32),
            batched_colors=colors,
            cast_shadow=False,
        )
        if added is not None:
            added.on_click(lambda event: self.choose(int(event.instance_index)))

    def _draw_chosen(self) -> None:
        one, gripper = self.chosen, self._gripper
        self._server.clear("grasps")
        if one is None:
            return
        palms, fingers = len(gripper.palm_boxes), len(gripper.finger_boxes)
        tints = np.array([PALM_COLOR] * palms + [FINGER_COLORS[0]] * fingers + [FINGER_COLORS[1]] * fingers)
        # Nodes of one solid each: those of several have one colour.
        boxes = gripper_item("gripper", gripper, one.T_world_gripper, one.aperture)
        self._server.draw(
            [
                SolidsItem(
                    f"grasps/part_{k}", tints[k], "box", boxes.centers[[k]], boxes.sizes[[k]], pose=boxes.pose,
                    opacity=0.45,
                )
                for k in range(len(tints))
            ]
        )  # fmt: skip
        if one.grasp is not None:
            extent = float(np.linalg.norm(np.ptp(self._points, axis=0)))
            self._server.draw(approach_items(one.grasp, gripper, extent))

    def _account(self) -> str:
        counts = {stage: f"{count}" for stage, count in self._plan.rejected.items() if count}
        title = f"{len(self._plan.grasps)} offered of {self._plan.candidates} starts"
        color = GOOD_COLOR if self._plan.grasps else BAD_COLOR
        parts = [titled_html("Removed by stage", table_html(counts))] if counts else []
        return titled_html(title, html.escape(self._plan.message), *parts, color=color)

    def _chosen_html(self) -> str:
        one = self.chosen
        if one is None:
            return titled_html("no candidate")
        rows = {} if one.score is None else {"score": f"{one.score:.3f}"}
        rows |= {name: str(check) for name, check in one.checks().items()}
        color = GOOD_COLOR if one.grasp is not None else BAD_COLOR
        return titled_html(f"{self._number + 1} of {len(self._listed)}: {one.outcome}", table_html(rows), color=color)


def candidate_text(candidate: Candidate, form: str = FORMATS[0]) -> str:
    """Outcome, pose, score and checks of a candidate to be copied.

    Args:
        candidate: which.
        form: one of `FORMATS`; text has the position, the quaternion (x, y, z, w) and the checks, a line each.

    Raises:
        InvalidInputError: no such format.
    """
    if form == "JSON":
        return json.dumps(candidate.content(), indent=2)
    if form == "YAML":
        import yaml

        return str(yaml.safe_dump(candidate.content(), sort_keys=False, default_flow_style=None))
    if form != "text":
        raise InvalidInputError("format", repr(form), f"one of {', '.join(FORMATS)}")
    pose = candidate.T_world_gripper

    def numbers(values: Array) -> str:
        return " ".join(f"{value:.6g}" for value in values)

    lines = [
        candidate.outcome,
        f"position [m]: {numbers(pose[:3, 3])}",
        f"quaternion x y z w: {numbers(quat_xyzw_from_matrix(pose[:3, :3]))}",
        f"aperture [m]: {candidate.aperture:.6g}",
    ]
    if candidate.score is not None:
        lines.append(f"score: {candidate.score:.4g}")
    lines += [f"{name}: {check}" for name, check in candidate.checks().items()]
    return "\n".join([*lines, *(f"{name}: {value:.4g}" for name, value in candidate.metrics.items())])


def _fork_mesh(gripper: Gripper) -> tuple[NDArray[np.float32], NDArray[np.uint32]]:
    """A gripper of aperture 1 as thin boxes, vertices (V, 3) and faces (F, 3), in its frame."""
    palm = max(float(box.center[2] + box.size[2] / 2.0) for box in gripper.palm_boxes)
    tip = gripper.fingertips
    vertices: list[Array] = []
    faces: list[NDArray[np.int64]] = []
    for start, end in fork(palm - 0.02, palm, tip, 1.0):
        across = np.array([1.0, 0.0 if abs(end - start)[1] > 0.0 else 20.0, 1.0])
        beam = box_mesh(np.abs(end - start) + 2.0 * _PRONG * across).transformed(_shift(0.5 * (start + end)))
        faces.append(beam.faces + sum((len(part) for part in vertices), 0))
        vertices.append(beam.vertices)
    return np.concatenate(vertices).astype(np.float32), np.concatenate(faces).astype(np.uint32)


def _shift(offset: Array) -> Array:
    pose: Array = np.eye(4)
    pose[:3, 3] = offset
    return pose
