"""Hidden sides and centre of mass of partly seen objects, behind the protocol `ShapeCompletion`."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
