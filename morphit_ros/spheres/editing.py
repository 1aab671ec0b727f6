"""Spheres edited by hand: immutable states, the operations between them, and undo.

Nothing here draws. A sphere is addressed by its row. Locked spheres are those that a refit keeps, to the bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.history import History
from morphit_ros.spheres.configuration import VARIANTS
from morphit_ros.spheres.metrics import checked_spheres
from morphit_ros.spheres.robot_model import MIXED, LinkSpheres, SphereModel


class SphereFit(Protocol):
    """Fits spheres to the shape of a link, from those that it has."""

    def __call__(
        self, count: int, variant: str, centers: Array, radii: Array, locked: NDArray[np.bool_]
    ) -> tuple[Array, Array]:
        """Exactly `count` spheres, centres (count, 3) and radii (count,) [m] in the link's frame.

        Args:
            count: at least the number of locked spheres, and at least 1.
            variant: preset of the losses.
            centers, radii: (N, 3) and (N,) [m], to start from.
            locked: (N,), which of them come first in the result, in their order and unchanged.
        """


@dataclass(frozen=True, eq=False)
class EditedLink:
    """The spheres of one link. Equal only to itself: every change makes another one.

    Attributes:
        centers, radii: (N, 3) and (N,) [m] in the link's frame, N ≥ 1; read only.
        locked: (N,), which spheres a refit keeps.
        variant: preset of the losses that refits use.

    Raises:
        InvalidInputError: malformed arrays, no sphere, or a radius that is not positive.
    """

    centers: Array
    radii: Array
    locked: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    variant: str = "balanced"

    def __post_init__(self) -> None:
        centers, radii = checked_spheres(self.centers, self.radii)
        locked = np.asarray(self.locked, dtype=bool)
        if not len(locked):
            locked = np.zeros(len(radii), dtype=bool)
        if locked.shape != radii.shape:
            raise InvalidInputError("locked", f"shape {locked.shape}", f"shape {radii.shape}")
        for name, array in (("centers", centers), ("radii", radii), ("locked", locked)):
            own = array.copy()
            own.setflags(write=False)
            object.__setattr__(self, name, own)

    def __len__(self) -> int:
        return len(self.radii)

    def moved(self, sphere: int, center: ArrayLike) -> EditedLink:
        """With one centre (3,) [m] elsewhere."""
        centers = self.centers.copy()
        centers[self.row(sphere)] = _checked_center(center)
        return replace(self, centers=centers)

    def resized(self, sphere: int, radius: float) -> EditedLink:
        """With another radius [m] of one sphere."""
        radii = self.radii.copy()
        radii[self.row(sphere)] = radius
        return replace(self, radii=radii)

    def with_lock(self, sphere: int, locked: bool) -> EditedLink:
        """With one sphere locked or free."""
        locks = self.locked.copy()
        locks[self.row(sphere)] = locked
        return replace(self, locked=locks)

    def with_all_locks(self, locked: bool) -> EditedLink:
        """With all spheres locked or free."""
        return replace(self, locked=np.full(len(self), locked))

    def with_variant(self, variant: str) -> EditedLink:
        """With another preset for the refits to come."""
        return replace(self, variant=variant)

    def added(self, center: ArrayLike, radius: float, locked: bool = False) -> EditedLink:
        """With another sphere in the last row: centre (3,) and radius [m]."""
        return replace(
            self,
            centers=np.concatenate([self.centers, _checked_center(center)[None]]),
            radii=np.append(self.radii, radius),
            locked=np.append(self.locked, locked),
        )

    def removed(self, sphere: int) -> EditedLink:
        """Without one sphere; those behind it move up a row.

        Raises:
            InvalidInputError: it is the only one.
        """
        if len(self) == 1:
            raise InvalidInputError("spheres", "the last one of the link", "at least one that stays")
        kept = np.arange(len(self)) != self.row(sphere)
        return replace(self, centers=self.centers[kept], radii=self.radii[kept], locked=self.locked[kept])

    def refitted(self, fit: SphereFit, count: int | None = None) -> EditedLink:
        """With the free spheres fitted anew, so that there are `count` in all (as many as now, if left out).

        Locked spheres come first, in their order.

        Raises:
            InvalidInputError: a count below the number of locked spheres or below 1, or a fit that did not do as told.
        """
        total = len(self) if count is None else count
        kept = int(self.locked.sum())
        if total < max(kept, 1):
            remedy = "Unlock some, or ask for more." if kept else ""
            raise InvalidInputError("count", total, f"at least {max(kept, 1)}, {kept} being locked", remedy)
        centers, radii = self.centers[self.locked], self.radii[self.locked]
        if total > kept:
            centers, radii = fit(total, self.variant, self.centers, self.radii, self.locked)
        told = (
            len(centers) == len(radii) == total
            and np.array_equal(centers[:kept], self.centers[self.locked])
            and np.array_equal(radii[:kept], self.radii[self.locked])
        )
        if not told:
            raise InvalidInputError("fit", f"{len(radii)} spheres", f"{total}, the {kept} locked ones first, unchanged")
        return EditedLink(centers, radii, np.arange(total) < kept, self.variant)

    def row_after_refit(self, sphere: int) -> int | None:
        """The row that a sphere has after a refit; None if it is free, and will be another."""
        row = self.row(sphere)
        return int(self.locked[:row].sum()) if self.locked[row] else None

    def same_spheres(self, centers: Array, radii: Array) -> bool:
        """Whether these are the spheres, to the bit and in this order."""
        return np.array_equal(self.centers, centers) and np.array_equal(self.radii, radii)

    def row(self, sphere: int) -> int:
        """The row, which must exist.

        Raises:
            InvalidInputError: it does not; as all methods that address a sphere.
        """
        if not 0 <= sphere < len(self):
            raise InvalidInputError("sphere", sphere, f"a row from 0 to {len(self) - 1}")
        return sphere


def _checked_center(center: ArrayLike) -> Array:
    point = np.asarray(center, dtype=np.float64)
    if point.shape != (3,):
        raise InvalidInputError("center", f"shape {point.shape}", "shape (3,)")
    return point


@dataclass(frozen=True)
class EditedModel:
    """A robot's spheres, link by link: link name → spheres."""

    links: Mapping[str, EditedLink]

    def __getitem__(self, link: str) -> EditedLink:
        if link not in self.links:
            raise InvalidInputError("link", repr(link), f"one of {', '.join(self.links)}")
        return self.links[link]

    @property
    def count(self) -> int:
        """Number of spheres of all links."""
        return sum(len(link) for link in self.links.values())

    def with_link(self, name: str, link: EditedLink) -> EditedModel:
        """With other spheres of one link; the other links are the same objects."""
        self[name]
        return EditedModel({**self.links, name: link})


EditHistory = History[EditedModel]


def edited_from_model(model: SphereModel) -> EditedModel:
    """A sphere model to edit; nothing is locked, and a model of several variants is refitted as balanced.

    Raises:
        InvalidInputError: a link without spheres.
    """
    variant = model.variant if model.variant in VARIANTS else VARIANTS[0]
    return EditedModel(
        {name: EditedLink(spheres.centers, spheres.radii, variant=variant) for name, spheres in model.links.items()}
    )


def model_from_edited(
    edited: EditedModel, original: SphereModel, distances: Callable[[str, EditedLink], tuple[float, float]]
) -> SphereModel:
    """The sphere model of an edit. Links whose spheres are those of the original keep what is known of them.

    Args:
        edited: the spheres now.
        original: where the edit began; gives the model its name.
        distances: d_avg and d_max [m] of a link that changed.
    """
    links: dict[str, LinkSpheres] = {}
    variants = set()
    for name, link in edited.links.items():
        before = original.links.get(name)
        if before is not None and link.same_spheres(before.centers, before.radii):
            links[name] = before
            variants.add(original.variant)
            continue
        digest = hashlib.sha256(b"edited" + link.centers.tobytes() + link.radii.tobytes()).hexdigest()
        links[name] = LinkSpheres(name, link.centers, link.radii, *distances(name, link), digest)
        variants.add(link.variant)
    return replace(original, variant=variants.pop() if len(variants) == 1 else MIXED, links=links)
