"""Whether an arm can reach a grasp: inverse kinematics, straight approach and lift, free of collisions."""

from morphit_ros.exports import exports_of_stub

__getattr__, __dir__, __all__ = exports_of_stub(__name__, __file__)
