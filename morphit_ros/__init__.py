"""morphit_ros gives robots a sense of shape: spheres, grasps, distances and covers.

`Shape` and `Robot` are the front door; the subpackages of the package and who may import whom are in ARCHITECTURE.md.
Importing this module is cheap: each name is imported when it is first used.
"""

from morphit_ros.exports import exports_of_stub

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = exports_of_stub(__name__, __file__)
