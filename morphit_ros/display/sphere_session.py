"""What is selected, changed and fitted in a sphere editor, whatever shows it.

It knows neither how spheres are fitted nor how files are written: both are functions handed in.
"""

from __future__ import annotations

import abc
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.display.sphere_worker import NewestWorker
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.geometry.transforms import Array

if TYPE_CHECKING:
    from morphit_ros.spheres.editing import EditedLink, EditedModel, EditHistory
    from morphit_ros.spheres.metrics import SphereMetrics


@dataclass(frozen=True)
class EditorFunctions:
    """What the editor has others do. All are called from other threads; `fit` and `measure` may take seconds.

    Attributes:
        fit: (link, its spheres, count) → its spheres with the free ones fitted anew.
        measure: (link, its spheres) → figures.
        gaps: (points (P, 3), centres (N, 3), radii (N,)) → signed distances (P,) [m], positive outside the spheres.
        exports: label of a button → function that writes a file and returns its path.
        open: (name of a file, its content), what a browser uploads to be shown instead; None if nothing can be.
    """

    fit: Callable[[str, EditedLink, int], EditedLink]
    measure: Callable[[str, EditedLink], SphereMetrics]
    gaps: Callable[[Array, Array, Array], Array]
    exports: Mapping[str, Callable[[EditedModel], Path]] = field(default_factory=dict)
    open: Callable[[str, bytes], None] | None = None


class SphereSession(abc.ABC):
    """The state of an editor. Methods are what its controls do, and may be called from any thread.

    Those that change spheres raise InvalidInputError where nothing is selected, or for a change that makes no sense.
    """

    def __init__(self, name: str, history: EditHistory, functions: EditorFunctions) -> None:
        """Begin with these spheres; a single link is selected at once."""
        self._lock = threading.RLock()
        self._name, self._functions, self._history = name, functions, history
        self._saved = history.present
        links = list(history.present.links)
        self._link: str | None = links[0] if len(links) == 1 else None
        self._sphere: int | None = None
        self._wanted: tuple[str, int] | None = None
        self._fitting = self._dragging = False
        self._message, self._is_error = name, False
        self._gesture: object = None
        self._fits = NewestWorker(self._fit_failed)

    @abc.abstractmethod
    def _refresh(self) -> None:
        """Show what changed; called with the lock."""

    @abc.abstractmethod
    def _surface_points(self, link: str) -> Array:
        """Points (P, 3) [m] close to each other on the mesh of a link, in its frame."""

    @property
    def model(self) -> EditedModel:
        """The spheres as they are now."""
        with self._lock:
            return self._history.present

    @property
    def has_unsaved_changes(self) -> bool:
        """Whether spheres changed since the start or the last export."""
        with self._lock:
            return self._history.present != self._saved

    @property
    def message(self) -> str:
        """The last news, as the panel shows it."""
        with self._lock:
            return self._message

    def select_link(self, link: str | None) -> None:
        """Work on a link, or on none in particular."""
        with self._lock:
            if link is not None:
                self._history.present[link]
            if link != self._link:
                self._link, self._sphere, self._gesture, self._dragging = link, None, None, False
                self._news(link or self._name)

    def select_sphere(self, sphere: int | None) -> None:
        """Select a sphere of the link by its row, or none."""
        with self._lock:
            if sphere is not None:
                self._spheres().row(sphere)
            if sphere != self._sphere:
                self._sphere, self._gesture, self._dragging = sphere, None, False
                self._refresh()

    def drag(self, phase: str, center: Array) -> None:
        """Move the selected sphere (3,) [m], as the gizmo does: "start", "update" … "end". One undo takes all back."""
        with self._lock:
            if self._sphere is None:
                return
            self._dragging = phase != "end"
            if phase == "start":
                self._gesture = None
            elif phase == "update":
                moved = self._spheres().moved(self._sphere, center).with_lock(self._sphere, True)
                self._commit(moved, "moved by hand, and locked", ("drag", self._sphere))
            else:
                self._gesture = None
                self._refresh()

    def move_sphere(self, center: ArrayLike) -> None:
        """Put the selected sphere's centre (3,) [m] elsewhere in the link's frame, and lock it."""
        with self._lock:
            sphere = self._selected()
            self._commit(self._spheres().moved(sphere, center).with_lock(sphere, True), "moved by hand, and locked")

    def resize_sphere(self, radius: float) -> None:
        """Give the selected sphere another radius [m], and lock it."""
        with self._lock:
            sphere = self._selected()
            resized = self._spheres().resized(sphere, radius).with_lock(sphere, True)
            self._commit(resized, "resized by hand, and locked", ("resize", self._link, sphere))

    def lock_sphere(self, locked: bool) -> None:
        """Lock or free the selected sphere."""
        with self._lock:
            sphere = self._selected()
            if self._spheres().locked[sphere] != locked:
                self._commit(self._spheres().with_lock(sphere, locked), "locked" if locked else "unlocked")

    def unlock_all(self) -> None:
        """Free all spheres of the link."""
        with self._lock:
            if self._spheres().locked.any():
                self._commit(self._spheres().with_all_locks(False), "all unlocked")

    def add_sphere(self) -> None:
        """Add a sphere where the mesh stands farthest out of the spheres; it is selected, and locked."""
        with self._lock:
            spheres = self._spheres()
            points = self._surface_points(self._require_link())
            gaps = self._functions.gaps(points, spheres.centers, spheres.radii)
            worst, typical = int(gaps.argmax()), float(np.median(spheres.radii))
            radius = float(np.clip(gaps[worst], 0.3 * typical, typical))
            self._sphere = len(spheres)
            self._commit(spheres.added(points[worst], radius, locked=True), "added where the mesh was bare")

    def remove_sphere(self) -> None:
        """Remove the selected sphere."""
        with self._lock:
            shorter = self._spheres().removed(self._selected())
            self._sphere = None
            self._commit(shorter, "removed")

    def set_count(self, count: int) -> None:
        """Refit the link with so many spheres; of several numbers asked for meanwhile, the last one counts."""
        with self._lock:
            link = self._require_link()
            current = self._wanted[1] if self._wanted and self._wanted[0] == link else len(self._spheres())
            if count != current:
                self._request_fit(link, count, self._spheres().variant)

    def set_variant(self, variant: str) -> None:
        """Refit the link with another preset."""
        with self._lock:
            if variant != self._spheres().variant:
                self._request_fit(self._require_link(), len(self._spheres()), variant)

    def refit(self) -> None:
        """Refit the link's spheres that are not locked."""
        with self._lock:
            self._request_fit(self._require_link(), len(self._spheres()), self._spheres().variant)

    def undo(self) -> None:
        """Take the last step back."""
        self._step(lambda history: history.undone(), "undone")

    def redo(self) -> None:
        """Take a step that was undone again."""
        self._step(lambda history: history.redone(), "done again")

    def export(self, label: str) -> None:
        """Write a file.

        Raises:
            OSError: it cannot be written.
        """
        with self._lock:
            model = self._history.present
            self._news("writing…")
        path = self._functions.exports[label](model)
        with self._lock:
            self._saved = model
            self._news(f"written: {path}")

    def report(self, error: BaseException) -> None:
        """Show what went wrong; spheres and view stay as they were."""
        with self._lock:
            kind = "" if isinstance(error, (MorphitError, OSError)) else f"{type(error).__name__}: "
            self._message, self._is_error = f"{kind}{error}", True
            self._refresh()

    def _require_link(self) -> str:
        if self._link is None:
            raise InvalidInputError("link", "none", "a selected link", "Select one, or click on one of its spheres.")
        return self._link

    def _spheres(self) -> EditedLink:
        return self._history.present[self._require_link()]

    def _selected(self) -> int:
        if self._sphere is None:
            raise InvalidInputError("sphere", "none", "a selected sphere", "Click on one.")
        return self._sphere

    def _news(self, message: str) -> None:
        self._message, self._is_error = message, False
        self._refresh()

    def _commit(self, spheres: EditedLink, message: str, gesture: object = None) -> None:
        """Make a step of the selected link; steps of one gesture are undone together."""
        self._commit_link(self._require_link(), spheres, message, gesture)

    def _commit_link(self, link: str, spheres: EditedLink, message: str, gesture: object) -> None:
        merged = gesture is not None and gesture == self._gesture
        self._history = self._history.changed(self._history.present.with_link(link, spheres), merged)
        self._gesture = gesture
        self._news(message)

    def _step(self, step: Callable[[EditHistory], EditHistory], message: str) -> None:
        with self._lock:
            history = step(self._history)
            if history is not self._history:
                self._history, self._sphere, self._gesture = history, None, None
                self._news(message)

    def _request_fit(self, link: str, count: int, variant: str) -> None:
        self._wanted, self._fitting = (link, count), True
        self._news(f"fitting {count} spheres…")
        self._fits.submit(lambda: self._fit(link, count, variant))

    def _fit(self, link: str, count: int, variant: str) -> None:
        with self._lock:
            before = self._history.present[link]
        after = self._functions.fit(link, before.with_variant(variant), count)
        with self._lock:
            self._end_of_fit()
            if self._history.present[link] is not before:
                self._news("changed while it was fitted: the fit was dropped")
                return
            if link == self._link and self._sphere is not None:
                self._sphere = before.row_after_refit(self._sphere)
            locked = int(before.locked.sum())
            # A number that is superseded already belongs to the slider's movement.
            gesture = self._gesture if isinstance(self._gesture, _Slide) else _Slide()
            self._commit_link(link, after, f"{link}: fitted{f', {locked} locked' if locked else ''}", gesture)
            if not self._fitting:
                self._gesture = None

    def _fit_failed(self, error: BaseException) -> None:
        with self._lock:
            self._end_of_fit()
            self.report(error)

    def _end_of_fit(self) -> None:
        self._fitting = self._fits.superseded
        if not self._fitting:
            self._wanted = None


class _Slide:
    """One movement of the slider; fits that belong to it are undone together."""
