"""The support plane, and what cameras saw on it."""
