"""Distances of superovoids as services, and their markers."""
