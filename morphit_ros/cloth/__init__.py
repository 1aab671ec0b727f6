"""A cloth that falls over superovoids: something to see, and terrain for what else there is."""

from morphit_ros.exports import exports_of_stub

__getattr__, __dir__, __all__ = exports_of_stub(__name__, __file__)
