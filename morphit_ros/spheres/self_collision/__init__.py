"""Pairs of links that spheres make touch always, never or sometimes: sampled, and proven where bounds suffice."""
