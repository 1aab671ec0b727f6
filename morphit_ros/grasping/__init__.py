"""Contact-stable grasps on point clouds by disentangled iterative surface fitting (DISF)."""

from morphit_ros.exports import exports_of_stub

__getattr__, __dir__, __all__ = exports_of_stub(__name__, __file__)
