"""Grasps and grasp plans to messages and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from std_msgs.msg import Header

from morphit_interfaces.msg import Grasp as GraspMsg, GraspArray
from morphit_ros.errors import InvalidInputError
from morphit_ros.grasping.grasp import Grasp, GraspPlan
from morphit_ros.ros.core.conversions import array_from_point, matrix_from_pose, point_from_array, pose_from_matrix


def message_from_grasp(grasp: Grasp, header: Header, pregrasp_positions: ArrayLike = ()) -> GraspMsg:
    """A grasp; `pregrasp_positions` (J,) are those of the arm where they are known [rad]."""
    return GraspMsg(
        header=header,
        pose=pose_from_matrix(grasp.T_world_gripper),
        pregrasp=pose_from_matrix(grasp.T_world_pregrasp),
        aperture=float(grasp.aperture),
        open_aperture=float(grasp.open_aperture),
        score=float(grasp.score),
        confidence=float(grasp.confidence),
        metric_names=list(grasp.metrics),
        metric_values=[float(value) for value in grasp.metrics.values()],
        contact_points=[point_from_array(point) for point in grasp.contact_points],
        pregrasp_positions=np.asarray(pregrasp_positions, dtype=np.float64).tolist(),
    )


def grasp_from_message(message: GraspMsg) -> Grasp:
    """A grasp; which finger a contact point belongs to is not transmitted.

    Raises:
        InvalidInputError: a pose is not one, or an aperture is not finite and positive.
    """
    for name in ("aperture", "open_aperture"):
        if not (np.isfinite(getattr(message, name)) and getattr(message, name) >= 0.0):
            raise InvalidInputError(f"grasp {name}", getattr(message, name), "a finite number from 0 up [m]")
    return Grasp(
        T_world_gripper=matrix_from_pose(message.pose),
        T_world_pregrasp=matrix_from_pose(message.pregrasp),
        aperture=message.aperture,
        open_aperture=message.open_aperture,
        score=message.score,
        metrics=dict(zip(message.metric_names, message.metric_values, strict=False)),
        contact_points=np.array([array_from_point(point) for point in message.contact_points]).reshape(-1, 3),
        contact_fingers=np.zeros(len(message.contact_points), dtype=np.int64),
        confidence=message.confidence,
    )


def message_from_plan(
    plan: GraspPlan,
    gripper: str,
    header: Header,
    arm_joints: Sequence[str] = (),
    pregrasp_positions: Sequence[ArrayLike] = (),
) -> GraspArray:
    """The grasps of a plan with the account of what was discarded.

    Args:
        plan: the grasps.
        gripper: name of the gripper.
        header: frame and stamp of the cloud.
        arm_joints: names of J joints.
        pregrasp_positions: for each grasp (J,) positions of the arm at its pre-grasp [rad]; empty if not known.
    """
    ways = list(pregrasp_positions) or [()] * len(plan.grasps)
    return GraspArray(
        header=header,
        gripper=gripper,
        arm_joints=list(arm_joints) if len(pregrasp_positions) else [],
        grasps=[message_from_grasp(grasp, header, way) for grasp, way in zip(plan.grasps, ways, strict=True)],
        candidates=int(plan.candidates),
        rejected_stages=list(plan.rejected),
        rejected_counts=[int(count) for count in plan.rejected.values()],
        message=plan.message,
    )
