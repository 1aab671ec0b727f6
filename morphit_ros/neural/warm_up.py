"""Compile the kernels of learning and of planned pushes before the first object has to wait for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from morphit_ros.geometry.transforms import look_at
from morphit_ros.neural.dynamics.state import BodyState
from morphit_ros.neural.fields.analytic import BoxField
from morphit_ros.neural.learning.config import DepthLearningConfig, ImageLearningConfig
from morphit_ros.neural.learning.depth import learn_from_depths
from morphit_ros.neural.learning.images import learn_from_images
from morphit_ros.neural.objects.known_object import know_object
from morphit_ros.neural.trajectory_optimization.push import plan_push, rest_on_plane
from morphit_ros.neural.trajectory_optimization.push_config import PushConfig
from morphit_ros.neural.trajectory_optimization.pusher_start import place_pusher
from morphit_ros.neural.views.posed_views import PosedDepths, PosedImages

# Of the ball that is learned [m], and of its pictures [px].
_RADIUS, _PIXELS, _FOCAL = 0.05, 48, 150.0


def warm_up_learning() -> None:
    """Learn a ball from depths and from pictures, and plan a push of a box. Half a minute without numba's cache."""
    eyes = 0.5 * np.array([[1.0, 0.0, 0.4], [-0.5, 0.8, 0.4], [-0.5, -0.8, 0.4], [0.1, 0.1, 1.0]])
    poses = np.stack([look_at(eye, np.zeros(3)) for eye in eyes])
    middle = 0.5 * (_PIXELS - 1)
    intrinsics = np.array([_FOCAL, _FOCAL, middle, middle])
    columns, rows = np.meshgrid(np.arange(_PIXELS), np.arange(_PIXELS))
    rays = np.stack([(columns - middle) / _FOCAL, (rows - middle) / _FOCAL, np.ones_like(columns)], axis=-1)
    depths = []
    for eye in eyes:
        # Nearer root of |t r - c|² = R² with the centre c on the optical axis: t is the depth.
        square, along = (rays**2).sum(axis=-1), np.linalg.norm(eye)
        inside = along**2 - square * (along**2 - _RADIUS**2)
        depths.append(np.where(inside > 0.0, (along - np.sqrt(np.maximum(inside, 0.0))) / square, np.nan))
    masks = ~np.isnan(depths)
    learned = learn_from_depths(
        PosedDepths(depths, intrinsics, poses, masks), DepthLearningConfig(resolution=24, check_poses=False)
    )
    assert learned.field is not None
    pictures = np.where(masks[..., None], np.float32(0.5), np.float32(0.0))
    learn_from_images(
        PosedImages(np.broadcast_to(pictures, (*masks.shape, 3)), intrinsics, poses, masks),
        ImageLearningConfig(resolution=24, iterations=2, check_poses=False),
    )
    know_object(learned.field, 500.0, eyes=eyes)
    # A ball would roll away.
    body = know_object(BoxField((0.10, 0.06, 0.04)), 500.0).body(100)
    radius = 0.1 * body.size
    config = PushConfig.scaled(body, 0.05, 0.2, 0.3, radius)
    config = replace(config, optimization=replace(config.optimization, total_iterations=1))
    start = rest_on_plane(body, BodyState(np.array([0.0, 0.0, -body.points[:, 2].min()])), config)
    way = np.array([0.05, 0.0])
    pusher = place_pusher(start, body.points, way, radius, 0.3, 0.2)
    plan_push(body, start, start.position[:2] + way, pusher, config=config)
