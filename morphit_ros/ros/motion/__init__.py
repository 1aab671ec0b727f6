"""Planned motions on the graph: messages, the world, and the action's server."""
