"""Grasps as messages; what planning follows on the graph."""
