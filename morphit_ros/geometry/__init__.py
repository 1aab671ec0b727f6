"""Rigid motions, point clouds and triangle meshes. Imports nothing of the other subpackages."""
