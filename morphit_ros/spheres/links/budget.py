"""How many spheres each link gets: a total shared out by marginal gain, or as few as a distance allows."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import MeshesLike, as_meshes
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.link_elements import link_elements
from morphit_ros.robot.link_jobs import Progress, naming_link, run_link_jobs
from morphit_ros.spheres.configuration import SphereFitConfig
from morphit_ros.spheres.exposed_surface import sample_exposed_surface
from morphit_ros.spheres.fit import SphereFitResult, fit_spheres
from morphit_ros.spheres.links.cache import ShapeFit
from morphit_ros.spheres.links.fit import fit_shape
from morphit_ros.spheres.links.shape import LinkShape, load_link_shape
from morphit_ros.spheres.metrics import nearest_gaps

OBJECTIVES = ("mean", "greatest")
# Most spheres of a link that a configuration accepts.
MOST_SPHERES = 2000

# A link's error is measured up to so many times the even share, and extrapolated beyond.
_MEASURED_SHARES = 4
# Points on the surface that a greatest distance is checked at, with a seed that no fit uses.
_CHECK_POINTS, _CHECK_SEED = 20000, 77


def distribute_spheres(
    description: RobotDescription,
    total: int,
    config: SphereFitConfig | None = None,
    seed: int = 0,
    *,
    objective: str = "mean",
    source: str = "collision",
    cache: bool = True,
    progress: Progress | None = None,
    workers: int | None = None,
) -> dict[str, int]:
    """Share a number of spheres out among the links of a robot, for `counts` of `fit_robot_spheres`.

    Each link with geometry gets one; each further sphere goes where it helps most. The objective "mean" is the mean
    distance between both surfaces over all of the robot's surface: a link's error is e(n) = area · d_avg(n), the
    gain of a sphere e(n) − e(n+1). The objective "greatest" is the greatest distance: the next sphere goes to the
    link with the greatest d_max(n).

    e is measured by coarse fits at n = 1, 2, 4, 8, …, interpolated linearly in log e over log n, and made falling,
    for the mean also convex: the greedy choice is then the best one for these curves.

    Args:
        description: the robot.
        total: number of spheres in all.
        config: settings of the fits; `count` and `primitive_count` play no part.
        seed: of the fits.
        objective: "mean" or "greatest".
        source, cache, progress, workers: as of `fit_robot_spheres`.

    Returns:
        link name → number of spheres, for every link with geometry; they add up to the total.

    Raises:
        InvalidInputError: less than one sphere or more than 2000 for each link; an unknown objective; or as of
            `fit_robot_spheres`.
        ResourceNotFoundError: a mesh file is missing; names the link.
    """
    if objective not in OBJECTIVES:
        raise InvalidInputError("objective", repr(objective), f"one of {', '.join(OBJECTIVES)}")
    names = _links_with_geometry(description, source)
    if not len(names) <= total <= MOST_SPHERES * len(names):
        bound = f"from {len(names)} to {MOST_SPHERES * len(names)}, 1 to {MOST_SPHERES} for each link with geometry"
        raise InvalidInputError("total", total, bound)
    if not names:
        return {}
    most = min(total - len(names) + 1, MOST_SPHERES)
    measured = min(most, _MEASURED_SHARES * -(-total // len(names)))
    coarse = _coarse(config or SphereFitConfig())

    def jobs() -> Iterator[tuple[str, str, Callable[[], Array]]]:
        for name, shape in _load_shapes(description, names, source, coarse.cover):
            yield name, shape.content_hash, partial(_error_curve, shape, measured, most, coarse, seed, objective, cache)

    curves = run_link_jobs(jobs(), len(names), workers, progress)
    return _shared_out(curves, total, objective)


def counts_for_distance(
    description: RobotDescription,
    d_max: float,
    config: SphereFitConfig | None = None,
    seed: int = 0,
    *,
    most: int = 512,
    source: str = "collision",
    cache: bool = True,
    progress: Progress | None = None,
    workers: int | None = None,
) -> dict[str, int]:
    """As few spheres for each link as keep both surfaces within a distance, for `counts` of `fit_robot_spheres`.

    `fit_robot_spheres` with these counts and the same configuration, seed and source finds the very fits that were
    checked here, in the cache. With one sphere fewer (unless it is the only one) a link missed the distance.

    Args:
        description: the robot.
        d_max: greatest distance between both surfaces [m].
        config: settings of the fits; `count` and `primitive_count` play no part.
        seed: of the fits.
        most: spheres of a link that are given up at.
        source, cache, progress, workers: as of `fit_robot_spheres`.

    Returns:
        link name → number of spheres, for every link with geometry.

    Raises:
        InvalidInputError: a distance that is not positive, or out of reach for a link with the most spheres allowed
            (says what was reached); or as of `fit_robot_spheres`.
        ResourceNotFoundError: a mesh file is missing; names the link.
    """
    _check_distance(d_max, most)
    names = _links_with_geometry(description, source)
    settings = config or SphereFitConfig()

    def jobs() -> Iterator[tuple[str, str, Callable[[], int]]]:
        for name, shape in _load_shapes(description, names, source, settings.cover):
            yield name, shape.content_hash, partial(_fewest_for_shape, shape, d_max, settings, seed, most, cache)

    return run_link_jobs(jobs(), len(names), workers, progress)


def fewest_spheres(
    mesh: MeshesLike,
    d_max: float,
    config: SphereFitConfig | None = None,
    seed: int = 0,
    *,
    most: int = 512,
) -> SphereFitResult:
    """As few spheres for a shape as keep both surfaces within a distance.

    The number is doubled until a fit keeps the distance, then bisected. Each number is fitted from the start, and if
    that misses, from the spheres of the nearest greater or smaller number. The distance |min_k(‖q − c_k‖ − r_k)| is
    checked at 20000 points q of the surface that the fit has not seen, and at the mesh's vertices where they are on
    the surface; it may be slightly greater between them. With one sphere fewer the distance was missed; that no
    other arrangement of so few keeps it is not proven.

    Args:
        mesh: one mesh, or several whose union is the shape.
        d_max: greatest distance between both surfaces [m].
        config: settings of the fits; `count` plays no part.
        seed: of the fits.
        most: spheres that are given up at.

    Raises:
        InvalidInputError: a distance that is not positive, or out of reach with the most spheres allowed (says what
            was reached), or a shape without area.
    """
    _check_distance(d_max, most)
    settings = config or SphereFitConfig()
    meshes = as_meshes(mesh)
    points = _check_points(meshes)
    found: dict[int, SphereFitResult] = {}

    def reached(count: int) -> float:
        own = replace(settings, count=count)
        found[count] = fit_spheres(meshes, own, seed)
        distance = _greatest_distance(points, found[count])
        others = sorted((abs(np.log(other / count)), -other, other) for other in found if other != count)
        if distance <= d_max or not others or settings.method != "morphit":
            return distance
        nearest = found[others[0][2]]
        warm = fit_spheres(meshes, own, seed, initial=(nearest.centers, nearest.radii))
        warm_distance = _greatest_distance(points, warm)
        if warm_distance < distance:
            found[count] = warm
        return min(distance, warm_distance)

    return found[_fewest(reached, d_max, most)]


def _links_with_geometry(description: RobotDescription, source: str) -> list[str]:
    return [name for name, link in description.links.items() if link_elements(link, source)]


def _load_shapes(
    description: RobotDescription, names: Sequence[str], source: str, enclosing: bool
) -> Iterator[tuple[str, LinkShape]]:
    for name in names:
        with naming_link(name):
            shape = load_link_shape(link_elements(description.links[name], source), enclosing)
        yield name, shape


def _coarse(config: SphereFitConfig) -> SphereFitConfig:
    """Settings of fits that only have to show how the error falls with the number of spheres."""
    return replace(config, starts=1, rounds=min(config.rounds, 4), iterations=min(config.iterations, 80), seeds=1)


def _error_curve(
    shape: LinkShape, measured: int, most: int, config: SphereFitConfig, seed: int, objective: str, cache: bool
) -> Array:
    """Error (most,) of a shape with 1, 2, … spheres, falling; for the mean convex as well."""
    counts = {2**power for power in range(measured.bit_length())}
    # The error falls at once with the number from which elements that are spheres stay themselves.
    first_locked = len(shape.ball_radii) + (len(shape.kinds) > len(shape.ball_radii))
    if shape.locked_count(first_locked):
        counts |= {count for count in (first_locked - 1, first_locked) if 1 <= count <= measured}
    errors: dict[int, float] = {}
    for count in sorted(counts):
        fit = fit_shape(shape, replace(config, count=count), seed, cache)
        errors[count] = shape.exposed_area * fit.d_avg if objective == "mean" else fit.d_max
        if errors[count] == 0.0:
            break
    curve = _interpolated(errors, most)
    return _convex_minorant(curve) if objective == "mean" else curve


def _interpolated(errors: dict[int, float], most: int) -> Array:
    """Falling errors (most,) at 1, 2, … from those at some counts, 1 among them, that noise may have let rise."""
    counts = np.array(list(errors))
    # A floor far below all errors takes the logarithm of zero.
    values = np.maximum(np.minimum.accumulate(list(errors.values())), 1e-9 * max(errors[1], 1e-300))
    logs, log_counts = np.log(values), np.log(counts)
    wanted = np.log(np.arange(1, most + 1))
    curve = np.interp(wanted, log_counts, logs)
    if len(counts) > 1 and most > counts[-1]:
        # The slope of the last two steps: that of one is mostly noise.
        before = max(0, len(counts) - 3)
        slope = (logs[-1] - logs[before]) / (log_counts[-1] - log_counts[before])
        curve = np.where(wanted > log_counts[-1], logs[-1] + slope * (wanted - log_counts[-1]), curve)
    return np.exp(curve)


def _convex_minorant(curve: Array) -> Array:
    """The greatest convex curve below: its steps are the isotonic regression of the steps."""
    if len(curve) < 3:
        return curve
    from scipy.optimize import isotonic_regression

    return curve[0] + np.concatenate([[0.0], np.cumsum(isotonic_regression(np.diff(curve)).x)])


def _shared_out(curves: dict[str, Array], total: int, objective: str) -> dict[str, int]:
    """One sphere for each link, then greedily; links of equal need take turns in their order."""
    counts = dict.fromkeys(curves, 1)

    def need(name: str) -> float:
        curve, count = curves[name], counts[name]
        if count == len(curve):
            return -np.inf
        if objective == "mean":
            return float(curve[count - 1] - curve[count])
        # Where spheres don't help, as with a surface deep inside a shape, they would all be lost.
        return float(curve[count - 1]) if curve[-1] < curve[count - 1] else 0.0

    heap = [(-need(name), 1, index, name) for index, name in enumerate(curves)]
    heapq.heapify(heap)
    for _ in range(total - len(counts)):
        _, _, index, name = heap[0]
        counts[name] += 1
        heapq.heapreplace(heap, (-need(name), counts[name], index, name))
    return counts


def _fewest_for_shape(
    shape: LinkShape, d_max: float, config: SphereFitConfig, seed: int, most: int, cache: bool
) -> int:
    points = _check_points(shape.meshes)

    def reached(count: int) -> float:
        fit = fit_shape(shape, replace(config, count=count), seed, cache)
        # Elements that are their own spheres; the points are on polyhedra.
        exact = fit.d_max == 0.0
        return 0.0 if exact else max(fit.d_max, _greatest_distance(points, fit))

    return _fewest(reached, d_max, most)


def _fewest(reached: Callable[[int], float], d_max: float, most: int) -> int:
    """A number whose distance is kept while that of one fewer is not, by doubling and bisection.

    Raises:
        InvalidInputError: none up to the greatest number keeps it.
    """
    missed, count, best = 0, 1, np.inf
    while (distance := reached(count)) > d_max:
        best = min(best, distance)
        if count == most:
            remedy = "Allow more spheres or a greater distance."
            raise InvalidInputError("d_max", d_max, f"at least {best:.3g} m, the best of up to {most} spheres", remedy)
        missed, count = count, min(2 * count, most)
    while count - missed > 1:
        middle = (missed + count) // 2
        if reached(middle) <= d_max:
            count = middle
        else:
            missed = middle
    return count


def _check_distance(d_max: float, most: int) -> None:
    if not (np.isfinite(d_max) and d_max > 0.0):
        raise InvalidInputError("d_max", d_max, "a positive distance [m]")
    if not 1 <= most <= MOST_SPHERES:
        raise InvalidInputError("most", most, f"from 1 to {MOST_SPHERES}")


def _check_points(meshes: Sequence[TriangleMesh]) -> Array:
    """Points of the surface, with the vertices of a single mesh: distances tend to be greatest at its corners."""
    points, _ = sample_exposed_surface(meshes, _CHECK_POINTS, np.random.default_rng(_CHECK_SEED))
    if len(meshes) > 1:
        return points
    return np.concatenate([points, meshes[0].vertices[np.unique(meshes[0].faces)]])


def _greatest_distance(points: Array, spheres: SphereFitResult | ShapeFit) -> float:
    return float(np.abs(nearest_gaps(points, spheres.centers, spheres.radii)).max())
