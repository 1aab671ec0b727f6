"""Objects of a scene, how well each is known, and which is meant."""
