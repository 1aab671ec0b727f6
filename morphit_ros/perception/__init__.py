"""Two depth clouds to a registered scene, a table and object clouds."""
