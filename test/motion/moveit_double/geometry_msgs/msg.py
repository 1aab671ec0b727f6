from messages_double import message

Header = message("Header", frame_id="", stamp=None)
Point = message("Point", x=0.0, y=0.0, z=0.0)
Quaternion = message("Quaternion", x=0.0, y=0.0, z=0.0, w=1.0)
Pose = message("Pose", position=Point, orientation=Quaternion)
PoseStamped = message("PoseStamped", header=Header, pose=Pose)
