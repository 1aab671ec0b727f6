"""morphit_ros gives robots a sense of shape: spheres, grasps, distances and covers.

`Shape` and `Robot` are the front door; the subpackages of the package and who may import whom are in ARCHITECTURE.md.
Importing this module is cheap: each name is imported when it is first used.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
