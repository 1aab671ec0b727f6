"""Hidden sides and centre of mass of partly seen objects, behind the protocol `ShapeCompletion`."""

from morphit_ros.exports import exports_of_stub

__getattr__, __dir__, __all__ = exports_of_stub(__name__, __file__)
