"""Whether an arm can reach a grasp: inverse kinematics, straight approach and lift, free of collisions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
