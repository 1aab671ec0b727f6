"""Spheres of a robot on the graph: fits that wait for their turn, topics, attached objects."""
