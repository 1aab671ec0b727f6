"""What the sphere editor draws: translucent meshes, spheres by link, the gizmo, and the gap between both surfaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morphit_ros.display.display_list import MeshItem, SpheresItem
from morphit_ros.display.layers import LayeredServer, Lights
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array, transform_points

LAYERS = {"meshes": "Meshes", "spheres": "Spheres"}

# Links next to each other in a description get hues far from each other; gold and pink are left for states.
_LINK_COLORS = (
    (20, 110, 220), (16, 165, 96), (126, 70, 214), (0, 158, 176), (228, 92, 30),
    (64, 92, 232), (104, 172, 24), (190, 62, 158), (40, 136, 160), (170, 104, 50),
)  # fmt: skip
LOCKED_COLOR = (255, 190, 32)
SELECTED_COLOR = (255, 64, 112)
_MESH_COLOR = (0.62, 0.67, 0.73)
# Opacity of a mesh while no link is selected, of the selected link's, and of the others' then. Spheres inside a
# translucent mesh are opaque, since a browser cannot sort translucent surfaces that pass through each other.
_MESH_OPACITY = {"all": 0.24, "selected": 0.28, "others": 0.06}
_FAINT_OPACITY = 0.06
# Radius of a sphere that is not to be seen [m].
_SPECK = 1e-9
# Where spheres stand out of the mesh, where both surfaces agree, where the mesh stands out of the spheres.
_GAP_COLORS = np.array([[46, 92, 214], [238, 240, 242], [224, 48, 56]], dtype=np.float64)
_FIELD_OF_VIEW = 0.7
_VIEW_DIRECTION = np.array([-0.72, 0.60, -0.30])


class SphereScene(LayeredServer):
    """Meshes and spheres of links on a viser server. Not safe for several threads by itself."""

    def __init__(
        self, meshes: Mapping[str, TriangleMesh], T_world_link: Mapping[str, Array], host: str, port: int, title: str
    ) -> None:
        """Start serving, with the meshes in place.

        Args:
            meshes: link → its surface in the link's frame.
            T_world_link: (4, 4) of at least those links.
            host, port, title: as of `LayeredServer`.

        Raises:
            InvalidInputError, MissingDependencyError: as of `LayeredServer`.
        """
        super().__init__(host, port, title)
        self._meshes = dict(meshes)
        self._poses = {link: T_world_link[link] for link in meshes}
        self._fine: dict[str, TriangleMesh] = {}
        self._gap_link: str | None = None
        # Nothing is shown beyond, in the world's frame [m].
        self._clip = np.full(3, np.inf)
        self._light_and_floor()
        for name, label in LAYERS.items():
            self.add_layer(name, label, visible=True)
        self.put("gizmo", self.scene.add_frame, show_axes=False)
        self.look_at_link(None)

    def color(self, link: str) -> tuple[int, int, int]:
        """Colour of the free spheres of a link."""
        return _LINK_COLORS[list(self._meshes).index(link) % len(_LINK_COLORS)]

    def move_links(self, T_world_link: Mapping[str, Array]) -> None:
        """Put all links elsewhere."""
        self._poses = {link: T_world_link[link] for link in self._meshes}
        for link in self._meshes:
            self._place(link)

    @property
    def bounds(self) -> Array:
        """The box (2, 3) around all links where they are [m]."""
        return self._bounds(list(self._meshes))

    @property
    def is_clipped(self) -> bool:
        """Whether a clip plane is set."""
        return bool(np.isfinite(self._clip).any())

    def set_clip(self, axis: int, limit: float) -> None:
        """Hide what lies beyond a plane across an axis of the world, in what is drawn from now on.

        Args:
            axis: 0 for x, 1 for y, 2 for z.
            limit: greatest coordinate that is shown [m], infinite for all.
        """
        self._clip[axis] = limit

    def look_at_link(self, link: str | None) -> None:
        """Frame a link, or everything: browsers look there when they connect, and those connected jump there."""
        bounds = self._bounds(list(self._meshes) if link is None else [link])
        radius = 0.5 * float(np.linalg.norm(bounds[1] - bounds[0])) or 1.0
        target = bounds.mean(axis=0)
        direction = _VIEW_DIRECTION / np.linalg.norm(_VIEW_DIRECTION)
        self.set_camera(target - direction * radius / np.tan(0.5 * _FIELD_OF_VIEW) * 0.95, target, _FIELD_OF_VIEW)

    def show_mesh(self, link: str, selected_link: str | None, gaps: Callable[[Array], Array] | None) -> None:
        """Draw the mesh of a link, translucent, or coloured by the gap to the spheres.

        Args:
            link: whose mesh.
            selected_link: the link that is worked on, None for no particular one.
            gaps: signed distance (P,) [m] of points (P, 3) to the spheres of this link, positive outside them.
        """
        if (gaps is None) != (self._gap_link != link):
            # Vertex colours need another kind of node.
            self.remove(f"meshes/{link}")
        if gaps is not None:
            self._gap_link = link
            self._put_gap_mesh(link, gaps)
        else:
            self._gap_link = None if self._gap_link == link else self._gap_link
            mesh, opacity = self._clipped(link, self._meshes[link]), _MESH_OPACITY[_emphasis(link, selected_link)]
            if mesh is None:
                self.remove(f"meshes/{link}")
                return
            item = MeshItem(
                f"meshes/{link}", _MESH_COLOR, mesh.vertices, mesh.faces, flat=True, side="double", opacity=opacity
            )
            self.draw([item])
        self._place(link)

    def gap_scale(self, link: str) -> float:
        """Gap [m] at which the colours end: the same for all spheres of a link, so that fits can be compared."""
        return 0.03 * float(np.linalg.norm(self._meshes[link].extents))

    def show_spheres(
        self,
        link: str,
        centers: Array,
        radii: Array,
        locked: NDArray[np.bool_],
        selected: int | None,
        faint: bool,
        clicked: Callable[[str, int], None],
    ) -> None:
        """Draw the spheres of a link.

        Args:
            link: whose spheres.
            centers, radii, locked: (N, 3), (N,) [m] in the link's frame, and (N,).
            selected: row of the selected sphere of this link.
            faint: draw them as a hint only.
            clicked: called with link and row, in another thread, when a browser clicks on a sphere.
        """
        colors = np.tile(np.array(self.color(link)), (len(radii), 1))
        colors[locked] = LOCKED_COLOR
        if selected is not None:
            colors[selected] = SELECTED_COLOR
        name = f"spheres/{link}"
        is_new = name not in self._nodes
        # Those beyond a clip plane stay as specks: a click names a sphere by its row.
        beyond = (transform_points(self._poses[link], centers) > self._clip).any(axis=1)
        shown = np.where(beyond, _SPECK, radii)
        self.draw([SpheresItem(name, colors / 255.0, centers, shown, opacity=_FAINT_OPACITY if faint else 1.0)])
        if is_new:
            self._nodes[name].on_click(lambda event: clicked(link, int(event.instance_index)))
        self._place(link)

    def show_gizmo(self, link: str, center: Array, size: float, dragged: Callable[[str, Array], None]) -> None:
        """Put arrows to drag with at a point (3,) of a link's frame.

        Args:
            link: in whose frame.
            center: where.
            size: length of an arrow [m].
            dragged: called with "start", "update" or "end" and the point (3,), in the order of the drag.
        """
        is_new = "gizmo/arrows" not in self._nodes
        self.place("gizmo", self._poses[link])
        self.put(
            "gizmo/arrows",
            self.scene.add_transform_controls,
            scale=size,
            position=center,
            visible=True,
            disable_rotations=True,
            depth_test=False,
            line_width=3.0,
        )
        if is_new:
            # A coroutine: those keep the order of events, which threads would not.
            async def moved(event: Any) -> None:
                dragged(event.phase, np.array(event.target.position, dtype=np.float64))

            self._nodes["gizmo/arrows"].on_update(moved)

    def hide_gizmo(self) -> None:
        """Take the arrows away."""
        if "gizmo/arrows" in self._nodes:
            self._nodes["gizmo/arrows"].visible = False

    def surface_points(self, link: str) -> Array:
        """Points (P, 3) [m] close to each other on the mesh of a link, in its frame."""
        return self._finely_divided(link).vertices

    def _finely_divided(self, link: str) -> TriangleMesh:
        if link not in self._fine:
            self._fine[link] = _subdivided(self._meshes[link])
        return self._fine[link]

    def _put_gap_mesh(self, link: str, gaps: Callable[[Array], Array]) -> None:
        import trimesh

        mesh = self._clipped(link, self._finely_divided(link))
        self.remove(f"meshes/{link}")
        if mesh is None:
            return
        at = np.clip(gaps(mesh.vertices) / self.gap_scale(link), -1.0, 1.0)
        colors = np.stack([np.interp(at, (-1.0, 0.0, 1.0), _GAP_COLORS[:, channel]) for channel in range(3)], axis=1)
        painted = trimesh.Trimesh(mesh.vertices, mesh.faces, vertex_colors=colors.astype(np.uint8), process=False)
        self.put(f"meshes/{link}", self.scene.add_mesh_trimesh, mesh=painted, cast_shadow=False)

    def _clipped(self, link: str, mesh: TriangleMesh) -> TriangleMesh | None:
        """What the clip planes leave of a mesh in the frame of its link, open where it is cut; None if nothing."""
        from trimesh.intersections import slice_faces_plane

        rotation, origin = self._poses[link][:3, :3], self._poses[link][:3, 3]
        vertices, faces = mesh.vertices, mesh.faces
        for axis in np.flatnonzero(np.isfinite(self._clip)):
            normal = -rotation[axis]
            point = rotation[axis] * (self._clip[axis] - origin[axis])
            vertices, faces = slice_faces_plane(vertices, faces, normal, point)[:2]
            if not len(faces):
                return None
        return TriangleMesh(vertices, faces)

    def _place(self, link: str) -> None:
        for layer in LAYERS:
            self.place(f"{layer}/{link}", self._poses[link])

    def _bounds(self, links: list[str]) -> Array:
        """The box (2, 3) around some links where they are [m]."""
        placed = np.concatenate([transform_points(self._poses[link], self._meshes[link].vertices) for link in links])
        return np.stack([placed.min(axis=0), placed.max(axis=0)])

    def _light_and_floor(self) -> None:
        bounds = self._bounds(list(self._meshes))
        size = float(np.linalg.norm(bounds[1] - bounds[0])) or 1.0
        self.light(Lights(environment=0.15, ambient=0.3, sun=1.0, position=(1.5, -2.0, 4.0)))
        # Cells of 1, 10, 100 … mm or m: about twenty across the floor.
        cell = float(10.0 ** np.round(np.log10(size / 10.0)))
        position = (*bounds.mean(axis=0)[:2], bounds[0, 2] - 0.002 * size)
        self.add_floor(20.0 * cell, cell, 5.0 * cell, position)


def _emphasis(link: str, selected_link: str | None) -> str:
    if selected_link is None:
        return "all"
    return "selected" if link == selected_link else "others"


def _subdivided(mesh: TriangleMesh) -> TriangleMesh:
    """The same surface in triangles small enough to carry colours."""
    import trimesh

    longest = max(float(np.linalg.norm(mesh.extents)) / 60.0, 1e-9)
    vertices, faces = trimesh.remesh.subdivide_to_size(mesh.vertices, mesh.faces, longest, max_iter=12)
    return TriangleMesh(vertices, faces)
