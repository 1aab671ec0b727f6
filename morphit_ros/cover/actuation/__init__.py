"""Motors of a cover, and where to put them."""
