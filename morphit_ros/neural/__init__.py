"""Neural objects: mass, contact and differentiable motion of objects known only as a density field.

Names are imported when they are first used: learning needs PyTorch, dynamics compiled kernels, most callers only one.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
