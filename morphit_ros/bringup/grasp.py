"""The grasp job: see an object with two depth cameras, plan a contact-stable grasp, lift the object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from morphit_ros.bringup.arguments import Argument
from morphit_ros.bringup.cameras import CAMERAS, camera_parameters
from morphit_ros.bringup.common import ROBOT, SHARED, VIEWER_PORT, chosen, completed, robot_state_publisher, rviz
from morphit_ros.bringup.job import Job, NodeDescription, WhenEnded, is_installed
from morphit_ros.bringup.machines import JOB_NAME, ONLY, of_parts, parts
from morphit_ros.bringup.parameter_files import read_parameters, unmatched_sections
from morphit_ros.bringup.poses import parse_pose, rpy_from_quat_xyzw
from morphit_ros.bringup.static_frames import (
    FURTHER_CAMERAS,
    base_publishers,
    can_publish_static_frames,
    cover_publisher,
    simulated_publishers,
)
from morphit_ros.errors import InvalidInputError
from morphit_ros.resources import check_writable, resource
from morphit_ros.robot.configuration import RobotConfiguration

_AUTOMATIC = ("auto", "true", "false")
# A simulator makes the clock and cannot follow it; covers are controlled in wall time.
_OWN_TIME = ("workcell_sim", "cover_sim", "cover_control")
# Arguments that are parameters of workcell_sim under the same names.
_SIMULATION = (
    "robot", "object", "object_unit", "object_mass", "object_x", "object_y", "object_yaw", "friction", "seed",
    "realtime_factor", "others", "heap",
)  # fmt: skip
# Node → parameters with the simulation where neither arguments nor files say otherwise. Its robot and its clock stand
# still together while it renders, on a busy machine for seconds: silence is no danger there, and its end ends the job.
WHEN_SIMULATED: dict[str, dict[str, Any]] = {
    # Beside all that a simulation computes, everybody is late now and then. Who dies is known at once all the same.
    # Its hand is empty at each start, whatever the last simulation ended with.
    "grasp_execution": {
        "silence_timeout": 15.0,
        "gate_timeout": 2.0,
        "node_timeout": 10.0,
        "recall_held": False,
        "weigh.source": "efforts",
    },
    "motion_gate": {"silence_timeout": 15.0, "state_timeout": 1.0, "heartbeat_timeout": 2.0, "clock_timeout": 1.0},
    "contact_planning": {"gate_timeout": 2.0},
    "pick_client": {"node_timeout": 10.0},
    "task_execution": {"node_timeout": 10.0},
    "web_viewer": {"node_timeout": 10.0},
}

# What `grasp_execution` does otherwise where a table is cleared. Fingers that hold a wider object than was planned hold
# what is to be cleared, too. What slips is lost on the way to the region as well as over the table, and seen in the
# next look; nor need it hang as it lay: heavy things turn between the pads, which then move by some mm/s. Lift and ways
# back are as quick as half of the arm's other motions: accelerations, which what is held feels, stay what they are. A
# finger of twice the speed still pushes no object further than it goes itself.
CLEARING: Mapping[str, Any] = {
    "hold_time": 0.2, "probe.too_wide": 0.03, "probe.speed": 0.08, "slip.rate": 0.02, "lift_speed": 0.2,
}  # fmt: skip

# The same where a table is cleared: objects that touch are several. What leans on others goes on otherwise, where no
# camera sees, than what stands on the table.
_WHEN_CLEARING: dict[str, dict[str, Any]] = {
    "scene_perception": {"objects.split_touching": True},
    "grasp_planning": {"unseen_last": True, "assumed_load": False},
    "grasp_execution": {**CLEARING, "put_off_unseen": 2},
}

# Name of the topic in the nodes; how the arm of this job is watched: its servo lags, and nodes take turns.
SCALING = "speed_scaling"
_WATCHING: dict[str, Any] = {"period": 0.04, "reaction_time": 0.15, "tracking_error": 0.02}

ARGUMENTS = (
    ROBOT,
    Argument("sim", True, "simulate the robot, the object and both cameras; false: they are real"),
    Argument("object", "box", "object of the simulation: an own one, a YCB folder, or a mesh file"),
    Argument(
        "object_unit",
        "auto",
        "unit of a mesh file; auto: metres, and more than 2 m is refused",
        ("auto", "m", "mm", "cm", "inch"),
    ),
    Argument("object_mass", 0.0, "mass of the object [kg]; 0: as the object has it", minimum=0.0, maximum=50.0),
    Argument(
        "others",
        "",
        "further objects of the simulation, names with spaces between, around the first, or NAME@X,Y,YAW [m, rad]",
    ),
    Argument("heap", False, "the objects of the simulation fall in a heap, turned any way"),
    Argument(
        "people",
        False,
        "slow the arm, and hold it up, while somebody is near: in the simulation, or as whoever publishes people says",
    ),
    Argument("person", "", "course of somebody who walks through the simulation, 'x y time' of each place [m, s]"),
    Argument("object_x", 0.5, "place of the object in front of the robot [m]", minimum=-2.0, maximum=2.0),
    Argument("object_y", 0.0, "place of the object to the robot's left [m]", minimum=-2.0, maximum=2.0),
    Argument("object_yaw", 0.0, "turn of the object about the vertical [rad]", minimum=-6.3, maximum=6.3),
    Argument("friction", 0.6, "friction of object and pads in the simulation", minimum=0.05, maximum=2.0),
    Argument("seed", 0, "seed of everything random: noise, starts, planners", minimum=0, maximum=2**31 - 1),
    Argument("fixtures", "", "YAML file with what stands around the robot for good; empty: nothing"),
    Argument("realtime_factor", 1.0, "simulated seconds a second, if the machine can", minimum=0.05, maximum=20.0),
    Argument("backend", "embedded", "motion planner: embedded (this suite's own) or moveit", ("embedded", "moveit")),
    Argument("moveit_parameters", "", "with backend moveit: YAML file with all of MoveIt's parameters, merged"),
    Argument(
        "moveit_python",
        "auto",
        "with backend moveit: Python that moveit_py runs in; auto: this one if its arrays work there, else "
        "/usr/bin/python3",
    ),
    Argument(
        "command_interface",
        "auto",
        "how the robot is commanded: this project's topics, or the actions of ros2_control; auto: topics with sim, "
        "else actions",
        ("auto", "topics", "actions"),
    ),
    Argument(
        "clearance",
        "points",
        "what the open gripper is kept clear of: points of the clouds; besides superovoids fitted to the objects, or "
        "world_objects as they are, with the hand's own superovoids",
        ("points", "superovoids", "world"),
    ),
    Argument(
        "min_clearance",
        0.0,
        "with superovoids or world: least distance of the open gripper; negative for shapes that bulge beyond the "
        "object [m]",
        minimum=-0.05,
        maximum=0.1,
    ),
    Argument("pick", False, "pick the target once and end the job with its outcome"),
    Argument("lift_height", 0.2, "how far the object is lifted [m]", minimum=0.02, maximum=0.6),
    Argument(
        "place",
        "keep",
        "with pick: what becomes of it then: kept in the hand, put back, or into place_region",
        ("keep", "back", "region"),
    ),
    Argument("place_region", "", "middle of a rectangle to stand in as it stood, 'x y z yaw' in the world [m, rad]"),
    Argument("place_size", "0.0 0.0", "of that rectangle, 'width depth' [m]; zeros: exactly in its middle"),
    Argument(
        "push_to",
        "",
        "where what is too wide for the hand is pushed, 'x y' in the world [m]. With clear by closed fingers, and left "
        "there; else planned through contact, also what is out of reach, and picked there if that can be, with the "
        "base at the world's origin; empty: nothing is pushed",
    ),
    Argument("clear", False, "with place:=region: pick and place one object after the other until the table is clear"),
    Argument("output", "", "with pick: folder for pictures; empty: none"),
    Argument("report", "", "with pick: JSON file for stages and times; empty: none"),
    Argument("truth", "", "with sim: JSON file of what truly happened, written at the end; empty: none"),
    Argument("continuous", False, "plan grasps on every new object cloud, not only on request"),
    Argument("viewer", True, "serve a view of the job to web browsers on this machine"),
    VIEWER_PORT,
    Argument("viewer_controls", True, "buttons of the view: pick, stop, home, release; false: it only shows"),
    Argument("rviz", False, "open RViz with every topic of the job"),
    Argument(
        "robot_state_publisher",
        "auto",
        "publish the robot's frames on /tf; auto: with sim, where it is installed",
        _AUTOMATIC,
    ),
    Argument(
        "static_frames",
        "auto",
        "publish world → base, and with sim world → cameras, on /tf_static; auto: with sim, where tf2_ros is installed",
        _AUTOMATIC,
    ),
    Argument("use_sim_time", "auto", "take the time from 'clock'; auto: with sim", _AUTOMATIC),
    Argument(
        "wrench",
        "",
        "topic of a force sensor at the wrist, such as /force_torque_sensor_broadcaster/wrench, that picks weigh with; "
        "empty: by the efforts of the simulation, else as weigh.source says",
    ),
    Argument(
        "cameras",
        2,
        "depth cameras: left and right, and a third and a fourth that look from the other side at what lies in heaps",
        minimum=2,
        maximum=len(CAMERAS),
    ),
    *(Argument(f"{name}_points", f"{name}/points", f"point cloud topic of the {name} camera") for name in CAMERAS),
    Argument(
        "points_reliability",
        "reliable",
        "QoS of the cloud subscriptions; camera drivers often publish best_effort",
        ("reliable", "best_effort"),
    ),
    Argument(
        "camera_source",
        "topic",
        "camera poses not given below: latched topics, tf2, or none (register the clouds)",
        ("topic", "tf", "none"),
    ),
    Argument("left_extrinsics", "", "T_world_left of the optical frame, 'x y z qx qy qz qw' [m]; empty: camera_source"),
    *(Argument(f"{name}_extrinsics", "", f"T_world_{name} likewise [m]; empty: camera_source") for name in CAMERAS[1:]),
    Argument(
        "camera_file",
        "",
        "YAML file of morphit calibrate with the poses of both cameras in the robot's base, instead of the extrinsics",
    ),
    Argument("base_source", "parameters", "pose of the robot's base: base_pose, or tf2", ("parameters", "tf")),
    Argument(
        "base_pose",
        "",
        "T_world_base of the robot's base link, 'x y z qx qy qz qw' [m]; a real robot needs this or base_source:=tf; "
        "the simulated one stands where its file says",
    ),
    *SHARED,
    ONLY,
    JOB_NAME,
    Argument("params_file", "", "ROS parameter file; its values override config/grasp.yaml"),
)


def describe_grasp(
    values: Mapping[str, Any],
    others: Sequence[NodeDescription] = (),
    display: str = "grasp",
    strangers: Sequence[str] = (),
) -> tuple[NodeDescription, ...]:
    """The nodes of the grasp job, in the order of starting.

    Parameters come from config/grasp.yaml, `params_file`, which overrides it, and the arguments.

    Args:
        values: of the arguments.
        others: further nodes of the same graph, for which all of that holds too.
        display: file of rviz/.
        strangers: nodes that other arguments would bring, for which a parameter file may have sections.

    Raises:
        InvalidInputError: a pose that is none; parts of the job that there are not; a real robot without the pose of
            its base; arguments that contradict each other; a parameter file with a section for no node, or with a
            parameter that belongs to an argument; an object that cannot be simulated; results that cannot be written.
        ResourceNotFoundError: an unknown robot or parameter file.
    """
    here = parts(values)
    if values["pick"] and "execution" not in here:
        remedy = "Give pick to the machine of the execution."
        raise InvalidInputError("pick", f"true with only:={values['only']}", "execution among the parts", remedy)
    robot = _robot(values)
    if not robot.finger_joints:
        _check_cup(values, robot)
    simulated = values["sim"]
    standing = _fixtures(values)
    if simulated:
        _check_object(values)
    if values["pick"]:
        _check_results(values)
    placing = _placing(values)
    base = base_parameters(values)
    topics = _camera_topics(values)
    seeing = {**chosen(values, "robot", "points_reliability"), **base, **camera_parameters(values)}
    wearing = _wearing(values, robot)
    # One distance function for those who plan and who execute.
    clearance = chosen(values, "clearance", "min_clearance")
    # Grasps are for the robot and for the lift that executes them.
    planning = {
        "gripper": robot.gripper,
        **chosen(values, "robot", "seed", "continuous"),
        **base,
        "reach.lift_height": values["lift_height"],
        **clearance,
    }
    # A lifecycle node: it moves nothing before it is active, and in a job it activates itself.
    execution = {
        **chosen(values, "robot", "backend", "moveit_parameters", "lift_height", "seed"),
        **base,
        **clearance,
        "moveit.python": values["moveit_python"],
        "command_interface": _command_interface(values),
        "autostart": True,
        "gate": True,
    }
    if values["wrench"]:
        execution["weigh.source"] = "wrench"
    pushing = _pushing(values, robot, base)
    if pushing and "execution" in here:
        execution["push_to"] = pushing
    nodes = [
        # A real robot's driver publishes its description, calibrated: spheres are for that one.
        NodeDescription("robot_spheres", {**chosen(values, *(("robot",) if simulated else ()), "seed"), **wearing}),
        # These two move nothing and remember nothing that a pick needs: one that waits for them fails, the next works.
        NodeDescription(
            "scene_perception",
            {**seeing, **standing, **chosen(values, "cameras")},
            remappings=topics,
            when_ended=WhenEnded.RESTART,
        ),
        NodeDescription("grasp_planning", planning, when_ended=WhenEnded.RESTART),
        NodeDescription(
            "grasp_execution", execution, remappings={"wrench": values["wrench"]} if values["wrench"] else {}
        ),
        # Commands reach the controller through it, and only while everybody is heard who must be.
        NodeDescription(
            "motion_gate", {**chosen(values, "robot"), "command_interface": execution["command_interface"]}
        ),
    ]
    # The simulated controller says how it is scaled where the robot's own would.
    scaling = {SCALING: robot.driver_state["speed_scaling"]} if "speed_scaling" in robot.driver_state else {}
    person = _person(values)
    if simulated:
        truth = {"report": values["truth"]} if values["truth"] else {}
        simulation = {**chosen(values, *_SIMULATION), **_further_cameras(values), **standing, **person, **truth}
        nodes.insert(0, NodeDescription("workcell_sim", simulation, remappings=scaling))
    if values["people"]:
        nodes.append(
            NodeDescription(
                "person_monitor",
                {
                    **chosen(values, *(("robot",) if simulated else ())),
                    "touch_links": list(robot.touch_links),
                    **_WATCHING,
                },
            )
        )
    if values["clear"] or values.get("tasks"):
        nodes.append(NodeDescription("task_execution", {**chosen(values, "robot"), **base}, remappings=scaling))
    nodes += others
    if pushing:
        moving = {**chosen(values, "robot"), **base, "description": "file" if simulated else "topic"}
        if all(node.executable != "motion_planning" for node in nodes):
            nodes.append(NodeDescription("motion_planning", moving, when_ended=WhenEnded.RESTART))
        command = {"command_interface": execution["command_interface"]}
        nodes.append(NodeDescription("contact_planning", {**chosen(values, "robot"), **command}))
    if values["viewer"]:
        # Two depth cameras fill a network: another machine's viewer has the segmented scene.
        shown = {
            "port": values["viewer_port"],
            "camera_clouds": "perception" in here,
            "controls": values["viewer_controls"],
            "job_nodes": [node.node_name for node in nodes],
        }
        nodes.append(NodeDescription("web_viewer", {**seeing, **shown}, remappings=topics))
    has_publisher = is_installed("robot_state_publisher", "robot_state_publisher")
    if _automatic(values["robot_state_publisher"], simulated and has_publisher):
        nodes.append(robot_state_publisher(robot.description))
    if _automatic(values["static_frames"], simulated and can_publish_static_frames()):
        nodes += _static_frames(values, robot)
    if values["rviz"]:
        nodes.append(rviz(display))
    if values["pick"]:
        parameters = {**chosen(values, "lift_height", "output", "report"), **placing, "verify": simulated}
        nodes.append(NodeDescription("pick_client", parameters, when_ended=WhenEnded.END_JOB))
    sim_time = _automatic(values["use_sim_time"], simulated)
    placed = _simulated_base(robot) if simulated else {}
    whole = []
    for node in nodes:
        given = {**node.parameters, "use_sim_time": sim_time and node.executable not in _OWN_TIME}
        defaults = {
            **(placed if "base_source" in node.parameters else {}),
            **(WHEN_SIMULATED.get(node.node_name, {}) if simulated else {}),
            **(_WHEN_CLEARING.get(node.node_name, {}) if values["clear"] else {}),
        }
        from_files = _parameters_from_files(node.node_name, values, given)
        whole.append(replace(node, parameters={**defaults, **from_files, **given}))
    _check_sections(values, {*strangers, *(node.node_name for node in nodes)})
    return completed(of_parts(whole, here), values)


def _robot(values: Mapping[str, Any]) -> RobotConfiguration:
    """The robot, checked against its description where that is what the job uses."""
    from morphit_ros.robot.description import load_robot_description

    robot = RobotConfiguration.load(values["robot"])
    if values["sim"]:
        robot.check_description(load_robot_description(robot.description))
    return robot


def _check_cup(values: Mapping[str, Any], robot: RobotConfiguration) -> None:
    """Refuse what only fingers have.

    Raises:
        InvalidInputError: names the argument.
    """
    for name, only in (("push_to", ""), ("backend", "embedded"), ("clearance", "points")):
        if values[name] != only:
            raise InvalidInputError(name, values[name], f"{only} with {robot.name}, whose gripper is a suction cup")


def _person(values: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of somebody who walks through the simulation.

    Raises:
        InvalidInputError: a course that is none, nobody who watches, or no simulation.
    """
    if not values["person"]:
        if values["people"] and values["sim"]:
            raise InvalidInputError("people", True, "a person with sim:=true", "Give a course: person:='x y time ...'.")
        return {}
    if not values["sim"]:
        raise InvalidInputError("person", repr(values["person"]), "nobody with sim:=false")
    return {"person": _numbers(values, "person", range(3, 300, 3))}


def _placing(values: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of what becomes of a picked object.

    Raises:
        InvalidInputError: a region that is none, or one that nothing is put into.
    """
    place, region = values["place"], _numbers(values, "place_region", (0, 4))
    if place != "keep" and not values["pick"]:
        raise InvalidInputError("place", place, "keep without pick:=true")
    if values["clear"] and place != "region":
        raise InvalidInputError("clear", True, "false without place:=region")
    if (place == "region") != bool(region):
        bound = "'x y z yaw' with place:=region, else nothing"
        raise InvalidInputError("place_region", repr(values["place_region"]), bound)
    size = _numbers(values, "place_size", (2,))
    # A file of parameters knows no empty list.
    where = {"region": region} if region else {}
    aside = _numbers(values, "push_to", (0, 2))
    where |= {"push_to": aside} if aside and values["clear"] else {}
    return {"place": place, **where, "region_size": size, "clear": values["clear"]}


def _wearing(values: Mapping[str, Any], robot: RobotConfiguration) -> dict[str, Any]:
    """Parameters of robot_spheres for a cover on a link, in jobs that know of covers.

    Raises:
        InvalidInputError: a pose that is none, or a link that the robot's file does not have.
    """
    link = values.get("cover_link", "")
    if not link:
        return {}
    from morphit_ros.robot.description import load_robot_description

    links = load_robot_description(robot.description).links
    if link not in links:
        raise InvalidInputError("cover_link", repr(link), f"one of {', '.join(links)}")
    return {"cover.link": link, "cover.pose": parse_pose("cover_pose", values["cover_pose"])}


def _pushing(values: Mapping[str, Any], robot: RobotConfiguration, base: Mapping[str, Any]) -> list[float]:
    """Where objects without a grasp are pushed through contact; nothing: nowhere.

    Raises:
        InvalidInputError: a place that is none, or a base that is not the world's origin.
    """
    place = [] if values["clear"] else _numbers(values, "push_to", (0, 2))
    elsewhere = [*(robot.base_position if values["sim"] else base.get("base_xyz", ())), *base.get("base_rpy", ())]
    if place and (any(elsewhere) or robot.base_yaw or values["base_source"] != "parameters"):
        raise InvalidInputError("push_to", values["push_to"], "nothing where the base is not the world's origin")
    return place


def _numbers(values: Mapping[str, Any], name: str, counts: Sequence[int]) -> list[float]:
    """Numbers of a text with spaces between.

    Raises:
        InvalidInputError: they are not, or not so many.
    """
    text = str(values[name])
    try:
        found = [float(word) for word in text.split()]
    except ValueError:
        found = []
    if len(found) not in counts or (text.split() and not found):
        raise InvalidInputError(name, repr(text), f"{' or '.join(map(str, counts))} numbers")
    return found


def _check_object(values: Mapping[str, Any]) -> None:
    """What the simulation would refuse once all the others have started."""
    from morphit_ros.simulation.objects import check_object

    unit = values["object_unit"]
    check_object(values["object"], values["object_mass"] or None, unit=None if unit == "auto" else unit)


def _fixtures(values: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of those that know what stands around the robot: a file that they can read, wherever they start."""
    if not values["fixtures"]:
        return {}
    from morphit_ros.robot.fixtures import read_fixtures

    read_fixtures(values["fixtures"])
    return {"fixtures": str(Path(values["fixtures"]).resolve())}


def _check_results(values: Mapping[str, Any]) -> None:
    """A pick whose result cannot be kept is not begun."""
    for name, folder in (("output", True), ("report", False), ("truth", False)):
        if values[name]:
            check_writable(name, values[name], folder)


def base_parameters(values: Mapping[str, Any]) -> dict[str, Any]:
    """Where a real robot's base stands, for nodes that ask; the simulated one stands where its file says.

    Raises:
        InvalidInputError: a real robot without it, or two that contradict each other.
    """
    source, text = values["base_source"], values["base_pose"]
    if not text:
        if source == "parameters" and not values["sim"]:
            bound = "base_pose:='x y z qx qy qz qw' or base_source:=tf"
            remedy = "Only you or tf2 can know where the base of a real robot stands (at the origin: 0 0 0 0 0 0 1)."
            raise InvalidInputError("base_pose, base_source", "neither with sim:=false", bound, remedy)
        return {"base_source": source}
    if values["sim"]:
        raise InvalidInputError(
            "base_pose", repr(text), "none with sim", "The simulated base stands where the robot's file says."
        )
    if source == "tf":
        raise InvalidInputError("base_pose", repr(text), "none with base_source:=tf", "Give one of the two.")
    pose = parse_pose("base_pose", text)
    return {"base_source": source, "base_xyz": pose[:3], "base_rpy": rpy_from_quat_xyzw(pose[3:])}


def _simulated_base(robot: RobotConfiguration) -> dict[str, Any]:
    """Where the nodes find the base that the simulation has put there; nothing at the world's origin, their default."""
    if not any(robot.base_position) and robot.base_yaw == 0.0:
        return {}
    return {"base_xyz": list(robot.base_position), "base_rpy": [0.0, 0.0, robot.base_yaw]}


def _command_interface(values: Mapping[str, Any]) -> str:
    chosen: str = values["command_interface"]
    if chosen == "auto":
        return "topics" if values["sim"] else "actions"
    if chosen == "actions" and values["sim"]:
        remedy = "The simulated robot takes its commands from topics."
        raise InvalidInputError("command_interface", "actions with sim", "topics or auto", remedy)
    return chosen


def _static_frames(values: Mapping[str, Any], robot: RobotConfiguration) -> list[NodeDescription]:
    from morphit_ros.geometry.transforms import make_transform, matrix_from_quat_xyzw

    worn = []
    if values.get("cover_link"):
        pose = parse_pose("cover_pose", values["cover_pose"])
        worn = [cover_publisher(values["cover_link"], make_transform(matrix_from_quat_xyzw(pose[3:]), pose[:3]))]
    if values["sim"]:
        further = _further_cameras(values)
        changed = {**further, **_parameters_from_files("workcell_sim", values, further)}
        return [*simulated_publishers(robot, changed), *worn]
    if not values["base_pose"]:
        remedy = "With base_source:=tf somebody else publishes the base already."
        raise InvalidInputError("static_frames", "true without base_pose", "a base_pose to publish", remedy)
    pose = parse_pose("base_pose", values["base_pose"])
    return [*base_publishers(robot, make_transform(matrix_from_quat_xyzw(pose[3:]), pose[:3])), *worn]


def _further_cameras(values: Mapping[str, Any]) -> dict[str, Any]:
    """Where the simulation puts the cameras after the first two."""
    return {f"{name}_camera_position": list(FURTHER_CAMERAS[name]) for name in CAMERAS[2 : values["cameras"]]}


def _camera_topics(values: Mapping[str, Any]) -> dict[str, str]:
    topics = {f"{camera}/points": values[f"{camera}_points"] for camera in CAMERAS}
    return {inner: outer for inner, outer in topics.items() if inner != outer}


def _automatic(choice: str, value: bool) -> bool:
    return value if choice == "auto" else choice == "true"


def _parameter_files(values: Mapping[str, Any]) -> list[Path]:
    given = [Path(values["params_file"])] if values["params_file"] else []
    return [resource("config/grasp.yaml"), *given]


def _parameters_from_files(node: str, values: Mapping[str, Any], from_arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What the parameter files say for a node, and no argument does."""
    found: dict[str, Any] = {}
    for path in _parameter_files(values):
        section = read_parameters(path, node)
        doubled = sorted(set(section) & set(from_arguments))
        if doubled:
            bound = "only parameters that no argument of the job sets"
            remedy = "Give the job's argument instead: one of the two would be ignored."
            raise InvalidInputError(f"{path.name}: {node}", ", ".join(doubled), bound, remedy)
        found |= section
    return found


def _check_sections(values: Mapping[str, Any], nodes: set[str]) -> None:
    # Sections may also be of nodes that these arguments leave out.
    names = sorted({"workcell_sim", "web_viewer", "pick_client", "motion_planning", "contact_planning", *nodes})
    for path in _parameter_files(values):
        strangers = unmatched_sections(path, names)
        if strangers:
            raise InvalidInputError(path.name, f"sections {strangers}", f"one of {', '.join(names)}")


GRASP = Job(
    "grasp",
    "a robot arm sees an object with two depth cameras, plans a grasp and lifts the object",
    ARGUMENTS,
    describe_grasp,
)
