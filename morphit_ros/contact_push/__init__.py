"""Pushes of an object over a table with an arm's hand, planned through contact and followed by looking."""
