"""Which motions keep the loops of a cover closed, and where a cover starts."""
