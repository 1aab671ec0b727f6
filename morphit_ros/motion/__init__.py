"""Motions of a robot of spheres among solids: search, shortening, and the proof that a path is free."""
