"""Experiments with neural objects."""
