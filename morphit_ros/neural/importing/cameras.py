"""Cameras of photographs as other programs describe them: a lens model, and the pose of each picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

# More pictures than anybody took of one object.
MOST_PICTURES = 4000


@dataclass(frozen=True)
class Lens:
    """A camera with distortion, in the convention of most programs: the centre of the first pixel is at (0.5, 0.5).

    Attributes:
        width, height: of its pictures [px].
        pinhole: (4,) fx, fy, cx, cy [px].
        radial: (6,) k1 … k6 of OpenCV's rational model; of a fisheye k1 … k4 of the angle (Kannala and Brandt 2006).
        tangential: (2,) p1, p2.
        fisheye: whether the radius is one of the angle.
    """

    width: int
    height: int
    pinhole: tuple[float, float, float, float]
    radial: tuple[float, ...] = (0.0,) * 6
    tangential: tuple[float, float] = (0.0, 0.0)
    fisheye: bool = False

    @property
    def is_pinhole(self) -> bool:
        """Whether straight lines stay straight."""
        return not (self.fisheye or any(self.radial) or any(self.tangential))

    def distorted(self, plane: Array) -> Array:
        """Where rays (N, 2) x/z, y/z meet the image plane after the lens, in the same units."""
        k1, k2, k3, k4, k5, k6 = self.radial
        square = (plane**2).sum(axis=1)
        if self.fisheye:
            radius = np.sqrt(square)
            angle = np.arctan(radius)
            a = angle**2
            bent = angle * (1.0 + a * (k1 + a * (k2 + a * (k3 + a * k4))))
            return np.asarray(plane * (bent / np.maximum(radius, 1e-12))[:, None], dtype=np.float64)
        p1, p2 = self.tangential
        above, below = (1.0 + square * (a + square * (b + square * c)) for a, b, c in ((k1, k2, k3), (k4, k5, k6)))
        x, y = plane.T
        shift = np.stack(
            [2.0 * p1 * x * y + p2 * (square + 2.0 * x * x), p1 * (square + 2.0 * y * y) + 2.0 * p2 * x * y], axis=1
        )
        return np.asarray(plane * (above / below)[:, None] + shift, dtype=np.float64)


@dataclass(frozen=True)
class PosedPicture:
    """A picture file with its camera.

    Attributes:
        file: of the picture, relative to the folder of the pictures.
        lens: of its camera.
        T_world_camera: (4, 4) of the optical frame (x right, y down, z forward), in the unit of the file.
        mask: file of its mask, empty if none is named.
        depth: file of its depths, empty if none.
    """

    file: str
    lens: Lens
    T_world_camera: Array
    mask: str = ""
    depth: str = ""


def checked_lens(
    name: str, width: int, height: int, pinhole: NDArray[np.floating] | list[float], **more: object
) -> Lens:
    """A lens whose numbers can be one.

    Raises:
        InvalidInputError: pictures without pixels, or focal lengths that are not positive and finite.
    """
    numbers = np.asarray(pinhole, dtype=np.float64)
    if width < 2 or height < 2:
        raise InvalidInputError(name, f"pictures of {width} x {height} px", "two pixels or more along each side")
    given = np.concatenate([numbers, *(np.ravel(np.asarray(value, dtype=np.float64)) for value in more.values())])
    if not np.isfinite(given).all() or not (numbers[:2] > 0.0).all():
        raise InvalidInputError(
            name, f"fx {numbers[0]:g}, fy {numbers[1]:g}, cx {numbers[2]:g}, cy {numbers[3]:g}",
            "finite numbers, focal lengths positive [px]", "Calibrate the camera again.",
        )  # fmt: skip
    fx, fy, cx, cy = (float(number) for number in numbers)
    return Lens(width, height, (fx, fy, cx, cy), **more)  # type: ignore[arg-type]
