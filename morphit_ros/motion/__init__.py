"""Motions of a robot of spheres among solids and points: search, times, and the proof that a path is free."""

from morphit_ros.exports import exports_of_stub

__getattr__, __dir__, __all__ = exports_of_stub(__name__, __file__)
