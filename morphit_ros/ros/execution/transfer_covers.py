"""Covers of the links for transfers, and the hand's spheres for lines, of a node that fitting must not hold up."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence

from rclpy.node import Node

from morphit_ros.errors import MorphitError
from morphit_ros.motion.cover_fits import finished_covers, start_fits
from morphit_ros.motion.refinement import RefinableArm
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.ros.core.guarded import guarded


class TransferCovers:
    """Has another process find out the covers of the newest robot, and takes them over when they are there.

    Attributes:
        arm: the robot with its covers, None until they are there.

    Args:
        node: told where there are none.
        joints: the planned ones.
        hand: links of the hand; those that the robot does not have are passed over.
    """

    def __init__(self, node: Node, joints: Sequence[str], hand: Sequence[str] = ()) -> None:
        self._node, self._joints, self._hand = node, tuple(joints), tuple(hand)
        self._model: KinematicModel | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.arm: RefinableArm | None = None

    def follow(self, model: KinematicModel | None) -> None:
        """Begin anew where the robot is another one; called often."""
        if model is None or model is self._model:
            return
        self.close()
        self._model = model
        # The process is made here, so that whoever closes next finds it.
        process = self._process = start_fits(model.description, self._hand)
        work = guarded(self._node, "covers", lambda: self._read(model, process))
        threading.Thread(target=work, daemon=True).start()

    def _read(self, model: KinematicModel, process: subprocess.Popen[bytes]) -> None:
        try:
            arm = RefinableArm(model, self._joints, patient=False, known=finished_covers(process))
        except MorphitError as error:
            # Another robot's process, or that of a node that ends, was ended and is no matter.
            if self._process is process:
                self._node.get_logger().warning(
                    f"transfers keep clear by the published spheres, not by covers: {error}"
                )
            return
        if self._process is process:
            self.arm = arm

    def close(self) -> None:
        """End what is under way, and forget the covers."""
        process, self._process, self._model, self.arm = self._process, None, None, None
        if process is not None and process.poll() is None:
            process.kill()
