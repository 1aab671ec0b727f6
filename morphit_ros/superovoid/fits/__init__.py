"""Superovoids fitted to meshes and clouds."""
