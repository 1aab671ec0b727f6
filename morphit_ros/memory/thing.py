"""What is known of one thing, and its file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.archive import read_archive, write_archive
from morphit_ros.geometry.thinning import thin_evenly
from morphit_ros.geometry.transforms import Array, check_transform, make_transform, transform_points
from morphit_ros.memory.look import Look

_KIND, _VERSION = "known thing", 1
# Of the cloud, of eyes and supports that are remembered, and of grasps of each outcome: the newest.
_MOST_POINTS, _MOST_EYES, _MOST_PLANES, _MOST_GRASPS = 2500, 12, 6, 20
# No thing on a table reaches further [m], nothing an arm lifts weighs more [kg].
_LARGEST, _HEAVIEST = 3.0, 200.0
# Points of a new look further than this from all known ones show a new part of the thing [m].
_NEW = 0.004
# A mass that differs by more than three deviations and this share is another one: the thing was filled or emptied.
_CHANGED = 0.15
# No weighing is trusted further than this share of its mass, nor as for the centre than this [m].
_LEAST_MASS_DEVIATION, _LEAST_DEVIATION = 0.01, 0.003


@dataclass(frozen=True)
class Weight:
    """Mass and centre of mass, with what is known of their errors.

    Attributes:
        mass, deviation: and its standard deviation [kg].
        center: (3,) of mass [m].
        covariance: (3, 3) of its error [m²]: large along the vertical of the lift, of which weighing says nothing.
    """

    mass: float
    deviation: float
    center: Array
    covariance: Array

    def moved(self, transform: Array) -> Weight:
        """In another frame, by ``T_target_source`` (4, 4)."""
        turn = transform[:3, :3]
        center = transform_points(transform, self.center[None])[0]
        return replace(self, center=center, covariance=turn @ self.covariance @ turn.T)

    def joined(self, newer: Weight) -> Weight:
        """With a newer weighing in the same frame; what contradicts it is forgotten."""
        first, second = self._bounded(), newer._bounded()
        apart = abs(self.mass - newer.mass)
        if apart > max(3.0 * float(np.hypot(first.deviation, second.deviation)), _CHANGED * newer.mass):
            return second
        shares = np.array([first.deviation**-2, second.deviation**-2])
        mass = float(shares @ [first.mass, second.mass] / shares.sum())
        known, found = np.linalg.inv(first.covariance), np.linalg.inv(second.covariance)
        covariance = np.linalg.inv(known + found)
        center = covariance @ (known @ first.center + found @ second.center)
        return Weight(mass, float(shares.sum() ** -0.5), center, covariance)

    def _bounded(self) -> Weight:
        least = _LEAST_DEVIATION**2 * np.eye(3)
        return replace(
            self,
            deviation=max(self.deviation, _LEAST_MASS_DEVIATION * self.mass),
            covariance=self.covariance + least,
        )


@dataclass(frozen=True)
class Lesson:
    """What a pick has taught of its object, in the frame of a look at it.

    Attributes:
        weight: None if it was not weighed.
        held, failed: (4, 4) of grasps that held and that did not.
    """

    weight: Weight | None = None
    held: tuple[Array, ...] = ()
    failed: tuple[Array, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was learned."""
        return self.weight is None and not self.held and not self.failed

    def moved(self, transform: Array) -> Lesson:
        """In another frame, by ``T_target_source`` (4, 4)."""
        return Lesson(
            None if self.weight is None else self.weight.moved(transform),
            tuple(transform @ pose for pose in self.held),
            tuple(transform @ pose for pose in self.failed),
        )


@dataclass(frozen=True)
class KnownThing:
    """A thing in its own frame: that of the first look at it, moved to the middle of its box.

    Attributes:
        name: of its file, without suffix: a hash of the first look.
        look: all looks together.
        knowledge: what was learned.
        looks: how often it was seen.
    """

    name: str
    look: Look
    knowledge: Lesson = field(default_factory=Lesson)
    looks: int = 1

    @classmethod
    def first_seen(cls, look: Look) -> tuple[KnownThing, Array]:
        """A new one, and ``T_thing_seen`` (4, 4) from the frame of the look."""
        T_thing_seen = make_transform(translation=-look.middle)
        own = look.transformed(T_thing_seen)
        own = _bounded(replace(own, eyes=own.free_eyes))
        digest = hashlib.sha256(own.points.astype(np.float32).tobytes()).hexdigest()
        return cls(f"thing-{digest[:12]}", own), T_thing_seen

    def seen_again(self, look: Look) -> KnownThing:
        """With what a look in its own frame adds to its surface."""
        from scipy.spatial import cKDTree

        new = cKDTree(self.look.points).query(look.points)[0] > _NEW
        joined = Look(
            np.concatenate([self.look.points, look.points[new]]),
            np.concatenate([self.look.normals, look.normals[new]]),
            np.concatenate([self.look.eyes, look.free_eyes]),
            np.concatenate([self.look.planes, look.planes]),
        )
        return replace(self, look=_bounded(joined), looks=self.looks + 1)

    def taught(self, lesson: Lesson) -> KnownThing:
        """With a lesson in its own frame."""
        known, weight = self.knowledge, lesson.weight
        if known.weight is not None:
            weight = known.weight if weight is None else known.weight.joined(weight)
        held, failed = (*known.held, *lesson.held), (*known.failed, *lesson.failed)
        return replace(self, knowledge=Lesson(weight, held[-_MOST_GRASPS:], failed[-_MOST_GRASPS:]))

    def write(self, folder: Path) -> None:
        """Its file, which appears complete or stays as it was.

        Raises:
            OSError: it cannot be written.
        """
        known, header = self.knowledge, {"looks": self.looks}
        arrays: dict[str, Array] = {
            "points": self.look.points, "normals": self.look.normals, "eyes": self.look.eyes,
            "planes": self.look.planes,
            "held": np.array(known.held).reshape(-1, 4, 4), "failed": np.array(known.failed).reshape(-1, 4, 4),
        }  # fmt: skip
        if known.weight is not None:
            weight = known.weight
            arrays["mass"] = np.array([weight.mass, weight.deviation])
            arrays |= {"center": weight.center, "covariance": weight.covariance}
        write_archive(folder / f"{self.name}{SUFFIX}", _KIND, _VERSION, header, arrays)

    @classmethod
    def read(cls, path: Path) -> KnownThing:
        """From its file.

        Raises:
            ResourceNotFoundError: there is none.
            InvalidInputError: it is damaged, of another version, or holds what no thing is.
        """
        header, arrays = read_archive(path, _KIND, _VERSION)
        try:
            return cls(path.name.removesuffix(SUFFIX), *_checked(header, arrays))
        except (KeyError, ValueError, TypeError) as error:
            raise InvalidInputError(
                str(path), f"{type(error).__name__}: {error}"[:200], "what a library writes"
            ) from error


SUFFIX = ".thing"


def _checked(header: dict[str, Any], arrays: dict[str, Any]) -> tuple[Look, Lesson, int]:
    for name, most in (
        ("points", 2 * _MOST_POINTS), ("eyes", _MOST_EYES), ("planes", _MOST_PLANES),
        ("held", _MOST_GRASPS), ("failed", _MOST_GRASPS),
    ):  # fmt: skip
        if len(arrays[name]) > most:
            raise ValueError(f"{len(arrays[name])} {name}")
    look = Look(arrays["points"], arrays["normals"], arrays["eyes"], arrays["planes"])
    if len(look.points) < 10 or np.abs(look.points).max() > _LARGEST:
        raise ValueError("points of no thing")
    held, failed = (
        tuple(check_transform(pose, name) for pose in arrays[name].reshape(-1, 4, 4)) for name in ("held", "failed")
    )
    weight = None
    if "mass" in arrays:
        mass, deviation = map(float, arrays["mass"])
        weight = Weight(mass, deviation, arrays["center"].reshape(3), arrays["covariance"].reshape(3, 3))
        numbers = [mass, deviation, *weight.center, *weight.covariance.ravel()]
        if not np.isfinite(numbers).all() or not 0.0 < mass < _HEAVIEST or deviation < 0.0:
            raise ValueError(f"a mass of {mass} ± {deviation} kg")
        if np.abs(weight.center).max() > _LARGEST or np.linalg.eigvalsh(weight.covariance).min() <= 0.0:
            raise ValueError("a centre of mass of no thing")
    return look, Lesson(weight, held, failed), int(header["looks"])


def _bounded(look: Look) -> Look:
    """Fewer points, the newest eyes and supports."""
    rows = thin_evenly(look.points, look.normals, _MOST_POINTS, np.random.default_rng(0))
    return Look(look.points[rows], look.normals[rows], look.eyes[-_MOST_EYES:], look.planes[-_MOST_PLANES:])
