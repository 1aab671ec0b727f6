"""The simulated robot with two depth cameras: MuJoCo behind the topics of a real one."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from geometry_msgs.msg import PoseStamped, TransformStamped
from rclpy.node import Node
from std_msgs.msg import Bool, Float64
from trajectory_msgs.msg import JointTrajectory

from morphit_interfaces.msg import DistanceShape, GripperCommand, WorldObject, WorldObjectArray
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import MorphitError
from morphit_ros.geometry.transforms import invert_transform
from morphit_ros.resources import atomic_write
from morphit_ros.ros.core import conversions, interfaces
from morphit_ros.ros.core.clocks import steady_timer
from morphit_ros.ros.core.diagnostics import ERROR, OK, WARN, Diagnostics
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.simulation.judge import Judge
from morphit_ros.simulation.person import HEIGHT, RADIUS, WalkingPerson
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig

# Between two reports of people [s].
_PEOPLE_PERIOD = 0.05


@dataclass(frozen=True)
class WorkcellSimConfig(Config):
    """How the simulation is published."""

    realtime_factor: float = parameter(
        1.0, "Simulated seconds a second; slower where the machine is", minimum=0.05, maximum=20.0
    )
    joint_state_rate: float = parameter(
        100.0, "Rate of joint states and clock in simulated time [Hz]", minimum=5.0, maximum=500.0
    )
    camera_rate: float = parameter(4.0, "Rate of the depth cameras in simulated time [Hz]", minimum=0.1, maximum=30.0)
    overview_rate: float = parameter(
        1.0, "Rate of the overview picture while subscribed [Hz]", minimum=0.1, maximum=10.0
    )
    overview_width: int = parameter(960, "Width of the overview picture [pixels]", minimum=64, maximum=3840)
    overview_height: int = parameter(720, "Height of the overview picture [pixels]", minimum=64, maximum=2160)
    world_frame: str = parameter("world", "Frame of extrinsics and of the object's true pose")
    report: str = parameter("", "JSON file of what truly happened, written at the end; empty: none")


CONFIGS = (WorkcellSimConfig, WorkcellConfig)


class WorkcellSim(Node):
    """Steps the workcell against the wall clock and publishes what its sensors measure."""

    # More than this behind the wall clock and simulated time runs slower instead of catching up in a burst.
    _LONGEST_CATCH_UP = 0.05

    def __init__(self) -> None:
        super().__init__("workcell_sim")
        self._config, workcell_config = declare_configs(self, CONFIGS)
        self._workcell = Workcell(workcell_config)
        self._judge = Judge(self._workcell) if self._config.report else None
        self._diagnostics = Diagnostics(self)
        self._out = {
            topic: topic.publish(self)
            for node in interfaces.NODES if node.executable == "workcell_sim" for topic in node.publishes
        }  # fmt: skip
        interfaces.JOINT_TRAJECTORY.subscribe(self, self._on_trajectory)
        interfaces.GRIPPER_COMMAND.subscribe(self, self._on_gripper_command)
        interfaces.VACUUM_COMMAND.subscribe(self, self._on_vacuum_command)
        interfaces.SPEED_SCALE.subscribe(self, self._on_speed_scale)
        self._percent = 100.0
        self._publish_extrinsics()
        self._next_capture = self._next_overview = self._next_people = self._workcell.time
        self._wall = time.monotonic()
        # Steady time: this node makes the simulated clock and must not wait for it.
        steady_timer(self, 1.0 / self._config.joint_state_rate, self._advance)
        self._diagnostics.report(OK, f"simulating {workcell_config.robot} with {workcell_config.object}")

    def _advance(self) -> None:
        now = time.monotonic()
        duration = min((now - self._wall) * self._config.realtime_factor, self._LONGEST_CATCH_UP)
        self._wall = now
        self._workcell.step(duration)
        if self._judge is not None:
            self._judge.look()
        stamp = self._workcell.time
        self._out[interfaces.CLOCK].publish(interfaces.CLOCK.type(clock=conversions.stamp_from_seconds(stamp)))
        state = self._workcell.joint_state()
        self._out[interfaces.JOINT_STATES].publish(conversions.message_from_joint_state(state))
        if state.vacuum is not None:
            self._out[interfaces.VACUUM].publish(Bool(data=state.vacuum))
        self._out[interfaces.WRENCH].publish(
            conversions.message_from_wrench(self._workcell.wrench(), self._workcell.wrist_link, stamp)
        )
        pose = PoseStamped(
            header=conversions.header(self._config.world_frame, stamp),
            pose=conversions.pose_from_matrix(self._workcell.object_pose()),
        )
        self._out[interfaces.OBJECT_POSE].publish(pose)
        self._out[interfaces.SPEED_SCALING].publish(Float64(data=self._percent))
        if self._workcell.person is not None and stamp >= self._next_people:
            self._next_people = stamp + _PEOPLE_PERIOD
            self._out[interfaces.PEOPLE].publish(self._people(self._workcell.person, stamp))
        if stamp >= self._next_capture:
            self._next_capture = stamp + 1.0 / self._config.camera_rate
            self._publish_clouds()
        if stamp >= self._next_overview and self._out[interfaces.OVERVIEW_IMAGE].get_subscription_count():
            self._next_overview = stamp + 1.0 / self._config.overview_rate
            picture = self._workcell.picture(self._config.overview_width, self._config.overview_height)
            message = conversions.message_from_image(picture, self._config.world_frame, stamp)
            self._out[interfaces.OVERVIEW_IMAGE].publish(message)

    def _publish_clouds(self) -> None:
        for camera in self._workcell.camera_names:
            topic = interfaces.POINTS[camera]
            if self._out[topic].get_subscription_count():
                cloud = self._workcell.capture(camera).cloud(frame=_optical_frame(camera))
                self._out[topic].publish(conversions.message_from_cloud(cloud))

    def _publish_extrinsics(self) -> None:
        for camera in self._workcell.camera_names:
            message = TransformStamped(
                header=conversions.header(self._config.world_frame, self._workcell.time),
                child_frame_id=_optical_frame(camera),
                transform=conversions.transform_from_matrix(self._workcell.T_world_camera(camera)),
            )
            self._out[interfaces.EXTRINSICS[camera]].publish(message)

    def _on_trajectory(self, message: JointTrajectory) -> None:
        try:
            trajectory = conversions.trajectory_from_message(message)
            if trajectory is None:
                self._workcell.stop_motion()
                self._diagnostics.report(WARN, "motion stopped on request")
            else:
                self._workcell.command_trajectory(trajectory)
                self._diagnostics.report(OK, f"following a trajectory of {trajectory.duration:.2f} s")
        except MorphitError as error:
            self._diagnostics.report(ERROR, f"trajectory refused: {error}")

    def _on_speed_scale(self, message: Float64) -> None:
        try:
            self._workcell.scale_speed(message.data / 100.0)
            self._percent = message.data
        except MorphitError as error:
            self._diagnostics.report(ERROR, f"speed scale refused: {error}")

    def _people(self, person: WalkingPerson, stamp: float) -> WorldObjectArray:
        """As a tracker would see them, in the robot's base."""
        shape = DistanceShape(type=DistanceShape.CAPSULE, dimensions=[HEIGHT - 2.0 * RADIUS, RADIUS])
        T_base_person = invert_transform(self._workcell.T_world_base) @ person.pose(stamp)
        seen = WorldObject(id="person", pose=conversions.pose_from_matrix(T_base_person), shapes=[shape])
        frame = conversions.header(self._workcell.robot.base_link, stamp)
        return WorldObjectArray(header=frame, objects=[seen])

    def _on_gripper_command(self, message: GripperCommand) -> None:
        try:
            self._workcell.command_gripper(message.aperture, message.max_effort)
        except MorphitError as error:
            self._diagnostics.report(ERROR, f"gripper command refused: {error}")

    def _on_vacuum_command(self, message: Bool) -> None:
        try:
            self._workcell.switch_vacuum(message.data)
        except MorphitError as error:
            self._diagnostics.report(ERROR, f"vacuum command refused: {error}")

    def destroy_node(self) -> None:
        if self._judge is not None:
            with atomic_write(self._config.report) as stream:
                json.dump(self._judge.report(), stream, indent=2)
        self._workcell.close()
        super().destroy_node()


def _optical_frame(camera: str) -> str:
    return f"{camera}_camera_optical_frame"


def main(args: list[str] | None = None) -> None:
    # One thread: MuJoCo's OpenGL context belongs to the thread that made it.
    run_node(WorkcellSim, args, threads=1)


if __name__ == "__main__":
    main()
