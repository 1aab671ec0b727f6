"""A whole pick in one process: simulated workcell, perception, planning and execution without a ROS graph.

The same core objects as the nodes use, driven by the simulation's clock. For evaluation over many
trials, and for trying the job where there is no ROS.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from morphit_ros.execution.backends.roboplan import RoboPlanBackend
from morphit_ros.execution.obstacles import object_obstacle, table_obstacle
from morphit_ros.execution.pick import CommandGripper, GraspTarget, GripperLimits, PickRequest, SendTrajectory, Stop
from morphit_ros.execution.sequence import GraspSequence
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.geometry.transforms import Array, invert_transform, rotation_angle
from morphit_ros.grasping import GraspPlan, Gripper, PlannerConfig, plan_grasps
from morphit_ros.perception import PerceptionConfig, Scene, SceneStatus, perceive
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.packages import resolve_uri
from morphit_ros.simulation.workcell import Workcell
from morphit_ros.spheres import SphereFitConfig, fit_robot_spheres, spheres_in_frame, spherized_urdf

# Simulated time between two looks of the sequence at the robot [s].
_PERIOD = 0.02
# No pick takes longer; a sequence that does not end by itself is a fault of its own.
_LONGEST_PICK = 90.0


@dataclass(frozen=True)
class PickOutcome:
    """What became of one pick.

    Attributes:
        success: lifted, held, and within the bounds of where it should be.
        failed_stage: segment, plan_grasp, a stage of the sequence, or "result"; empty on success.
        message: the cause of a failure.
        offset: distance between the object and where a rigid grasp would have carried it [m].
        turn: the same as an angle [rad].
        rise: how far the object rose [m].
        durations: stage → seconds; wall time for segment and plan_grasp, simulated time for the others.
        grasp_metrics: of the grasp that was executed.
    """

    success: bool
    failed_stage: str = ""
    message: str = ""
    offset: float = float("nan")
    turn: float = float("nan")
    rise: float = float("nan")
    durations: dict[str, float] = field(default_factory=dict)
    grasp_metrics: dict[str, float] = field(default_factory=dict)


class _Failed(Exception):
    def __init__(self, stage: str, message: str) -> None:
        self.stage, self.message = stage, message
        super().__init__(message)


class PickJob:
    """A robot with its sphere model and motion backend, ready for picks.

    Args:
        robot: name in config/robots, or a YAML file.
        seed: of spheres and motion planning.
    """

    def __init__(self, robot: str = "panda", seed: int = 0) -> None:
        self.robot = RobotConfiguration.load(robot)
        self.gripper = Gripper.load(self.robot.gripper)
        description = load_robot_description(self.robot.description)
        self._spheres = fit_robot_spheres(description, SphereFitConfig(), seed=seed)
        self._kinematics = KinematicModel(description)
        uri = self.robot.semantic_description
        srdf = resolve_uri(uri).read_text(encoding="utf-8") if uri else ""
        self._backend = RoboPlanBackend(spherized_urdf(description, self._spheres), srdf, self.robot, seed=seed)

    def pick(
        self,
        workcell: Workcell,
        perception: PerceptionConfig | None = None,
        planner: PlannerConfig | None = None,
        sequence: SequenceConfig | None = None,
        seed: int = 0,
        on_scene: Callable[[Scene, GraspPlan], None] | None = None,
    ) -> PickOutcome:
        """See, plan and pick the object of a workcell.

        Args:
            workcell: at rest; time passes in it.
            perception, planner, sequence: settings, None for the defaults.
            seed: of perception and planning.
            on_scene: called with scene and plan before anything moves.
        """
        durations: dict[str, float] = {}
        settings = sequence or SequenceConfig()
        try:
            scene = self._see(workcell, perception or PerceptionConfig(), seed, durations)
            plan = self._plan(scene, planner or PlannerConfig(), seed, durations)
            if on_scene is not None:
                on_scene(scene, plan)
            metrics, expected = self._execute(workcell, scene, plan, settings, durations)
        except _Failed as failure:
            return PickOutcome(False, failure.stage, failure.message, durations=durations)
        return _judged(workcell, expected, settings, durations, metrics)

    def _see(self, workcell: Workcell, config: PerceptionConfig, seed: int, durations: dict[str, float]) -> Scene:
        left, right = (workcell.capture(name).cloud(frame=f"{name}_camera") for name in ("left", "right"))
        began = time.perf_counter()
        transforms = self._kinematics.forward_kinematics(workcell.joint_state().as_dict())
        root = workcell.T_world_base @ invert_transform(transforms[self.robot.base_link])
        spheres = spheres_in_frame(self._spheres, {link: root @ pose for link, pose in transforms.items()})
        poses = (workcell.T_world_camera("left"), workcell.T_world_camera("right"))
        scene = perceive(left, right, *poses, config, robot_spheres=spheres, seed=seed)
        durations["segment"] = time.perf_counter() - began
        if scene.status is not SceneStatus.OK:
            raise _Failed("segment", scene.message)
        return scene

    def _plan(self, scene: Scene, config: PlannerConfig, seed: int, durations: dict[str, float]) -> GraspPlan:
        began = time.perf_counter()
        assert scene.target_cloud is not None  # the status is OK
        plan = plan_grasps(scene.target_cloud, self.gripper, config, table=scene.table, seed=seed)
        durations["plan_grasp"] = time.perf_counter() - began
        if not plan.grasps:
            raise _Failed("plan_grasp", plan.message)
        return plan

    def _execute(
        self, workcell: Workcell, scene: Scene, plan: GraspPlan, settings: SequenceConfig, durations: dict[str, float]
    ) -> tuple[dict[str, float], Array]:
        limits = GripperLimits(self.gripper.aperture_min, self.gripper.aperture_max, self.gripper.max_force)
        sequence = GraspSequence(self._backend, self.robot, limits, settings, clock="simulated clock")
        before = workcell.object_pose()
        sequence.start(self._request(workcell, scene, plan), workcell.joint_state(), workcell.time)
        while True:
            update = sequence.update(workcell.time, workcell.joint_state())
            for command in update.commands:
                if isinstance(command, SendTrajectory):
                    workcell.command_trajectory(command.trajectory)
                elif isinstance(command, CommandGripper):
                    workcell.command_gripper(command.aperture, command.max_effort)
                elif isinstance(command, Stop):
                    workcell.stop_motion()
            if update.finished or workcell.time > _LONGEST_PICK:
                break
            workcell.step(_PERIOD)
        for stage, spent in update.durations:
            durations[stage.value] = durations.get(stage.value, 0.0) + spent
        if not update.success:
            raise _Failed((update.failed_stage or update.stage).value, update.message)
        # A rigid grasp carries the object straight up.
        expected = before.copy()
        expected[2, 3] += settings.lift_height
        return dict(plan.grasps[update.grasp_index].metrics), expected

    def _request(self, workcell: Workcell, scene: Scene, plan: GraspPlan) -> PickRequest:
        T_base_world = invert_transform(workcell.T_world_base)
        targets = tuple(
            GraspTarget(
                T_base_world @ grasp.T_world_gripper,
                T_base_world @ grasp.T_world_pregrasp,
                grasp.aperture,
                grasp.open_aperture,
            )
            for grasp in plan.grasps
        )
        table = scene.table
        assert scene.target_cloud is not None
        slab = None if table is None else table_obstacle(T_base_world @ table.T_world_table, table.size)
        return PickRequest(targets, object_obstacle("target", scene.target_cloud, T_base_world), table=slab)


def _judged(
    workcell: Workcell,
    expected: Array,
    settings: SequenceConfig,
    durations: dict[str, float],
    metrics: dict[str, float],
) -> PickOutcome:
    """Success as the DISF paper counts it: within 0.06 m and 30° of where it should be."""
    pose = workcell.object_pose()
    offset = float(np.linalg.norm(pose[:3, 3] - expected[:3, 3]))
    turn = rotation_angle(expected[:3, :3].T @ pose[:3, :3])
    rise = float(pose[2, 3] - expected[2, 3] + settings.lift_height)
    success = bool(offset < 0.06 and turn < np.radians(30.0))
    message = "" if success else f"the object is {1000 * offset:.0f} mm and {np.degrees(turn):.0f}° off"
    stage = "" if success else "result"
    return PickOutcome(success, stage, message, offset, turn, rise, durations, metrics)
