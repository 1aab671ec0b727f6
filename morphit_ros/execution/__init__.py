"""Motion planning behind one protocol, trajectory timing and the grasp sequence."""
