"""The two solvers of the superovoid paper as published, for comparison; `min_distance` has one that doesn't fail."""

from morphit_bench.superovoid.implicit import implicit_distance
from morphit_bench.superovoid.parametric import parametric_distance

__all__ = ["implicit_distance", "parametric_distance"]
