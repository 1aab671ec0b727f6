"""Simulated time-of-flight depth cameras: what a perfect camera would see, made as imperfect as a real one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array


@dataclass(frozen=True)
class CameraConfig(Config):
    """Optics and imperfections of both cameras; defaults after an Orbbec Femto Bolt, narrow field of view, binned."""

    width: int = parameter(320, "Image width [px]", minimum=16, maximum=1920)
    height: int = parameter(288, "Image height [px]", minimum=16, maximum=1440)
    vertical_fov: float = parameter(
        1.134464, "Vertical field of view [rad]; pixels are square", minimum=0.2, maximum=2.5
    )
    range_min: float = parameter(0.2, "Nearest depth that is measured [m]", minimum=0.02, maximum=5.0)
    range_max: float = parameter(2.0, "Farthest depth that is measured [m]", minimum=0.05, maximum=10.0)
    noise: bool = parameter(True, "Depth noise")
    noise_sigma: float = parameter(
        0.0015, "Standard deviation of the depth at close range [m]", minimum=0.0, maximum=0.1
    )
    noise_growth: float = parameter(
        0.0, "Growth of the standard deviation with depth squared [1/m]", minimum=0.0, maximum=0.1
    )
    dropout: bool = parameter(True, "Loss of points on surfaces seen at a grazing angle")
    grazing_angle: float = parameter(
        1.309,
        "Angle between ray and normal where points begin to be lost; at a right angle all are [rad]",
        minimum=0.1,
        maximum=1.57,
    )
    flying_pixels: float = parameter(
        0.0, "Share of the pixels at depth edges that lie between foreground and background", minimum=0.0, maximum=1.0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.range_max <= self.range_min:
            raise InvalidInputError("range_max", self.range_max, f"more than range_min = {self.range_min:g} [m]")

    @cached_property
    def intrinsics(self) -> PinholeIntrinsics:
        """Of the ideal pinhole with the image's centre as its principal point."""
        focal = 0.5 * self.height / math.tan(0.5 * self.vertical_fov)
        return PinholeIntrinsics(self.width, self.height, focal, focal, 0.5 * (self.width - 1), 0.5 * (self.height - 1))


@dataclass(frozen=True)
class PinholeIntrinsics:
    """A camera without distortion: u = fx·x/z + cx, v = fy·y/z + cy [px], pixel centres at whole numbers."""

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float

    @cached_property
    def rays(self) -> Array:
        """(H, W, 3) directions with z = 1, in the optical frame (x right, y down, z forward)."""
        u, v = np.meshgrid(np.arange(self.width), np.arange(self.height))
        return np.stack([(u - self.cx) / self.fx, (v - self.cy) / self.fy, np.ones(u.shape)], axis=-1)


@dataclass(frozen=True)
class DepthFrame:
    """One picture of a depth camera.

    Attributes:
        depth: (H, W) distance along the optical axis [m], NaN where nothing was measured.
        rgb: (H, W, 3), or None.
        intrinsics: of the camera.
        stamp: time of exposure [s].
    """

    depth: NDArray[np.float32]
    rgb: NDArray[np.uint8] | None
    intrinsics: PinholeIntrinsics
    stamp: float

    def cloud(self, frame: str = "", organized: bool = False) -> PointCloud:
        """The points in the optical frame (z forward, x right, y down).

        Args:
            frame: name of the optical frame.
            organized: keep one point a pixel, row by row, NaN where nothing was measured; else drop those.
        """
        points = (self.intrinsics.rays * self.depth[..., None].astype(np.float64)).reshape(-1, 3)
        colors = None if self.rgb is None else self.rgb.reshape(-1, 3)
        cloud = PointCloud(points, colors=colors, frame=frame, stamp=self.stamp)
        return cloud if organized else cloud.finite()


def degrade_depth(depth: NDArray[np.float32], config: CameraConfig, rng: np.random.Generator) -> NDArray[np.float32]:
    """What a time-of-flight camera makes of a perfect depth image.

    Args:
        depth: (H, W) [m].
        config: noise, dropout and range.
        rng: source of the noise; the same state gives the same image.

    Returns:
        (H, W) [m], NaN where nothing was measured.

    Raises:
        InvalidInputError: the image is not of the camera's size.
    """
    if depth.shape != (config.height, config.width):
        raise InvalidInputError("depth", f"shape {depth.shape}", f"shape {(config.height, config.width)}")
    ideal = depth.astype(np.float64)
    measured = ideal.copy()
    # A generator for each effect: switching one off leaves the random numbers of the others as they were.
    for_noise, for_dropout, for_edges = rng.spawn(3)
    if config.flying_pixels > 0.0:
        measured = _mixed_at_edges(measured, config.flying_pixels, for_edges.random((2, *depth.shape)))
    if config.noise:
        measured += (config.noise_sigma + config.noise_growth * ideal**2) * for_noise.standard_normal(depth.shape)
    lost = (measured < config.range_min) | (measured > config.range_max)
    if config.dropout:
        angle = incidence_angle(ideal, config.intrinsics)
        lost |= for_dropout.random(depth.shape) < (angle - config.grazing_angle) / (0.5 * np.pi - config.grazing_angle)
    measured[lost] = np.nan
    return measured.astype(np.float32)


def incidence_angle(depth: Array, intrinsics: PinholeIntrinsics) -> Array:
    """Angle [rad] (H, W) between ray and surface normal, from a depth image without noise.

    With p = z·r(u, v) the normal p_u × p_v is along n = (−f_x z_u, −f_y z_v, z + (u − c_x) z_u + (v − c_y) z_v), and
    n·r = z. Each derivative takes the neighbour whose depth differs less, so that an edge does not pass for a slope.
    """
    along_u, along_v = _smaller_difference(depth, 1), _smaller_difference(depth, 0)
    x, y = intrinsics.rays[..., 0], intrinsics.rays[..., 1]
    normal_x, normal_y = intrinsics.fx * along_u, intrinsics.fy * along_v
    normal_z = depth + x * normal_x + y * normal_y
    squares = (normal_x**2 + normal_y**2 + normal_z**2) * (x**2 + y**2 + 1.0)
    return np.arccos(np.clip(depth / np.sqrt(np.maximum(squares, 1e-300)), 0.0, 1.0))


def _smaller_difference(depth: Array, axis: int) -> Array:
    """Difference (H, W) to the neighbour before or after along an axis, whichever is smaller."""
    step = np.diff(depth, axis=axis)
    first = [(1, 0) if index == axis else (0, 0) for index in range(2)]
    last = [(0, 1) if index == axis else (0, 0) for index in range(2)]
    before = np.pad(step, first, constant_values=np.inf)
    after = np.pad(step, last, constant_values=np.inf)
    return np.where(np.abs(before) < np.abs(after), before, after)


def _mixed_at_edges(depth: Array, share: float, mixing: Array, jump: float = 0.02) -> Array:
    """Depth with some pixels at jumps [m] to the right or below moved towards the other side of the edge."""
    mixed = depth.copy()
    for axis in (0, 1):
        neighbour = np.concatenate(
            [np.take(depth, range(1, depth.shape[axis]), axis), np.take(depth, [-1], axis)], axis
        )
        edge = (np.abs(neighbour - depth) > jump) & (mixing[0] < share)
        mixed[edge] = (depth + mixing[1] * (neighbour - depth))[edge]
    return mixed
