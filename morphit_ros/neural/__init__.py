"""Neural objects: mass, contact and differentiable motion of objects known only as a density field."""
