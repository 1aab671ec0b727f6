"""A pick on the graph: requests, steps, commands behind a gate, what watches the robot."""
