"""The process that MoveItPy lives in: it answers requests over a socket.

Run by its file, by the interpreter that moveit_py was built for, which need not be ours, with two inherited
descriptors: ``python -P server.py SOCKET LIFELINE``. It needs the standard library, moveit_py and its messages, and
nothing of morphit_ros.

A message is its length (4 bytes, the highest first) and JSON in UTF-8. The server begins with ``{"protocol": 1}``; a
request is ``{"id", "do", "with"}``, its answer ``{"id", "result"}`` or ``{"id", "error", "type"}``. LIFELINE is the
end to read of a pipe that nobody writes to: when its other end is closed, and be it by a SIGKILL of whoever held it,
the system kills this process, even in the middle of a call of MoveIt.

Everything is in the base link's frame unless said otherwise, in m, rad and s; a pose is [x, y, z, qx, qy, qz, qw].
"""

from __future__ import annotations

import copy
import faulthandler
import fcntl
import gc
import json
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PROTOCOL = 1
MAX_MESSAGE = 64 * 2**20
_LENGTH = struct.Struct(">I")
_TABLE = "table"


class WrongMessageError(Exception):
    """What came is no message of this protocol."""


def write_message(connection: socket.socket, content: dict[str, Any]) -> None:
    """Send a message.

    Raises:
        ValueError: a number that is not finite, or more than `MAX_MESSAGE` bytes.
        OSError: the connection is broken, or nobody reads for as long as its time limit.
    """
    data = json.dumps(content, allow_nan=False, ensure_ascii=False).encode()
    if len(data) > MAX_MESSAGE:
        raise ValueError(f"a message of {len(data)} bytes; {MAX_MESSAGE} at most")
    connection.sendall(_LENGTH.pack(len(data)) + data)


def message_length(head: bytes) -> int:
    """Bytes that follow the first four of a message.

    Raises:
        WrongMessageError: more than a message may have.
    """
    (length,) = _LENGTH.unpack(head)
    if length > MAX_MESSAGE:
        raise WrongMessageError(f"a message of {length} bytes is announced; {MAX_MESSAGE} at most")
    return int(length)


def parse_message(data: bytes) -> dict[str, Any]:
    """The content of a message.

    Raises:
        WrongMessageError: no JSON, no mapping, or a number that is not finite.
    """
    try:
        content = json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise WrongMessageError(f"{data[:60]!r} is no JSON ({error})") from error
    if not isinstance(content, dict):
        raise WrongMessageError(f"{data[:60]!r} is no mapping")
    return content


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not finite")


class Session:
    """MoveItPy with one planning group, and what was put into its planning scene.

    Args:
        node_name, namespace: of MoveItPy's own node.
        parameters: all of MoveIt's, nested.
        group: is planned for.
        base_link, tip_link: frames of the goals and of attached objects.
        touch_links: may touch what is attached.
        requests: name → values of a `PlanRequestParameters`.

    Raises:
        RuntimeError: MoveIt did not start.
    """

    def __init__(
        self, node_name: str, namespace: str, parameters: dict[str, Any], group: str, base_link: str, tip_link: str,
        touch_links: list[str], requests: dict[str, dict[str, Any]],
    ) -> None:  # fmt: skip
        import geometry_msgs.msg
        import moveit.planning
        import moveit_msgs.msg
        import shape_msgs.msg

        self._geometry, self._shapes, self._messages = geometry_msgs.msg, shape_msgs.msg, moveit_msgs.msg
        self._base, self._tip, self._touch_links = base_link, tip_link, touch_links
        # Whatever the namespace; a file of MoveItPy's own making would hold for the root only, and stay behind.
        # JSON is YAML, and what is in memory leaves no file, however this process ends.
        content = {f"/**/{node_name}": {"ros__parameters": parameters}}
        if namespace:
            # For our collision detectors, whose nodes MoveItPy does not put anywhere.
            os.environ["MORPHIT_NAMESPACE"] = namespace
        path = _file_in_memory(json.dumps(content, allow_nan=False, ensure_ascii=False))
        self._moveit = moveit.planning.MoveItPy(
            node_name=node_name, name_space=namespace, launch_params_filepaths=[path]
        )
        self._component = self._moveit.get_planning_component(group)
        self._monitor = self._moveit.get_planning_scene_monitor()
        self._requests = {}
        for name, values in requests.items():
            request = moveit.planning.PlanRequestParameters(self._moveit, values["planning_pipeline"])
            for key, value in values.items():
                setattr(request, key, value)
            self._requests[name] = request
        self._world: list[str] = []
        self._attached: list[str] = []
        # What links carry for good, and which link.
        self._worn: dict[str, str] = {}

    def set_world(
        self, table: dict[str, Any] | None, objects: list[dict[str, Any]], solids: dict[str, list[dict[str, Any]]]
    ) -> None:
        """Replace all obstacles, attached ones too.

        A box ``size, pose``, spheres ``name, centers, radii``, and by name shapes ``kind, pose`` with ``dimensions`` as
        of `SolidPrimitive`, or of a mesh ``vertices, faces``.
        """
        for name in list(self._attached):
            self.detach(name)
        for name in list(self._world):
            self._remove(name)
        if table is not None:
            kind = self._shapes.SolidPrimitive
            box = kind(type=kind.BOX, dimensions=table["size"])
            self._add(self._collision_object(_TABLE, self._base, [box], [self._pose(table["pose"])]))
        for item in objects:
            self._add(self._spheres(item["name"], self._base, item["centers"], item["radii"]))
        for name, shapes in solids.items():
            self._add(self._solid(name, shapes))

    def plan(
        self, start: dict[str, float], goal: dict[str, Any], request: str, velocity_scaling: float | None,
        acceleration_scaling: float | None, contacts: list[list[str]],
    ) -> dict[str, Any]:  # fmt: skip
        """One request: to a pose of the tip link or to joint positions, while some pairs of bodies may touch.

        Returns:
            ``code`` by its name, empty where MoveIt raised a `message`; planning ``time``; with SUCCESS ``joints``,
            ``times``, ``positions`` and ``velocities``, a row a time.
        """
        parameters = self._requests[request]
        if velocity_scaling is not None:
            parameters.max_velocity_scaling_factor = velocity_scaling
        if acceleration_scaling is not None:
            parameters.max_acceleration_scaling_factor = acceleration_scaling
        self._component.set_start_state(robot_state=self._state(start))
        if "pose" in goal:
            stamped = self._geometry.PoseStamped(pose=self._pose(goal["pose"]))
            stamped.header.frame_id = self._base
            self._component.set_goal_state(pose_stamped_msg=stamped, pose_link=self._tip)
        else:
            self._component.set_goal_state(robot_state=self._state({**start, **goal["joints"]}))
        with self._contact_allowed(contacts):
            try:
                response = self._component.plan(single_plan_parameters=parameters)
            except RuntimeError as error:
                return {"code": "", "message": str(error), "time": 0.0}
        answer: dict[str, Any] = {"code": "SUCCESS", "message": "", "time": float(response.planning_time)}
        if not response:
            return answer | {"code": self._code_name(response.error_code.val)}
        path = response.trajectory.get_robot_trajectory_msg().joint_trajectory
        return answer | {
            "joints": list(path.joint_names),
            "times": [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in path.points],
            "positions": [[float(value) for value in p.positions] for p in path.points],
            "velocities": [[float(value) for value in p.velocities] for p in path.points],
        }

    def attach(self, name: str, centers: list[list[float]], radii: list[float]) -> None:
        """Make an object of the world part of the tip link, in whose frame its spheres are given."""
        self._attach(name, self._tip, centers, radii, self._touch_links)
        if name in self._world:
            self._world.remove(name)
        self._attached.append(name)

    def detach(self, name: str) -> None:
        """Forget an attached object."""
        self._detach(name, self._tip)
        self._attached.remove(name)

    def wear(self, items: list[dict[str, Any]]) -> None:
        """Replace what links carry whatever the world: ``name, link, centers, radii, touch_links`` in links' frames."""
        for name, link in list(self._worn.items()):
            if (name, link) not in {(item["name"], item["link"]) for item in items}:
                self._detach(name, link)
                del self._worn[name]
        for item in items:
            # In the place of an earlier one of that name.
            self._attach(item["name"], item["link"], item["centers"], item["radii"], item["touch_links"])
            self._worn[item["name"]] = item["link"]

    def close(self) -> None:
        """Shut MoveIt's node down."""
        self._moveit.shutdown()

    def _state(self, positions: dict[str, float]) -> Any:
        """A robot state with the scene's attached objects at the given joint positions."""
        with self._monitor.read_only() as scene:
            state = copy.deepcopy(scene.current_state)
        known = state.joint_positions
        state.joint_positions = {name: value for name, value in positions.items() if name in known}
        state.joint_velocities = dict.fromkeys(known, 0.0)
        state.update()
        return state

    def _code_name(self, value: int) -> str:
        codes = self._messages.MoveItErrorCodes
        names = [name for name in dir(codes) if name.isupper() and getattr(codes, name) == value]
        return names[0] if names else f"error code {value}"

    def _pose(self, pose: list[float]) -> Any:
        x, y, z, qx, qy, qz, qw = pose
        return self._geometry.Pose(
            position=self._geometry.Point(x=x, y=y, z=z),
            orientation=self._geometry.Quaternion(x=qx, y=qy, z=qz, w=qw),
        )

    def _spheres(self, name: str, frame: str, centers: list[list[float]], radii: list[float]) -> Any:
        kind = self._shapes.SolidPrimitive
        shapes = [kind(type=kind.SPHERE, dimensions=[radius]) for radius in radii]
        poses = [self._pose([*center, 0.0, 0.0, 0.0, 1.0]) for center in centers]
        return self._collision_object(name, frame, shapes, poses)

    def _solid(self, name: str, shapes: list[dict[str, Any]]) -> Any:
        kind = self._shapes.SolidPrimitive
        types = {"box": kind.BOX, "sphere": kind.SPHERE, "cylinder": kind.CYLINDER}
        plain = [shape for shape in shapes if shape["kind"] in types]
        meshes = [shape for shape in shapes if shape["kind"] == "mesh"]
        primitives = [kind(type=types[shape["kind"]], dimensions=shape["dimensions"]) for shape in plain]
        message = self._collision_object(name, self._base, primitives, [self._pose(shape["pose"]) for shape in plain])
        message.meshes = [
            self._shapes.Mesh(
                vertices=[self._geometry.Point(x=x, y=y, z=z) for x, y, z in shape["vertices"]],
                triangles=[self._shapes.MeshTriangle(vertex_indices=face) for face in shape["faces"]],
            )
            for shape in meshes
        ]
        message.mesh_poses = [self._pose(shape["pose"]) for shape in meshes]
        return message

    def _collision_object(self, name: str, frame: str, shapes: list[Any], poses: list[Any]) -> Any:
        message = self._messages.CollisionObject(id=name, primitives=shapes, primitive_poses=poses)
        message.header.frame_id = frame
        # The pose of the object itself must be a valid one.
        message.pose.orientation.w = 1.0
        message.operation = self._messages.CollisionObject.ADD
        return message

    def _attach(
        self, name: str, link: str, centers: list[list[float]], radii: list[float], touch_links: list[str]
    ) -> None:
        message = self._messages.AttachedCollisionObject(
            link_name=link, object=self._spheres(name, link, centers, radii), touch_links=list(touch_links)
        )
        if not self._monitor.process_attached_collision_object(attached_collision_object_msg=message):
            raise RuntimeError(f"MoveIt did not attach object '{name}' to link '{link}'")

    def _detach(self, name: str, link: str) -> None:
        # MoveIt refuses another link than the one that carries it.
        message = self._messages.AttachedCollisionObject(link_name=link)
        message.object.id = name
        message.object.operation = self._messages.CollisionObject.REMOVE
        self._monitor.process_attached_collision_object(attached_collision_object_msg=message)
        # MoveIt puts a detached object back into the world.
        self._remove(name)

    def _add(self, message: Any) -> None:
        if not self._monitor.process_collision_object(collision_object_msg=message):
            raise RuntimeError(f"MoveIt did not accept obstacle '{message.id}'")
        self._world.append(message.id)

    def _remove(self, name: str) -> None:
        message = self._messages.CollisionObject(id=name, operation=self._messages.CollisionObject.REMOVE)
        message.header.frame_id = self._base
        self._monitor.process_collision_object(collision_object_msg=message)
        if name in self._world:
            self._world.remove(name)

    @contextmanager
    def _contact_allowed(self, pairs: list[list[str]]) -> Iterator[None]:
        """Allow contacts between pairs of bodies for a while.

        The matrix that moveit_py hands out is a copy: so the scene is sent a difference, and another one afterwards.
        """
        if not pairs:
            yield
            return
        with self._monitor.read_only() as scene:
            before = scene.planning_scene_message.allowed_collision_matrix
        matrix = copy.deepcopy(before)
        for first, second in pairs:
            self._set_allowed(matrix, first, second, True)
        self._send_matrix(matrix)
        try:
            yield
        finally:
            if not before.entry_names:
                # MoveIt takes a matrix without names for no change: so say that these pairs are checked.
                before = matrix
                for first, second in pairs:
                    self._set_allowed(before, first, second, False)
            self._send_matrix(before)

    def _set_allowed(self, matrix: Any, first: str, second: str, allowed: bool) -> None:
        for name in (first, second):
            if name not in matrix.entry_names:
                for row in matrix.entry_values:
                    row.enabled = [*row.enabled, False]
                matrix.entry_names = [*matrix.entry_names, name]
                row = self._messages.AllowedCollisionEntry(enabled=[False] * len(matrix.entry_names))
                matrix.entry_values = [*matrix.entry_values, row]
        i, j = (list(matrix.entry_names).index(name) for name in (first, second))
        matrix.entry_values[i].enabled[j] = matrix.entry_values[j].enabled[i] = allowed

    def _send_matrix(self, matrix: Any) -> None:
        message = self._messages.PlanningScene(is_diff=True, allowed_collision_matrix=matrix)
        message.robot_state.is_diff = True
        if not self._monitor.new_planning_scene_message(scene=message):
            raise RuntimeError("MoveIt did not take the change of the allowed collision matrix")


# Requests that a client may send to a session.
_SESSION_REQUESTS = ("set_world", "plan", "attach", "detach", "wear")


def serve(connection: socket.socket) -> None:
    """Answer requests until the client closes its end, or asks to end.

    Raises:
        WrongMessageError: the client does not speak this protocol.
    """
    version = ".".join(str(part) for part in sys.version_info[:3])
    write_message(connection, {"protocol": PROTOCOL, "python": version})
    session: Session | None = None
    ended = False
    while not ended:
        head = _received(connection, _LENGTH.size)
        if head is None:
            break
        request = parse_message(_received(connection, message_length(head)) or b"")
        number, name, values = request["id"], request["do"], request["with"]
        result: Any = None
        try:
            if name == "open":
                session = Session(**values)
            elif name == "close":
                ended = True
            elif session is not None and name in _SESSION_REQUESTS:
                result = getattr(session, name)(**values)
            else:
                raise WrongMessageError(f"request {name!r} {'before open' if session is None else 'is unknown'}")
            write_message(connection, {"id": number, "result": result})
        except Exception as error:  # noqa: BLE001 - whatever it is: told to the client, who decides
            write_message(connection, {"id": number, "error": str(error), "type": type(error).__name__})
    if session is not None:
        # In an order, before the interpreter goes: MoveIt's own end is known to crash, which now harms nobody.
        session.close()
        session = None
        gc.collect()


def _received(connection: socket.socket, size: int) -> bytes | None:
    """So many bytes; None where the other end is closed."""
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(size - len(data), 2**20))
        if not part:
            return None
        data += part
    return bytes(data)


def die_with(lifeline: int) -> None:
    """Be killed by the system as soon as the other end of a pipe is closed, whatever this process does then.

    The usual way (`PR_SET_PDEATHSIG`) takes the end of the thread that started this process for the end of its process.
    """
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([lifeline], [], [], 0.0)[0]:
        # Closed before.
        os._exit(1)


def _file_in_memory(text: str) -> str:
    """The path, for this process, of a file that is on no disk."""
    number = os.memfd_create("parameters")
    with open(number, "w", encoding="utf-8", closefd=False) as stream:
        stream.write(text)
    return f"/proc/self/fd/{number}"


def main(arguments: list[str]) -> None:
    connection, lifeline = arguments
    die_with(int(lifeline))
    # The process that started this one decides when it ends; MoveIt takes the signals over later.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable()
    serve(socket.socket(fileno=int(connection)))


if __name__ == "__main__":
    main(sys.argv[1:])
