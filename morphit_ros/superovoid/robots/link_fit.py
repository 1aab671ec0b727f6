"""The shape of a link as one or several superovoids: cut where it pays, all improved together, measured with proof."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.deviation import Deviation
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.solid import Solid
from morphit_ros.geometry.transforms import transform_points
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.fits.config import LinkFitConfig
from morphit_ros.superovoid.fits.containing import smallest_containing
from morphit_ros.superovoid.fits.descent import SQUARES
from morphit_ros.superovoid.fits.errors import FitErrors, measure_fit
from morphit_ros.superovoid.fits.fit import ERROR_POINTS, Containment, from_superovoid, to_superovoid
from morphit_ros.superovoid.fits.samples import sample_fit_surface
from morphit_ros.superovoid.fits.search import make_descent, search
from morphit_ros.superovoid.robots.containing_union import containing_union
from morphit_ros.superovoid.robots.deviation import shape_deviation
from morphit_ros.superovoid.robots.union_descent import Shapes, UnionDescent, make_target

# Points of the surface that several shapes are fitted to, relative to those for one.
_MORE_POINTS = 1.5
# Where a greatest distance is asked for: below which multiple of it the greatest distances are pressed; how often
# points that turned out to be far off join the others, for a number of shapes; where points beside those of the model
# are, on the way to the solid; and the number of cuts without success after which no more are tried.
_PRESSED, _FAR_ROUNDS, _ON_THE_WAY, _GIVEN_UP = 2.5, 2, (0.1, 0.3, 0.6), 5


@dataclass(frozen=True)
class LinkFit:
    """Superovoids of one link's shape.

    Attributes:
        shapes: in the frame of the meshes.
        errors: of their union.
        containment: as of `SuperovoidFitResult`, for the union.
        deviation: greatest distances between link and shapes, proven.
    """

    shapes: tuple[PlacedSuperovoid, ...]
    errors: FitErrors
    containment: Containment
    deviation: Deviation


def fit_link_superovoids(
    meshes: Sequence[TriangleMesh],
    config: LinkFitConfig | None = None,
    seed: int = 0,
    count: int | None = None,
    *,
    enclosing: Sequence[TriangleMesh] | None = None,
    start: Sequence[PlacedSuperovoid] = (),
) -> LinkFit:
    """Fit one or several superovoids to the union of meshes.

    One of the shapes that cost most is cut across one of its axes, where this takes away most of the cost; all shapes
    are then improved together, each on the points that it is nearest to. Shapes may overlap.

    Args:
        meshes: in one frame.
        config: settings.
        seed: of sampling and of random starts.
        count: exactly so many shapes, however little they gain; None for as many as pay.
        enclosing: meshes around the same solid, where the others are inscribed in round elements: what is proven holds
            for everything between the two.
        start: shapes in the frame of the meshes, to be improved together as they are: none is cut, `count` is theirs.

    Raises:
        InvalidInputError: no mesh, a surface without extent in some direction, a count below one, or more shapes than
            the surface can be cut into.
    """
    settings = config or LinkFitConfig()
    if count is not None and count < 1:
        raise InvalidInputError("count", count, "at least 1")
    if seed < 0:
        raise InvalidInputError("seed", seed, "0 or more")
    if not meshes:
        raise InvalidInputError("meshes", "none", "at least one mesh")
    fitter = _LinkFitter(meshes, settings, np.random.default_rng(seed), enclosing)
    if start:
        if count not in (None, len(start)):
            raise InvalidInputError("count", count, f"{len(start)}, the number of shapes to start from")
        return fitter.finished(fitter.improved(start))
    if count is None and settings.d_max > 0.0:
        return fitter.finished(fitter.near())
    shapes = fitter.first()
    while not fitter.is_enough(shapes, count):
        better = fitter.one_more(shapes, 0.0 if count is not None else settings.gain)
        if better is None:
            break
        shapes = better
    if count is not None and len(shapes) < count:
        raise InvalidInputError("count", count, f"at most {len(shapes)}, the parts that this surface was cut into")
    return fitter.finished(shapes)


class _LinkFitter:
    """Fits of one link."""

    def __init__(
        self,
        meshes: Sequence[TriangleMesh],
        config: LinkFitConfig,
        rng: np.random.Generator,
        enclosing: Sequence[TriangleMesh] | None,
    ) -> None:
        self._config, self._rng, self._meshes = config, rng, meshes
        self._samples = sample_fit_surface(meshes, max(config.fit.samples, ERROR_POINTS), rng)
        self._solid = Solid(meshes)
        self._enclosing = self._solid if enclosing is None else Solid(enclosing)
        reach = float(np.linalg.norm(self._samples.vertices, axis=1).max())
        self._first_descent = make_descent(config.fit, reach, True)
        descent = self._first_descent
        if config.fit.loss == "auto":
            # A point far from one shape is near to another: there are no outliers to be spared.
            descent = replace(descent, loss=SQUARES)
        target = make_target(self._solid, self._samples, int(_MORE_POINTS * config.fit.samples), rng, config.d_max)
        self._descent = UnionDescent(descent, target)
        self._tolerance = config.tolerance * self._solid.diagonal / self._samples.scale

    def first(self) -> Shapes:
        """One shape."""
        points = np.ascontiguousarray(self._samples.points[: self._config.fit.samples])
        free = self._samples.free[: len(points) // 2]
        found = search(points, np.ones(len(points)), free, self._first_descent, self._config.fit, self._rng)
        return self._descent.improved((found[0],))

    def improved(self, start: Sequence[PlacedSuperovoid]) -> Shapes:
        """Given shapes, all improved together, or as they are where nothing improves them."""
        return self._descent.improved(tuple(from_superovoid(placed, self._samples) for placed in start))

    def is_enough(self, shapes: Shapes, count: int | None) -> bool:
        """Whether so many shapes are asked for, or they are good enough."""
        if count is not None:
            return len(shapes) >= count
        return len(shapes) >= self._config.max_count or self._descent.error(shapes) <= self._tolerance

    def near(self) -> Shapes:
        """As many shapes as it takes until the greatest distance is as small as is asked for; the nearest found."""
        shapes = self.first()
        best, least, idle = shapes, math.inf, 0
        while True:
            shapes, greatest = self._pressed(shapes)
            idle = 0 if greatest < least else idle + 1
            if greatest < least:
                best, least = shapes, greatest
            if least <= self._config.d_max or len(shapes) >= self._config.max_count or idle == _GIVEN_UP:
                return best
            # A cut that lowers the mean may leave the greatest distances as they are.
            is_pressed = greatest <= _PRESSED * self._config.d_max
            more = (self._descent.pressing if is_pressed else self._descent).cut(shapes)
            if more is None:
                return best
            shapes = more

    def one_more(self, shapes: Shapes, gain: float) -> Shapes | None:
        """With another shape; None where there is no place for it, or it takes away less than a share of the error."""
        better = self._descent.cut(shapes)
        if better is None or self._descent.error(better) > (1.0 - gain) * self._descent.error(shapes) > 0.0 < gain:
            return None
        return better

    def finished(self, shapes: Shapes) -> LinkFit:
        """Shapes in metres, contained or closer still as the settings ask for, and what is proven of them."""
        containment: Containment = "none"
        if self._config.fit.mode == "outer":
            shapes, containment = self._containing(shapes)
        placed = self._placed(shapes)
        samples = self._samples
        together = transform_points(samples.T_mesh_samples, samples.points * samples.scale)
        deviation = shape_deviation(self._solid, placed, self._enclosing, containment == "proven")
        return LinkFit(placed, measure_fit(placed, together, self._meshes), containment, deviation)

    def _placed(self, shapes: Shapes) -> tuple[PlacedSuperovoid, ...]:
        return tuple(to_superovoid(shape, self._samples) for shape in shapes)

    def _containing(self, shapes: Shapes) -> tuple[Shapes, Containment]:
        if len(shapes) > 1:
            found, proven = containing_union(shapes, self._descent, self._enclosing, self._samples, self._placed)
            return found, "proven" if proven else "vertices"
        # A single convex shape holds everything if it holds the corners of the hull.
        vertices = np.concatenate([self._samples.vertices, self._samples.in_samples(self._enclosing.vertices)])
        shape = smallest_containing(self._descent.target.points, vertices, list(shapes), self._first_descent)
        convex = self._placed((shape,))[0].shape.convexity().convex
        return (shape,), "proven" if convex else "vertices"

    def _pressed(self, shapes: Shapes) -> tuple[Shapes, float]:
        """Shapes whose greatest distance is smaller, or the same, and this distance [m].

        Points that turn out to be far off join the others, for all descents to come.
        """
        best, least = shapes, math.inf
        for round_ in range(_FAR_ROUNDS + 1):
            found = shape_deviation(self._solid, self._placed(shapes), self._enclosing)
            greatest = max(found.solid_to_model, found.model_to_solid)
            if greatest < least:
                best, least = shapes, greatest
            if least <= self._config.d_max or least > _PRESSED * self._config.d_max or round_ == _FAR_ROUNDS:
                break
            far = found.far_in_model
            ways = self._solid.feet(far) - far if len(far) else far
            between = np.concatenate([far + share * ways for share in _ON_THE_WAY])
            in_samples = self._samples.in_samples
            target = self._descent.target.joined(in_samples(found.far_in_solid), in_samples(between))
            self._descent = replace(self._descent, target=target)
            shapes = self._descent.pressing.improved(shapes)
        return best, least
