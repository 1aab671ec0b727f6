"""Pictures rendered off screen, and the scene that a browser shows. Imports geometry and robot."""
