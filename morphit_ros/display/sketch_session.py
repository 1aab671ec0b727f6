"""A sketch that is being edited: commands in, its state out as plain data, undo, autosave, measures. No browser."""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from morphit_ros.display.sphere_worker import NewestWorker
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.solid import Solid
from morphit_ros.geometry.transforms import transform_points
from morphit_ros.history import History
from morphit_ros.sketch import editing
from morphit_ros.sketch.clearance import bone_mass, near_pairs
from morphit_ros.sketch.importing import Import
from morphit_ros.sketch.model import Sketch
from morphit_ros.sketch.picture import Picture
from morphit_ros.sketch.sketch_file import save_sketch
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.fits.errors import union_distances
from morphit_ros.superovoid.fits.samples import sample_fit_surface
from morphit_ros.superovoid.robots.deviation import shape_deviation

# Pairs nearer than this share of the sketch's size are shown.
_NEAR = 0.1
_MOST_SHOWN_PAIRS = 40
_MEASURED_POINTS = 4000
LARGEST_UPLOAD = 1 << 26

Changed = Callable[[], None]

# How arguments of commands are annotated → what is taken for them. Numbers and arrays are checked where they are read.
_KINDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "str": (lambda value: isinstance(value, str), "a text"),
    "bytes": (lambda value: isinstance(value, bytes), "bytes"),
    "bool": (lambda value: isinstance(value, bool), "true or false"),
    "int": (lambda value: type(value) is int, "a whole number"),
    "int | None": (lambda value: value is None or type(value) is int, "a whole number"),
    "Mapping[str, Any]": (lambda value: isinstance(value, Mapping), "values by name"),
}


@dataclass(frozen=True)
class SketchFunctions:
    """What a session has done by others.

    Attributes:
        export: writes the robot's description and what belongs to it, and says where.
        open: makes a sketch of an uploaded file (name, content).
        fit: superovoids of a mesh: (mesh, their number or None, superovoids to improve instead, if any).
    """

    export: Callable[[Sketch], str]
    open: Callable[[str, bytes], Import]
    fit: Callable[[TriangleMesh, int | None, tuple[PlacedSuperovoid, ...]], tuple[PlacedSuperovoid, ...]]


class _Original:
    """A mesh that superovoids stand for, and how far they are from it."""

    def __init__(self, mesh: TriangleMesh) -> None:
        samples = sample_fit_surface([mesh], _MEASURED_POINTS, np.random.default_rng(0))
        self._points = transform_points(samples.T_mesh_samples, samples.points * samples.scale)
        self._solid = Solid([mesh])

    def measured(self, shapes: tuple[PlacedSuperovoid, ...]) -> tuple[float, float, float]:
        """Root mean square of the mesh's distances from the shapes, and the proven greatest ones, both ways [m]."""
        gaps = union_distances(shapes, self._points)
        found = shape_deviation(self._solid, shapes)
        return float(np.sqrt(np.mean(gaps**2))), found.solid_to_model, found.model_to_solid


class SketchSession:
    """One sketch, whoever looks at it. Its methods may be called from any thread."""

    def __init__(self, start: Import, file: Path, functions: SketchFunctions, changed: Changed | None = None) -> None:
        """Begin with a sketch.

        Args:
            start: the sketch, and the meshes that it is drawn over.
            file: that it is saved to. Beside it, in ``.NAME.autosave``, lies every state that was not saved.
            functions: what the session cannot do itself.
            changed: called, from any thread, after every change of the state.
        """
        self.file, self.autosave = file, autosave_of(file)
        self._functions, self._changed = functions, changed or (lambda: None)
        self._lock = threading.RLock()
        self._history = History(start.sketch)
        self._saved: Sketch | None = start.sketch
        self._meshes, self._originals = dict(start.meshes), dict[str, _Original]()
        self._positions: dict[str, float] = {}
        self._deviations: dict[str, tuple[Any, tuple[float, float, float] | None]] = {}
        self._message, self._is_error = "", False
        self._revision = self._meshes_revision = 0
        self._dragging = ""
        self._measures, self._work = NewestWorker(self._report), NewestWorker(self._report)
        self._measure_soon()

    @property
    def sketch(self) -> Sketch:
        """As it is."""
        with self._lock:
            return self._history.present

    @property
    def positions(self) -> dict[str, float]:
        """Of the joints, as shown [rad or m]."""
        with self._lock:
            return dict(self._positions)

    @property
    def has_unsaved_changes(self) -> bool:
        """Whether the file holds something else."""
        with self._lock:
            return self._history.present is not self._saved

    @property
    def meshes(self) -> tuple[int, dict[str, TriangleMesh]]:
        """A number that changes with them, and the meshes that are drawn over, by bone."""
        with self._lock:
            return self._meshes_revision, dict(self._meshes)

    def do(self, command: Mapping[str, Any]) -> bool:
        """Carry out a command; the state's message says what was wrong, if it was.

        Args:
            command: its name under ``do``, and its arguments. With ``drag`` (any text) it belongs to the one before of
                the same text: one undo takes back both.

        Returns:
            Whether it was carried out.
        """
        with self._lock:
            name = command.get("do")
            action = getattr(self, f"_do_{name}", None) if isinstance(name, str) and name.isidentifier() else None
            self._message, self._is_error = "", False
            try:
                if action is None:
                    raise InvalidInputError("command", repr(name)[:80], "a known one")
                drag = str(command.get("drag", ""))
                merged = drag != "" and drag == self._dragging
                self._dragging = drag
                arguments = {key: value for key, value in command.items() if key not in ("do", "drag")}
                done = _called(action, arguments)
                if isinstance(done, Sketch):
                    self._put(done, merged)
            except (MorphitError, OSError) as error:
                self._report(error)
            self._revision += 1
            ok = not self._is_error
        self._changed()
        return ok

    def state(self) -> dict[str, Any]:
        """All that a page shows, as JSON takes it."""
        with self._lock:
            sketch, positions = self._history.present, self._positions
            poses = sketch.poses(positions)
            bones = []
            for name, bone in sketch.bones.items():
                mass, _, _ = bone_mass(bone.shapes, sketch.density)
                bones.append({
                    "name": name, "parent": bone.parent, "T": poses[name].ravel().tolist(), "tail": bone.tail.tolist(),
                    "joint": {"kind": bone.joint.kind, "axes": bone.joint.axes.tolist(),
                              "limits": bone.joint.limits.tolist(), "names": list(bone.joint.names)},
                    "shapes": [{
                        "semi_axes": list(placed.shape.semi_axes), "squareness": list(placed.shape.squareness),
                        "tapering": list(placed.shape.tapering), "T": placed.T_link_shape.ravel().tolist(),
                    } for placed in bone.shapes],
                    "mass": mass, "mesh": name in self._meshes,
                    "deviation": self._deviations[name][1] if self._measured(name) is bone.shapes else None,
                })  # fmt: skip
            pairs = near_pairs(sketch, positions, _NEAR * _size(sketch))[:_MOST_SHOWN_PAIRS]
            return {
                "revision": self._revision, "meshes": self._meshes_revision, "name": sketch.name, "bones": bones,
                "density": sketch.density, "robot": sketch.robot, "file": self.file.name,
                "saved": sketch is self._saved, "undo": len(self._history.past), "redo": len(self._history.future),
                "positions": dict(positions), "message": self._message, "error": self._is_error,
                "pairs": [{"bones": list(pair.bones), "distance": pair.distance, "points": pair.points.tolist()}
                          for pair in pairs],
                "busy": self._work.busy,
            }  # fmt: skip

    def wait(self, timeout: float) -> bool:
        """Whether measures and fits were done within so many seconds."""
        return self._work.wait(timeout) and self._measures.wait(timeout)

    def close(self) -> None:
        """End the work in the background. May be called again."""
        self._work.close()
        self._measures.close()

    def _put(self, sketch: Sketch, merged: bool = False) -> None:
        """Make a sketch the present one, and keep it on disk."""
        self._history = self._history.changed(sketch, merged)
        self._moved_to(sketch)

    def _moved_to(self, sketch: Sketch) -> None:
        joints = {name: bone.joint.limits[axis] for name, bone, axis in sketch.joints}
        self._positions = {
            name: float(np.clip(value, *joints[name])) for name, value in self._positions.items() if name in joints
        }
        try:
            save_sketch(sketch, self.autosave)
        except OSError as error:
            self._message, self._is_error = f"autosave failed ({error.strerror}): save elsewhere", True
        self._measure_soon()

    def _report(self, error: BaseException) -> None:
        with self._lock:
            self._message, self._is_error = str(error), True
            self._revision += 1

    # What pages send. Each returns the sketch that it makes, or nothing where it makes none.

    def _do_stroke(self, points: Any, normal: Any, snap: float = 0.0) -> Sketch:
        sketch, names = editing.draw_bones(self.sketch, _array(points), _array(normal), _number("snap", snap))
        self._message = f"{len(names)} bones: {', '.join(names)}" if len(names) > 1 else f"bone {names[0]}"
        self._positions = {}
        return sketch

    def _do_ellipse(self, points: Any, normal: Any, bone: str = "") -> Sketch:
        points, normal = _array(points), _array(normal)
        sketch, owner = editing.draw_shape(self.sketch, points, normal, bone, self._positions)
        self._message = f"hitbox of {owner}"
        return sketch

    def _do_end(self, bone: str, end: str, place: Any) -> Sketch:
        self._positions = {}
        return editing.move_end(self.sketch, bone, end, _array(place))

    def _do_remove_bone(self, bone: str) -> Sketch:
        return editing.remove_bone(self.sketch, bone)

    def _do_split(self, bone: str, parts: int) -> Sketch:
        return editing.split_bone(self.sketch, bone, parts)

    def _do_rename(self, bone: str, name: str) -> Sketch:
        return editing.rename_bone(self.sketch, bone, name)

    def _do_mirror(self, bone: str, axis: str) -> Sketch:
        sketch, names = editing.mirror_bone(self.sketch, bone, axis)
        self._message = f"mirrored: {', '.join(names)}"
        return sketch

    def _do_joint(self, bone: str, kind: str, axes: Any = None) -> Sketch:
        return editing.set_joint(self.sketch, bone, kind, None if axes is None else _array(axes))

    def _do_limits(self, joint: str, lower: float, upper: float) -> Sketch:
        return editing.set_limits(self.sketch, joint, _number("lower", lower), _number("upper", upper))

    def _do_fill(self) -> Sketch:
        return editing.fill_bones(self.sketch)

    def _do_shape(self, bone: str, row: int, values: Mapping[str, Any]) -> Sketch:
        return editing.set_shape(self.sketch, bone, row, {key: _array(value) for key, value in values.items()})

    def _do_remove_shape(self, bone: str, row: int) -> Sketch:
        return editing.remove_shape(self.sketch, bone, row)

    def _do_density(self, density: float) -> Sketch:
        return replace(self.sketch, density=_number("density", density))

    def _do_name(self, name: str) -> Sketch:
        return replace(self.sketch, name=name)

    def _do_free(self) -> Sketch:
        self._message = "the skeleton can be changed; the export is a description of its own"
        return replace(self.sketch, robot="")

    def _do_undo(self) -> None:
        self._history = self._history.undone()
        self._moved_to(self._history.present)

    def _do_redo(self) -> None:
        self._history = self._history.redone()
        self._moved_to(self._history.present)

    def _do_position(self, joint: str, value: float) -> None:
        limits = {name: bone.joint.limits[axis] for name, bone, axis in self.sketch.joints}
        if joint not in limits:
            raise InvalidInputError("joint", repr(joint)[:80], f"one of {', '.join(limits) or 'none'}")
        self._positions[joint] = float(np.clip(_number("value", value), *limits[joint]))

    def _do_turn(self, bone: str, place: Any) -> None:
        self._positions |= editing.turned_to(self.sketch, bone, _array(place), self._positions)

    def _do_rest(self) -> None:
        self._positions = {}

    def _do_save(self) -> None:
        save_sketch(self.sketch, self.file)
        self._saved = self.sketch
        self.autosave.unlink(missing_ok=True)
        self._message = f"saved {self.file.name}"

    def _do_export(self) -> None:
        sketch = self.sketch
        self._message = "exporting …"
        self._in_background(lambda: self._functions.export(sketch))

    def _do_fit(self, bone: str, count: int | None = None, improve: bool = False) -> None:
        owner = self.sketch[bone]
        if bone not in self._meshes:
            raise InvalidInputError("bone", repr(bone), "a bone with a mesh to fit to", "Draw its hitboxes.")
        if count is not None and not 1 <= count <= 50:
            raise InvalidInputError("count", count, "1 to 50")
        if improve and not owner.shapes:
            raise InvalidInputError("bone", repr(bone), "a bone with a hitbox to improve", "Draw one.")
        mesh, start = self._meshes[bone], owner.shapes if improve else ()

        def fit() -> str:
            shapes = self._functions.fit(mesh, None if improve else count, start)
            with self._lock:
                now = self.sketch
                if now.bones.get(owner.name) is not owner:
                    return f"{owner.name} was changed meanwhile: the fit is dropped"
                self._put(now.with_bones(replace(owner, shapes=shapes)))
            return f"{owner.name}: {len(shapes)} fitted"

        self._message = f"fitting {bone} …"
        self._in_background(fit)

    def _do_open(self, name: str, content: bytes) -> None:
        if len(content) > LARGEST_UPLOAD:
            bound = f"at most {LARGEST_UPLOAD >> 20} MiB"
            raise InvalidInputError(f"upload {name}"[:120], f"{len(content) >> 20} MiB", bound)
        self._message = f"reading {name} …"

        def open_() -> str:
            found = self._functions.open(name, content)
            with self._lock:
                self._meshes, self._originals, self._deviations = dict(found.meshes), {}, {}
                self._meshes_revision += 1
                self._positions = {}
                self._put(found.sketch)
            return f"opened {name}"

        self._in_background(open_)

    def _do_picture(self, data: str = "", T: Any = None, width: float | None = None) -> Sketch:
        """A picture behind (``data``), or another width of it; without both it goes."""
        picture = self.sketch.picture
        if data:
            pose = np.eye(4) if T is None else _array(T)
            if pose.size != 16:
                raise InvalidInputError("T", f"{pose.size} numbers", "16")
            picture = Picture(data, pose.reshape(4, 4))
        elif width is None:
            picture = None
        if width is not None and picture is not None:
            picture = replace(picture, width=_number("width", width))
        return replace(self.sketch, picture=picture)

    def _in_background(self, work: Callable[[], str]) -> None:
        if self._work.busy:
            raise InvalidInputError("command", "while another one is under way", "one at a time", "Wait for its end.")

        def run() -> None:
            try:
                message, is_error = work(), False
            except (MorphitError, OSError) as error:
                message, is_error = str(error), True
            with self._lock:
                self._message, self._is_error = message, is_error
                self._revision += 1
            self._changed()

        self._work.submit(run)

    def _measured(self, bone: str) -> object:
        """The superovoids of a bone that its known deviation is of; None where it isn't known."""
        return self._deviations[bone][0] if bone in self._deviations else None

    def _measure_soon(self) -> None:
        if self._meshes:
            self._measures.submit(self._measure)

    def _measure(self) -> None:
        """Prove how far superovoids and meshes are apart, bone by bone, until all are known or another task waits."""
        while not self._measures.superseded:
            with self._lock:
                bones = [bone for name, bone in self._history.present.bones.items() if name in self._meshes]
                bone = next((bone for bone in bones if self._measured(bone.name) is not bone.shapes), None)
                if bone is None:
                    return
                mesh = self._meshes[bone.name]
            value = None
            if bone.shapes:
                try:
                    if bone.name not in self._originals:
                        self._originals[bone.name] = _Original(mesh)
                    value = self._originals[bone.name].measured(bone.shapes)
                except MorphitError:
                    # A mesh without an area has no distance; its bone can be edited all the same.
                    value = None
            with self._lock:
                self._deviations[bone.name] = bone.shapes, value
                self._revision += 1
            self._changed()


def autosave_of(file: Path) -> Path:
    """Where the states of a sketch lie that were not saved to its file."""
    return file.with_name(f".{file.name}.autosave")


def _called(action: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """The answer of an action; arguments that it doesn't take, or not of their kind, are a mistake of the caller."""
    signature = inspect.signature(action)
    try:
        bound = signature.bind(**arguments)
    except TypeError as error:
        raise InvalidInputError("command", str(error)[:200], "the arguments that it takes") from None
    for name, value in bound.arguments.items():
        kind = str(signature.parameters[name].annotation)
        fits, what = _KINDS.get(kind, (lambda _: True, ""))
        if not fits(value):
            raise InvalidInputError(name, repr(value)[:80], what)
    return action(*bound.args, **bound.kwargs)


def _array(values: Any) -> Any:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError("numbers", repr(values)[:80], "an array of numbers") from None


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidInputError(name, repr(value)[:80], "a finite number")
    return float(value)


def _size(sketch: Sketch) -> float:
    """Diagonal of the box around all joints [m]."""
    places = [place for bone in sketch.bones.values() for place in (bone.head_in_world, bone.tail_in_world)]
    return float(np.linalg.norm(np.ptp(places, axis=0))) if places else 0.0
