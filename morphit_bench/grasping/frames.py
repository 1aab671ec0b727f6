"""The published frames and this package's.

Gripper. Both have z along the approach, from the palm to the object, and y along the closing direction. The published
finger 1 has its pad at y = −d/2, ours at y = +d/2: ours is theirs turned by 180° about z, and finger 1 stays finger 1.

Object. The published object frame has z **down** and its highest z, 0, on the table: n_app = (0, 0, 1) and R0 =
identity are an approach from above, t0 lies at negative z, above the table, and the pre-grasp at still lower z. The
meshes of the known shapes and the observed clouds are stored in that frame (the duck's head is at z = −0.1 m, and is
where the paper grasps it); YCB clouds are stored with z up and turned when they are loaded.
"""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.transforms import Array, make_transform

# Its own inverse.
T_PUBLISHED_OURS: Array = np.diag([-1.0, -1.0, 1.0, 1.0])

# A model with z up in the published object frame, up to the shift that puts its lowest point at z = 0.
R_PUBLISHED_UPRIGHT: Array = np.diag([1.0, -1.0, -1.0])


def gripper_pose(T_world_published: Array) -> Array:
    """Our gripper pose (4, 4) of a published one: the same pads in the same places."""
    pose: Array = T_world_published @ T_PUBLISHED_OURS
    return pose


def upright_to_published(lowest_z: float) -> Array:
    """(4, 4) published object frame ← model frame with z up whose lowest point is at `lowest_z` [m]."""
    return make_transform(R_PUBLISHED_UPRIGHT, (0.0, 0.0, lowest_z))
