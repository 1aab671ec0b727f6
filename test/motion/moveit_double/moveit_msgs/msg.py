from geometry_msgs.msg import Header, Pose
from messages_double import message

CollisionObject = message(
    "CollisionObject",
    header=Header,
    pose=Pose,
    id="",
    primitives=[],
    primitive_poses=[],
    meshes=[],
    mesh_poses=[],
    operation=0,
)
CollisionObject.ADD, CollisionObject.REMOVE = 0, 1
AttachedCollisionObject = message("AttachedCollisionObject", link_name="", object=CollisionObject, touch_links=[])
AllowedCollisionEntry = message("AllowedCollisionEntry", enabled=[])
AllowedCollisionMatrix = message("AllowedCollisionMatrix", entry_names=[], entry_values=[])
RobotState = message("RobotState", is_diff=False)
PlanningScene = message(
    "PlanningScene", is_diff=False, robot_state=RobotState, allowed_collision_matrix=AllowedCollisionMatrix
)
MoveItErrorCodes = message("MoveItErrorCodes", val=0)
CODES = {
    "SUCCESS": 1,
    "FAILURE": 99999,
    "PLANNING_FAILED": -1,
    "START_STATE_IN_COLLISION": -10,
    "GOAL_IN_COLLISION": -12,
    "NO_IK_SOLUTION": -31,
}
for _name, _value in CODES.items():
    setattr(MoveItErrorCodes, _name, _value)
