"""The one table of names, types and qualities of service that all nodes use.

Names are relative, so that namespaces and remappings work; only `clock` and `diagnostics` are
where ROS puts them. `docs/interfaces.md` is generated from this table and a test holds them together.
"""

from __future__ import annotations

from dataclasses import dataclass

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseArray, PoseStamped, TransformStamped
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image, JointState, PointCloud2
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory, MultiDOFJointTrajectory
from visualization_msgs.msg import MarkerArray

from morphit_interfaces.action import BuildNeuralObject, ExecuteGrasp, FitSpheres, Pick, PlanGrasp
from morphit_interfaces.msg import (
    CoverState,
    CoverTarget,
    GraspArray,
    GripperCommand,
    NeuralObject,
    SegmentedObjectArray,
    SphereModel,
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
SUPEROVOID_MARKERS = Topic(
    "superovoid_markers", MarkerArray, LATCHED, "superovoids of the links and shapes of the objects for RViz"
)
DISTANCE_MARKERS = Topic("distance_markers", MarkerArray, LATCHED, "closest points of the latest distances for RViz")
WORLD_OBJECTS = Topic("world_objects", WorldObjectArray, LATCHED, "all objects that distances are measured to")

LEFT_POINTS = Topic("left/points", PointCloud2, CLOUD, "cloud of the left depth camera, in its optical frame")
RIGHT_POINTS = Topic("right/points", PointCloud2, CLOUD, "cloud of the right depth camera, in its optical frame")
LEFT_EXTRINSICS = Topic("left/extrinsics", TransformStamped, LATCHED, "pose of the left camera in the world frame")
RIGHT_EXTRINSICS = Topic("right/extrinsics", TransformStamped, LATCHED, "pose of the right camera in the world frame")
SCENE = Topic("scene", PointCloud2, LATCHED, "the two clouds fused, in the world frame")
OBJECTS = Topic("objects", SegmentedObjectArray, LATCHED, "objects on the table and the one to grasp")
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
JOB_STATE = Topic(
    "job_state", DiagnosticStatus, LATCHED, "stage of the running pick and durations of the finished ones"
)

JOINT_STATES = Topic("joint_states", JointState, STREAM, "measured joint positions and velocities")
JOINT_TRAJECTORY = Topic("joint_trajectory", JointTrajectory, STREAM, "trajectory to follow from now; empty: stop")
GRIPPER_COMMAND = Topic("gripper_command", GripperCommand, STREAM, "wanted aperture and force limit")
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
DIAGNOSTICS = Topic("/diagnostics", DiagnosticArray, STREAM, "state, timings and counts of each node")

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
BUILD_NEURAL_OBJECT = Action(
    "build_neural_object", BuildNeuralObject, "learn an object as a density field, from clouds or images"
)
EXECUTE_GRASP = Action("execute_grasp", ExecuteGrasp, "execute the first reachable of ranked grasps")
PICK = Action("pick", Pick, "see, plan and execute in one")


@dataclass(frozen=True)
class NodeInterfaces:
    """What one executable offers and uses."""

    executable: str
    publishes: tuple[Topic, ...] = ()
    subscribes: tuple[Topic, ...] = ()
    services: tuple[Service, ...] = ()
    actions: tuple[Action, ...] = ()
    calls: tuple[Service | Action, ...] = ()


# Every node but pick_client, which ends with an exit status.
COMMON = (DIAGNOSTICS,)

NODES: tuple[NodeInterfaces, ...] = (
    NodeInterfaces(
        "robot_spheres",
        publishes=(SPHERE_DESCRIPTION, SPHERE_MODEL, SPHERE_MARKERS, ROBOT_DESCRIPTION),
        subscribes=(ROBOT_DESCRIPTION,),
        services=(ATTACH_OBJECT, DETACH_OBJECT),
        actions=(FIT_SPHERES,),
    ),
    NodeInterfaces(
        "superovoid_distance",
        publishes=(SUPEROVOID_MARKERS, DISTANCE_MARKERS, ROBOT_DESCRIPTION),
        subscribes=(JOINT_STATES, WORLD_OBJECTS, ROBOT_DESCRIPTION),
        services=(MIN_DISTANCE, ROBOT_DISTANCE, UPDATE_WORLD),
    ),
    NodeInterfaces(
        "scene_perception",
        publishes=(SCENE, OBJECTS, OBJECT_CLOUD, TABLE, SCENE_MARKERS),
        subscribes=(
            LEFT_POINTS, RIGHT_POINTS, LEFT_EXTRINSICS, RIGHT_EXTRINSICS, JOINT_STATES, SPHERE_MODEL,
            ROBOT_DESCRIPTION,
        ),
        services=(SEGMENT,),
    ),
    NodeInterfaces(
        "grasp_planning",
        publishes=(GRASPS, GRASP_MARKERS),
        subscribes=(OBJECTS, TABLE, SPHERE_DESCRIPTION, JOINT_STATES, NEURAL_OBJECT),
        actions=(PLAN_GRASP,),
    ),
    NodeInterfaces(
        "grasp_execution",
        publishes=(JOINT_TRAJECTORY, GRIPPER_COMMAND, JOB_STATE),
        subscribes=(JOINT_STATES, SPHERE_DESCRIPTION, SPHERE_MODEL, OBJECTS, ROBOT_DESCRIPTION),
        actions=(EXECUTE_GRASP, PICK),
        calls=(SEGMENT, PLAN_GRASP, ATTACH_OBJECT, DETACH_OBJECT),
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
            JOINT_STATES, LEFT_POINTS, RIGHT_POINTS, LEFT_EXTRINSICS, RIGHT_EXTRINSICS, OBJECT_POSE, OVERVIEW_IMAGE,
            CLOCK,
        ),
        subscribes=(JOINT_TRAJECTORY, GRIPPER_COMMAND),
    ),
    NodeInterfaces(
        "cover_control",
        publishes=(COVER_COMMANDS, COVER_TRAJECTORY, COVER_MOTORS, COVER_DESCRIPTION, COVER_STATE, COVER_MARKERS),
        subscribes=(COVER_TARGET, COVER_JOINT_STATES, COVER_NODE_POSES),
    ),
    NodeInterfaces(
        "cover_sim", publishes=(COVER_JOINT_STATES, COVER_NODE_POSES), subscribes=(COVER_COMMANDS,)
    ),
    NodeInterfaces(
        "web_viewer",
        subscribes=(
            ROBOT_DESCRIPTION, JOINT_STATES, SPHERE_MODEL, LEFT_POINTS, RIGHT_POINTS, LEFT_EXTRINSICS,
            RIGHT_EXTRINSICS, OBJECT_CLOUD, TABLE, GRASPS, JOB_STATE, COVER_DESCRIPTION, COVER_STATE,
            NEURAL_OBJECT, NEURAL_MOTION, DIAGNOSTICS,
        ),
    ),
    NodeInterfaces("pick_client", subscribes=(OBJECT_POSE, OVERVIEW_IMAGE), calls=(PICK, SEGMENT, PLAN_GRASP)),
)  # fmt: skip
