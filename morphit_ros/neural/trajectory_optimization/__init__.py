"""Trajectory optimisation through dynamics with derivatives: constrained iLQR, and pushes to a goal planned with it."""
