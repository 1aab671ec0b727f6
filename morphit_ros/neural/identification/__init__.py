"""System identification of neural objects: friction, mass and inertia from observed motion."""
