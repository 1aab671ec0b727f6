"""Sphere models as JSON and CSV, and back."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.spheres.metrics import checked_spheres
from morphit_ros.spheres.robot_model import LinkSpheres, SphereModel

_FORMAT = "morphit_ros/spheres/1"


def json_from_model(model: SphereModel) -> str:
    """A sphere model as JSON: per link centres [m] in the link's frame, radii [m] and distances [m]."""
    links = {
        name: {
            "centers": spheres.centers.tolist(),
            "radii": spheres.radii.tolist(),
            "d_avg": spheres.d_avg,
            "d_max": spheres.d_max,
            "content_hash": spheres.content_hash,
        }
        for name, spheres in model.links.items()
    }
    document = {"format": _FORMAT, "robot": model.robot_name, "variant": model.variant, "links": links}
    return json.dumps(document, indent=1) + "\n"


def model_from_json(text: str) -> SphereModel:
    """The inverse of `json_from_model`; numbers survive exactly.

    Raises:
        InvalidInputError: not such a document, or spheres that are not finite or have no positive radius.
    """
    bound = f"a document of format {_FORMAT}"
    try:
        document: Any = json.loads(text)
        if document["format"] != _FORMAT:
            raise InvalidInputError("format", document["format"], repr(_FORMAT))
        links = {}
        for name, entry in document["links"].items():
            centers, radii = checked_spheres(np.array(entry["centers"]), np.array(entry["radii"]))
            measures = float(entry["d_avg"]), float(entry["d_max"])
            links[name] = LinkSpheres(name, centers, radii, *measures, str(entry["content_hash"]))
        return SphereModel(str(document["robot"]), str(document["variant"]), links)
    except InvalidInputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError("sphere model", f"{type(error).__name__}: {error}", bound) from error


def csv_from_model(model: SphereModel) -> str:
    """A sphere model as a table with the columns link, x, y, z, radius [m]; centres in the link's frame."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["link", "x", "y", "z", "radius"])
    for name, spheres in model.links.items():
        for center, radius in zip(spheres.centers.tolist(), spheres.radii.tolist(), strict=True):
            writer.writerow([name, *map(repr, center), repr(radius)])
    return stream.getvalue()
