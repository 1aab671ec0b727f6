"""Plans through contact tried again with the shapes that the bodies really have."""
