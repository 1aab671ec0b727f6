"""Robot and gripper files proposed from a robot description: what is read, what is measured, what is assumed."""
