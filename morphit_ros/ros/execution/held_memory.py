"""What the hand holds and what stands around it: followed through each job, kept on disk, checked by the fingers."""

from __future__ import annotations

import os
import time
import urllib.parse
from dataclasses import replace
from pathlib import Path

import numpy as np
from rclpy.node import Node

from morphit_ros.errors import MorphitError
from morphit_ros.execution.failure import OBJECT_LOST, FailureMode
from morphit_ros.execution.held import HELD, HeldGrasp, Surroundings
from morphit_ros.execution.obstacles import object_obstacle
from morphit_ros.execution.pick import PickRequest, PickStage
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import invert_transform
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.suction.cup import SuctionCup
from morphit_ros.resources import atomic_write, state_directory
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_types import JointState
from morphit_ros.ros.execution.job import ExecutionJob

_OPENING = (PickStage.OPEN.value, PickStage.RELEASE.value)
_WEIGHED = (PickStage.LIFT.value, PickStage.VERIFY.value)
_HELD = (PickStage.ATTACH.value, PickStage.TEST_LIFT.value, PickStage.LIFT.value)


class HeldMemory:
    """Knows after each update of a job what is held; a process that is started anew knows what the last one did.

    Args:
        node: whose namespace and domain the file is of.
        robot: it too.
        gripper: tells when nothing is between the pads; of a cup its vacuum does.
        config: how much the aperture may change while the same thing is held.
        recall: whether what an earlier process held is still held, as far as its file and the fingers tell.

    Attributes:
        held: None if nothing is known to be held.
        from_disk: whether that is known from an earlier process.
        not_let_go: whether the hand has opened and yet carries it.
        around: what stands around as far as the last job knew, without what is held.
        target: name of what that job was about among it, empty for none.
        problem: why the state could not be kept or read, empty if it was.
    """

    def __init__(
        self,
        node: Node,
        robot: RobotConfiguration,
        gripper: Gripper | SuctionCup,
        config: SequenceConfig,
        recall: bool = True,
    ) -> None:
        self._robot, self._config = robot, config
        self._cup = isinstance(gripper, SuctionCup)
        self._empty = 0.0 if isinstance(gripper, SuctionCup) else gripper.aperture_min + config.stall_margin
        name = f"{os.environ.get('ROS_DOMAIN_ID', '0')}{node.get_fully_qualified_name()} {robot.name}"
        self._name = f"{urllib.parse.quote(name, safe='')}.json"
        self.held: HeldGrasp | None = None
        self.from_disk, self.not_let_go, self.problem = False, False, ""
        self._let_go_of: tuple[HeldGrasp, Surroundings, str] | None = None
        self.around, self.target = Surroundings(), ""
        self._request: PickRequest | None = None
        self._cloud: PointCloud | None = None
        self._opening, self._stage = False, ""
        if recall:
            self._load()

    @property
    def _path(self) -> Path:
        return state_directory("held") / self._name

    def _load(self) -> None:
        try:
            if self._path.exists():
                self.held = HeldGrasp.from_json(self._path.read_text(encoding="utf-8"))
                self.around, self.from_disk = self.held.around, True
        except (OSError, UnicodeDecodeError, MorphitError) as error:
            self.problem = f"what was held is not known: {error}"

    def _keep(self) -> None:
        try:
            if self.held is None:
                self._path.unlink(missing_ok=True)
            else:
                with atomic_write(self._path) as stream:
                    stream.write(self.held.to_json())
            self.problem = ""
        except OSError as error:
            self.problem = f"what is held is not kept for a new start: {error}"

    def aperture(self, state: JointState | None) -> float | None:
        """Opening between the pads [m], None where it is not reported; 0 of a cup that tells of its vacuum."""
        if state is None:
            return None
        if self._cup:
            return None if state.vacuum is None else 0.0
        return self._robot.aperture(state.as_dict())

    def check(self, state: JointState | None) -> str:
        """Forget what the fingers show not to be held any longer, and say why; empty if nothing is forgotten."""
        aperture = self.aperture(state)
        if self.held is None or state is None or aperture is None:
            return ""
        if self._cup:
            why = "" if state.vacuum else "the cup has no vacuum"
        else:
            why = self.held.contradiction(aperture, self._empty)
        if why:
            self._let_go()
        return why

    def in_words(self) -> str:
        """What is held."""
        if self.held is None:
            return "nothing is known to be held"
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.held.since))
        where = ", known from before grasp_execution was started anew" if self.from_disk else ""
        what = "by vacuum" if self._cup else f"{1e3 * self.held.aperture:.1f} mm wide"
        return f"holding an object {what} since {since}{where}"

    def expect(self, request: PickRequest, cloud: PointCloud | None) -> None:
        """The grasp sequence that begins.

        Args:
            request: of it.
            cloud: the object in the base frame; None if its shape is not known.
        """
        self._request, self._cloud = request, cloud
        target = () if request.target is None else (request.target,)
        self.around = Surroundings(request.table, (*request.obstacles, *target))
        self.target = request.target.name if request.target is not None else ""

    def follow(self, job: ExecutionJob, state: JointState | None) -> bool:
        """Take down what a job has done with the hand; whether it shows that what is held has turned there."""
        stage, before = job.stage, self._stage
        self._stage = "" if job.finished else stage
        if stage in _OPENING and not job.finished:
            self._opening = True
        elif self._opening and not job.failed:
            self._opening = False
            self._let_go(put_down=job.put_down)
        self._opening = self._opening and not job.finished
        if stage != before and self._request is not None and job.grasp_index >= 0:
            if stage == PickStage.CLOSE.value:
                # Only how wide it should be is known yet.
                probe = self._config.probe
                self._hold(job, self._request.candidates[job.grasp_index].aperture, probe.too_narrow)
            elif stage in _HELD:
                aperture = self.aperture(state)
                if aperture is not None:
                    self._hold(job, aperture, 2.0 * self._config.slip.margin)
        turned = False
        if self.held is not None and job.weighed_now and stage in _WEIGHED and self.held.load is not job.load:
            self.held = self.held.weighed(job.load, pads=not self._cup)
            turned = self.held.turn_deviation > 0.0
        if turned:
            self._keep()
        if job.failed and OBJECT_LOST in job.message:
            self._let_go()
        if job.failed and job.mode is FailureMode.NOT_EMPTY:
            self._take_back(state)
        return turned

    def _hold(self, job: ExecutionJob, aperture: float, margin: float) -> None:
        assert self._request is not None
        request, grasp = self._request, self._request.candidates[job.grasp_index]
        points = np.empty((0, 3))
        if self._cloud is not None:
            points = self._cloud.transformed(invert_transform(grasp.T_base_gripper)).points
        self.target, self.from_disk, self.not_let_go = "", False, False
        self.around = Surroundings(request.table, request.obstacles)
        since = time.time() if self.held is None else self.held.since
        self.held = HeldGrasp(
            grasp.T_base_gripper,
            grasp.T_base_pregrasp,
            aperture,
            margin,
            grasp.open_aperture,
            points,
            self.around,
            since,
        )
        self._keep()

    def _let_go(self, put_down: np.ndarray | None = None) -> None:
        """Nothing is held any longer; with ``T_base_gripper`` (4, 4) where it was put down it stands there."""
        held, self.held, self.from_disk, self.not_let_go = self.held, None, False, False
        if held is None:
            return
        self._let_go_of = held, self.around, self.target
        if put_down is not None and len(held.points):
            placed = object_obstacle(HELD, held.points, put_down)
            self.around = replace(self.around, obstacles=(*self.around.obstacles, placed))
            self.target = HELD
        self._keep()

    def _take_back(self, state: JointState | None) -> None:
        """What was let go of has stayed on the hand: held as long as the fingers are where they are now."""
        if self._let_go_of is None:
            return
        held, self.around, self.target = self._let_go_of
        aperture = self.aperture(state)
        if aperture is not None:
            held = replace(held, aperture=aperture, margin=2.0 * self._config.slip.margin)
        self.held, self.not_let_go = held, True
        self._keep()
