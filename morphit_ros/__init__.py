"""morphit_ros gives robots a sense of shape: spheres, grasps, distances and covers.

The rooms of the package and who may import whom are in ARCHITECTURE.md. Importing this
module is cheap; each capability is imported where it is used.
"""

__version__ = "0.1.0"
