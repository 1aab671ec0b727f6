"""Density fields: analytic shapes, grids, networks, samples. Each keeps the protocol `neural.field.DensityField`."""
