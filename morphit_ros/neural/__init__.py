"""Neural objects: mass, contact and differentiable motion of objects known only as a density field.

Names are imported when they are first used: learning needs PyTorch, dynamics compiled kernels, most callers only one.
"""

from morphit_ros.exports import exports_of_stub

__getattr__, __dir__, __all__ = exports_of_stub(__name__, __file__)
