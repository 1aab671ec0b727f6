"""Planned pushes tried in MuJoCo, by a driven pusher and by a simulated arm."""
