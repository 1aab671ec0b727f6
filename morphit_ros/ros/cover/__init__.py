"""A morphing cover on the graph: messages, the period, displays."""
