"""Links of a robot: their shapes, fits, cache, parallel work and budgets."""
