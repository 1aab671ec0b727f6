"""Density fields in files: what was learned once is loaded everywhere, and nothing in the file is executed.

With a field goes what was learned of its surface: the density it is cut at, the hull of its silhouettes, and where its
cameras were. Without these its mass would be another, and said to be surer than it is.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.archive import read_archive, shown, write_archive
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.fields.analytic import (
    AnalyticField,
    BoxField,
    CapsuleField,
    CylinderField,
    EllipsoidField,
    SphereField,
)
from morphit_ros.neural.fields.composition import TransformedField, UnionField
from morphit_ros.neural.fields.grid import GridField
from morphit_ros.neural.fields.network import DenseNetwork, GridNetworkField, NetworkField
from morphit_ros.neural.fields.sampled import SampledField
from morphit_ros.neural.fields.sided import SidedField
from morphit_ros.neural.solid.threshold_description import build_threshold, describe_threshold
from morphit_ros.neural.solid.thresholds import Threshold, as_threshold

# Version 1 held the field alone.
_KIND, _VERSION, _OLDEST = "density field", 2, 1
_DEEPEST = 8
_EYES = "eyes"
# Cameras further away than so many diagonals of the field show nothing of it, and their rays lose their digits.
_FURTHEST = 1e6
_ANALYTIC: dict[str, type[AnalyticField]] = {
    "sphere": SphereField,
    "ellipsoid": EllipsoidField,
    "box": BoxField,
    "cylinder": CylinderField,
    "capsule": CapsuleField,
}

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class LearnedField:
    """A field with what else was learned of the object, as `extract_solid` and `inertial_properties` take it.

    Attributes:
        field: the density.
        threshold: above which it is inside of the object; None where halfway between empty and full is all that is
            known.
        eyes: (V, 3) places of the cameras that it was learned from, in its frame, None if unknown [m].
    """

    field: DensityField
    threshold: Threshold | None = None
    eyes: Array | None = None


def save_field(
    field: DensityField,
    path: str | Path,
    description: str = "",
    threshold: float | Threshold | None = None,
    eyes: ArrayLike | None = None,
) -> None:
    """Write a field, with what was learned of its surface, to one file (.npz), which appears complete or not at all.

    Args:
        field: any of `neural.fields`.
        path: of the file.
        description: one line for people.
        threshold: above which the field is inside, `LearningResult.threshold`; None if nothing is known of it.
        eyes: (V, 3) places of the cameras that it was learned from, in its frame [m].

    Raises:
        InvalidInputError: a field or a threshold of a class that has no file format, the hull of another field, or eyes
            that are no places.
    """
    arrays: Arrays = {}
    chosen = as_threshold(threshold)
    header = {
        "description": description,
        "field": _describe(field, "", arrays),
        "threshold": None if chosen is None else describe_threshold(chosen, field.bounds),
        "eyes": eyes is not None,
    }
    if eyes is not None:
        arrays[_EYES] = _checked_eyes(eyes, field.bounds)
    write_archive(path, _KIND, _VERSION, header, arrays)


def load_learned_field(path: str | Path) -> LearnedField:
    """A field from a file written by `save_field`, with its threshold and eyes: the same numbers.

    Files of version 1 hold neither.

    Raises:
        ResourceNotFoundError: there is no such file.
        InvalidInputError: not such a file, truncated, changed, another version, or numbers that make no field, no
            threshold of this field, or no places of cameras.
    """
    header, arrays = read_archive(path, _KIND, _VERSION, _OLDEST)
    try:
        field = _build(header.get("field"), "", arrays, 0)
        if header["version"] == 1:
            return LearnedField(field)
        threshold = None if header["threshold"] is None else build_threshold(header["threshold"], field.bounds)
        return LearnedField(field, threshold, _eyes(header["eyes"], arrays, field.bounds))
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error.name}", error.value, error.bound, error.remedy) from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidInputError(
            str(path), f"a description that cannot be read ({shown(repr(error))})", "a density field"
        ) from None


def load_field(path: str | Path) -> DensityField:
    """A field alone from a file written by `save_field`: the same class, the same densities.

    For its solid, mass or inertia take `load_learned_field`: the threshold and the errors to expect belong to them.

    Raises:
        ResourceNotFoundError, InvalidInputError: see `load_learned_field`.
    """
    return load_learned_field(path).field


def _eyes(there: Any, arrays: Arrays, bounds: Array) -> Array | None:
    if not isinstance(there, bool) or there != (_EYES in arrays):
        raise InvalidInputError("eyes", shown(repr(there)), "true with an array of places, false without")
    return _checked_eyes(arrays[_EYES], bounds) if there else None


def _checked_eyes(eyes: ArrayLike, bounds: Array) -> Array:
    places = np.asarray(eyes)
    numbers = places.dtype.kind in "iuf"
    if places.ndim != 2 or places.shape[1] != 3 or len(places) == 0 or not numbers or not np.isfinite(places).all():
        raise InvalidInputError(
            "eyes", f"shape {places.shape}, type {places.dtype}", "finite places (V, 3) of cameras, at least one [m]"
        )
    places = places.astype(np.float64)
    # Not their norm, which overflows.
    offset = float(np.abs(places - bounds.mean(axis=0)).max())
    most = _FURTHEST * float(np.linalg.norm(bounds[1] - bounds[0]))
    if offset > most:
        remedy = "Are eyes and field in the same frame and unit?"
        raise InvalidInputError("eyes", f"a camera {offset:.4g} m away", f"at most {most:.4g} m", remedy)
    return places


def _describe(field: DensityField, prefix: str, arrays: Arrays) -> dict[str, Any]:
    """What the header says about a field; its arrays are added under the prefix."""
    if isinstance(field, AnalyticField) and type(field) in _ANALYTIC.values():
        name = next(name for name, kind in _ANALYTIC.items() if type(field) is kind)
        numbers: Any = field
        return {"type": name} | {key: np.asarray(value).tolist() for key, value in asdict(numbers).items()}
    match field:
        case GridField():
            arrays[f"{prefix}values"], arrays[f"{prefix}bounds"] = field.values, field.bounds
            return {"type": "grid"}
        case SidedField():
            arrays[f"{prefix}distances"] = np.moveaxis(field.distances, -1, 0)
            arrays[f"{prefix}bounds"] = field.bounds
            return {"type": "sided", "edge": field.edge}
        case NetworkField():
            arrays[f"{prefix}bounds"] = field.bounds
            return {"type": "network", "network": _describe_network(field.network, prefix, arrays)}
        case GridNetworkField():
            arrays[f"{prefix}bounds"], arrays[f"{prefix}features"] = field.bounds, field.features
            return {"type": "grid and network", "network": _describe_network(field.network, prefix, arrays)}
        case SampledField():
            arrays[f"{prefix}points"], arrays[f"{prefix}densities"] = field.points, field.densities
            return {"type": "samples", "radius": field.radius}
        case TransformedField():
            arrays[f"{prefix}T_parent_field"] = field.T_parent_field
            return {"type": "transformed", "field": _describe(field.field, f"{prefix}0.", arrays)}
        case UnionField():
            parts = [_describe(part, f"{prefix}{number}.", arrays) for number, part in enumerate(field.fields)]
            return {"type": "union", "fields": parts}
    raise InvalidInputError("field", type(field).__name__, "a field of neural.fields", "Sample it: GridField.sampled.")


def _describe_network(network: DenseNetwork, prefix: str, arrays: Arrays) -> dict[str, Any]:
    for number, (matrix, vector) in enumerate(zip(network.weights, network.biases, strict=True)):
        arrays[f"{prefix}weights{number}"], arrays[f"{prefix}biases{number}"] = matrix, vector
    return {
        "layers": len(network.weights),
        "output": network.output,
        "frequencies": network.frequencies,
        "scale": network.scale,
    }


def _build(description: Any, prefix: str, arrays: Arrays, depth: int) -> DensityField:
    """The inverse of `_describe`."""
    if depth > _DEEPEST:
        raise InvalidInputError("field", f"more than {_DEEPEST} levels", "fewer fields within fields")
    kind = description["type"]
    if kind in _ANALYTIC:
        numbers = {key: value for key, value in description.items() if key != "type"}
        field: Any = _ANALYTIC[kind](
            **{key: tuple(value) if isinstance(value, list) else value for key, value in numbers.items()}
        )
        return field
    match kind:
        case "grid":
            return GridField(arrays[f"{prefix}values"], arrays[f"{prefix}bounds"])
        case "sided":
            return SidedField(arrays[f"{prefix}distances"], arrays[f"{prefix}bounds"], description["edge"])
        case "network":
            return NetworkField(_build_network(description["network"], prefix, arrays), arrays[f"{prefix}bounds"])
        case "grid and network":
            network = _build_network(description["network"], prefix, arrays)
            return GridNetworkField(network, arrays[f"{prefix}features"], arrays[f"{prefix}bounds"])
        case "samples":
            return SampledField(arrays[f"{prefix}points"], arrays[f"{prefix}densities"], description["radius"])
        case "transformed":
            part = _build(description["field"], f"{prefix}0.", arrays, depth + 1)
            return TransformedField(part, arrays[f"{prefix}T_parent_field"])
        case "union":
            parts = description["fields"]
            return UnionField(
                [_build(part, f"{prefix}{number}.", arrays, depth + 1) for number, part in enumerate(parts)]
            )
    raise InvalidInputError("field", f"type {shown(repr(kind))}", "a type that this version knows")


def _build_network(description: Any, prefix: str, arrays: Arrays) -> DenseNetwork:
    count = int(description["layers"])
    if not 0 < count <= len(arrays):
        raise InvalidInputError("layers", count, "as many as there are weights")
    weights = [arrays[f"{prefix}weights{number}"] for number in range(count)]
    biases = [arrays[f"{prefix}biases{number}"] for number in range(count)]
    return DenseNetwork(
        weights, biases, description["output"], int(description["frequencies"]), float(description["scale"])
    )
