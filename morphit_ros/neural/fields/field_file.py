"""Density fields in files: what was learned once is loaded everywhere, and nothing in the file is executed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.neural.archive import read_archive, write_archive
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

_KIND, _VERSION = "density field", 1
_DEEPEST = 8
_ANALYTIC: dict[str, type[AnalyticField]] = {
    "sphere": SphereField,
    "ellipsoid": EllipsoidField,
    "box": BoxField,
    "cylinder": CylinderField,
    "capsule": CapsuleField,
}

Arrays = dict[str, NDArray[Any]]


def save_field(field: DensityField, path: str | Path, description: str = "") -> None:
    """Write a field to one file (.npz), which appears complete or not at all.

    Args:
        field: any of `neural.fields`.
        path: of the file.
        description: one line for people.

    Raises:
        InvalidInputError: a field of a class that has no file format.
    """
    arrays: Arrays = {}
    header = {"description": description, "field": _describe(field, "", arrays)}
    write_archive(path, _KIND, _VERSION, header, arrays)


def load_field(path: str | Path) -> DensityField:
    """A field from a file written by `save_field`: the same class, the same densities.

    Raises:
        ResourceNotFoundError: there is no such file.
        InvalidInputError: not such a file, truncated, changed, another version, or numbers that make no field.
    """
    header, arrays = read_archive(path, _KIND, _VERSION)
    try:
        return _build(header.get("field"), "", arrays, 0)
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error.name}", error.value, error.bound, error.remedy) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInputError(
            str(path), f"a description that cannot be read ({error!r})", "a density field"
        ) from None


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
    raise InvalidInputError("field", f"type {kind!r}", "a type that this version knows")


def _build_network(description: Any, prefix: str, arrays: Arrays) -> DenseNetwork:
    count = int(description["layers"])
    if not 0 < count <= len(arrays):
        raise InvalidInputError("layers", count, "as many as there are weights")
    weights = [arrays[f"{prefix}weights{number}"] for number in range(count)]
    biases = [arrays[f"{prefix}biases{number}"] for number in range(count)]
    return DenseNetwork(
        weights, biases, description["output"], int(description["frequencies"]), float(description["scale"])
    )
