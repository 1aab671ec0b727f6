"""Two views of one scene: their registration, and what each says of the other."""
