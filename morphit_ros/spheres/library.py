"""A library of fitted and measured sphere models, by the names of robots, in the user's cache."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from morphit_ros.errors import InvalidInputError
from morphit_ros.resources import atomic_write, cache_directory
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.link_elements import link_elements
from morphit_ros.robot.links import collision_mesh
from morphit_ros.spheres.configuration import SphereFitConfig
from morphit_ros.spheres.exports import read_model
from morphit_ros.spheres.exports.tables import json_content
from morphit_ros.spheres.metrics import measure_spheres
from morphit_ros.spheres.robot_model import SphereModel, fit_robot_spheres

# Enough for three digits of the ratios.
_SURFACE_SAMPLES, _VOLUME_SAMPLES = 5000, 40_000
_MEASURES = ("d_avg", "d_max", "inside", "outside")


def library_directory() -> Path:
    """Where models, index.json and README.md are."""
    return cache_directory("library")


def library_file(name: str) -> Path | None:
    """The model of a robot as JSON; None if it was not built."""
    file = library_directory() / f"{name}.json"
    return file if name and Path(name).name == name and file.is_file() else None


def library_model(name: str, description: RobotDescription | None = None) -> SphereModel | None:
    """The model of a robot; None if it was not built.

    Raises:
        InvalidInputError: a damaged file, or links that the description lacks.
    """
    file = library_file(name)
    return read_model(file, description) if file is not None else None


def library_entries() -> dict[str, dict[str, Any]]:
    """Name → what is said of a model that was built; see `build_model`."""
    entries = {}
    for file in sorted(library_directory().glob("*.json")):
        if file.name != "index.json":
            entries[file.stem] = json.loads(file.read_text(encoding="utf-8"))["library"]
    return entries


def entry_key(description: RobotDescription, config: SphereFitConfig, seed: int = 0, source: str = "collision") -> str:
    """What a model is built from, as a hash."""
    return hashlib.sha256(repr((description.xml, asdict(config), seed, source)).encode()).hexdigest()


def built_entry(name: str, key: str) -> dict[str, Any] | None:
    """What is said of a model that was built of what the key stands for; None if it was not."""
    file = library_file(name)
    if file is None:
        return None
    entry: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["library"]
    return entry if entry["key"] == key else None


def build_model(
    name: str,
    description: RobotDescription,
    config: SphereFitConfig,
    seed: int = 0,
    source: str = "collision",
    cache: bool = True,
    progress: Callable[[str, int, int], None] | None = None,
    workers: int | None = None,
) -> dict[str, Any]:
    """Fit, prove and measure a robot's model for the library.

    Args:
        name: of the robot.
        description: the robot.
        config, seed, source, cache, progress, workers: as of `fit_robot_spheres`. Links that were fitted before an
            interruption come from the cache.

    Returns:
        What `keep_model` writes. Under "library" it has robot, variant, number of links and spheres, `proven`: links
        whose cover is; mean over the links of d_avg and greatest d_max [m], of inside and outside volume [share of the
        link's]; seconds.

    Raises:
        InvalidInputError, ResourceNotFoundError: no geometry, or as of `fit_robot_spheres`.
    """
    began = time.perf_counter()
    model = fit_robot_spheres(description, config, None, seed, cache, progress, source=source, workers=workers)
    if not model.links:
        raise InvalidInputError(name, f"no {source} geometry", "a robot with geometry", "Try another --source.")
    content = json_content(model)
    for link, measured in _measures(model, description, source).items():
        content["links"][link]["metrics"] = measured
    known = [link["metrics"] for link in content["links"].values()]
    means = {key: _mean([link[key] for link in known]) for key in ("d_avg", "inside", "outside")}
    entry = {
        "robot": model.robot_name, "variant": model.variant, "seed": seed, "source": source,
        "links": len(model.links), "spheres": model.count,
        "proven": sum(spheres.cover_margin is not None for spheres in model.links.values()),
        **means, "d_max": max(link["d_max"] for link in known), "seconds": time.perf_counter() - began,
    }  # fmt: skip
    return {**content, "library": entry}


def keep_model(name: str, key: str, content: dict[str, Any]) -> dict[str, Any]:
    """Write what `build_model` has returned into the library; returns what is said of it, with the key."""
    entry = {"key": key, **content["library"]}
    with atomic_write(library_directory() / f"{name}.json") as stream:
        stream.write(json.dumps(content | {"library": entry}, indent=1, allow_nan=False) + "\n")
    return entry


def write_index() -> list[Path]:
    """Write index.json and README.md, a table, of all that was built; the files."""
    entries = library_entries()
    index, table = library_directory() / "index.json", library_directory() / "README.md"
    with atomic_write(index) as stream:
        stream.write(json.dumps(entries, indent=1, allow_nan=False) + "\n")
    with atomic_write(table) as stream:
        stream.write("\n".join(markdown_table(entries)) + "\n")
    return [index, table]


def markdown_table(entries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Lines of a table of entries."""
    lines = [
        "| robot | links | spheres | cover proven | d_avg [mm] | d_max [mm] | inside | outside | variant |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, entry in entries.items():
        shares = " | ".join("-" if entry[key] is None else f"{entry[key]:.3f}" for key in ("inside", "outside"))
        lines.append(
            f"| {name} | {entry['links']} | {entry['spheres']} | {entry['proven']} of {entry['links']} | "
            f"{1e3 * entry['d_avg']:.2f} | {1e3 * entry['d_max']:.1f} | {shares} | {entry['variant']} |"
        )
    return lines


def _measures(model: SphereModel, description: RobotDescription, source: str) -> dict[str, dict[str, float | None]]:
    """Link → its figures; None for ratios of a mesh without volume."""
    measured = {}
    for name, spheres in model.links.items():
        meshes = [collision_mesh(element) for element in link_elements(description.links[name], source)]
        found = measure_spheres(meshes, spheres.centers, spheres.radii, _SURFACE_SAMPLES, _VOLUME_SAMPLES)
        values = {key: float(getattr(found, key)) for key in _MEASURES}
        measured[name] = {key: value if math.isfinite(value) else None for key, value in values.items()}
    return measured


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
