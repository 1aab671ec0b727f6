"""Grasps and grasp plans to messages and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from std_msgs.msg import Header

from morphit_interfaces.msg import Grasp as GraspMsg, GraspArray
from morphit_ros.errors import InvalidInputError
from morphit_ros.grasping.grasp import Grasp, GraspPlan
from morphit_ros.ros.core.conversions import matrix_from_pose
from morphit_ros.ros.core.fields import read_fields, write_fields


def message_from_grasp(grasp: Grasp, header: Header, pregrasp_positions: ArrayLike = ()) -> GraspMsg:
    """A grasp; `pregrasp_positions` (J,) are those of the arm where they are known [rad]."""
    return write_fields(
        GraspMsg(), grasp, header=header, pose=grasp.T_world_gripper, pregrasp=grasp.T_world_pregrasp,
        metric_names=grasp.metrics, metric_values=list(grasp.metrics.values()), pregrasp_positions=pregrasp_positions,
    )  # fmt: skip


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
        metrics=dict(zip(message.metric_names, message.metric_values, strict=False)),
        contact_fingers=np.zeros(len(message.contact_points), dtype=np.int64),
        **read_fields(message, Grasp),
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
    return write_fields(
        GraspArray(), plan, header=header, gripper=gripper, arm_joints=arm_joints if len(pregrasp_positions) else (),
        grasps=[message_from_grasp(grasp, header, way) for grasp, way in zip(plan.grasps, ways, strict=True)],
        rejected_stages=plan.rejected, rejected_counts=[int(count) for count in plan.rejected.values()],
    )  # fmt: skip
