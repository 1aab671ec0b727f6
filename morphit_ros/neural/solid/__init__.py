"""From a density to a solid: threshold, largest piece, mass, inertia, and points that stand for it in contact."""
