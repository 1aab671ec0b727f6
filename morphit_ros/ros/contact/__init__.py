"""Pushes planned through contact, on the graph."""
