"""Two depth clouds to a registered scene, a table and object clouds."""

from morphit_ros.exports import exports_of_stub

__getattr__, __dir__, __all__ = exports_of_stub(__name__, __file__)
