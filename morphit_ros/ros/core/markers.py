"""RViz markers: few list markers rather than hundreds of single ones, each array clearing the old ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from geometry_msgs.msg import Vector3
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.grasping.grasp import Grasp
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.ros.core.conversions import point_from_array, pose_from_matrix, vector_from_array

PALETTE = (
    (0.12, 0.47, 0.71),
    (1.0, 0.5, 0.05),
    (0.17, 0.63, 0.17),
    (0.58, 0.4, 0.74),
    (0.55, 0.34, 0.29),
    (0.89, 0.47, 0.76),
)


def color_message(rgb: Sequence[float], alpha: float = 1.0) -> ColorRGBA:
    """A colour of three numbers from 0 to 1."""
    red, green, blue = (float(value) for value in rgb)
    return ColorRGBA(r=red, g=green, b=blue, a=alpha)


def marker_array(markers: Iterable[Marker]) -> MarkerArray:
    """These markers in place of all earlier ones of their topic."""
    return MarkerArray(markers=[Marker(action=Marker.DELETEALL), *markers])


def sphere_markers(links: Mapping[str, tuple[Array, Array]], alpha: float = 0.5) -> MarkerArray:
    """Spheres of each link, in the link's frame: link → centres (N, 3) and radii (N,) [m]."""
    markers = []
    for number, (link, (centers, radii)) in enumerate(links.items()):
        header, color = Header(frame_id=link), color_message(PALETTE[number % len(PALETTE)], alpha)
        # A list marker has one scale for all its points; spheres differ, so one marker each, but one frame a link.
        for index, ((x, y, z), size) in enumerate(zip(centers.tolist(), (2.0 * radii).tolist(), strict=True)):
            # Field by field: constructors with arguments take several times as long, and a model has hundreds.
            marker = Marker(header=header, ns=link, id=index, type=Marker.SPHERE, frame_locked=True, color=color)
            position, scale = marker.pose.position, marker.scale
            position.x, position.y, position.z = x, y, z
            scale.x = scale.y = scale.z = size
            markers.append(marker)
    return marker_array(markers)


def scene_markers(
    header: Header, T_world_table: Array | None, table_size: Array, boxes: Sequence[Array], target: int | None
) -> MarkerArray:
    """The table as a thin slab and each object's axis-aligned box (2, 3) as lines; the target in another colour."""
    markers = []
    if T_world_table is not None:
        size = vector_from_array([*table_size, 0.002])
        markers.append(
            Marker(
                header=header,
                ns="table",
                type=Marker.CUBE,
                pose=pose_from_matrix(T_world_table),
                scale=size,
                color=color_message((0.6, 0.55, 0.5), 0.5),
            )
        )
    edges = [(a, b) for a in range(8) for b in range(a + 1, 8) if bin(a ^ b).count("1") == 1]
    for index, (low, high) in enumerate(boxes):
        corners = [[(low, high)[corner >> axis & 1][axis] for axis in range(3)] for corner in range(8)]
        color = (1.0, 0.8, 0.1) if index == target else (0.7, 0.7, 0.7)
        markers.append(
            Marker(
                header=header, ns="objects", id=index, type=Marker.LINE_LIST,
                scale=Vector3(x=0.002), color=color_message(color),
                points=[point_from_array(corners[end]) for edge in edges for end in edge],
            )
        )  # fmt: skip
    return marker_array(markers)


def grasp_markers(header: Header, grasps: Sequence[Grasp], gripper: Gripper) -> MarkerArray:
    """The best grasp as boxes of the gripper with its contact points, the others as line figures."""
    markers = []
    for index, grasp in enumerate(grasps[:1]):
        for number, box in enumerate(gripper.collision_boxes(grasp.aperture)):
            pose = grasp.T_world_gripper.copy()
            pose[:3, 3] = transform_points(grasp.T_world_gripper, box.center)
            markers.append(
                Marker(
                    header=header, ns=f"gripper_{index}", id=number, type=Marker.CUBE, pose=pose_from_matrix(pose),
                    scale=vector_from_array(box.size), color=color_message((0.2, 0.8, 0.3), 0.6),
                )
            )  # fmt: skip
        if len(grasp.contact_points):
            markers.append(
                Marker(
                    header=header, ns="contacts", type=Marker.POINTS, scale=Vector3(x=0.003, y=0.003),
                    points=[point_from_array(point) for point in grasp.contact_points],
                    color=color_message((1.0, 0.1, 0.1)),
                )
            )  # fmt: skip
    figure: list[Array] = []
    for grasp in grasps[1:]:
        figure.extend(_line_figure(grasp))
    if figure:
        markers.append(
            Marker(
                header=header, ns="candidates", type=Marker.LINE_LIST, scale=Vector3(x=0.0015),
                points=[point_from_array(point) for point in figure], color=color_message((0.5, 0.5, 0.9), 0.6),
            )
        )  # fmt: skip
    return marker_array(markers)


def _line_figure(grasp: Grasp) -> Array:
    """A fork of line segments (2M, 3): handle, bar and the two fingers."""
    half, back, handle = grasp.open_aperture / 2.0, -0.04, -0.08
    local = [
        [0, 0, handle],
        [0, 0, back],
        [0, -half, back],
        [0, half, back],
        [0, half, back],
        [0, half, 0],
        [0, -half, back],
        [0, -half, 0],
    ]
    return transform_points(grasp.T_world_gripper, local)
