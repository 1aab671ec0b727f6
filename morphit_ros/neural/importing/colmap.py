"""Models of COLMAP, text and binary: `cameras` and `images` of a sparse reconstruction.

The format is documented at colmap.github.io/format.html: poses map world to camera, quaternions are w x y z, and the
unit is whatever the reconstruction came out in.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from morphit_ros.budgets import check_file_size
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.transforms import invert_transform, make_transform, matrix_from_quat_xyzw
from morphit_ros.neural.importing.cameras import MOST_PICTURES, Lens, PosedPicture, checked_lens

# Identifier, name, and the place of fx, fy, cx, cy, of k1 …, of p1, p2 among its parameters; whether it is a fisheye.
_Model = tuple[str, tuple[int, int, int, int], tuple[int, ...], tuple[int, ...], bool]
_MODELS: dict[int, _Model] = {
    0: ("SIMPLE_PINHOLE", (0, 0, 1, 2), (), (), False),
    1: ("PINHOLE", (0, 1, 2, 3), (), (), False),
    2: ("SIMPLE_RADIAL", (0, 0, 1, 2), (3,), (), False),
    3: ("RADIAL", (0, 0, 1, 2), (3, 4), (), False),
    4: ("OPENCV", (0, 1, 2, 3), (4, 5), (6, 7), False),
    5: ("OPENCV_FISHEYE", (0, 1, 2, 3), (4, 5, 6, 7), (), True),
    6: ("FULL_OPENCV", (0, 1, 2, 3), (4, 5, 8, 9, 10, 11), (6, 7), False),
    8: ("SIMPLE_RADIAL_FISHEYE", (0, 0, 1, 2), (3,), (), True),
    9: ("RADIAL_FISHEYE", (0, 0, 1, 2), (3, 4), (), True),
}
_BY_NAME = {model[0]: number for number, model in _MODELS.items()}
# Places below a folder that somebody names where COLMAP and others put the model.
_PLACES = (".", "sparse/0", "sparse", "colmap/sparse/0")
_LONGEST_NAME = 4096
_REMEDY = "Export it again with 'colmap model_converter'."


def find_model(folder: str | Path) -> Path | None:
    """The folder of a model at or below another, None if there is none."""
    for place in _PLACES:
        candidate = Path(folder) / place
        if any((candidate / f"images{suffix}").is_file() for suffix in (".bin", ".txt")):
            return candidate
    return None


def read_colmap(folder: str | Path) -> list[PosedPicture]:
    """Pictures with cameras and poses of a model, in the order of their names.

    Args:
        folder: of `cameras` and `images`, .bin before .txt; or one that has them in `sparse/0`.

    Raises:
        ResourceNotFoundError: no model there.
        InvalidInputError: a damaged file, a camera model that is not known, or numbers that are no pose or camera.
    """
    model = find_model(folder)
    if model is None:
        places = [str(Path(folder) / place / "images.bin") for place in _PLACES]
        raise ResourceNotFoundError(str(folder), places, "Give the folder of COLMAP's cameras and images files.")
    suffix = ".bin" if (model / "images.bin").is_file() else ".txt"
    files = [model / f"{name}{suffix}" for name in ("cameras", "images")]
    contents = []
    for file in files:
        if not file.is_file():
            raise ResourceNotFoundError(str(file), [str(model)], _REMEDY)
        check_file_size(str(file), file.stat().st_size)
        contents.append(file.read_bytes())
    read = (_binary_cameras, _binary_images) if suffix == ".bin" else (_text_cameras, _text_images)
    try:
        lenses = read[0](contents[0], str(files[0]))
        pictures = read[1](contents[1], str(files[1]), lenses)
    except (struct.error, ValueError, OverflowError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(
            str(model), f"damaged ({error})"[:200], f"cameras{suffix} and images{suffix} of COLMAP", _REMEDY
        ) from error
    if len(pictures) < 2:
        raise InvalidInputError(str(files[1]), f"{len(pictures)} posed pictures", "two or more", "Register more.")
    return sorted(pictures, key=lambda picture: picture.file)


def _lens(source: str, camera: int, model: int, width: int, height: int, numbers: tuple[float, ...]) -> Lens:
    if model not in _MODELS:
        names = ", ".join(name for name, *_ in _MODELS.values())
        raise InvalidInputError(
            f"{source}: camera {camera}", f"model {model}", f"one of {names}",
            "Undistort the pictures with 'colmap image_undistorter', and give its folder.",
        )  # fmt: skip
    name, pinhole, radial, tangential, fisheye = _MODELS[model]
    count = max(*pinhole, *radial, *tangential) + 1
    if len(numbers) != count:
        raise InvalidInputError(
            f"{source}: camera {camera}", f"{len(numbers)} parameters", f"{count} of {name}", _REMEDY
        )
    k = [0.0] * 6
    for place, index in enumerate(radial):
        k[place] = numbers[index]
    p = (numbers[tangential[0]], numbers[tangential[1]]) if tangential else (0.0, 0.0)
    return checked_lens(
        f"{source}: camera {camera}", width, height, [numbers[index] for index in pinhole], radial=tuple(k),
        tangential=p, fisheye=fisheye,
    )  # fmt: skip


def _picture(source: str, name: str, pose: tuple[float, ...], camera: int, lenses: dict[int, Lens]) -> PosedPicture:
    """Of a quaternion w x y z and a translation from world to camera."""
    if camera not in lenses:
        raise InvalidInputError(f"{source}: '{name}'", f"camera {camera}", "a camera of the model", _REMEDY)
    quaternion, shift = np.array(pose[:4]), np.array(pose[4:])
    length = float(np.linalg.norm(quaternion))
    if not np.isfinite(pose).all() or not abs(length - 1.0) < 1e-2:
        raise InvalidInputError(
            f"{source}: '{name}'", f"a quaternion of length {length:.3g}", "finite numbers, a unit quaternion", _REMEDY
        )
    rotation = matrix_from_quat_xyzw(np.roll(quaternion / length, -1))
    return PosedPicture(name, lenses[camera], invert_transform(make_transform(rotation, shift)))


def _text_lines(content: bytes) -> list[str]:
    return content.decode("utf-8", "strict").splitlines()


def _text_cameras(content: bytes, source: str) -> dict[int, Lens]:
    lenses = {}
    for number, line in enumerate(_text_lines(content), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) < 5:
            raise InvalidInputError(f"{source}:{number}", repr(line[:60]), "CAMERA_ID MODEL WIDTH HEIGHT PARAMS[]")
        # A model of a name that is not known keeps it, for the error.
        model: int | str = _BY_NAME.get(words[1], words[1])
        values = tuple(float(word) for word in words[4:])
        lenses[int(words[0])] = _lens(source, int(words[0]), model, int(words[2]), int(words[3]), values)  # type: ignore[arg-type]
    return lenses


def _text_images(content: bytes, source: str, lenses: dict[int, Lens]) -> list[PosedPicture]:
    pictures = []
    lines = enumerate(_text_lines(content), 1)
    for number, line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        words = line.split(maxsplit=9)
        if len(words) != 10:
            bound = "IMAGE_ID QW QX QY QZ TX TY TZ CAMERA_ID NAME"
            raise InvalidInputError(f"{source}:{number}", repr(line[:60]), bound, _REMEDY)
        pose = tuple(float(word) for word in words[1:8])
        pictures.append(_picture(source, words[9].strip(), pose, int(words[8]), lenses))
        # The line of its points, which may be empty.
        next(lines, None)
    return pictures


def _binary_cameras(content: bytes, source: str) -> dict[int, Lens]:
    (count,) = struct.unpack_from("<Q", content)
    place, lenses = 8, {}
    for _ in range(min(count, MOST_PICTURES)):
        camera, model, width, height = struct.unpack_from("<IiQQ", content, place)
        place += 24
        places = _MODELS[model][1:4] if model in _MODELS else ()
        size = max((index for group in places for index in group), default=-1) + 1
        numbers = struct.unpack_from(f"<{size}d", content, place)
        place += 8 * size
        lenses[camera] = _lens(source, camera, model, width, height, numbers)
    return lenses


def _binary_images(content: bytes, source: str, lenses: dict[int, Lens]) -> list[PosedPicture]:
    (count,) = struct.unpack_from("<Q", content)
    if count > MOST_PICTURES:
        raise InvalidInputError(source, f"{count} pictures", f"at most {MOST_PICTURES}", "Keep those of the object.")
    place, pictures = 8, []
    for _ in range(count):
        numbers = struct.unpack_from("<I7dI", content, place)
        place += 64
        end = content.find(b"\0", place, place + _LONGEST_NAME)
        if end < 0:
            raise InvalidInputError(source, "a name of a picture without an end", "names that end with 0", _REMEDY)
        name = content[place:end].decode("utf-8", "strict")
        (points,) = struct.unpack_from("<Q", content, end + 1)
        place = end + 9 + 24 * points
        if place > len(content):
            raise InvalidInputError(source, f"{points} points of '{name}'", "as many as the file holds", _REMEDY)
        pictures.append(_picture(source, name, numbers[1:8], numbers[8], lenses))
    return pictures
