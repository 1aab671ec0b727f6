"""Spheres for robot links by gradient-based optimisation (MorphIt)."""
