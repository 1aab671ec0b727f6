"""Experiments with sphere models."""
