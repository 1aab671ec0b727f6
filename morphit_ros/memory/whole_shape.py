"""The whole shape of an object from several looks at it: what was seen, in its own frame, and superovoids near that.

Looks are joined by registration, from where the object was before and else from anywhere; what hidden sides look like
is asked of a completion that is handed in. What was seen is measured, the rest assumed, and both are told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes, sample_surface_evenly
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points
from morphit_ros.memory.look import Look
from morphit_ros.memory.recognition import Shape, register
from morphit_ros.memory.thing import KnownThing
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.fits.config import SuperovoidFitConfig
from morphit_ros.superovoid.fits.errors import union_distances
from morphit_ros.superovoid.fits.fit import fit_superovoid
from morphit_ros.superovoid.shapes.superovoid import Superovoid

# Share of the seen points that lie within the stated deviation.
_SHARE = 0.95
# What is next to a place that has been seen is no farther from it than this [m].
_BESIDE = 0.006
# Superovoids of an object at most; another one has to take away so much of the mean depth of its points below the
# hulls, which is good enough below this [m].
_MOST, _GAIN, _ENOUGH = 4, 0.15, 0.002
# Cuts are tried across the principal axes, at these shares of the length, with so many points on each side at least.
_CUTS, _FEWEST = np.linspace(0.1, 0.9, 9), 40
# Of a thing that is no higher than this the side that it lies on is taken for its outline [m].
_LOW = 0.03
_FIT = SuperovoidFitConfig(convex=True, samples=400, starts=6)
# Of meshes from the superovoids [m].
_CHORD_ERROR = 5e-4
# A look adds to the shape where such a part of its points is further than this from all known ones [m]; it contradicts
# the shape where its points stick out by more than those of before, and this [m].
_NEW, _APART, _MARGIN = 0.02, 0.004, 0.004


class KnownSurface(NamedTuple):
    """A surface that is known of an object besides what looks at it show.

    Attributes:
        points: (M, 3) of all its sides [m].
        source: where it comes from, for people; another one counts as another surface.
    """

    points: Array
    source: str


@dataclass(frozen=True)
class WholeShape:
    """Superovoids near all that was seen of an object, and what is assumed of it.

    Attributes:
        shapes: in the object's own frame; convex.
        mesh: of their union: a closed surface each, in the object's own frame.
        T_world_object: (4, 4) where it was seen last.
        deviation: within which 95 % of the seen points are from the surface of the superovoids [m]. Of sides that
            were not seen it says nothing.
        outside: by which 95 % of the seen points stick out of them at most [m].
        assumed: part of that surface which no look has shown, and that is not known otherwise.
        looks: that it is from.
        seen: time of the last of them [s].
        known: source of what is known of it besides, empty for none.
    """

    shapes: tuple[PlacedSuperovoid, ...]
    mesh: TriangleMesh
    T_world_object: Array
    deviation: float
    outside: float
    assumed: float
    looks: int
    seen: float
    known: str = ""

    def holds(self, points: Array) -> bool:
        """Whether a look at points (N, 3) in the world agrees: the object is where it was, and no larger."""
        if not len(points):
            return False
        outside = union_distances(self.shapes, transform_points(invert_transform(self.T_world_object), points))
        return float(np.quantile(outside, _SHARE)) <= self.outside + _MARGIN

    def grown(self, margin: float) -> list[PlacedSuperovoid]:
        """Shapes whose semi-axes are longer by what the seen points stick out and by a margin [m]."""
        longer = np.array([self.outside + margin] * 3 + [0.0] * 4)
        return [
            PlacedSuperovoid(Superovoid.from_parameters(placed.shape.parameters + longer), placed.T_link_shape)
            for placed in self.shapes
        ]


class WholeShapes:
    """Shapes of objects by their numbers; takes a second a look, so that it is for a thread of its own.

    Args:
        complete: hidden sides of an object that a look shows, points (V, 3) in the frame of the look.
    """

    def __init__(self, complete: Callable[[Look], Array]) -> None:
        self._complete = complete
        self._things: dict[int, KnownThing] = {}
        self._shapes: dict[int, WholeShape] = {}
        # In the objects' own frames.
        self._surfaces: dict[int, KnownSurface] = {}

    def at(self, number: int) -> WholeShape | None:
        """The shape of an object, None before it has one."""
        return self._shapes.get(number)

    def seen(self, number: int) -> Array:
        """Points (N, 3) of all looks at an object that has a shape, in its own frame."""
        return self._things[number].look.points

    def keep(self, numbers: Collection[int]) -> None:
        """Let go of all other objects."""
        self._things = {number: thing for number, thing in self._things.items() if number in numbers}
        self._shapes = {number: shape for number, shape in self._shapes.items() if number in numbers}
        self._surfaces = {number: surface for number, surface in self._surfaces.items() if number in numbers}

    def see(self, number: int, look: Look, stamp: float, surface: KnownSurface | None = None) -> None:
        """Take in a look at an object, in the world: one that does not agree with the earlier ones begins anew.

        A surface, in the world too, stands for the completion from then on, also where the object is moved.
        """
        from scipy.spatial import cKDTree

        thing, shape = self._things.get(number), self._shapes.get(number)
        T_thing_world, added = None, True
        if thing is not None and shape is not None:
            T_thing_world = _pose_in(thing, look, invert_transform(shape.T_world_object))
        if thing is None or T_thing_world is None:
            thing, T_thing_world = KnownThing.first_seen(look)
            self._surfaces.pop(number, None)
        else:
            own = look.transformed(T_thing_world)
            added = float((cKDTree(thing.look.points).query(own.points)[0] > _APART).mean()) > _NEW
            thing = thing.seen_again(own)
        self._things[number] = thing
        T_world_thing = invert_transform(T_thing_world)
        known = self._surfaces.get(number)
        if surface is not None and (known is None or known.source != surface.source):
            known, added = KnownSurface(transform_points(T_thing_world, surface.points), surface.source), True
            self._surfaces[number] = known
        if shape is not None and not added:
            shapes, mesh = shape.shapes, shape.mesh
        else:
            own = look.transformed(T_thing_world)
            whole = Look(thing.look.points, thing.look.normals, thing.look.eyes, own.planes, own.blockers)
            rest = [self._complete(whole), _feet(whole)] if known is None else [known.points]
            found = superovoids_of(np.concatenate([whole.points, *rest]))
            if found is None:
                self._shapes.pop(number, None)
                return
            shapes, mesh = found, mesh_of(found)
        away = union_distances(shapes, thing.look.points)
        deviation, outside = float(np.quantile(np.abs(away), _SHARE)), max(0.0, float(np.quantile(away, _SHARE)))
        shown, source = [thing.look.points], ""
        if known is not None:
            shown, source = [*shown, known.points], known.source
        assumed = _unseen_share(shapes, np.concatenate(shown))
        self._shapes[number] = WholeShape(
            shapes, mesh, T_world_thing, deviation, outside, assumed, thing.looks, stamp, source
        )


def _feet(look: Look) -> Array:
    """Points (N, 3) below a thing that is so low that its sides hardly show: the side that lies on its support."""
    if not len(look.planes):
        return np.empty((0, 3))
    height = look.points @ look.planes[0, :3] - look.planes[0, 3]
    low = height.max() < _LOW
    return np.asarray((look.points - height[:, None] * look.planes[0, :3])[height > 0.0]) if low else np.empty((0, 3))


def superovoids_of(points: Array) -> tuple[PlacedSuperovoid, ...] | None:
    """A few convex superovoids near the convex hulls of parts of a surface.

    The points (N, 3) are cut by planes across their principal axes where that takes most of their depth below their
    hulls away (approximate convex decomposition, Lien and Amato 2007). None where they are too few, or flat.
    """
    from scipy.spatial import QhullError

    try:
        parts = [points]
        while len(parts) < _MOST:
            depths = [_depths(part) for part in parts]
            whole = float(np.concatenate(depths).mean())
            if whole <= _ENOUGH:
                break
            index = int(np.argmax([depth.sum() for depth in depths]))
            cuts = _cuts(parts[index])
            left = [sum(float(_depths(side).sum()) for side in sides) for sides in cuts]
            if not cuts or depths[index].sum() - min(left) < _GAIN * whole * len(points):
                break
            parts[index : index + 1] = cuts[int(np.argmin(left))]
        return tuple(fit_superovoid(_hull(part), _FIT).placed for part in parts)
    except (InvalidInputError, QhullError):
        return None


def mesh_of(shapes: Sequence[PlacedSuperovoid]) -> TriangleMesh:
    """Closed surfaces of placed superovoids, in the frame that they are placed in, within 0.5 mm of theirs."""
    return concatenate_meshes([each.shape.mesh(_CHORD_ERROR).transformed(each.T_link_shape) for each in shapes])


def _hull(points: Array) -> TriangleMesh:
    """The convex hull of points (N, 3), its faces turned outwards."""
    from scipy.spatial import ConvexHull

    hull = ConvexHull(points)
    faces = hull.simplices.astype(np.int64)
    a, b, c = (hull.points[faces[:, k]] for k in range(3))
    turned = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0.0
    faces[turned] = faces[turned][:, ::-1]
    rows = np.full(len(points), -1)
    rows[hull.vertices] = np.arange(len(hull.vertices))
    return TriangleMesh(hull.points[hull.vertices], rows[faces])


def _depths(points: Array) -> Array:
    """How far each of points (N, 3) is below the surface of their convex hull [m]."""
    from scipy.spatial import ConvexHull

    planes = ConvexHull(points).equations
    return np.asarray(-(points @ planes[:, :3].T + planes[:, 3]).max(axis=1))


def _cuts(points: Array) -> list[list[Array]]:
    """Both sides of each cut that is tried."""
    found = []
    for axis in np.linalg.eigh(np.cov(points.T))[1].T:
        along = points @ axis
        for level in along.min() + np.ptp(along) * _CUTS:
            sides = [points[along <= level], points[along > level]]
            if min(map(len, sides)) >= _FEWEST:
                found.append(sides)
    return found


def _pose_in(thing: KnownThing, look: Look, T_thing_world: Array) -> Array | None:
    """``T_thing_world`` (4, 4) of a look, looked for at once where it was before; None where the look shows another."""
    known, seen = Shape(thing.look), Shape(look)
    match = register(known, seen, T_thing_world)
    if not match.explains:
        match = register(known, seen)
    return match.T_known_seen if match.explains else None


def _unseen_share(shapes: Sequence[PlacedSuperovoid], points: Array) -> float:
    """Part of the surface of a union that no seen point (N, 3) is nearest to, nor next to such a place."""
    from scipy.spatial import cKDTree

    rng, surface = np.random.default_rng(0), []
    for placed in shapes:
        mesh = placed.shape.mesh(0.02 * placed.shape.size)
        surface.append(transform_points(placed.T_link_shape, sample_surface_evenly(mesh, 800, rng)[0]))
    outer = np.concatenate(surface)
    outer = outer[union_distances(shapes, outer) >= -1e-3]
    if not len(outer):
        return 1.0
    nearest = np.unique(cKDTree(outer).query(points)[1])
    return float((cKDTree(outer[nearest]).query(outer)[0] > _BESIDE).mean())
