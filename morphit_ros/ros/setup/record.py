"""Records clouds and joints whenever the arm stands still at a new pose; a process of `morphit calibrate record`.

It only listens: the arm is moved by hand, by its driver, or by whoever else.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import rclpy
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import String

from morphit_ros.calibration.recording import DESCRIPTION, JOINTS, write_pose
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.geometry.transforms import Array
from morphit_ros.resources import atomic_write
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_types import JointState
from morphit_ros.ros.core.conversions import cloud_from_message, joint_state_from_message, seconds_from_stamp
from morphit_ros.ros.core.interfaces import JOINT_STATES, LEFT_POINTS, RIGHT_POINTS, ROBOT_DESCRIPTION
from morphit_ros.ros.core.runner import use_large_shared_memory
from morphit_ros.ros.setup.listening import Listener

_POINTS = {"left": LEFT_POINTS, "right": RIGHT_POINTS}
# At rest: positions of so long differ by no more [s], [rad].
_REST, _STILL = 0.8, 0.003
# Clouds are exposed after the arm has come to rest, and so much later for what still shakes [s].
_SHAKING = 0.3
# A new pose differs in some joint by this [rad]; the calibration needs poses that differ by more than noise.
_NEW = 0.15


class Recorder:
    """Decides when a pose is new and the arm at rest, and writes it.

    Args:
        folder: of the recording.
        robot: names the joints.
        cameras: whose clouds belong to a pose.
    """

    def __init__(self, folder: Path, robot: RobotConfiguration, cameras: Sequence[str]) -> None:
        self._folder, self._arm, self._cameras = folder, robot.arm_joints, tuple(cameras)
        self._states: deque[JointState] = deque()
        self._clouds: dict[str, tuple[float, Array]] = {}
        self.poses: list[dict[str, float]] = []
        self.missing: list[str] = list(robot.arm_joints)

    def take_state(self, state: JointState) -> None:
        """A joint state."""
        self.missing = [name for name in self._arm if name not in state.names]
        if self.missing:
            return
        if self._states and (state.stamp < self._states[-1].stamp or state.names != self._states[-1].names):
            self._states.clear()
        self._states.append(state)
        while self._states[-1].stamp - self._states[0].stamp > 10.0:
            self._states.popleft()

    def take_cloud(self, camera: str, stamp: float, points: Array) -> None:
        """A cloud (N, 3) [m] and its stamp [s]."""
        self._clouds[camera] = stamp, points

    def rest_begin(self) -> float | None:
        """Since when the arm has been at rest, by the stamps [s]; None while it is not, or not for long enough."""
        if not self._states:
            return None
        newest = self._states[-1]
        begin = newest.stamp
        rows = [newest.names.index(name) for name in self._arm]
        for state in reversed(self._states):
            if abs(state.positions[rows] - newest.positions[rows]).max() > _STILL:
                break
            begin = state.stamp
        return begin if newest.stamp - begin >= _REST else None

    def is_new(self) -> bool:
        """Whether the arm is far enough from all poses recorded."""
        now = self._states[-1].as_dict()
        return all(max(abs(now[name] - pose[name]) for name in self._arm) > _NEW for pose in self.poses)

    def step(self) -> str:
        """Write a pose if there is one to write.

        Returns:
            What to tell people, empty for nothing new.
        """
        begin = self.rest_begin()
        if begin is None or not self.is_new():
            return ""
        fresh = {camera: cloud for camera, cloud in self._clouds.items() if cloud[0] > begin + _SHAKING}
        # The arm was still at rest when a joint state of after the clouds came.
        if set(fresh) < set(self._cameras) or max(stamp for stamp, _ in fresh.values()) > self._states[-1].stamp:
            return ""
        middle = self._states[len(self._states) // 2] if len(self._states) > 2 else self._states[-1]
        state = middle if middle.stamp >= begin else self._states[-1]
        self.poses.append(state.as_dict())
        write_pose(
            self._folder, len(self.poses) - 1, self.poses, {camera: cloud for camera, (_, cloud) in fresh.items()}
        )
        counts = ", ".join(f"{camera} {len(cloud)} points" for camera, (_, cloud) in sorted(fresh.items()))
        return f"pose {len(self.poses)}: {counts}"

    def waits_for(self) -> str:
        """Why nothing is written now."""
        if not self._states:
            return f"joint states with {', '.join(self.missing)}"
        lacking = [camera for camera in self._cameras if camera not in self._clouds]
        if lacking:
            return f"clouds of {' and '.join(lacking)}"
        if self.rest_begin() is None:
            return "the arm to stand still"
        if not self.is_new():
            return "a pose that is new: turn some joint by 10° and more"
        return "clouds that were taken at rest: stamps of cameras and robot differ, or clouds come slowly"


def record(request: Mapping[str, Any]) -> int:
    """Record until there are enough poses, or somebody ends it; exit status 0 if there are at least five.

    Raises:
        InvalidInputError: there is a recording already, or nothing comes.
        ResourceNotFoundError: an unknown robot.
    """
    folder, robot = Path(request["folder"]), RobotConfiguration.load(request["robot"])
    if (folder / JOINTS).exists():
        raise InvalidInputError("FOLDER", str(folder), "one without a recording", "Name another one, or remove it.")
    recorder = Recorder(folder, robot, request["cameras"])
    over: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: over.append(received))
    use_large_shared_memory()
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    listener = Listener(
        Node(f"morphit_record_{os.getpid()}", use_global_arguments=False, start_parameter_services=False)
    )
    try:
        _follow(listener, recorder, request, over)
    finally:
        listener.close()
        rclpy.try_shutdown()
    print(f"{len(recorder.poses)} poses in {folder}; now: morphit calibrate solve {folder} --robot {request['robot']}")
    return 0 if len(recorder.poses) >= 5 else 1


def _follow(listener: Listener, recorder: Recorder, request: Mapping[str, Any], over: Sequence[int]) -> None:
    space = f"/{request['namespace'].strip('/')}".rstrip("/")
    topics = {camera: request["topics"].get(camera) or topic.name for camera, topic in _POINTS.items()}
    listener.spin(1.5)
    names = {
        name: name if name.startswith("/") else f"{space}/{name}"
        for name in (*topics.values(), JOINT_STATES.name, ROBOT_DESCRIPTION.name)
    }

    def on_cloud(camera: str, message: PointCloud2) -> None:
        recorder.take_cloud(camera, seconds_from_stamp(message.header.stamp), cloud_from_message(message).points)

    def on_state(message: Any) -> None:
        recorder.take_state(joint_state_from_message(message))

    def on_description(message: String) -> None:
        folder = Path(request["folder"])
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(folder / DESCRIPTION) as stream:
            stream.write(message.data)

    _wait_for_publishers(listener, [names[JOINT_STATES.name], *(names[topics[c]] for c in request["cameras"])], over)
    listener.listen_to(names[JOINT_STATES.name], JOINT_STATES.type, on_state)
    listener.listen_to(names[ROBOT_DESCRIPTION.name], ROBOT_DESCRIPTION.type, on_description)
    for camera in request["cameras"]:
        listener.listen_to(names[topics[camera]], PointCloud2, partial(on_cloud, camera))
    print(f"move the arm to {request['poses']} poses, and let it stand still for two seconds at each", flush=True)
    said, due = "", monotonic() + 3.0
    while len(recorder.poses) < request["poses"] and not over:
        listener.spin(0.1, lambda: bool(over))
        if told := recorder.step():
            print(f"{told}, {request['poses'] - len(recorder.poses)} to go", flush=True)
            due = monotonic() + 3.0
        elif monotonic() > due:
            waits = recorder.waits_for()
            if waits != said:
                print(f"  waits for {waits}", flush=True)
            said, due = waits, monotonic() + 3.0


def _wait_for_publishers(listener: Listener, topics: Sequence[str], over: Sequence[int]) -> None:
    def missing() -> list[str]:
        return [topic for topic in topics if not listener.node.get_publishers_info_by_topic(topic)]

    listener.spin(8.0, lambda: not missing() or bool(over))
    if (absent := missing()) and not over:
        raise InvalidInputError(
            ", ".join(absent),
            "nobody publishes it",
            "clouds and joint states",
            "Start the drivers; name the topics with --left-points and --right-points; morphit check tells more.",
        )


def main() -> int:
    """Run as a process: one argument, JSON with folder, robot, poses, cameras, topics and namespace."""
    try:
        return record(json.loads(sys.argv[1]))
    except MorphitError as error:
        print(f"morphit: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)
