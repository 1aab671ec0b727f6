"""Superovoids: superellipsoids that may be tapered, as exact shapes of links and objects."""

from morphit_ros.exports import exports_of_stub

__getattr__, __dir__, __all__ = exports_of_stub(__name__, __file__)
