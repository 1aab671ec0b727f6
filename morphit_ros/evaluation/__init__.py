"""Does it work? Whole picks in simulation, over many trials, with honest physics."""
