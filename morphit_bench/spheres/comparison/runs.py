"""The comparison of the MorphIt paper: several methods over several numbers of spheres on several shapes."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.link_elements import link_elements
from morphit_ros.spheres.configuration import SphereFitConfig
from morphit_ros.spheres.fit import fit_spheres
from morphit_ros.spheres.links.shape import load_link_shape
from morphit_ros.spheres.metrics import SphereMetrics, measure_spheres

# Name in tables and plots → settings that make it.
METHODS: Mapping[str, Mapping[str, Any]] = {
    "balanced": {"variant": "balanced"},
    "volume": {"variant": "volume"},
    "surface": {"variant": "surface"},
    "contact": {"variant": "contact"},
    "volume+cover": {"variant": "volume", "cover": True},
    "vssa": {"method": "vssa"},
    "amaa": {"method": "amaa"},
    "packing": {"method": "packing"},
}
_FORMAT = "morphit_ros/spheres-comparison/1"

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class ComparisonRow:
    """One fit.

    Attributes:
        robot, link: what was fitted; the link is the name of the shape.
        method: one of `METHODS`.
        seed: of the fit.
        count, kept: spheres asked for and got.
        seconds: processor time of the fit, of all threads, without compilation.
        metrics: quality, with standard errors.
    """

    robot: str
    link: str
    method: str
    seed: int
    count: int
    kept: int
    seconds: float
    metrics: SphereMetrics


@dataclass(frozen=True)
class ComparisonMean:
    """The mean over several fits, for instance over the links of a robot.

    Attributes:
        method, count: of all the fits.
        fits: how many.
        kept, seconds: mean spheres got, mean processor time of a fit.
        metrics: mean of each, with the standard error of the mean that the metrics' sampling causes. Shapes without
            volume count in the distances only.
    """

    method: str
    count: int
    fits: int
    kept: float
    seconds: float
    metrics: SphereMetrics


@dataclass(frozen=True)
class Comparison:
    """All fits of a comparison, and the samples that they were measured with."""

    rows: tuple[ComparisonRow, ...]
    surface_samples: int
    volume_samples: int

    @property
    def links(self) -> tuple[str, ...]:
        """Names of the shapes, in order."""
        return tuple(dict.fromkeys(row.link for row in self.rows))

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the fits, in order."""
        return tuple(dict.fromkeys(row.seed for row in self.rows))

    def means(self, link: str | None = None) -> list[ComparisonMean]:
        """Means over seeds, and over links unless one is named; by method, then by count."""
        groups: dict[tuple[str, int], list[ComparisonRow]] = {}
        for row in self.rows:
            if link is None or row.link == link:
                groups.setdefault((row.method, row.count), []).append(row)
        order = sorted(groups, key=lambda group: (list(METHODS).index(group[0]), group[1]))
        return [_mean(groups[group]) for group in order]

    def to_content(self) -> dict[str, Any]:
        """For JSON: one entry a fit, lengths in metres, null for the ratios of a shape without volume."""
        rows = []
        for row in self.rows:
            entry = dataclasses.asdict(row)
            metrics = {name: value if math.isfinite(value) else None for name, value in entry.pop("metrics").items()}
            rows.append(entry | metrics)
        return {
            "format": _FORMAT,
            "surface_samples": self.surface_samples,
            "volume_samples": self.volume_samples,
            "rows": rows,
        }


def compare_fits(
    shapes: Mapping[str, Sequence[TriangleMesh]],
    counts: Sequence[int],
    methods: Sequence[str] = tuple(METHODS),
    seeds: Sequence[int] = (0,),
    robot: str = "",
    surface_samples: int = 20000,
    volume_samples: int = 200000,
    progress: Progress | None = None,
) -> Comparison:
    """Fit and measure every combination, one after the other; see `compared_fits` for rows as they come.

    All fits of a shape are measured at the same points. Each method is tried on a box first, so that compilation
    belongs to no fit.

    Args:
        shapes: name → meshes in one frame, whose union is the shape; `robot_shapes` gives those of a robot.
        counts: numbers of spheres.
        methods: names of `METHODS`.
        seeds: of the fits.
        robot: its name, for the rows.
        surface_samples, volume_samples: of `measure_spheres`.
        progress: called with (what is fitted, fits done, fits in all) before each fit and once at the end.

    Raises:
        InvalidInputError: nothing to compare, an unknown method, a count or seed out of range, or a shape that
            cannot be fitted, with its name.
    """
    rows = compared_fits(shapes, counts, methods, seeds, robot, surface_samples, volume_samples, progress)
    return Comparison(tuple(rows), surface_samples, volume_samples)


def compared_fits(
    shapes: Mapping[str, Sequence[TriangleMesh]],
    counts: Sequence[int],
    methods: Sequence[str],
    seeds: Sequence[int],
    robot: str,
    surface_samples: int,
    volume_samples: int,
    progress: Progress | None = None,
) -> Iterator[ComparisonRow]:
    """The rows of `compare_fits`, each as soon as it is known."""
    configs = _checked_configs(shapes, counts, methods, seeds)
    total = len(shapes) * len(seeds) * len(configs)
    for method in methods:
        if progress is not None:
            progress(f"compiling {method}", 0, total)
        fit_spheres(box_mesh((0.1, 0.2, 0.3)), SphereFitConfig(count=2, **METHODS[method]))
    done = 0
    for link, meshes in shapes.items():
        for (method, count), config in configs.items():
            for seed in seeds:
                if progress is not None:
                    progress(f"{link}, {method}, {count}", done, total)
                try:
                    start = time.process_time()
                    result = fit_spheres(meshes, config, seed)
                    seconds = time.process_time() - start
                    metrics = measure_spheres(meshes, result.centers, result.radii, surface_samples, volume_samples)
                except InvalidInputError as error:
                    name = f"link '{link}': {error.name}"
                    raise InvalidInputError(name, error.value, error.bound, error.remedy) from error
                done += 1
                yield ComparisonRow(robot, link, method, seed, count, len(result.radii), seconds, metrics)
    if progress is not None:
        progress("done", total, total)


def robot_shapes(
    description: RobotDescription, links: Sequence[str] | None = None, source: str = "collision"
) -> dict[str, tuple[TriangleMesh, ...]]:
    """The shapes of a robot's links: name → meshes in one frame of the link.

    Args:
        description: the robot.
        links: which, None for all that have such geometry.
        source: "collision", "visual" or "collision_or_visual" geometry.

    Raises:
        InvalidInputError: an unknown link, one named that has no geometry, or no link that has any.
        ResourceNotFoundError: a mesh file is missing.
    """
    with_geometry = [name for name, link in description.links.items() if link_elements(link, source)]
    if not with_geometry:
        raise InvalidInputError("robot", f"'{description.name}' without {source} geometry", "a robot with geometry")
    for name in links or ():
        if name not in with_geometry:
            raise InvalidInputError("links", repr(name), f"links with geometry: {', '.join(with_geometry)}")
    chosen = with_geometry if links is None else list(dict.fromkeys(links))
    return {name: load_link_shape(link_elements(description.links[name], source)).meshes for name in chosen}


def _checked_configs(
    shapes: Mapping[str, Sequence[TriangleMesh]], counts: Sequence[int], methods: Sequence[str], seeds: Sequence[int]
) -> dict[tuple[str, int], SphereFitConfig]:
    """(method, count) → configuration."""
    for name, values in (("shapes", shapes), ("counts", counts), ("methods", methods), ("seeds", seeds)):
        if not len(values):
            raise InvalidInputError(name, "none", "at least one")
    for method in methods:
        if method not in METHODS:
            raise InvalidInputError("methods", repr(method), f"one of {', '.join(METHODS)}")
    for seed in seeds:
        if seed < 0:
            raise InvalidInputError("seeds", seed, "0 or more")
    return {(method, count): SphereFitConfig(count=count, **METHODS[method]) for method in methods for count in counts}


def _mean(rows: Sequence[ComparisonRow]) -> ComparisonMean:
    columns = {}
    for field in dataclasses.fields(SphereMetrics):
        values = [getattr(row.metrics, field.name) for row in rows]
        finite = [value for value in values if math.isfinite(value)]
        if not finite:
            columns[field.name] = math.nan
        elif field.name.endswith("_error"):
            columns[field.name] = math.hypot(*finite) / len(finite)
        else:
            columns[field.name] = sum(finite) / len(finite)
    return ComparisonMean(
        method=rows[0].method,
        count=rows[0].count,
        fits=len(rows),
        kept=_average(row.kept for row in rows),
        seconds=_average(row.seconds for row in rows),
        metrics=SphereMetrics(**columns),
    )


def _average(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers)
