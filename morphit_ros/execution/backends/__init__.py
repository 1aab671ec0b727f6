"""Motion backends: embedded (RoboPlan) and MoveIt."""
