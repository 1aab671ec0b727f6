"""Plans through contact with any part of an arm: inverse-dynamics trajectory optimisation (IDTO) over spheres."""

from morphit_ros.exports import exports_of_stub

__getattr__, __dir__, __all__ = exports_of_stub(__name__, __file__)
