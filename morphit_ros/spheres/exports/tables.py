"""JSON, which carries a whole sphere model, and CSV for spreadsheets and other programs; and back."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
from typing import Any

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.spheres.exports.records import Row, imported_model
from morphit_ros.spheres.metrics import checked_spheres
from morphit_ros.spheres.robot_model import LinkSpheres, SphereModel

JSON_FORMAT = "morphit_ros/spheres/1"
_COLUMNS = ["link", "x", "y", "z", "radius"]


def json_content(model: SphereModel) -> dict[str, Any]:
    """What `json_from_model` writes, for documents that say more. A distance that isn't known is None."""
    links = {
        name: {
            "centers": spheres.centers.tolist(),
            "radii": spheres.radii.tolist(),
            "d_avg": spheres.d_avg if math.isfinite(spheres.d_avg) else None,
            "d_max": spheres.d_max if math.isfinite(spheres.d_max) else None,
            "cover_margin": spheres.cover_margin,
            "deviation": spheres.deviation,
            "content_hash": spheres.content_hash,
        }
        for name, spheres in model.links.items()
    }
    return {"format": JSON_FORMAT, "robot": model.robot_name, "variant": model.variant, "links": links}


def json_from_model(model: SphereModel) -> str:
    """A sphere model as JSON: per link centres [m] in the link's frame, radii [m] and distances [m]."""
    return json.dumps(json_content(model), indent=1, allow_nan=False) + "\n"


def model_from_json(text: str) -> SphereModel:
    """The inverse of `json_from_model`; numbers, distances and hashes survive exactly. More keys are ignored.

    Raises:
        InvalidInputError: not such a document, or spheres that are not finite or have no positive radius.
    """
    try:
        document: Any = json.loads(text)
        if document["format"] != JSON_FORMAT:
            raise InvalidInputError("format", repr(document["format"])[:80], repr(JSON_FORMAT))
        links = {name: _link(name, entry) for name, entry in document["links"].items()}
        return SphereModel(robot_name=str(document["robot"]), variant=str(document["variant"]), links=links)
    except InvalidInputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        said = f"{type(error).__name__}: {error}"[:200]
        raise InvalidInputError("sphere model", said, f"a document of format {JSON_FORMAT}") from error


def _link(name: str, entry: Any) -> LinkSpheres:
    for key, values in (("centers", itertools.chain(*entry["centers"])), ("radii", entry["radii"])):
        if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
            raise InvalidInputError(f"link '{name}': {key}", "something else than numbers", "numbers [m]")
    try:
        centers, radii = checked_spheres(np.array(entry["centers"]), np.array(entry["radii"]))
    except InvalidInputError as error:
        raise InvalidInputError(f"link '{name}': {error.name}", error.value, error.bound) from error
    d_avg, d_max = (math.nan if entry[key] is None else float(entry[key]) for key in ("d_avg", "d_max"))
    margin, deviation = entry.get("cover_margin"), entry.get("deviation")
    return LinkSpheres(
        link=name,
        centers=centers,
        radii=radii,
        d_avg=d_avg,
        d_max=d_max,
        content_hash=str(entry["content_hash"]),
        cover_margin=None if margin is None else float(margin),
        deviation=None if deviation is None else (float(deviation[0]), float(deviation[1])),
    )


def csv_from_model(model: SphereModel) -> str:
    """A sphere model as a table with the columns link, x, y, z, radius [m]; centres in the link's frame."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for name, spheres in model.links.items():
        for center, radius in zip(spheres.centers.tolist(), spheres.radii.tolist(), strict=True):
            writer.writerow([name, *map(repr, center), repr(radius)])
    return stream.getvalue()


def model_from_csv(text: str, robot_name: str = "") -> SphereModel:
    """The inverse of `csv_from_model`: spheres survive exactly.

    A table carries neither the robot's name nor the variant, d_avg and d_max (NaN) nor the content hash (it is
    computed from the spheres).

    Raises:
        InvalidInputError: other columns, a row with more or fewer fields, a field that is no finite number, a
            radius that is not above 0, or no rows; names the line.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[Row] = []
    try:
        header = next(reader, [])
        if [column.strip() for column in header] != _COLUMNS:
            raise InvalidInputError("line 1", repr(",".join(header)[:80]), f"the columns {','.join(_COLUMNS)}")
        for fields in reader:
            if not fields:
                continue
            where = f"line {reader.line_num}"
            if len(fields) != len(_COLUMNS):
                raise InvalidInputError(where, f"{len(fields)} fields", f"{len(_COLUMNS)}: {', '.join(_COLUMNS)}")
            numbers = [
                _field(word, f"{where}: {column}") for word, column in zip(fields[1:], _COLUMNS[1:], strict=True)
            ]
            rows.append((fields[0], numbers[:3], numbers[3], where))
    except csv.Error as error:
        raise InvalidInputError(f"line {reader.line_num}", f"no CSV ({error})", ",".join(_COLUMNS)) from error
    return imported_model(robot_name, rows, "table")


def _field(word: str, where: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise InvalidInputError(where, repr(word[:80]), "a number") from None
