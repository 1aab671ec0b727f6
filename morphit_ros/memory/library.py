"""A folder of known things: what is seen is looked up in it, and what picks teach is kept in it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from morphit_ros.errors import MorphitError
from morphit_ros.geometry.transforms import invert_transform
from morphit_ros.memory.look import Look
from morphit_ros.memory.recognition import Match, Shape, register
from morphit_ros.memory.thing import SUFFIX, KnownThing, Lesson

# More things are not read; those that come nearest in length are compared, which takes 0.2 s each.
_MOST_THINGS, _MOST_COMPARED = 300, 40
# Looks that share less with what is known lie less surely, and add nothing to its surface.
_SURE = 0.5
# What is seen of a thing is so much of the length that is known of it.
_LEAST_LENGTH, _MOST_LENGTH = 0.7, 1.25
# Where two things fit about as well, they are taken for one if they weigh about the same.
_RIVAL, _ALIKE = 0.85, 0.15
# Added to the name of a file that cannot be read.
_ASIDE = ".damaged"


class Recognition(NamedTuple):
    """A known thing, and how it lies.

    Attributes:
        thing: as the library knows it.
        match: of its look with the present one; its frame is the thing's.
    """

    thing: KnownThing
    match: Match

    @property
    def described(self) -> str:
        """In words."""
        return f"{self.thing.name}, {100.0 * self.match.shared:.0f} % shared, within {1e3 * self.match.error:.1f} mm"

    @property
    def lesson(self) -> Lesson:
        """What is known of the thing, in the frame of the present look."""
        return self.thing.knowledge.moved(invert_transform(self.match.T_known_seen))


class ObjectLibrary:
    """Known things of a folder. What cannot be written is kept until it can.

    Args:
        folder: of the files; is made where it is not there.

    Attributes:
        things: by name.
        problems: what is wrong with files of the folder, a line each.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder).expanduser()
        self.things: dict[str, KnownThing] = {}
        self.problems: list[str] = []
        self._shapes: dict[str, Shape] = {}
        self._unwritten: set[str] = set()
        self._read()

    def _read(self) -> None:
        try:
            files = sorted(self._folder.glob(f"*{SUFFIX}"))
        except OSError as error:
            files = []
            self.problems.append(f"{self._folder} cannot be read: {error}")
        for path in files[:_MOST_THINGS]:
            try:
                thing = KnownThing.read(path)
            except OSError as error:
                self.problems.append(f"{path.name} cannot be read: {error}")
            except MorphitError as error:
                self.problems.append(f"{path.name} is not used: {error}{self._set_aside(path, str(error))}")
            else:
                self.things[thing.name] = thing
        if len(files) > _MOST_THINGS:
            self.problems.append(f"{self._folder}: only {_MOST_THINGS} of {len(files)} things are used")

    def _set_aside(self, path: Path, why: str) -> str:
        """Rename a damaged file; one of another version stays for those who can read it."""
        if "version" in why:
            return ""
        try:
            aside = path.with_name(f"{path.name}{_ASIDE}")
            path.rename(aside)
        except OSError as error:
            return f" ({error})"
        return f" (now {aside.name})"

    def recognise(self, look: Look, name: str = "") -> tuple[Recognition | None, str]:
        """The thing that a look shows, and in words what was found or why nothing.

        A wrong mass is worse than none: where two things fit about as well and weigh differently, none is believed.

        Args:
            look: at one object.
            name: of the thing that the object is known to be; the others are compared only where that does not fit.
        """
        shape = Shape(look)
        likely = self.things.get(name)
        known = None if likely is None else self._as(likely, shape)
        if known is not None:
            return known, f"{known.described}, as before"
        found: list[Recognition] = []
        # Picks may teach meanwhile, in another thread.
        things = [(thing, self._shape_of(thing)) for thing in list(self.things.values())]
        things = [item for item in things if _LEAST_LENGTH < shape.length / item[1].length < _MOST_LENGTH]
        things.sort(key=lambda item: abs(item[1].length - shape.length))
        for thing, _ in things[:_MOST_COMPARED]:
            known = self._as(thing, shape)
            if known is not None:
                found.append(known)
        if not found:
            return None, f"none of {len(self.things)} known things"
        best = max(found, key=lambda item: item.match.score)
        for other in found:
            if other.match.score > _RIVAL * best.match.score and _contradict(best.thing, other.thing):
                return None, f"{best.thing.name} or {other.thing.name}, which weigh differently"
        return best, best.described

    def _as(self, thing: KnownThing, shape: Shape) -> Recognition | None:
        """How a thing lies that a shape shows, None if it does not show it."""
        match = register(self._shape_of(thing), shape)
        return Recognition(thing, match) if match.explains else None

    def _shape_of(self, thing: KnownThing) -> Shape:
        if thing.name not in self._shapes:
            self._shapes[thing.name] = Shape(thing.look)
        return self._shapes[thing.name]

    def learn(self, look: Look, lesson: Lesson, known: Recognition | None) -> tuple[str, str]:
        """Keep what a pick has taught of the object of a look.

        Args:
            look: at the object, before the pick.
            lesson: in the frame of the look.
            known: the thing that it was recognised as; None makes a new one.

        Returns:
            the name of the thing, and why it is not on disk, empty if it is.
        """
        if known is None:
            thing, T_thing_seen = KnownThing.first_seen(look)
        else:
            T_thing_seen = known.match.T_known_seen
            thing = self.things.get(known.thing.name, known.thing)
            if known.match.shared >= _SURE:
                thing = thing.seen_again(look.transformed(T_thing_seen))
        thing = thing.taught(lesson.moved(T_thing_seen))
        self.things[thing.name] = thing
        self._shapes.pop(thing.name, None)
        self._unwritten.add(thing.name)
        return thing.name, self._write()

    def _write(self) -> str:
        try:
            for name in sorted(self._unwritten):
                self.things[name].write(self._folder)
                self._unwritten.discard(name)
        except OSError as error:
            return f"{len(self._unwritten)} things that were learned of are not on disk yet: {error}"
        return ""


def _contradict(first: KnownThing, second: KnownThing) -> bool:
    weights = [thing.knowledge.weight for thing in (first, second)]
    if weights[0] is None or weights[1] is None:
        return False
    masses = [weight.mass for weight in weights if weight is not None]
    return abs(masses[0] - masses[1]) > _ALIKE * max(masses)
