"""Densities given by a small network of the position, alone or with a grid of features.

Evaluated in NumPy, derivatives included: only learning needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.fields.evaluation import (
    LARGEST,
    checked_bounds,
    checked_points,
    checked_positive,
    in_parts,
    inside_box,
    within_range,
)
from morphit_ros.neural.fields.grid import checked_grid, interpolate, interpolate_gradient

_LARGEST_FREQUENCIES = 16
# The largest weights in all of them still give a finite density.
_MOST_LAYERS = 16


@dataclass(frozen=True)
class DenseNetwork:
    """Layers y = x W + b with x·σ(x) between them; the single output goes through a positive function.

    Attributes:
        weights: (I, O) matrix of each layer; the last has one output.
        biases: (O,) vector of each layer.
        output: ``sigmoid`` (an occupancy, at most one) or ``softplus`` (unbounded).
        frequencies: octaves of the positions' encoding: x, then sin and cos of 2^k π x for k < frequencies, with x in
            [-1, 1] over the field's bounds.
        scale: factor of the output, the density that a sigmoid saturates at.

    Raises:
        InvalidInputError: layers that don't fit or are too many, numbers that are not finite or too large.
    """

    weights: Sequence[Array]
    biases: Sequence[Array]
    output: Literal["sigmoid", "softplus"] = "sigmoid"
    frequencies: int = 0
    scale: float = 1.0

    def __post_init__(self) -> None:
        if len(self.weights) == 0 or len(self.weights) != len(self.biases):
            counts = f"{len(self.weights)} weights and {len(self.biases)} biases"
            raise InvalidInputError("weights", counts, "as many of both, at least one")
        if len(self.weights) > _MOST_LAYERS:
            raise InvalidInputError("weights", f"{len(self.weights)} layers", f"at most {_MOST_LAYERS}")
        if self.output not in ("sigmoid", "softplus"):
            raise InvalidInputError("output", repr(self.output), "'sigmoid' or 'softplus'")
        if not 0 <= self.frequencies <= _LARGEST_FREQUENCIES:
            raise InvalidInputError("frequencies", self.frequencies, f"in [0, {_LARGEST_FREQUENCIES}]")
        checked_positive("scale", self.scale)
        weights = tuple(np.array(matrix, dtype=np.float64) for matrix in self.weights)
        biases = tuple(np.array(vector, dtype=np.float64) for vector in self.biases)
        width = weights[0].shape[0] if weights[0].ndim == 2 else -1
        for number, (matrix, vector) in enumerate(zip(weights, biases, strict=True)):
            if matrix.ndim != 2 or matrix.shape[0] != width or vector.shape != matrix.shape[1:]:
                shapes = f"shapes {matrix.shape} and {vector.shape}"
                raise InvalidInputError(f"layer {number}", shapes, f"weights ({width}, O) and biases (O,)")
            if not (within_range(matrix) and within_range(vector)):
                raise InvalidInputError(
                    f"layer {number}", "values that are not finite", f"numbers of at most {LARGEST:g}"
                )
            width = matrix.shape[1]
        if width != 1:
            raise InvalidInputError("weights", f"{width} outputs", "one output")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "biases", biases)

    @property
    def inputs(self) -> int:
        """Number of inputs of the first layer."""
        return int(self.weights[0].shape[0])

    @property
    def encoding_size(self) -> int:
        """Number of inputs that encode the position."""
        return 3 + 6 * self.frequencies

    def encode(self, positions: Array) -> tuple[Array, Array]:
        """Encoding (N, E) of positions (N, 3) in [-1, 1], and its derivative (N, E) by the coordinate it depends on."""
        parts, slopes = [positions], [np.ones_like(positions)]
        for octave in range(self.frequencies):
            factor = 2.0**octave * np.pi
            sine, cosine = np.sin(factor * positions), np.cos(factor * positions)
            parts += [sine, cosine]
            slopes += [factor * cosine, -factor * sine]
        return np.concatenate(parts, axis=1), np.concatenate(slopes, axis=1)

    def evaluate(self, inputs: Array) -> Array:
        """(N,) outputs for (N, I) inputs."""
        return self._positive(self._hidden(inputs)[0])[0]

    def input_gradient(self, inputs: Array) -> Array:
        """(N, I) derivatives of the outputs by the inputs (N, I)."""
        outputs, layers = self._hidden(inputs)
        gradient = self._positive(outputs)[1][:, None] * self.weights[-1][:, 0]
        for matrix, (linear, gate) in zip(self.weights[-2::-1], layers[::-1], strict=True):
            gradient = (gradient * gate * (1.0 + linear * (1.0 - gate))) @ matrix.T
        return gradient

    def _hidden(self, inputs: Array) -> tuple[Array, list[tuple[Array, Array]]]:
        """(N,) what the output function is applied to; x W + b (N, O), and σ of it, of the layers before."""
        hidden, layers = inputs, []
        for matrix, vector in zip(self.weights[:-1], self.biases[:-1], strict=True):
            linear = hidden @ matrix + vector
            gate = _sigmoid(linear)
            hidden = linear * gate
            layers.append((linear, gate))
        return (hidden @ self.weights[-1] + self.biases[-1])[:, 0], layers

    def _positive(self, values: Array) -> tuple[Array, Array]:
        """The output function and its derivative."""
        gate = _sigmoid(values)
        if self.output == "sigmoid":
            return self.scale * gate, self.scale * gate * (1.0 - gate)
        return self.scale * np.logaddexp(0.0, values), self.scale * gate


class _EncodedField:
    """What both fields share: a network whose first inputs encode the position, zero out of bounds."""

    def __init__(self, network: DenseNetwork, bounds: ArrayLike, features: int) -> None:
        expected = network.encoding_size + features
        if network.inputs != expected:
            wanted = f"{expected}: {network.encoding_size} of the position" + f", {features} features" * (features > 0)
            raise InvalidInputError("network", f"{network.inputs} inputs", wanted)
        self.network = network
        self._bounds = checked_bounds(bounds)

    @property
    def bounds(self) -> Array:
        """(2, 3) box outside of which the density is zero [m]."""
        return self._bounds.copy()

    def density(self, points: Array) -> Array:
        """(N,) densities at (N, 3) points."""
        return self._within(lambda queries: self.network.evaluate(self._inputs(queries)[0]), points)

    def gradient(self, points: Array) -> Array:
        """(N, 3) gradients at (N, 3) points."""
        return self._within(self._gradient, points, 3)

    def _inputs(self, points: Array) -> tuple[Array, Array]:
        """Inputs of the network (N, I), and derivatives (N, E) of those that encode the position."""
        # The bounds lie at -1 and 1.
        return self.network.encode(2.0 * (points - self._bounds[0]) / (self._bounds[1] - self._bounds[0]) - 1.0)

    def _gradient(self, points: Array) -> Array:
        inputs, slopes = self._inputs(points)
        derivative = self.network.input_gradient(inputs)
        size = self.network.encoding_size
        # Sums over the parts of the encoding that belong to the same coordinate.
        by_position = (derivative[:, :size] * slopes).reshape(len(points), -1, 3).sum(axis=1)
        return by_position * 2.0 / np.ptp(self._bounds, axis=0) + self._by_features(derivative[:, size:], points)

    def _by_features(self, derivative: Array, points: Array) -> Array | float:
        """(N, 3) part of the gradient that the other inputs add, given the derivatives by them."""
        return 0.0

    def _within(self, function: Callable[[Array], Array], points: Array, columns: int = 0) -> Array:
        """A function evaluated at the points inside the bounds only, zero at the others."""
        queries = checked_points(points)
        inside = inside_box(queries, self._bounds)
        result = np.zeros((len(queries), columns) if columns else len(queries))
        result[inside] = in_parts(function, queries[inside], columns)
        return result


class NetworkField(_EncodedField):
    """The density is a network of the position (frequency encoding), zero out of bounds.

    Raises:
        InvalidInputError: a network with other inputs than the encoding, or a box without volume.
    """

    def __init__(self, network: DenseNetwork, bounds: ArrayLike) -> None:
        super().__init__(network, bounds, 0)


class GridNetworkField(_EncodedField):
    """The density is a network of features interpolated from a grid, and of the position; zero out of bounds.

    Args:
        network: with the position's encoding first, the features after it.
        features: (X, Y, Z, C) at the nodes of a grid over the bounds.
        bounds: (2, 3) [m].

    Raises:
        InvalidInputError: a network with other inputs, a grid with fewer than two nodes along an axis, values that
            are not finite, a box without volume.
    """

    def __init__(self, network: DenseNetwork, features: ArrayLike, bounds: ArrayLike) -> None:
        self.features = checked_grid("features", features, 4)
        super().__init__(network, bounds, self.features.shape[3])

    def _inputs(self, points: Array) -> tuple[Array, Array]:
        encoding, slopes = super()._inputs(points)
        return np.concatenate([encoding, interpolate(self.features, self._bounds, points)], axis=1), slopes

    def _by_features(self, derivative: Array, points: Array) -> Array:
        return np.einsum("nc,nck->nk", derivative, interpolate_gradient(self.features, self._bounds, points))


def _sigmoid(values: Array) -> Array:
    # In this form nothing overflows.
    return 0.5 * (1.0 + np.tanh(0.5 * values))
