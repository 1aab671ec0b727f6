"""Paths in joint space by RoboPlan 0.7: times by TOPP-RA, and RRT-connect with shortcuts where a search is needed.

RoboPlan calls itself experimental: this file alone calls it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.dependencies import needed_for
from morphit_ros.geometry.transforms import Array
from morphit_ros.motion.environment import Pair, without_geometry
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_types import Trajectory

_GROUP = "morphit_arm"


@dataclass(frozen=True)
class RoboPlanConfig(Config):
    """Settings of the embedded motion backend."""

    planning_time: float = parameter(5.0, "Time limit of a request [s]", minimum=0.01, maximum=120.0)
    search_time: float = parameter(1.0, "Time limit of one search for a path [s]", minimum=0.01, maximum=120.0)
    max_nodes: int = parameter(3000, "Nodes of one search for a path", minimum=10, maximum=1_000_000)
    attempts: int = parameter(3, "Searches for a path to each goal", minimum=1, maximum=100)
    goals: int = parameter(8, "Inverse kinematics solutions that are considered", minimum=1, maximum=100)
    collision_step: float = parameter(0.02, "Joint step between collision checks [rad]", minimum=1e-3, maximum=0.2)
    shortcut_iterations: int = parameter(100, "Tries to shorten a path", minimum=0, maximum=10_000)
    blend: float = parameter(
        0.02, "Largest deviation where corners of a path are rounded [rad]", minimum=0.0, maximum=0.5
    )
    velocity_scaling: float = parameter(0.5, "Share of the joints' velocity limits", minimum=0.01, maximum=1.0)
    acceleration_scaling: float = parameter(0.5, "Share of the joints' acceleration limits", minimum=0.01, maximum=1.0)
    time_step: float = parameter(0.02, "Time between the rows of a trajectory [s]", minimum=1e-3, maximum=0.2)
    line_step: float = parameter(0.005, "Distance of positions along a straight line [m]", minimum=1e-4, maximum=0.05)
    line_joint_step: float = parameter(
        0.2, "A joint that moves further within line_step jumps [rad]", minimum=0.01, maximum=1.0
    )
    line_acceleration: float = parameter(0.5, "Acceleration along a straight line [m/s²]", minimum=0.01, maximum=10.0)
    turn_radius: float = parameter(
        0.2, "Way that a radian of turning counts as along a straight line [m]", minimum=0.01, maximum=2.0
    )
    touch_clearance: float = parameter(
        0.005, "How much lower the table is for links that may touch objects [m]", minimum=0.0, maximum=0.05
    )
    limit_margin: float = parameter(
        0.03,
        "Kept free at both ends of a joint's range: controllers refuse what touches it [rad]",
        minimum=0.0,
        maximum=0.2,
    )
    limit_tolerance: float = parameter(
        0.035, "A start this far beyond the planned range is taken as at its end [rad]", minimum=0.0, maximum=0.2
    )


def import_roboplan() -> tuple[Any, Any, Any]:
    """RoboPlan's modules core, rrt and toppra.

    Raises:
        MissingDependencyError: RoboPlan is not installed.
    """
    with needed_for("the embedded motion backend"):
        import roboplan.core
        import roboplan.rrt
        import roboplan.toppra
    return roboplan.core, roboplan.rrt, roboplan.toppra


class PathTiming:
    """Times of straight paths in joint space; what stands in the way is not looked at.

    Args:
        urdf: robot, as `robot_urdf` returns it.
        robot: names and acceleration limits of the joints.
        config: settings.

    Raises:
        MissingDependencyError: RoboPlan is not installed.
    """

    def __init__(self, urdf: str, robot: RobotConfiguration, config: RoboPlanConfig) -> None:
        # A scene with geometry takes a second to build, and times do not depend on it.
        self._scene = _loaded_scene(without_geometry(urdf), robot)
        self._joints, self._config = robot.arm_joints, config

    def straight(self, start: Array, goal: Array) -> tuple[Trajectory | None, str]:
        """The straight path between arm positions (J,) [rad], timed; None and the reason if RoboPlan fails."""
        core, _, _ = import_roboplan()
        path = core.JointPath()
        path.joint_names, path.positions = list(self._joints), [start, goal]
        try:
            return _timed(self._scene, path, self._joints, self._config), ""
        # RoboPlan reports every failure in this way.
        except RuntimeError as error:
            return None, str(error)


class PathSearch:
    """Searches paths of one arm in one environment.

    Args:
        urdf: robot and environment, as `environment_urdf` returns it.
        exempt: pairs of bodies with geometry that are not checked.
        robot: names and acceleration limits of the joints.
        config: settings.

    Raises:
        MissingDependencyError: RoboPlan is not installed.
    """

    def __init__(self, urdf: str, exempt: Collection[Pair], robot: RobotConfiguration, config: RoboPlanConfig) -> None:
        self._config = config
        self._joints = robot.arm_joints
        self._scene = _loaded_scene(urdf, robot)
        self._scene.setCollisions(sorted(tuple(sorted(pair)) for pair in exempt), False)

    def plan(
        self, state: Mapping[str, float], start: Array, goal: Array, seed: int, time_limit: float
    ) -> tuple[Trajectory | None, str]:
        """A timed path between arm positions (J,) [rad]; None and the reason if there is none.

        `state` gives the joints that do not take part, such as fingers.
        """
        self._scene.setJointPositions(np.array([state[name] for name in self._scene.getJointNames()]))
        try:
            path = self._path(start, goal, seed, time_limit)
            return _timed(self._scene, path, self._joints, self._config), ""
        # RoboPlan reports every failure of a search in this way.
        except RuntimeError as error:
            return None, str(error)

    def _path(self, start: Array, goal: Array, seed: int, time_limit: float) -> Any:
        core, rrt, _ = import_roboplan()
        config, names = self._config, list(self._joints)
        options = rrt.RRTOptions(
            group_name=_GROUP,
            max_nodes=config.max_nodes,
            collision_check_step_size=config.collision_step,
            max_planning_time=min(time_limit, config.search_time),
            rrt_connect=True,
        )
        planner = rrt.RRT(self._scene, options)
        planner.setRngSeed(seed)
        path = planner.plan(core.JointConfiguration(names, start), core.JointConfiguration(names, goal))
        if config.shortcut_iterations == 0 or len(path.positions) <= 2:
            return path
        shortcuts = core.PathShortcuttingOptions(
            _GROUP, max_step_size=config.collision_step, max_iters=config.shortcut_iterations, seed=seed
        )
        return core.PathShortcutter(self._scene, shortcuts).shortcut(path)


def _loaded_scene(urdf: str, robot: RobotConfiguration) -> Any:
    """RoboPlan's scene of a description, with the arm as a group."""
    core, _, _ = import_roboplan()
    scene = core.Scene(robot.name, core.loadUrdfSceneDescriptionFromXml(urdf))
    scene.addGroup(_GROUP, list(robot.arm_joints))
    limits = "".join(
        f"  {name}:\n    has_acceleration_limits: true\n    max_acceleration: [{limit:.9g}]\n"
        for name, limit in zip(robot.arm_joints, robot.acceleration_limits, strict=True)
    )
    # RoboPlan reads acceleration limits from files only.
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as stream:
        stream.write("joint_limits:\n" + limits)
        stream.flush()
        scene.importJointLimitsFromConfig(core.loadJointLimitsConfig(stream.name))
    return scene


def _timed(scene: Any, path: Any, joints: tuple[str, ...], config: RoboPlanConfig) -> Trajectory:
    """RoboPlan's path as a trajectory of the joints."""
    _, _, toppra = import_roboplan()
    modes = toppra.SplineFittingMode
    options = toppra.TOPPRAOptions(
        dt=config.time_step,
        # Without corners there is nothing to blend, and the exact mode needs no collision checks.
        mode=modes.LinearBlend if len(path.positions) > 2 else modes.Hermite,
        velocity_scale=config.velocity_scaling,
        acceleration_scale=config.acceleration_scaling,
        max_blend_deviation=config.blend,
    )
    timed = toppra.PathParameterizerTOPPRA(scene, _GROUP).generate(path, options)
    order = [list(timed.joint_names).index(name) for name in joints]
    positions = np.array(timed.positions)[:, order]
    velocities = np.array(timed.velocities)[:, order]
    velocities[0] = velocities[-1] = 0.0
    return Trajectory(joints, np.array(timed.times), positions, velocities)
