"""What simulated cameras see of an arm at several poses, with faults that real depth cameras have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.simulation.cameras import DepthFrame
from morphit_ros.simulation.workcell import Workcell


def see_arm(
    workcell: Workcell,
    positions: Mapping[str, float],
    rng: np.random.Generator,
    step: float = 0.001,
    stray: float = 0.0,
) -> dict[str, Array]:
    """Camera → its cloud (N, 3) in the optical frame with the robot at joint positions [m].

    Args:
        workcell: robot and cameras; noise, lost and flying pixels are those of its cameras.
        positions: of all its joints.
        rng: of the stray returns.
        step: depths are whole numbers of these [m].
        stray: share of the pixels that see something that is not there.
    """
    workcell.place(positions)
    return {name: _worse(workcell.capture(name), rng, step, stray).cloud().points for name in workcell.camera_names}


def _worse(frame: DepthFrame, rng: np.random.Generator, step: float, stray: float) -> DepthFrame:
    depth = np.round(frame.depth.astype(np.float64) / step) * step
    lost = np.isfinite(depth) & (rng.random(depth.shape) < stray)
    depth[lost] = rng.uniform(0.2, 2.0, int(lost.sum()))
    return replace(frame, depth=depth.astype(np.float32))


def see_arm_at(
    workcell: Workcell, poses: Array, joints: Sequence[str], seed: int, joint_noise: float = 0.0, stray: float = 0.0
) -> tuple[list[dict[str, float]], dict[str, list[Array]]]:
    """Reported joint positions of several poses, and each camera's clouds there.

    Args:
        workcell: as of `see_arm`.
        poses: (P, J) of the arm's joints [rad].
        joints: their names.
        seed: of everything random.
        joint_noise: standard deviation of what the arm's joints report [rad].
        stray: as of `see_arm`.
    """
    rng = np.random.default_rng([seed, 1])
    reported, clouds = [], {name: list[Array]() for name in workcell.camera_names}
    fingers = workcell.robot.finger_state(0.5 * workcell.two_fingers.aperture_max)
    for pose in poses:
        true = fingers | dict(zip(joints, pose.tolist(), strict=True))
        for name, points in see_arm(workcell, true, rng, stray=stray).items():
            clouds[name].append(points)
        noise = dict(zip(joints, rng.normal(0.0, joint_noise, len(joints)).tolist(), strict=True))
        reported.append({name: value + noise.get(name, 0.0) for name, value in true.items()})
    return reported, clouds
