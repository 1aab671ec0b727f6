"""Picture files with poses made a recording: scaled, straightened, masked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morphit_ros.configuration import Config, parameter
from morphit_ros.dependencies import needed_for
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.importing.cameras import Lens, PosedPicture
from morphit_ros.neural.views.backgrounds import with_masks
from morphit_ros.neural.views.posed_views import Mask, PosedDepths, PosedImages, pixel_rays
from morphit_ros.neural.views.recording import Recording

# More pixels than cameras have: nothing larger is unpacked.
_MOST_PIXELS = 1 << 27
# Pictures of one kind of camera differ by rounding in their ratio of sides.
_RATIO = 0.01
# Of the values of a mask, what is more counts as the object.
_HALF = 0.5
_MASK_SUFFIXES = (".png", ".jpg", ".jpeg", ".PNG", ".JPG")


@dataclass(frozen=True)
class ViewImportConfig(Config):
    """How pictures of other programs become a recording."""

    size: int = parameter(160, "Longer side of the pictures in the recording [px]", minimum=16, maximum=2048)
    views: int = parameter(60, "Most views, evenly chosen of those there are", minimum=2, maximum=400)
    depth_unit: float = parameter(1e-3, "What one of a depth picture's whole numbers is [m]", minimum=1e-9, maximum=1e3)


def record_pictures(
    pictures: list[PosedPicture],
    folder: str | Path,
    scale: float,
    masks: str | Path | None = None,
    config: ViewImportConfig | None = None,
    description: str = "",
    progress: Callable[[int], None] | None = None,
) -> Recording:
    """A recording of picture files with poses.

    Each picture is scaled to `size`, straightened by its lens, and masked: by a mask file, else by its
    transparency, else by a plain background (`backgrounds.with_masks`).

    Args:
        pictures: two or more, with their files below the folder.
        folder: of the pictures.
        scale: metres a unit of the poses, and of depths that are no whole numbers.
        masks: folder of masks by the pictures' names (`a.jpg.png` as of COLMAP, or `a.png`), white for the object.
        config: sizes.
        description: one line for people.
        progress: told how many pictures are read.

    Raises:
        ResourceNotFoundError: a picture or a mask that is not there.
        InvalidInputError: an unreadable picture, one of another size than its camera's, pictures of different shapes,
            no mask by any of these ways, a scale that is not positive.
    """
    config = config or ViewImportConfig()
    if not (np.isfinite(scale) and scale > 0.0):
        raise InvalidInputError("scale", scale, "a positive number [m a unit of the poses]")
    if len(pictures) > config.views:
        chosen = np.unique(np.linspace(0, len(pictures) - 1, config.views).round().astype(int))
        pictures = [pictures[number] for number in chosen]
    _check_shapes(pictures)
    colors, outlines, depths, intrinsics, poses = [], [], [], [], []
    for number, picture in enumerate(pictures):
        view = _view(picture, Path(folder), masks, config, scale)
        colors.append(view.rgb)
        outlines.append(view.mask)
        depths.append(view.depth)
        intrinsics.append(view.intrinsics)
        pose = picture.T_world_camera.copy()
        pose[:3, 3] *= scale
        poses.append(pose)
        if progress is not None:
            progress(number + 1)
    found = np.array([mask is not None for mask in outlines])
    if found.any() and not found.all():
        missing = pictures[int(np.flatnonzero(~found)[0])].file
        raise InvalidInputError("masks", f"none for '{missing}', some for others", "one for every picture")
    cameras, frames = np.array(intrinsics), np.array(poses)
    masked = PosedImages(np.stack(colors), cameras, frames, np.stack(outlines), None) if found.all() else None  # type: ignore[arg-type]
    if masked is None:
        # Only the background's plainness is asked here: the bounds play no part in it.
        anywhere = np.array([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]])
        derived = with_masks(PosedImages(np.stack(colors), cameras, frames, None, anywhere))
        masked = PosedImages(derived.rgb, cameras, frames, derived.masks)
    measured = None
    if all(depth is not None for depth in depths):
        measured = PosedDepths(np.stack(depths), cameras, frames, masked.masks)  # type: ignore[arg-type]
    return Recording(masked, measured, None, description)


@dataclass(frozen=True)
class _View:
    rgb: NDArray[np.float32]
    mask: Mask | None
    depth: NDArray[np.float32] | None
    intrinsics: Array


def _check_shapes(pictures: list[PosedPicture]) -> None:
    first = pictures[0]
    ratio = first.lens.width / first.lens.height
    for picture in pictures:
        if abs(picture.lens.width / picture.lens.height / ratio - 1.0) > _RATIO:
            sizes = " and ".join(f"{p.lens.width} x {p.lens.height} ('{p.file}')" for p in (first, picture))
            raise InvalidInputError(
                "pictures", f"shapes of {sizes}", "one ratio of width to height", "Import each kind by itself."
            )


def _view(
    picture: PosedPicture, folder: Path, masks: str | Path | None, config: ViewImportConfig, scale: float
) -> _View:
    lens = picture.lens
    image = _open(folder / picture.file, lens)
    shrink = config.size / max(lens.width, lens.height)
    shape = (max(2, round(lens.height * shrink)), max(2, round(lens.width * shrink)))
    factors = np.array([shape[1] / lens.width, shape[0] / lens.height])
    fx, fy, cx, cy = lens.pinhole
    # Here pixel centres are whole numbers, there they are half ones.
    intrinsics = np.array([fx * factors[0], fy * factors[1], cx * factors[0] - 0.5, cy * factors[1] - 0.5])
    places = None if lens.is_pinhole else _lens_places(lens, intrinsics, shape)
    transparent = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    # Averaged with its weight, or the colour of what cannot be seen would bleed in.
    pixels = np.asarray(image.convert("RGBA" if transparent else "RGB"), dtype=np.float32) / 255.0
    alpha = pixels[..., 3] if transparent else None
    if alpha is not None:
        pixels = pixels[..., :3] * alpha[..., None] + (1.0 - alpha[..., None])
    rgb = np.stack([_straight(_shrunk(pixels[..., channel], shape), places) for channel in range(3)], axis=-1)
    mask = None
    file = _mask_file(picture, folder, masks)
    if file is not None:
        white = np.asarray(_open(file, lens).convert("L"), dtype=np.float32) / 255.0
        mask = _straight(_shrunk(white, shape), places) > _HALF
    elif alpha is not None and alpha.min() < _HALF:
        mask = _straight(_shrunk(alpha, shape), places) > _HALF
    depth = None
    if picture.depth:
        depth = _read_depth(folder / picture.depth, lens, shape, places, config.depth_unit, scale)
    return _View(np.clip(rgb, 0.0, 1.0).astype(np.float32), mask, depth, intrinsics)


def _open(file: Path, lens: Lens) -> Any:
    with needed_for("reading pictures"):
        from PIL import Image, UnidentifiedImageError
    if not file.is_file():
        raise ResourceNotFoundError(str(file), [str(file.parent)], "Give the folder of the pictures with --pictures.")
    try:
        image = Image.open(file)
        if image.width * image.height > _MOST_PIXELS:
            raise InvalidInputError(str(file), f"{image.width} x {image.height} px", f"at most {_MOST_PIXELS} pixels")
        image.load()
    except (OSError, UnidentifiedImageError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(str(file), f"unreadable ({error})"[:200], "a picture (PNG, JPEG, …)") from error
    ratio = image.width / image.height * lens.height / lens.width
    if abs(ratio - 1.0) > _RATIO:
        raise InvalidInputError(
            str(file), f"{image.width} x {image.height} px", f"the shape of {lens.width} x {lens.height} px",
            "Was it turned or cropped after the poses were found?",
        )  # fmt: skip
    return image


def _mask_file(picture: PosedPicture, folder: Path, masks: str | Path | None) -> Path | None:
    if masks is None:
        return folder / picture.mask if picture.mask else None
    place = Path(masks) / picture.file
    names = [place.with_name(place.name + ".png"), *(place.with_suffix(suffix) for suffix in _MASK_SUFFIXES)]
    # Where the pictures' file names a folder, masks often stand without it.
    names += [Path(masks) / name.name for name in names]
    for name in names:
        if name.is_file():
            return name
    raise ResourceNotFoundError(
        f"mask of '{picture.file}'", [str(name) for name in names[:2]], "One for every picture."
    )


def _shrunk(values: NDArray[np.float32], shape: tuple[int, int]) -> NDArray[np.float32]:
    """Averages (h, w) over the pixels of a picture that each covers; larger than the picture, between pixels."""
    from PIL import Image

    resized = Image.fromarray(np.ascontiguousarray(values, dtype=np.float32)).resize(
        (shape[1], shape[0]), Image.Resampling.BOX if shape[0] <= values.shape[0] else Image.Resampling.BILINEAR
    )
    return np.asarray(resized, dtype=np.float32)


def _lens_places(lens: Lens, intrinsics: Array, shape: tuple[int, int]) -> Array:
    """(2, h, w) row and column of the bent picture that each pixel of the straight one shows."""
    v, u = np.mgrid[: shape[0], : shape[1]].reshape(2, -1)
    rays = pixel_rays(intrinsics, np.stack([u, v], axis=1))[:, :2]
    bent = lens.distorted(rays) * intrinsics[:2] + intrinsics[2:]
    return bent[:, ::-1].T.reshape(2, *shape)


def _straight(values: NDArray[np.float32], places: Array | None, order: int = 1) -> NDArray[np.float32]:
    if places is None:
        return values
    from scipy.ndimage import map_coordinates

    moved: NDArray[np.float32] = map_coordinates(values, places, order=order, mode="nearest", output=np.float32)
    return moved


def _read_depth(
    file: Path, lens: Lens, shape: tuple[int, int], places: Array | None, unit: float, scale: float
) -> NDArray[np.float32]:
    """(h, w) metres along the optical axis, NaN where there is none; the nearest pixel, never a mean over an edge."""
    if not file.is_file():
        raise ResourceNotFoundError(str(file), [str(file.parent)], "Keep depths where transforms.json says.")
    if file.suffix.lower() == ".npy":
        try:
            values = np.load(file, allow_pickle=False).astype(np.float32) * np.float32(scale)
        except (ValueError, OSError, EOFError) as error:
            raise InvalidInputError(str(file), f"unreadable ({error})"[:200], "an array (H, W) of metres") from error
    else:
        values = np.asarray(_open(file, lens), dtype=np.float32) * np.float32(unit)
    values = np.squeeze(values)
    if values.ndim != 2:
        raise InvalidInputError(str(file), f"shape {values.shape}", "one number a pixel (H, W)")
    rows, columns = (
        np.minimum(((np.arange(count) + 0.5) * full / count).astype(np.int64), full - 1)
        for count, full in zip(shape, values.shape, strict=True)
    )
    chosen = _straight(values[np.ix_(rows, columns)], places, order=0)
    return np.where(np.isfinite(chosen) & (chosen > 0.0), chosen, np.nan).astype(np.float32)
