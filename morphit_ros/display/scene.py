"""The scene that a browser shows: robot, its spheres, clouds, object, table, grasps and the state of the job."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.display.display_list import LinesItem, PointsItem, box_edges
from morphit_ros.display.drawings.contact import contact_items
from morphit_ros.display.drawings.distances import closest_points_item
from morphit_ros.display.drawings.grasps import grasp_items
from morphit_ros.display.drawings.motion import motion_items
from morphit_ros.display.drawings.perceived_scene import table_item
from morphit_ros.display.drawings.robot_spheres import sphere_items
from morphit_ros.display.job_panel import JobPanel
from morphit_ros.display.layers import Lights
from morphit_ros.display.robot_visuals import link_glbs
from morphit_ros.display.sampling import thinned
from morphit_ros.display.served_scene import ServedScene, check_layer
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import (
    Array,
    check_transform,
    make_transform,
)
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.kinematics import KinematicModel

if TYPE_CHECKING:
    from morphit_ros.grasping.gripper import Gripper
    from morphit_ros.grasping.suction.cup import SuctionCup

LAYERS = {
    "robot": "Robot",
    "spheres": "Robot spheres",
    "object": "Object",
    "normals": "Object normals",
    "objects": "Other objects",
    "target": "Chosen target",
    "table": "Table",
    "grasps": "Grasps",
    "motion": "Planned motion",
    "contact": "Contact",
    "distances": "Nearest pair",
    "clouds": "Clouds",
}

_CLOUD_COLORS = np.array([[52, 120, 200], [200, 90, 50], [90, 150, 70], [150, 90, 170]]) / 255.0
_OBJECT_COLOR, _NORMAL_COLOR = (0.95, 0.55, 0.09), (0.35, 0.24, 0.08)
_SPHERE_COLOR, _SPHERE_OPACITY = (0.24, 0.59, 0.86), 0.35
_OTHER_COLOR, _TARGET_COLOR = (0.62, 0.56, 0.45), (1.0, 0.85, 0.2)
# A click means what is so near to its ray [m]; the box of a target whose object is not known is so large.
_CLICK_RADIUS, _TARGET_SIZE = 0.012, 0.04
_NORMAL_LENGTH = 0.008
_MAXIMUM_NORMALS = 1500


class ViewerScene(ServedScene):
    """A browser view of a workcell. Nothing is sent when nothing changed; callers choose the rate.

    The world frame is that of the clouds, z up.
    """

    layers = LAYERS
    lights = Lights(environment=0.25, ambient=0.3, sun=1.4, position=(1.5, -2.0, 4.0))
    field_of_view = 0.75

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 8080,
        *,
        max_points: int = 30_000,
        hidden: Collection[str] = ("normals",),
    ) -> None:
        """Start serving, as `ServedScene`.

        Args:
            host, port, hidden: as of `ServedScene`.
            max_points: larger clouds are thinned out to this many points.
        """
        if max_points < 1:
            raise InvalidInputError("max_points", max_points, "at least 1")
        super().__init__(host, port, hidden=hidden)
        self._max_points = max_points
        self._robot: KinematicModel | None = None
        self._positions: dict[str, float] = {}
        # What a click may mean: the objects, and where nothing is known of them the clouds.
        self._objects: list[Array] = []
        self._names: list[str] = []
        self._clouds: dict[str, Array] = {}

        # A little lower than a table top at the origin's height, which would flicker otherwise.
        self._server.add_floor(4.0, 0.1, 0.5, (0.0, 0.0, -0.004))
        self.set_camera((1.45, -1.15, 1.0), (0.28, 0.0, 0.32))

    def set_robot(self, robot: RobotDescription | str, T_world_root: ArrayLike | None = None) -> None:
        """Show a robot at its root link's pose; joints start at zero or at the limit nearest to it.

        A description that is shown already costs nothing. Another one takes the place of robot and spheres.

        Args:
            robot: description, or the text of a URDF.
            T_world_root: (4, 4), identity if left out.

        Raises:
            InvalidInputError, ResourceNotFoundError: the description or a mesh of it cannot be read.
        """
        pose = np.eye(4) if T_world_root is None else check_transform(T_world_root, "T_world_root")
        xml = robot if isinstance(robot, str) else robot.xml
        with self._lock:
            if self._robot is None or self._robot.description.xml != xml:
                model = KinematicModel(robot)
                glbs = link_glbs(model.description)
                self._server.clear("robot")
                self._server.clear("spheres")
                self._robot = model
                neutral = np.clip(0.0, model.position_lower, model.position_upper)
                self._positions = dict(zip(model.joint_names, neutral.tolist(), strict=True))
                for link, glb in glbs.items():
                    if glb:
                        self._server.put(f"robot/{link}", self._server.scene.add_glb, glb_data=glb)
            for layer in ("robot", "spheres"):
                self._server.place(layer, pose)
            self._place_links()

    def set_joints(self, positions: Mapping[str, float]) -> None:
        """Move the robot: joint name → position [rad or m], in any order.

        Joints that are not given stay; joints of other devices are ignored.

        Raises:
            InvalidInputError: no robot was set, or a position is not finite.
        """
        with self._lock:
            model = self._require_robot()
            known = {name: float(positions[name]) for name in model.joint_names if name in positions}
            model.configuration(self._positions | known)
            self._positions |= known
            self._place_links()

    def set_robot_spheres(self, spheres: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> None:
        """Show spheres that move with the links: link → centres (N, 3) in its frame and radii (N,) [m].

        Raises:
            InvalidInputError: no robot was set, it has no such link, or the arrays are malformed.
        """
        with self._lock:
            model = self._require_robot()
            checked: dict[str, tuple[Array, Array]] = {}
            for link, (centers, radii) in spheres.items():
                model.check_link(link)
                checked[link] = _checked_spheres(link, centers, radii)
            self._server.clear("spheres")
            self._server.draw(sphere_items(checked, [_SPHERE_COLOR], _SPHERE_OPACITY))
            self._place_links()

    def set_cloud(self, name: str, points: ArrayLike, colors: ArrayLike | None = None) -> None:
        """Show a cloud under its own checkbox; points that are not finite are left out.

        Args:
            name: letters, digits, '_', '-' and '.'.
            points: (N, 3) [m].
            colors: (N, 3) uint8 RGB.

        Raises:
            InvalidInputError: a malformed name or array.
        """
        if not name or not name.replace("_", "").replace("-", "").replace(".", "").isalnum():
            raise InvalidInputError("name", repr(name), "letters, digits, '_', '-' and '.'")
        cloud = PointCloud(np.asarray(points), colors=None if colors is None else np.asarray(colors))
        cloud = thinned(cloud, self._max_points)
        with self._lock:
            layer = f"clouds/{name}"
            if layer not in self._server.layers:
                self._server.add_layer(layer, f"Cloud {name}", visible=True)
            clouds = [other for other in self._server.layers if other.startswith("clouds/")]
            default = _CLOUD_COLORS[clouds.index(layer) % len(_CLOUD_COLORS)]
            colored = default if cloud.colors is None else cloud.colors / 255.0
            self._clouds[layer] = cloud.points
            self._server.draw([PointsItem(f"{layer}/points", colored, cloud.points, 0.003)])

    def set_object(self, points: ArrayLike, normals: ArrayLike | None = None) -> None:
        """Show the object to grasp: points (N, 3) [m] and unit normals (N, 3).

        Raises:
            InvalidInputError: malformed arrays.
        """
        cloud = PointCloud(np.asarray(points), None if normals is None else np.asarray(normals))
        cloud = thinned(cloud, self._max_points)
        step = max(len(cloud) // _MAXIMUM_NORMALS, 1)
        roots = cloud.points[::step] if cloud.normals is not None else np.zeros((0, 3))
        along = np.zeros((0, 3)) if cloud.normals is None else np.nan_to_num(cloud.normals[::step])
        segments = np.stack([roots, roots + _NORMAL_LENGTH * along], axis=1)
        with self._lock:
            self._server.draw(
                [
                    PointsItem("object/points", _OBJECT_COLOR, cloud.points, 0.0035),
                    LinesItem("normals/lines", _NORMAL_COLOR, segments, pixels=1.0),
                ]
            )

    def set_objects(self, objects: Sequence[ArrayLike], target: int = -1, names: Sequence[str] = ()) -> None:
        """Show all objects of a scene but the one to grasp, which `set_object` shows, and the names of all.

        Args:
            objects: points (N, 3) of each [m].
            target: which of them that is; -1: none.
            names: of each; none are shown without.

        Raises:
            InvalidInputError: malformed arrays.
        """
        clouds = [thinned(PointCloud(np.asarray(points)), self._max_points).points for points in objects]
        others = [points for index, points in enumerate(clouds) if index != target]
        with self._lock:
            for name in set(self._names) - set(names):
                self._server.remove(f"objects/{name}")
            self._objects, self._names = clouds, list(names) or [""] * len(clouds)
            for name, points in zip(self._names, clouds, strict=True):
                if name and len(points):
                    self._server.put(f"objects/{name}", self._server.scene.add_label, text=name)
                    self._server.place(f"objects/{name}", make_transform(translation=points[np.argmax(points[:, 2])]))
            shown = np.concatenate([np.zeros((0, 3)), *others])
            self._server.draw([PointsItem("objects/points", _OTHER_COLOR, shown, 0.0035)])

    def set_target(self, point: ArrayLike | None) -> str:
        """Mark what was chosen: the object that has this point (3,) [m], or the point; None: nothing was.

        Returns:
            the name of the object, empty if there is none.

        Raises:
            InvalidInputError: a point that is not finite.
        """
        if point is None:
            self.clear("target")
            return ""
        place = np.asarray(point, dtype=np.float64)
        if place.shape != (3,) or not np.isfinite(place).all():
            raise InvalidInputError("point", place.tolist(), "three finite numbers [m]")
        with self._lock:
            center, size, chosen = place, np.full(3, _TARGET_SIZE), ""
            for points, name in zip(self._objects, self._names, strict=True):
                if len(points) and np.linalg.norm(points - place, axis=1).min() < _CLICK_RADIUS:
                    low, high = points.min(axis=0) - 0.004, points.max(axis=0) + 0.004
                    center, size, chosen = 0.5 * (low + high), high - low, name
            self._server.draw([LinesItem("target/box", _TARGET_COLOR, box_edges(center, size), pixels=3.0)])
        return chosen

    def on_target(self, choose: Callable[[Array], None]) -> None:
        """Call with the point (3,) [m] that was clicked: of an object, or of a cloud that is shown."""

        def clicked(event: Any) -> None:
            point = self.point_along(event.ray_origin, event.ray_direction)
            if point is not None:
                choose(point)

        self._server.scene.on_click()(clicked)

    def point_along(self, origin: ArrayLike, direction: ArrayLike) -> Array | None:
        """The first point (3,) near a ray, of the objects, else of the clouds that are shown; None without one.

        Args:
            origin: (3,) [m].
            direction: (3,), unit.
        """
        start, along = np.asarray(origin), np.asarray(direction)
        with self._lock:
            shown = [points for name, points in self._clouds.items() if self._server.is_shown(name)]
            for clouds in (self._objects, shown):
                point = first_along(np.concatenate([np.zeros((0, 3)), *clouds]), start, along)
                if point is not None:
                    return point
        return None

    def add_job(self, press: Callable[[str], None] | None) -> JobPanel:
        """The panel's part about a job; `press` as of `JobPanel`."""
        with self._lock:
            return JobPanel(self._server.gui, self._server.panel, press)

    def set_table(self, T_world_table: ArrayLike, size: ArrayLike, thickness: float = 0.02) -> None:
        """Show a slab below the upper face z = 0 of the table frame.

        Args:
            T_world_table: (4, 4).
            size: (2,) along x and y [m].
            thickness: [m].

        Raises:
            InvalidInputError: not a rigid transform, or a size that is not positive.
        """
        pose = check_transform(T_world_table, "T_world_table")
        sides = np.asarray(size, dtype=np.float64)
        if sides.shape != (2,) or not (np.isfinite(sides).all() and (sides > 0.0).all() and thickness > 0.0):
            raise InvalidInputError("size", [sides.tolist(), thickness], "two positive lengths and a thickness [m]")
        with self._lock:
            self._server.draw([table_item(pose, sides, thickness)])

    def set_grasps(self, grasps: Sequence[tuple[ArrayLike, float, float]], gripper: Gripper | SuctionCup) -> None:
        """Show grasps (T_world_gripper (4, 4), aperture [m], score): the best as a gripper, others as forks.

        The better a fork's score among those shown, the bluer it is. No grasps clears them.

        Raises:
            InvalidInputError: a pose that is not rigid, an aperture or a score that is not finite.
        """
        checked = [
            (check_transform(pose, "T_world_gripper"), float(width), float(score)) for pose, width, score in grasps
        ]
        for _, aperture, score in checked:
            if not (np.isfinite(aperture) and np.isfinite(score)):
                raise InvalidInputError("grasps", f"aperture {aperture}, score {score}", "finite numbers")
        if not grasps:
            self.clear("grasps")
            return
        with self._lock:
            self._server.draw(grasp_items(checked, gripper))

    def set_contact(self, surface: ArrayLike, way: ArrayLike, forces: ArrayLike) -> None:
        """Show a push; empty ones clear it.

        Args:
            surface: (3 T, 3) corners of the object's triangles in the world, three by three [m].
            way: (N, 3) of the object's middle in the world [m].
            forces: (2 K, 3) ends of the forces' lines, two by two [m].

        Raises:
            InvalidInputError: numbers that are not finite.
        """
        corners, points, ends = (np.asarray(item, dtype=np.float64).reshape(-1, 3) for item in (surface, way, forces))
        if not all(np.isfinite(item).all() for item in (corners, points, ends)):
            raise InvalidInputError("surface, way, forces", "numbers that are not finite", "finite points [m]")
        triangles = corners[: len(corners) // 3 * 3].reshape(-1, 3, 3)
        with self._lock:
            self._server.draw(contact_items(triangles, points, ends[: len(ends) // 2 * 2].reshape(-1, 2, 3)))

    def set_motion(
        self, way: tuple[ArrayLike, ArrayLike], trees: tuple[ArrayLike, ArrayLike], T_world_root: ArrayLike
    ) -> None:
        """Show a planned motion, in the frame of the robot's root link; an empty one clears it.

        Args:
            way: points (N, 3) and how far the robot is from all else there (N,) [m].
            trees: ends of branches of the search, from the start and from the goals (2 B, 3) [m].
            T_world_root: (4, 4).

        Raises:
            InvalidInputError: arrays that do not fit together or are not finite.
        """
        pose = check_transform(T_world_root, "T_world_root")
        points, *ends = (np.asarray(item, dtype=np.float64).reshape(-1, 3) for item in (way[0], *trees))
        clearance = np.asarray(way[1], dtype=np.float64)
        finite = all(np.isfinite(item).all() for item in (points, *ends))
        if clearance.shape != (len(points),) or any(len(item) % 2 for item in ends) or not finite:
            found = f"{len(points)} points, {clearance.shape} clearances, {[len(item) for item in ends]} ends"
            raise InvalidInputError("motion", found, "finite points with a clearance each, and ends two by two")
        # What is not known is drawn as near.
        items = motion_items((points, np.nan_to_num(clearance, nan=0.0)), (ends[0], ends[1]))
        with self._lock:
            self._server.draw([replace(item, pose=pose) for item in items])

    def set_nearest_pair(self, points: ArrayLike, distance: float) -> None:
        """Show the closest points (2, 3) [m] of the nearest pair of bodies; red where the distance [m] is not above 0.

        Raises:
            InvalidInputError: points of another shape or not finite.
        """
        ends = np.asarray(points, dtype=np.float64)
        if ends.shape != (2, 3) or not np.isfinite(ends).all():
            raise InvalidInputError("points", f"shape {ends.shape}", "two finite points (2, 3) [m]")
        with self._lock:
            self._server.draw([closest_points_item(ends, distance)])

    def set_status(
        self,
        stage: str,
        times: Mapping[str, float] | None = None,
        messages: Sequence[str] = (),
        failed: bool = False,
    ) -> None:
        """Show the state of the job: stage under way, stages done → seconds, messages (the last ones are kept)."""
        with self._lock:
            self._server.panel.set_status(stage, times or {}, messages, failed)

    def show(self, layer: str, visible: bool) -> None:
        """Show or hide a layer of `LAYERS`, or a cloud as "clouds/NAME", as its checkbox does.

        Raises:
            InvalidInputError: there is no such layer, or no such cloud yet.
        """
        with self._lock:
            check_layer(layer, self._server.layers)
            self._server.show(layer, visible)

    def clear(self, layer: str) -> None:
        """Remove what a layer of `LAYERS` shows, or a cloud as "clouds/NAME"; an empty layer stays as it is.

        Raises:
            InvalidInputError: there is no such layer.
        """
        with self._lock:
            if not layer.startswith("clouds/"):
                check_layer(layer, self.layers)
                self._server.clear(layer)
            if layer == "robot":
                self._robot = None
                self._server.clear("spheres")
            if layer == "object":
                self._server.clear("normals")
            if layer == "objects":
                self._objects, self._names = [], []
            for cloud in [name for name in self._server.layers if name.startswith("clouds/")]:
                if layer in ("clouds", cloud):
                    self._clouds.pop(cloud, None)
                    self._server.remove_layer(cloud)

    def _require_robot(self) -> KinematicModel:
        if self._robot is None:
            raise InvalidInputError("robot", "none", "a robot description", "Call set_robot first.")
        return self._robot

    def _place_links(self) -> None:
        """Put meshes and spheres of all links where the joints have them."""
        for link, T_root_link in self._require_robot().forward_kinematics(self._positions).items():
            self._server.place(f"robot/{link}", T_root_link)
            self._server.place(f"spheres/{link}", T_root_link)


def first_along(points: Array, origin: Array, direction: Array) -> Array | None:
    """The first point (3,) within `_CLICK_RADIUS` of a ray, None without one.

    Args:
        points: (N, 3) [m].
        origin, direction: (3,) of the ray; a unit vector.
    """
    offsets = points - origin
    along = offsets @ direction
    near = (np.linalg.norm(offsets - along[:, None] * direction, axis=1) < _CLICK_RADIUS) & (along > 0.0)
    return points[near][along[near].argmin()] if near.any() else None


def _checked_spheres(link: str, centers: ArrayLike, radii: ArrayLike) -> tuple[Array, Array]:
    """Centres (N, 3) and radii (N,) as float64."""
    middles = np.asarray(centers, dtype=np.float64).reshape(-1, 3)
    sizes = np.asarray(radii, dtype=np.float64)
    if sizes.shape != (len(middles),) or not np.isfinite(middles).all() or not (sizes > 0.0).all():
        bound = "finite centres (N, 3) and positive radii (N,)"
        raise InvalidInputError(f"spheres of '{link}'", f"{len(middles)} centres, radii {sizes.shape}", bound)
    return middles, sizes
