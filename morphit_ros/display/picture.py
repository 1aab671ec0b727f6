"""Pictures rendered off screen: grasps with cloud, gripper and contact points in several views; any display list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.display.canvas import Camera, Canvas
from morphit_ros.display.display_list import DisplayList, Item, LinesItem, MeshItem, PointsItem, SolidsItem, SpheresItem
from morphit_ros.display.grasp_view import (
    FRONT,
    PERSPECTIVE,
    SIDE,
    SUPERSAMPLING,
    TOP,
    PictureView,
    background,
    draw_view,
    shrunk,
)
from morphit_ros.display.sampling import thinned
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import CloudLike, as_cloud
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, check_transform, transform_points
from morphit_ros.resources import atomic_write

if TYPE_CHECKING:
    from morphit_ros.grasping.grasp import Grasp, GraspPlan
    from morphit_ros.grasping.gripper import Gripper
    from morphit_ros.grasping.suction.cup import SuctionCup

Picture = NDArray[np.uint8]

_INK = (38, 44, 54)
_HALO = (235, 238, 242)
_MINIMUM_SIZE = (320, 240)
_MAXIMUM_SIZE = (4096, 4096)
# More points than this cannot be told apart in a tile.
_MAXIMUM_POINTS = 40_000
# Metrics that read better in another unit.
_UNITS = {"clearance": (1e3, "mm"), "E_com": (1e3, "mm")}


def draw_grasp(
    cloud: CloudLike,
    gripper: Gripper | SuctionCup,
    grasp: Grasp,
    path: str | Path | None = None,
    size: tuple[int, int] = (1280, 960),
) -> Picture:
    """Four views of one grasp: perspective, front, side and top, with a caption of its metrics.

    Finger 1 and its contact points are red, finger 2 and its contact points blue. The green arrow
    is the straight approach; thin lines outline the open gripper at the pre-grasp pose.

    Args:
        cloud: the object, in the frame of the grasp; coloured points keep their colours.
        gripper: its boxes are drawn at the grasp's aperture.
        grasp: what to draw.
        path: also save the picture there as PNG.
        size: width and height [px].

    Returns:
        RGB picture (height, width, 3).

    Raises:
        InvalidInputError: no finite point, a pose that is not rigid, an aperture that is not finite,
            contact points that do not match their fingers, or a size out of range.
    """
    tiles = [(grasp, view, view.label) for view in (PERSPECTIVE, FRONT, SIDE, TOP)]
    title = f"{gripper.name}    aperture {1e3 * grasp.aperture:.1f} mm    score {grasp.score:.4g}"
    return _sheet(cloud, gripper, tiles, [title, _metrics_line(grasp)], max(size[1] // 14, 36), size, path)


def draw_plan(
    cloud: CloudLike,
    gripper: Gripper | SuctionCup,
    plan: GraspPlan,
    path: str | Path | None = None,
    size: tuple[int, int] = (1280, 960),
    limit: int = 6,
) -> Picture:
    """The best grasps of a plan side by side in perspective, with rank, score and aperture.

    Args:
        cloud, gripper, path, size: as in `draw_grasp`.
        plan: its grasps, best first.
        limit: how many are drawn at most.

    Returns:
        RGB picture (height, width, 3).

    Raises:
        InvalidInputError: as in `draw_grasp`, or the plan is empty (with the plan's own message).
    """
    if limit < 1:
        raise InvalidInputError("limit", limit, "at least 1")
    if not plan.grasps:
        raise InvalidInputError("plan", "no grasps", "at least one grasp", plan.message)
    tiles = [
        (grasp, PERSPECTIVE, f"{rank}    {1e3 * grasp.aperture:.1f} mm    score {grasp.score:.4g}")
        for rank, grasp in enumerate(plan.grasps[:limit], start=1)
    ]
    caption = f"{gripper.name}    {len(tiles)} of {len(plan.grasps)} grasps, best first"
    return _sheet(cloud, gripper, tiles, [caption], max(size[1] // 24, 24), size, path)


def _sheet(
    cloud: CloudLike,
    gripper: Gripper | SuctionCup,
    tiles: Sequence[tuple[Grasp, PictureView, str]],
    caption: Sequence[str],
    strip: int,
    size: tuple[int, int],
    path: str | Path | None,
) -> Picture:
    """Views of grasps with their labels, in rows about as many as columns, above a strip [px] with a caption."""
    width, height = _checked_size(size)
    points = _drawable(cloud)
    bottom = height - strip
    columns = int(np.ceil(np.sqrt(len(tiles))))
    rows = int(np.ceil(len(tiles) / columns))
    picture = np.full((height, width, 3), 255, dtype=np.uint8)
    labels = []
    for index, (grasp, view, label) in enumerate(tiles):
        _check_grasp(grasp)
        left, top, right, below = _tile(*divmod(index, columns), rows, columns, width, bottom)
        picture[top:below, left:right] = draw_view(points, gripper, grasp, view, (right - left, below - top))
        labels.append((left, below, label))
    return _finished(picture, labels, caption, bottom, path)


def draw_items(
    items: DisplayList,
    path: str | Path | None = None,
    poses: Mapping[str, Array] | None = None,
    caption: str = "",
    direction: ArrayLike = (-0.6, 0.7, -0.4),
    size: tuple[int, int] = (640, 480),
) -> Picture:
    """A display list in perspective, z upwards, framed by all of it.

    Args:
        items: transparent ones are drawn after the opaque ones, far to near.
        path: also save the picture there as PNG.
        poses: frame → (4, 4) in one common frame; needed of every frame that an item names.
        caption: a line below, shrunk until it fits.
        direction: (3,) in which the camera looks.
        size: width and height [px].

    Returns:
        RGB picture (height, width, 3).

    Raises:
        InvalidInputError: nothing to draw, a frame without pose, or a size out of range.
    """
    width, height = _checked_size(size)
    frames = {"": np.eye(4), **(poses or {})}
    unknown = sorted({item.frame for item in items} - set(frames))
    if unknown:
        raise InvalidInputError("poses", f"none of {', '.join(unknown)}", "a pose of every frame that items name")
    placed = [replace(item, pose=frames[item.frame] @ item.pose, frame="") for item in items]
    extents = [transform_points(item.pose, _points_of(item)) for item in placed]
    drawn = [(item, points) for item, points in zip(placed, extents, strict=True) if len(points)]
    if not drawn:
        raise InvalidInputError("items", f"{len(items)}, none with a point", "at least one with a point")
    bottom = height - (max(height // 14, 24) if caption else 0)
    framed = np.concatenate([points for _, points in drawn])
    camera = Camera.framing(framed, direction, (0.0, 0.0, 1.0), width * SUPERSAMPLING, bottom * SUPERSAMPLING)
    canvas = Canvas(camera, background(camera.height))
    view = np.asarray(direction, dtype=np.float64)
    # Farthest first, as transparency asks for.
    drawn.sort(key=lambda entry: -float(entry[1].mean(axis=0) @ view))
    canvas.draw([item for item, _ in drawn if np.min(item.opacity) == 1.0], SUPERSAMPLING)
    canvas.draw([item for item, _ in drawn if np.min(item.opacity) < 1.0], SUPERSAMPLING)
    picture = np.full((height, width, 3), 255, dtype=np.uint8)
    picture[:bottom] = shrunk(canvas)
    return _finished(picture, (), [caption] if caption else (), bottom, path)


def _points_of(item: Item) -> Array:
    """What of an item has to be in the picture: (N, 3), in its own frame."""
    if isinstance(item, PointsItem | LinesItem):
        return item.points.reshape(-1, 3)
    assert isinstance(item, MeshItem | SpheresItem | SolidsItem)
    return item.surface[0]


def save_png(picture: Picture, path: str | Path) -> None:
    """Write an RGB picture (H, W, 3) as PNG; the file appears complete or not at all.

    Raises:
        InvalidInputError: not a uint8 picture of that shape.
    """
    from PIL import Image

    pixels = np.asarray(picture)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8 or pixels.size == 0:
        raise InvalidInputError("picture", f"shape {pixels.shape} of {pixels.dtype}", "shape (H, W, 3) of uint8")
    with atomic_write(path, "wb") as stream:
        Image.fromarray(pixels).save(stream, format="PNG")


def _checked_size(size: tuple[int, int]) -> tuple[int, int]:
    """Width and height, after checking them."""
    width, height = size
    if not all(low <= value <= high for value, low, high in zip(size, _MINIMUM_SIZE, _MAXIMUM_SIZE, strict=True)):
        raise InvalidInputError("size", size, f"{_MINIMUM_SIZE} to {_MAXIMUM_SIZE} pixels")
    return int(width), int(height)


def _drawable(cloud: CloudLike) -> PointCloud:
    """The finite points of a cloud, thinned out if there are too many."""
    whole = as_cloud(cloud)
    chosen = thinned(whole, _MAXIMUM_POINTS)
    if len(chosen) == 0:
        raise InvalidInputError("cloud", f"{len(whole)} points, none of them finite", "at least one finite point")
    return chosen


def _check_grasp(grasp: Grasp) -> None:
    check_transform(grasp.T_world_gripper, "T_world_gripper")
    check_transform(grasp.T_world_pregrasp, "T_world_pregrasp")
    for name in ("aperture", "open_aperture"):
        if not np.isfinite(getattr(grasp, name)):
            raise InvalidInputError(name, getattr(grasp, name), "a finite number [m]")
    shape = (len(grasp.contact_fingers), 3)
    if grasp.contact_points.shape != shape or not np.isfinite(grasp.contact_points).all():
        raise InvalidInputError("contact_points", f"shape {grasp.contact_points.shape}", f"finite, shape {shape}")


def _tile(row: int, column: int, rows: int, columns: int, width: int, height: int) -> tuple[int, int, int, int]:
    """Left, top, right and lower end of a tile, with a gap of two pixels to the next one."""
    left, right = width * column // columns, width * (column + 1) // columns
    top, below = height * row // rows, height * (row + 1) // rows
    return left, top, right - 2 * (column < columns - 1), below - 2 * (row < rows - 1)


def _metrics_line(grasp: Grasp) -> str:
    counts = [int((grasp.contact_fingers == finger).sum()) for finger in (1, 2)]
    parts = [f"contacts {counts[0]} + {counts[1]}"]
    for name, value in grasp.metrics.items():
        # The terms that the score is made of are for the JSON file: a line of a picture is short.
        if name.startswith(("contacts", "term_")):
            continue
        factor, unit = _UNITS.get(name, (1.0, ""))
        parts.append(f"{name} {factor * value:.4g} {unit}".rstrip())
    return "    ".join(parts)


def _finished(
    picture: Picture,
    labels: Sequence[tuple[int, int, str]],
    caption: Sequence[str],
    top: int,
    path: str | Path | None,
) -> Picture:
    """A picture with labels (left, lower end, text) in it and caption lines below `top`, also saved where asked for."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.fromarray(picture)
    draw = ImageDraw.Draw(image)
    size = max(picture.shape[0] // 56, 11)
    for left, below, text in labels:
        font = ImageFont.load_default(size)
        draw.text((left + size, below - 2 * size), text, fill=_INK, font=font, stroke_width=2, stroke_fill=_HALO)
    step = (picture.shape[0] - top) / (len(caption) + 0.4)
    for index, text in enumerate(caption):
        # Shrunk until it fits: a grasp may carry many metrics.
        for points in range(min(int(0.75 * step), 2 * size), 5, -1):
            font = ImageFont.load_default(points)
            if draw.textlength(text, font) <= picture.shape[1] - 2 * size:
                break
        draw.text((size, top + (index + 0.2) * step), text, fill=_INK, font=font)
    picture[:] = np.asarray(image)
    if path is not None:
        save_png(picture, path)
    return picture
