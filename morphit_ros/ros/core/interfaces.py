"""The one table of names, types and qualities of service that all nodes use.

Names are relative, so that namespaces and remappings work; only `clock` and `diagnostics` are
where ROS puts them. `docs/interfaces.md` is generated from this table and a test holds them together.
"""

from __future__ import annotations

from dataclasses import dataclass

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseArray, PoseStamped, TransformStamped, WrenchStamped
from rcl_interfaces.msg import Log
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image, JointState, PointCloud2
from std_msgs.msg import Bool, Float64, Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory, MultiDOFJointTrajectory
from visualization_msgs.msg import MarkerArray

from morphit_interfaces.action import (
    BuildNeuralObject,
    ClearTable,
    ExecuteGrasp,
    FitSpheres,
    GoHome,
    Pick,
    Place,
    PlanGrasp,
    PlanMotion,
    Push,
    PushTo,
    Recover,
    Release,
)
from morphit_interfaces.msg import (
    BodyDistance,
    CoverState,
    CoverTarget,
    GraspArray,
    GripperCommand,
    MotionPlan,
    NeuralObject,
    ObjectShapeArray,
    SegmentedObjectArray,
    SphereModel,
    SuperovoidModel,
    TablePlane,
    WorldObjectArray,
)
from morphit_interfaces.srv import (
    AttachObject,
    DetachObject,
    EstimateInertia,
    Identify,
    MinDistance,
    RobotDistance,
    Segment,
    SimulatePush,
    UpdateWorld,
)
from morphit_ros.ros.core.endpoints import Action, Quality, Service, Topic

LATCHED, CLOUD, STREAM = Quality.LATCHED, Quality.CLOUD, Quality.STREAM

ROBOT_DESCRIPTION = Topic("robot_description", String, LATCHED, "URDF of the robot")
SPHERE_DESCRIPTION = Topic(
    "robot_description_spheres", String, LATCHED, "URDF whose collision geometry is the fitted spheres"
)
SPHERE_MODEL = Topic("sphere_model", SphereModel, LATCHED, "spheres of every link, in the link's frame")
SPHERE_MARKERS = Topic("sphere_markers", MarkerArray, LATCHED, "the spheres for RViz, one list a link")
SUPEROVOID_MODEL = Topic("superovoid_model", SuperovoidModel, LATCHED, "superovoids of every link, in the link's frame")
SUPEROVOID_MARKERS = Topic(
    "superovoid_markers", MarkerArray, LATCHED, "superovoids of the links and shapes of the objects for RViz"
)
DISTANCE_MARKERS = Topic("distance_markers", MarkerArray, LATCHED, "closest points of the latest distances for RViz")
WORLD_OBJECTS = Topic(
    "world_objects", WorldObjectArray, LATCHED, "all objects that distances are measured to and motions keep clear of"
)

LEFT_POINTS = Topic("left/points", PointCloud2, CLOUD, "cloud of the left depth camera, in its optical frame")
RIGHT_POINTS = Topic("right/points", PointCloud2, CLOUD, "cloud of the right depth camera, in its optical frame")
THIRD_POINTS = Topic("third/points", PointCloud2, CLOUD, "cloud of a third depth camera, where there is one")
FOURTH_POINTS = Topic("fourth/points", PointCloud2, CLOUD, "cloud of a fourth depth camera, where there is one")
LEFT_EXTRINSICS = Topic("left/extrinsics", TransformStamped, LATCHED, "pose of the left camera in the world frame")
RIGHT_EXTRINSICS = Topic("right/extrinsics", TransformStamped, LATCHED, "pose of the right camera in the world frame")
THIRD_EXTRINSICS = Topic("third/extrinsics", TransformStamped, LATCHED, "pose of the third camera in the world frame")
FOURTH_EXTRINSICS = Topic(
    "fourth/extrinsics", TransformStamped, LATCHED, "pose of the fourth camera in the world frame"
)
# Camera → its cloud, and the topic with its pose. The first two are always there.
POINTS = {"left": LEFT_POINTS, "right": RIGHT_POINTS, "third": THIRD_POINTS, "fourth": FOURTH_POINTS}
EXTRINSICS = {
    "left": LEFT_EXTRINSICS, "right": RIGHT_EXTRINSICS, "third": THIRD_EXTRINSICS, "fourth": FOURTH_EXTRINSICS
}  # fmt: skip
SCENE = Topic("scene", PointCloud2, LATCHED, "the two clouds fused, in the world frame")
OBJECTS = Topic("objects", SegmentedObjectArray, LATCHED, "objects on the table and the one to grasp")
OBJECT_SHAPES = Topic(
    "object_shapes", ObjectShapeArray, LATCHED, "whole shapes of the objects with deviation and age, with whole_shapes"
)
OBJECT_CLOUD = Topic("object_cloud", PointCloud2, LATCHED, "cloud of the object to grasp, with normals")
TABLE = Topic("table", TablePlane, LATCHED, "the table")
SCENE_MARKERS = Topic("scene_markers", MarkerArray, LATCHED, "table and boxes of the objects for RViz")

GRASPS = Topic("grasps", GraspArray, LATCHED, "ranked grasps of the latest plan")
GRASP_MARKERS = Topic("grasp_markers", MarkerArray, LATCHED, "the grasps for RViz")
NEURAL_OBJECT = Topic("neural_object", NeuralObject, LATCHED, "the object known as a density field, with its inertia")
NEURAL_MARKERS = Topic(
    "neural_markers", MarkerArray, LATCHED,
    "surface, centre of mass, inertia ellipsoid and predicted motion of that object for RViz",
)  # fmt: skip
NEURAL_MOTION = Topic(
    "neural_motion", MultiDOFJointTrajectory, LATCHED,
    "latest predicted motion of that object: poses of its own frame over time; empty: none",
)  # fmt: skip
MOTION_PLAN = Topic("motion_plan", MotionPlan, LATCHED, "newest answer of plan_motion, for displays")
MOTION_MARKERS = Topic("motion_markers", MarkerArray, LATCHED, "way and trees of that answer for RViz")
CONTACT_MARKERS = Topic(
    "contact_markers", MarkerArray, LATCHED, "object that is pushed, its way, and forces of contact, for displays"
)
JOB_STATE = Topic(
    "job_state", DiagnosticStatus, LATCHED, "stage of the running pick and durations of the finished ones"
)

TASK_STATE = Topic(
    "task_state", DiagnosticStatus, LATCHED,
    "what a task does; values: each behaviour of its tree that was ticked, indented, with its state and reason",
)  # fmt: skip

JOINT_STATES = Topic("joint_states", JointState, STREAM, "measured joint positions and velocities")
WRENCH = Topic(
    "wrench", WrenchStamped, STREAM, "what a force sensor between arm and hand measures, in the frame of a link"
)
JOINT_TRAJECTORY = Topic(
    "joint_trajectory", JointTrajectory, STREAM, "trajectory to follow from its stamp on, or from now; empty: stop"
)
WANTED_VELOCITIES = Topic(
    "separation/velocity_commands", Float64MultiArray, STREAM,
    "wanted velocities of the joints in the order of the robot's description [rad/s or m/s]",
)  # fmt: skip
VELOCITY_COMMANDS = Topic(
    "velocity_commands", Float64MultiArray, STREAM, "velocities that keep the robot apart, in the same order"
)
PEOPLE = Topic(
    "people", WorldObjectArray, STREAM, "everybody near, as a tracker sees them; at 5 Hz at least, also where nobody is"
)
SPEED_SCALE = Topic(
    "separation/speed_scale",
    Float64,
    STREAM,
    "speed at which trajectories may be followed, as a share of their own [%]",
)
SPEED_SCALING = Topic(
    "speed_scaling", Float64, STREAM, "speed at which the simulated controller follows trajectories [%]"
)
SEPARATION = Topic(
    "separation/nearest", BodyDistance, STREAM, "nearest pair of links, or of a link and an object; without names: none"
)
SEPARATION_MARKERS = Topic(
    "separation/markers", MarkerArray, LATCHED, "closest points of all pairs that separation_monitor looks at for RViz"
)
GATED_TRAJECTORY = Topic(
    "gate/joint_trajectory", JointTrajectory, STREAM,
    "trajectory that motion_gate checks and passes on; empty: stop; header.frame_id: its number",
)  # fmt: skip
GATE_STATE = Topic("gate/state", DiagnosticStatus, STREAM, "what motion_gate has the arm do, and why it was stopped")
HEARTBEAT = Topic(
    "heartbeat",
    DiagnosticStatus,
    STREAM,
    "name of who commands or watches a motion, at 50 Hz; level STALE: the last one",
)
NODE_ALIVE = Topic(
    "node_alive", DiagnosticStatus, STREAM, "name and process of each node that lives, at 5 Hz; level STALE: it ends"
)
GRIPPER_COMMAND = Topic("gripper_command", GripperCommand, STREAM, "wanted aperture and force limit")
VACUUM_COMMAND = Topic("vacuum_command", Bool, STREAM, "whether the vacuum of a suction cup shall be on")
VACUUM = Topic("vacuum", Bool, STREAM, "whether a suction cup senses that it has vacuum: it holds something")
COVER_TARGET = Topic("cover/target", CoverTarget, LATCHED, "surface that the cover shall take")
COVER_JOINT_STATES = Topic(
    "cover/joint_states", JointState, STREAM, "angles of joint axes by name, those of all motors among them"
)
COVER_NODE_POSES = Topic("cover/node_poses", PoseArray, STREAM, "poses of all nodes, row by row")
COVER_COMMANDS = Topic(
    "cover/commands", Float64MultiArray, STREAM, "rates of the motors in the order of cover/motors [rad/s]"
)
COVER_TRAJECTORY = Topic(
    "cover/joint_trajectory", JointTrajectory, STREAM, "the same as a point one period ahead, where asked for"
)
COVER_MOTORS = Topic("cover/motors", JointState, LATCHED, "names of the motors in the order of commands, start angles")
COVER_DESCRIPTION = Topic("cover/description", String, LATCHED, "the cover and its start configuration, JSON")
COVER_STATE = Topic("cover/state", CoverState, STREAM, "nodes, errors and figures of the control, for displays")
COVER_MARKERS = Topic("cover/markers", MarkerArray, LATCHED, "plates, normals, motors and target for RViz")
OBJECT_POSE = Topic("object_pose", PoseStamped, STREAM, "true pose of the simulated object in the world frame")
OVERVIEW_IMAGE = Topic("overview/image", Image, LATCHED, "picture of the simulated workcell, made while subscribed")
CLOCK = Topic("/clock", Clock, STREAM, "simulated time")
DIAGNOSTICS = Topic(
    "/diagnostics", DiagnosticArray, STREAM, "state, timings and counts of each node, at least every second"
)
# Latched as rclpy offers it.
ROSOUT = Topic("/rosout", Log, LATCHED, "log lines of all nodes")

SEGMENT = Service("segment", Segment, "segment the latest pair of clouds now")
ATTACH_OBJECT = Service("attach_object", AttachObject, "attach an object, a cloud or a mesh, to the sphere model")
DETACH_OBJECT = Service("detach_object", DetachObject, "detach an object from the sphere model")
MIN_DISTANCE = Service("min_distance", MinDistance, "distances between shapes, pair by pair")
ROBOT_DISTANCE = Service(
    "robot_distance", RobotDistance, "distances of the robot to itself and to the world, as MoveIt asks for them"
)
UPDATE_WORLD = Service("update_world", UpdateWorld, "add, replace, attach and remove objects of the world")

ESTIMATE_INERTIA = Service(
    "estimate_inertia", EstimateInertia, "mass, centre of mass and inertia tensor of the neural object"
)
SIMULATE_PUSH = Service("simulate_push", SimulatePush, "predicted motion of the neural object on a table")
IDENTIFY = Service(
    "identify", Identify, "friction, mass and centre of mass of the neural object from an observed motion"
)

FIT_SPHERES = Action("fit_spheres", FitSpheres, "fit spheres to the robot description with other settings")
PLAN_GRASP = Action("plan_grasp", PlanGrasp, "plan grasps on an object")
PLAN_MOTION = Action("plan_motion", PlanMotion, "plan a motion of the arm that is proven free")
BUILD_NEURAL_OBJECT = Action(
    "build_neural_object", BuildNeuralObject, "learn an object as a density field, from clouds or images"
)
EXECUTE_GRASP = Action("execute_grasp", ExecuteGrasp, "execute the first reachable of ranked grasps")
PICK = Action("pick", Pick, "see, plan and execute in one")
RELEASE = Action("release", Release, "open the hand where it is")
PLACE = Action("place", Place, "put down what the hand holds")
PUSH = Action("push", Push, "push an object aside that cannot be grasped as it lies")
CONTACT_PUSH = Action("contact_push", Push, "push or roll an object to a goal, planned through contact")
CLEAR_TABLE = Action("clear_table", ClearTable, "pick what is on a table and put it away, until nothing is left")
PUSH_TO = Action("push_to", PushTo, "push an object along the table to a place, with a look after each push")
GO_HOME = Action("go_home", GoHome, "the arm to the robot's home, with what the hand holds")
RECOVER = Action("recover", Recover, "after a fault: look what is held, up, and home")


@dataclass(frozen=True)
class Need:
    """A topic without which a node does not do its work.

    Attributes:
        topic: one that it subscribes to.
        within: its parameter that bounds the silence between two messages [s]; empty: one message is enough.
        only: parameter → values with which the topic is needed; without an entry always.
    """

    topic: Topic
    within: str = ""
    only: tuple[tuple[str, tuple[object, ...]], ...] = ()


# A description that no parameter names comes from the topic.
_DESCRIBED_BY_TOPIC = (("robot", ("",)), ("description_file", ("",)), ("robot_description", ("",)))
_FILTERED = (("self_filter", (True,)),)


def _pose_by_topic(camera: str) -> tuple[tuple[str, tuple[object, ...]], ...]:
    return (("camera_source", ("topic",)), (f"{camera}_extrinsics", ((),)), *_where_there(camera))


def _where_there(camera: str) -> tuple[tuple[str, tuple[object, ...]], ...]:
    number = list(POINTS).index(camera)
    return () if number < 2 else (("cameras", tuple(range(number + 1, len(POINTS) + 1))),)


@dataclass(frozen=True)
class NodeInterfaces:
    """What one executable offers and uses, and what of that it cannot do without."""

    executable: str
    publishes: tuple[Topic, ...] = ()
    subscribes: tuple[Topic, ...] = ()
    services: tuple[Service, ...] = ()
    actions: tuple[Action, ...] = ()
    calls: tuple[Service | Action, ...] = ()
    needs: tuple[Need, ...] = ()


# These end with an exit status and serve nobody.
CLIENTS = ("pick_client", "arm_client")
# Of every other node.
COMMON = (DIAGNOSTICS, NODE_ALIVE)

_ACTING: tuple[NodeInterfaces, ...] = (
    NodeInterfaces(
        "robot_spheres",
        publishes=(SPHERE_DESCRIPTION, SPHERE_MODEL, SPHERE_MARKERS, ROBOT_DESCRIPTION),
        subscribes=(ROBOT_DESCRIPTION, COVER_DESCRIPTION, COVER_STATE),
        services=(ATTACH_OBJECT, DETACH_OBJECT),
        actions=(FIT_SPHERES,),
        needs=(Need(ROBOT_DESCRIPTION, only=_DESCRIBED_BY_TOPIC),),
    ),
    NodeInterfaces(
        "separation_monitor",
        publishes=(VELOCITY_COMMANDS, SEPARATION, SEPARATION_MARKERS),
        subscribes=(WANTED_VELOCITIES, JOINT_STATES, WORLD_OBJECTS, SPHERE_MODEL, ROBOT_DESCRIPTION),
        needs=(Need(JOINT_STATES), Need(ROBOT_DESCRIPTION, only=_DESCRIBED_BY_TOPIC)),
    ),
    NodeInterfaces(
        "person_monitor",
        publishes=(SPEED_SCALE, SEPARATION, HEARTBEAT),
        subscribes=(JOINT_TRAJECTORY, JOINT_STATES, PEOPLE, SPHERE_MODEL, ROBOT_DESCRIPTION),
        needs=(
            Need(JOINT_STATES), Need(PEOPLE, "people_timeout"), Need(ROBOT_DESCRIPTION, only=_DESCRIBED_BY_TOPIC),
        ),
    ),
    NodeInterfaces(
        "superovoid_distance",
        publishes=(SUPEROVOID_MODEL, SUPEROVOID_MARKERS, DISTANCE_MARKERS, ROBOT_DESCRIPTION),
        subscribes=(JOINT_STATES, WORLD_OBJECTS, SPHERE_MODEL, ROBOT_DESCRIPTION),
        services=(MIN_DISTANCE, ROBOT_DISTANCE, UPDATE_WORLD),
        needs=(Need(JOINT_STATES, "state_timeout"), Need(ROBOT_DESCRIPTION, only=_DESCRIBED_BY_TOPIC)),
    ),
    NodeInterfaces(
        "scene_perception",
        publishes=(SCENE, OBJECTS, OBJECT_CLOUD, OBJECT_SHAPES, TABLE, SCENE_MARKERS, WORLD_OBJECTS),
        subscribes=(
            *POINTS.values(), *EXTRINSICS.values(), JOINT_STATES, SPHERE_MODEL, ROBOT_DESCRIPTION, NEURAL_OBJECT,
        ),
        services=(SEGMENT,),
        needs=(
            *(Need(topic, "max_age", _where_there(camera)) for camera, topic in POINTS.items()),
            *(Need(topic, only=_pose_by_topic(camera)) for camera, topic in EXTRINSICS.items()),
            Need(JOINT_STATES, "max_age", _FILTERED), Need(SPHERE_MODEL, only=_FILTERED),
            Need(ROBOT_DESCRIPTION, only=_FILTERED),
        ),
    ),
    NodeInterfaces(
        "grasp_planning",
        publishes=(GRASPS, GRASP_MARKERS),
        subscribes=(OBJECTS, TABLE, SPHERE_DESCRIPTION, JOINT_STATES, NEURAL_OBJECT, WORLD_OBJECTS),
        actions=(PLAN_GRASP,),
    ),
    NodeInterfaces(
        "motion_planning",
        publishes=(MOTION_PLAN, MOTION_MARKERS),
        subscribes=(JOINT_STATES, WORLD_OBJECTS, SPHERE_MODEL, ROBOT_DESCRIPTION),
        actions=(PLAN_MOTION,),
        needs=(
            Need(JOINT_STATES, "state_timeout"),
            Need(ROBOT_DESCRIPTION, only=(("description", ("topic",)),)),
        ),
    ),
    NodeInterfaces(
        "grasp_execution",
        publishes=(JOINT_TRAJECTORY, GRIPPER_COMMAND, VACUUM_COMMAND, JOB_STATE, GATED_TRAJECTORY, HEARTBEAT),
        subscribes=(
            JOINT_STATES, SPHERE_DESCRIPTION, SPHERE_MODEL, OBJECTS, WORLD_OBJECTS, ROBOT_DESCRIPTION, GATE_STATE,
            NODE_ALIVE, WRENCH, VACUUM, SPEED_SCALING,
        ),
        actions=(EXECUTE_GRASP, PICK, RELEASE, PLACE, PUSH, GO_HOME, RECOVER),
        calls=(SEGMENT, PLAN_GRASP, CONTACT_PUSH, ATTACH_OBJECT, DETACH_OBJECT),
        needs=(
            Need(JOINT_STATES, "state_timeout"), Need(SPHERE_DESCRIPTION), Need(SPHERE_MODEL), Need(ROBOT_DESCRIPTION),
            Need(GATE_STATE, "gate_timeout", (("gate", (True,)),)),
        ),
    ),
    NodeInterfaces(
        "motion_gate",
        publishes=(JOINT_TRAJECTORY, GATE_STATE),
        subscribes=(
            GATED_TRAJECTORY, JOINT_TRAJECTORY, HEARTBEAT, JOINT_STATES, SPEED_SCALING, ROBOT_DESCRIPTION,
        ),
        needs=(Need(JOINT_STATES, "state_timeout"), Need(ROBOT_DESCRIPTION)),
    ),
    NodeInterfaces(
        "contact_planning",
        publishes=(JOINT_TRAJECTORY, GATED_TRAJECTORY, GRIPPER_COMMAND, HEARTBEAT, CONTACT_MARKERS),
        subscribes=(JOINT_STATES, OBJECT_POSE, GATE_STATE),
        actions=(CONTACT_PUSH,),
        calls=(PLAN_MOTION, SEGMENT),
        needs=(Need(JOINT_STATES, "state_timeout"), Need(GATE_STATE, "gate_timeout")),
    ),
    NodeInterfaces(
        "neural_object",
        publishes=(NEURAL_OBJECT, NEURAL_MARKERS, NEURAL_MOTION),
        subscribes=(OBJECTS, TABLE),
        services=(ESTIMATE_INERTIA, SIMULATE_PUSH, IDENTIFY),
        actions=(BUILD_NEURAL_OBJECT,),
    ),
    NodeInterfaces(
        "workcell_sim",
        publishes=(
            JOINT_STATES, *POINTS.values(), *EXTRINSICS.values(), OBJECT_POSE, OVERVIEW_IMAGE, CLOCK, WRENCH, VACUUM,
            SPEED_SCALING, PEOPLE,
        ),
        subscribes=(JOINT_TRAJECTORY, GRIPPER_COMMAND, VACUUM_COMMAND, SPEED_SCALE),
    ),
    NodeInterfaces(
        "cover_control",
        publishes=(COVER_COMMANDS, COVER_TRAJECTORY, COVER_MOTORS, COVER_DESCRIPTION, COVER_STATE, COVER_MARKERS),
        subscribes=(COVER_TARGET, COVER_JOINT_STATES, COVER_NODE_POSES),
        needs=(
            Need(COVER_JOINT_STATES, only=(("state_source", ("joint_states",)),)),
            Need(COVER_NODE_POSES, only=(("state_source", ("poses",)),)),
        ),
    ),
    NodeInterfaces(
        "cover_sim", publishes=(COVER_JOINT_STATES, COVER_NODE_POSES), subscribes=(COVER_COMMANDS,)
    ),
    NodeInterfaces(
        "web_viewer",
        subscribes=(
            ROBOT_DESCRIPTION, JOINT_STATES, SPHERE_MODEL, *POINTS.values(), *EXTRINSICS.values(),
            OBJECT_CLOUD, OBJECTS, TABLE, GRASPS, JOB_STATE, TASK_STATE, SEPARATION, SUPEROVOID_MODEL,
            MOTION_PLAN, CONTACT_MARKERS, COVER_DESCRIPTION, COVER_STATE, NEURAL_OBJECT, NEURAL_MOTION, DIAGNOSTICS,
            NODE_ALIVE,
        ),
        publishes=(HEARTBEAT,),
        calls=(ROBOT_DISTANCE, PICK, RELEASE, PLACE, GO_HOME, RECOVER, EXECUTE_GRASP, SEGMENT, PLAN_GRASP),
    ),
    NodeInterfaces(
        "pick_client",
        publishes=(HEARTBEAT,),
        subscribes=(OBJECT_POSE, OVERVIEW_IMAGE, NODE_ALIVE),
        calls=(PICK, PLACE, CLEAR_TABLE, SEGMENT, PLAN_GRASP),
    ),
    NodeInterfaces(
        "task_execution",
        publishes=(HEARTBEAT, TASK_STATE),
        subscribes=(NODE_ALIVE, SPEED_SCALING),
        actions=(CLEAR_TABLE, PUSH_TO),
        calls=(PICK, PLACE, PUSH, RECOVER, SEGMENT, PLAN_GRASP),
    ),
    NodeInterfaces(
        "arm_client",
        publishes=(HEARTBEAT,),
        subscribes=(NODE_ALIVE,),
        calls=(RELEASE, PLACE, GO_HOME, RECOVER),
    ),
)  # fmt: skip

# What has something move, or lets it: a recording of it never reaches who obeys it.
COMMANDS = (
    JOINT_TRAJECTORY, GATED_TRAJECTORY, GRIPPER_COMMAND, VACUUM_COMMAND, WANTED_VELOCITIES, VELOCITY_COMMANDS,
    SPEED_SCALE, SPEED_SCALING, COVER_TARGET, COVER_COMMANDS, COVER_TRAJECTORY, GATE_STATE, HEARTBEAT, NODE_ALIVE,
)  # fmt: skip
# What is large, and made anew all the time.
CLOUDS = (*POINTS.values(), SCENE, OVERVIEW_IMAGE)
# What a recording holds: all topics of all nodes.
RECORDED = tuple(
    dict.fromkeys([*COMMON, ROSOUT, *(topic for node in _ACTING for topic in (*node.publishes, *node.subscribes))])
)
NODES = (
    *_ACTING,
    NodeInterfaces("recorder", subscribes=RECORDED),
    # What a recording holds, commands below `recorded/`.
    NodeInterfaces("player", publishes=(CLOCK,)),
)
