"""Grasped and attached objects as spheres."""
