"""Whole picks in simulation: drawn trials, feasibility, tables."""
