"""Superovoids: superellipsoids that may be tapered, as exact shapes of links and objects."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
