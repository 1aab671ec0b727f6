"""The sphere editor: spheres of a robot or a mesh in a browser, changed by hand and refitted around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from morphit_ros.display.sphere_figures import FigureTable
from morphit_ros.display.sphere_panel import PanelState, SpherePanel
from morphit_ros.display.sphere_scene import SphereScene
from morphit_ros.display.sphere_session import EditorFunctions, SphereSession
from morphit_ros.display.sphere_shape import EditedShape
from morphit_ros.display.sphere_worker import NewestWorker
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.geometry.transforms import Array

if TYPE_CHECKING:
    from morphit_ros.spheres.editing import EditedLink, EditHistory

_HINTS = (
    "Click on a sphere to select it, and drag it by its arrows.",
    "What was changed by hand is locked (gold): refits keep it exactly.",
)


class SphereEditor(SphereSession):
    """A session shown in a browser, on loopback. Its methods may be called from any thread."""

    def __init__(
        self,
        shape: EditedShape,
        history: EditHistory,
        functions: EditorFunctions,
        variants: Sequence[str],
        host: str = "127.0.0.1",
        port: int = 8080,
    ) -> None:
        """Start serving.

        Args:
            shape: the meshes.
            history: the spheres to begin with, of links that have a mesh.
            functions: fit, measures and exports.
            variants: presets that `fit` knows.
            host: a loopback address: the view is not encrypted. Only its own page may connect (`display.access`).
            port: of HTTP and websocket; 0 takes a free one.

        Raises:
            InvalidInputError: a link without a mesh, a host that is not loopback, or a port that is taken.
            MissingDependencyError: viser is not installed.
        """
        for link in history.present.links:
            if link not in shape.meshes:
                raise InvalidInputError("link", repr(link), f"one of {', '.join(shape.meshes)}")
        super().__init__(shape.name, history, functions)
        links = list(history.present.links)
        self._shape = shape
        self._positions = shape.start_positions()
        self._gaps_shown = self._closed = False
        self._table = FigureTable(shape.meshes)
        self._drawn: dict[str, tuple[object, ...]] = {}
        self._measures = NewestWorker(self.report)
        meshes = {link: shape.meshes[link] for link in links}
        self._scene = SphereScene(meshes, shape.link_poses(self._positions), host, port, "morphit spheres")
        self._scene.panel.set_status("", {}, _HINTS)
        exports, joints = list(functions.exports), shape.joint_ranges()
        self._panel = SpherePanel(self._scene.gui, self, links, variants, exports, joints, self._scene.bounds)
        if functions.open is not None:
            self._panel.add_upload()
        self._refresh()

    @property
    def url(self) -> str:
        """Where a browser finds the view."""
        return self._scene.url

    def click(self, link: str, sphere: int) -> None:
        """Select link and sphere; a second click on the same sphere takes the selection back."""
        with self._lock:
            again = (link, sphere) == (self._link, self._sphere)
            self.select_link(link)
            self.select_sphere(None if again else sphere)

    def look_at_link(self) -> None:
        """Turn all cameras to the link."""
        with self._lock:
            self._scene.look_at_link(self._link)

    def look_at_all(self) -> None:
        """Turn all cameras to all links."""
        with self._lock:
            self._scene.look_at_link(None)

    def show_gaps(self, shown: bool) -> None:
        """Colour the mesh of the link by its gap to the spheres, or don't."""
        with self._lock:
            self._gaps_shown = shown
            if shown and self._link is not None:
                limit = 1e3 * self._scene.gap_scale(self._link)
                self._news(f"gap: spheres stand out {limit:.2g} mm (blue), or the mesh {limit:.2g} mm (red)")
            else:
                self._news(self._link or self._shape.name)

    def move_joint(self, joint: str, position: float) -> None:
        """Put a joint elsewhere [rad or m]."""
        with self._lock:
            self._positions[joint] = position
            self._scene.move_links(self._shape.link_poses(self._positions))
            if self._scene.is_clipped:
                self._drawn.clear()
            self._refresh()

    def open(self, name: str, content: bytes) -> None:
        """Have an uploaded file shown instead.

        Raises:
            InvalidInputError: there are changes that were not saved.
            MorphitError: a file that cannot be shown.
        """
        if self.has_unsaved_changes:
            raise InvalidInputError("upload", "changes that are not saved", "none", "Save them, or undo them.")
        if self._functions.open is not None:
            with self._lock:
                self._news(f"{name}: reading and fitting …")
            self._functions.open(name, content)

    def clip(self, axis: int, limit: float) -> None:
        """Show nothing beyond a coordinate of the world [m]: meshes are cut there, spheres centred beyond are hidden.

        Args:
            axis: 0 for x, 1 for y, 2 for z.
            limit: infinite to show all.
        """
        with self._lock:
            self._scene.set_clip(axis, limit)
            self._drawn.clear()
            self._refresh()

    def wait(self, timeout: float) -> bool:
        """Whether fits and measures were done within so many seconds."""
        return self._fits.wait(timeout) and self._measures.wait(timeout)

    def close(self) -> None:
        """Stop serving; browsers lose their connection. May be called again."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        # Without the lock, which a task may need to end.
        self._fits.close()
        self._measures.close()
        self._scene.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _surface_points(self, link: str) -> Array:
        return self._scene.surface_points(link)

    def _refresh(self) -> None:
        """Draw what changed, and have it measured."""
        if self._closed:
            return
        model = self._history.present
        for link, spheres in model.links.items():
            selected = self._sphere if link == self._link else None
            gaps = self._gaps_shown and link == self._link
            emphasis = None if self._link is None else link == self._link
            if self._drawn.get(link) == (spheres, emphasis, selected, gaps):
                continue
            self._draw(link, spheres, selected, gaps)
            # While it is dragged, the gap's colours stay behind.
            if not (gaps and self._dragging):
                self._drawn[link] = (spheres, emphasis, selected, gaps)
        if self._sphere is None or self._link is None:
            self._scene.hide_gizmo()
        elif not self._dragging:
            spheres = model[self._link]
            # Longer than the radius, so that the arrows can be grasped outside the sphere.
            size = max(1.6 * float(spheres.radii[self._sphere]), 0.5 * float(np.median(spheres.radii)))
            self._scene.show_gizmo(self._link, spheres.centers[self._sphere], size, self.drag)
        self._panel.show(self._panel_state())
        if self._table.stale_link(model, self._link) is not None:
            self._measures.submit(self._measure)

    def _draw(self, link: str, spheres: EditedLink, selected: int | None, gaps: bool) -> None:
        # Opaque ones would hide the colours of the mesh.
        faint = gaps or (self._link is not None and link != self._link)
        self._scene.show_spheres(link, spheres.centers, spheres.radii, spheres.locked, selected, faint, self.click)
        if gaps and not self._dragging:
            self._scene.show_mesh(
                link, self._link, lambda points: self._functions.gaps(points, spheres.centers, spheres.radii)
            )
        elif not gaps:
            self._scene.show_mesh(link, self._link, None)

    def _measure(self) -> None:
        while True:
            with self._lock:
                link = None if self._closed else self._table.stale_link(self._history.present, self._link)
                if link is None:
                    return
                spheres = self._history.present[link]
            try:
                quality = self._functions.measure(link, spheres)
            except MorphitError:
                # A mesh that has no area, say, has no figures; it can be edited all the same.
                quality = None
            with self._lock:
                self._table.put(link, spheres, quality)
                if not self._closed:
                    self._panel.show(self._panel_state())

    def _panel_state(self) -> PanelState:
        model = self._history.present
        spheres = None if self._link is None else model[self._link]
        rows = 0 if spheres is None else len(spheres)
        count = self._wanted[1] if self._wanted and self._wanted[0] == self._link else max(rows, 1)
        radius = 0.0 if spheres is None or self._sphere is None else float(spheres.radii[self._sphere])
        extent = 0.1 if self._link is None else float(np.linalg.norm(self._shape.meshes[self._link].extents))
        lines = [self._table.totals(model)] if len(model.links) > 1 else []
        if self._link is not None:
            lines.append(self._table.line(model, self._link))
        return PanelState(
            link=self._link,
            count=count,
            count_limit=max(64, 2 * rows),
            variant=next(iter(model.links.values())).variant if spheres is None else spheres.variant,
            rows=rows,
            sphere=self._sphere,
            radius=radius,
            radius_limit=0.5 * extent,
            locked=bool(spheres is not None and self._sphere is not None and spheres.locked[self._sphere]),
            busy=self._fitting,
            message=self._message,
            is_error=self._is_error,
            figures=tuple(lines),
        )
