"""Guaranteed cover: the proof, and the search for spheres that leave little outside."""
