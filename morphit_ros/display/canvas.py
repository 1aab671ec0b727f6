"""A small software rasteriser: splats, lines and triangles in one depth buffer.

Pictures are wanted on machines without a display, a GPU or OpenGL. A scene here is some ten
thousand points and some hundred triangles, which NumPy draws in a fraction of a second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.display.display_list import (
    DisplayList,
    LinesItem,
    MeshItem,
    PointsItem,
    SolidsItem,
    SpheresItem,
    box_edges,
    colors_of_parts,
)
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, invert_transform, look_at, transform_points, transform_vectors

_LIGHT = np.array([-0.35, -0.55, -0.76])  # towards the light, in the camera frame: from the upper left, behind it
_AMBIENT, _DIFFUSE = 0.42, 0.62


@dataclass(frozen=True)
class Camera:
    """A pinhole or orthographic camera.

    Attributes:
        T_world_camera: (4, 4), optical frame: z forward, x right, y down.
        scale: pixels per unit tangent of a pinhole camera, pixels per metre of an orthographic one.
        width, height: of the picture [px]; its centre is the principal point.
        orthographic: parallel projection.
    """

    T_world_camera: Array
    scale: float
    width: int
    height: int
    orthographic: bool = False

    @classmethod
    def framing(
        cls,
        points: ArrayLike,
        direction: ArrayLike,
        up: ArrayLike,
        width: int,
        height: int,
        *,
        orthographic: bool = False,
        margin: float = 1.1,
    ) -> Camera:
        """The camera that looks along `direction` (3,) and just holds all points (N, 3) within a margin."""
        corners = np.asarray(points, dtype=np.float64)
        forward = np.asarray(direction, dtype=np.float64) / np.linalg.norm(direction)
        center = 0.5 * (corners.min(axis=0) + corners.max(axis=0))
        radius = max(float(np.linalg.norm(corners - center, axis=1).max()), 1e-6)
        pose = look_at(center - 4.0 * radius * forward, center, up)

        def flattened() -> Array:
            seen = transform_points(invert_transform(pose), corners)
            return seen[:, :2] if orthographic else seen[:, :2] / seen[:, 2:]

        # A sideways step centres the picture: exactly for parallel rays, closely for a pinhole, whose extent is
        # therefore measured afterwards.
        middle = 0.5 * (flattened().min(axis=0) + flattened().max(axis=0))
        pose[:3, 3] += pose[:3, :2] @ (middle if orthographic else middle * 4.0 * radius)
        half = np.maximum(np.abs(flattened()).max(axis=0), 1e-9)
        scale = float(min(width / 2.0 / half[0], height / 2.0 / half[1]) / margin)
        return cls(pose, scale, width, height, orthographic)

    def project(self, points: ArrayLike) -> tuple[Array, Array, Array]:
        """Pixel coordinates (..., 2), nearness (...) and pixels per metre (...) of points (..., 3).

        Nearness grows towards the camera and is linear over a flat face in the picture: 1/z of a
        pinhole camera, -z of an orthographic one. Points behind a pinhole camera get nearness NaN.
        """
        seen = transform_points(invert_transform(self.T_world_camera), points)
        middle = np.array([self.width, self.height]) / 2.0
        depth = seen[..., 2]
        if self.orthographic:
            return seen[..., :2] * self.scale + middle, -depth, np.full(depth.shape, self.scale)
        nearness = 1.0 / np.where(depth > 1e-6, depth, np.nan)
        return seen[..., :2] * nearness[..., None] * self.scale + middle, nearness, nearness * self.scale

    def depth(self, nearness: NDArray[np.float32]) -> NDArray[np.float32]:
        """Distance along the optical axis [m], infinite where nothing was drawn."""
        if self.orthographic:
            return -nearness
        return np.where(nearness > 0.0, 1.0 / np.maximum(nearness, 1e-12), np.inf).astype(np.float32)


class Canvas:
    """A picture in the making: colours (H, W, 3) in [0, 1] and a depth buffer."""

    def __init__(self, camera: Camera, background: NDArray[np.float32]) -> None:
        """Start from a background that broadcasts to (H, W, 3), in [0, 1]."""
        shape = (camera.height, camera.width)
        self.camera = camera
        self.color = np.broadcast_to(background, (*shape, 3)).astype(np.float32).copy()
        self._nearness = np.full(shape, -np.inf, dtype=np.float32)

    def draw(self, items: DisplayList, scale: float = 1.0) -> None:
        """Draw items, each over those before it where they are transparent.

        Args:
            items: boxes are drawn far to near, with darker edges.
            scale: of the widths that items have in pixels.
        """
        for item in items:
            if isinstance(item, PointsItem):
                points = transform_points(item.pose, item.points)
                normals = None if item.normals is None else transform_vectors(item.pose, item.normals)
                self.draw_points(points, item.color, 0.5 * item.size, normals, item.nearer)
            elif isinstance(item, LinesItem):
                segments = transform_points(item.pose, item.segments)
                for (start, end), tint in zip(segments, colors_of_parts(item.color, len(segments)), strict=True):
                    self.draw_line(start, end, tint, item.pixels * scale, item.nearer)
            else:
                assert isinstance(item, MeshItem | SpheresItem | SolidsItem)
                vertices, faces = item.surface
                triangles = transform_points(item.pose, vertices)[faces]
                if isinstance(item, SolidsItem) and item.kind == "box":
                    self._draw_boxes(item, triangles, scale)
                else:
                    tints = colors_of_parts(item.color, len(faces))
                    self.draw_triangles(triangles, tints, float(item.opacity), item.nearer)

    def _draw_boxes(self, item: SolidsItem, triangles: Array, scale: float) -> None:
        parts, colors = triangles.reshape(len(item.centers), 12, 3, 3), colors_of_parts(item.color, len(item.centers))
        for index in np.argsort(self.camera.project(parts.mean(axis=(1, 2)))[1]):
            self.draw_triangles(parts[index], colors[index], float(item.opacity), item.nearer)
            for start, end in transform_points(item.pose, box_edges(item.centers[index], item.sizes[index])):
                self.draw_line(start, end, 0.7 * colors[index], 1.2 * scale, item.nearer)

    def draw_points(
        self, points: ArrayLike, colors: ArrayLike, radius: float, normals: ArrayLike | None = None, nudge: float = 0.0
    ) -> None:
        """Draw points as discs, shaded by their normals, or as shaded balls if there are none.

        Args:
            points: (N, 3) [m].
            colors: (3,) or (N, 3) in [0, 1].
            radius: [m]; at least half a pixel is drawn.
            normals: (N, 3) unit vectors.
            nudge: moves them towards the camera by this [m] when hiding is decided.
        """
        centers = np.asarray(points, dtype=np.float64).reshape(-1, 3)
        pixels, nearness, pixels_per_metre = self._project(centers, nudge)
        kept = np.flatnonzero(np.isfinite(nearness))
        if not len(kept):
            return
        # Far to near: of several writes to a pixel NumPy keeps the last one.
        kept = kept[np.argsort(nearness[kept], kind="stable")]
        radii = np.maximum(radius * pixels_per_metre[kept], 0.5)
        reach = int(np.ceil(radii.max()))
        grid = np.arange(-reach, reach + 1)
        offsets = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
        offsets = offsets[(offsets**2).sum(axis=1) <= (radii.max() + 0.5) ** 2]

        tint = np.broadcast_to(np.asarray(colors, dtype=np.float64), centers.shape)[kept]
        relative = offsets[None] / radii[:, None, None]
        inside = (relative**2).sum(axis=-1) <= 1.0 + 0.5 / radii[:, None]
        target = np.rint(pixels[kept]).astype(np.int64)[:, None] + offsets[None]
        inside &= ((target >= 0) & (target < (self.camera.width, self.camera.height))).all(axis=-1)
        row, spot = np.nonzero(inside)
        v, u = target[row, spot, 1], target[row, spot, 0]
        visible = nearness[kept][row] > self._nearness[v, u]
        row, spot, v, u = row[visible], spot[visible], v[visible], u[visible]
        if normals is None:
            xy = relative[row, spot]
            ball = np.column_stack([xy, -np.sqrt(np.maximum(1.0 - (xy**2).sum(axis=1), 0.0))])
            light = _AMBIENT + _DIFFUSE * np.maximum(ball @ _LIGHT, 0.0)
        else:
            light = self._light(np.asarray(normals, dtype=np.float64)[kept])[row]
        self.color[v, u] = np.clip(tint[row] * light[:, None], 0.0, 1.0)
        self._nearness[v, u] = nearness[kept][row]

    def draw_line(self, start: ArrayLike, end: ArrayLike, color: ArrayLike, width: float, nudge: float = 0.0) -> None:
        """Draw a straight line between two points (3,) [m], `width` pixels wide, unshaded."""
        ends = np.stack([np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)])
        pixels, _, pixels_per_metre = self.camera.project(ends)
        if not np.isfinite(pixels).all():
            return
        count = int(np.linalg.norm(pixels[1] - pixels[0])) * 2 + 2
        along = np.linspace(0.0, 1.0, count)[:, None]
        points = ends[0] * (1.0 - along) + ends[1] * along
        # Normals that face the light make the colour come out as it was given.
        facing = np.broadcast_to(transform_vectors(self.camera.T_world_camera, _LIGHT), points.shape)
        tint = np.asarray(color, dtype=np.float64) / (_AMBIENT + _DIFFUSE)
        self.draw_points(points, tint, 0.5 * width / float(pixels_per_metre.max()), facing, nudge)

    def draw_triangles(self, triangles: ArrayLike, color: ArrayLike, opacity: float = 1.0, nudge: float = 0.0) -> None:
        """Draw triangles (F, 3, 3) [m], counter-clockwise seen from outside, flat shaded, of a colour (3,) or (F, 3).

        Faces that look away are left out. Transparent faces are blended far to near and leave the depth buffer as
        it is: draw what is opaque first.

        Raises:
            InvalidInputError: the opacity is not in (0, 1].
        """
        if not 0.0 < opacity <= 1.0:
            raise InvalidInputError("opacity", opacity, "a number in (0, 1]")
        corners = np.asarray(triangles, dtype=np.float64).reshape(-1, 3, 3)
        pixels, nearness, _ = self._project(corners, nudge)
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
        tint = np.clip(np.asarray(color, dtype=np.float64) * self._light(normals)[:, None], 0.0, 1.0)
        # On a grid of sixteenths the edge functions of `_fill` are exact, and so is who owns a shared edge.
        rounded = np.round(pixels * 16.0) / 16.0
        (ux, uy), (vx, vy) = (rounded[:, 1] - rounded[:, 0]).T, (rounded[:, 2] - rounded[:, 1]).T
        doubled_areas = ux * vy - uy * vx
        # With y down, a face that looks at the camera has negative area; NaN where a corner is behind a pinhole.
        faces = np.flatnonzero(np.isfinite(nearness).all(axis=1) & (doubled_areas < 0.0))
        for face in faces[np.argsort(nearness[faces].mean(axis=1))]:
            self._fill(rounded[face], float(doubled_areas[face]), nearness[face], tint[face], opacity)

    def _fill(self, corners: Array, doubled_area: float, nearness: Array, color: Array, opacity: float) -> None:
        """Fill one triangle that looks at the camera, given by its corners (3, 2) [px] on the grid."""
        limit = np.array([self.camera.width, self.camera.height]) - 1
        low = np.maximum(np.ceil(corners.min(axis=0)), 0).astype(int)
        high = np.minimum(np.floor(corners.max(axis=0)), limit).astype(int)
        if (high < low).any():
            return
        sides = np.roll(corners, -1, axis=0) - corners
        x, y = np.arange(low[0], high[0] + 1), np.arange(low[1], high[1] + 1)[:, None]
        inside = np.ones((y.size, x.size), dtype=bool)
        near = np.zeros(inside.shape)
        for index, (dx, dy) in enumerate(sides):
            edge = dx * (y - corners[index, 1]) - dy * (x - corners[index, 0])
            # Of two faces that share an edge, in opposite directions, one draws it: it is blended once.
            owned = dy > 0.0 or (dy == 0.0 and dx < 0.0)
            inside &= edge <= 0.0 if owned else edge < 0.0
            near += edge / doubled_area * nearness[(index + 2) % 3]
        window = (slice(low[1], high[1] + 1), slice(low[0], high[0] + 1))
        inside &= near > self._nearness[window]
        self.color[window][inside] = (1.0 - opacity) * self.color[window][inside] + opacity * color
        if opacity == 1.0:
            self._nearness[window][inside] = near[inside]

    def shade_depth_edges(self, size: float, strength: float = 0.9, reach: int = 2) -> None:
        """Darken pixels that lie behind a neighbour (eye-dome lighting), which gives unlit points their shape.

        Args:
            size: extent of the scene [m], against which steps in depth are measured.
            strength: 0 leaves the picture as it is.
            reach: distance of the neighbours [px].
        """
        # Empty pixels count as the far side of the scene, so that only what lies in front of something casts an edge.
        depth = self.camera.depth(self._nearness)
        drawn = np.isfinite(depth)
        if not drawn.any():
            return
        filled = np.where(drawn, depth, depth[drawn].max())
        padded = np.pad(filled, reach, mode="edge")
        height, width = depth.shape
        behind = np.zeros_like(filled)
        for dy, dx in ((0, reach), (0, -reach), (reach, 0), (-reach, 0), (reach, reach), (-reach, -reach)):
            neighbour = padded[reach + dy : reach + dy + height, reach + dx : reach + dx + width]
            behind += np.maximum(filled - neighbour, 0.0)
        shade = np.exp(-strength * np.minimum(12.0 * behind / size, 1.0))
        self.color[drawn] *= shade[drawn][:, None]

    def pixels(self) -> NDArray[np.uint8]:
        """The picture (H, W, 3), RGB."""
        return np.rint(self.color * 255.0).astype(np.uint8)

    def _light(self, normals: Array) -> Array:
        """Brightness (N,) of surfaces with normals (N, 3) in the world frame; both sides are lit."""
        toward_light = transform_vectors(self.camera.T_world_camera, _LIGHT)
        return _AMBIENT + _DIFFUSE * np.abs(normals @ toward_light)

    def _project(self, points: Array, nudge: float) -> tuple[Array, Array, Array]:
        """`Camera.project`, with the nearness that the points have when moved towards the camera by `nudge` [m]."""
        pixels, nearness, pixels_per_metre = self.camera.project(points)
        if self.camera.orthographic:
            return pixels, nearness + nudge, pixels_per_metre
        depth = 1.0 / nearness
        return pixels, 1.0 / np.maximum(depth - nudge, 1e-6), pixels_per_metre
