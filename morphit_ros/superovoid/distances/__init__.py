"""Certified distances between superovoids and primitives."""
