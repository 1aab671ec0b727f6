"""What a goal of build_neural_object is built from: segmented clouds, a recording, or a saved field."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from std_msgs.msg import Header

from morphit_interfaces.action import BuildNeuralObject
from morphit_interfaces.msg import SegmentedObjectArray, TablePlane
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.objects.known_object import KnownObject, know_object
from morphit_ros.neural.solid.threshold_choice import THRESHOLDS, check_threshold_choice, chosen_threshold
from morphit_ros.neural.solid.thresholds import Threshold
from morphit_ros.neural.views.cloud_views import views_of_cloud
from morphit_ros.neural.views.posed_views import PosedDepths, PosedImages, PosedViews
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.parameters import with_assignments
from morphit_ros.ros.neural.messages import PlacedObject, regions_from_messages
from morphit_ros.ros.scene.messages import cloud_of, table_from_message, target_of, viewpoints_of
from morphit_ros.ros.scene.object_doubts import object_doubts

Progress = Callable[[str, float, float], None]
"""Told the stage, its finished share and the loss; raises to end the build."""

_SOURCES = {0: "objects", 1: "recording", 2: "field"}
# Settings that are not of learning: which views of a recording with both are learned from, and what the field is cut
# at, as `--from` and `--threshold` of `morphit neural train`.
_FROM, _THRESHOLD = "from", "threshold"
_KINDS = ("images", "depth")


@dataclass(frozen=True)
class BuildConfig(Config):
    """What is assumed of an object where the goal does not say it."""

    density: float = parameter(
        500.0, "Density of its material where nothing says it [kg/m^3]", minimum=1.0, maximum=25000.0
    )
    recording_frame: str = parameter("", "Frame that recordings and saved fields are in; empty: not known")
    picture_size: int = parameter(
        128, "Largest side of the pictures that clouds are drawn into [px]", minimum=16, maximum=512
    )
    threshold: str = parameter(
        "learning", "Density that a field is cut at, as `--threshold` of `morphit neural train`: what learning "
        "recommends, halfway between empty and full, as the silhouettes match best, or as depths tell free from "
        "occupied", choices=THRESHOLDS,
    )  # fmt: skip


@dataclass(frozen=True)
class Views:
    """What a field is learned from, or the field itself, in the object's own frame.

    Attributes:
        images, depths: one of them where a field has to be learned.
        field: where there is one.
        measured: depth pictures to choose a threshold by, also where colours are learned from; None if there are none.
        threshold: that came with a field, None if none did.
        threshold_by: way to the threshold, one of `THRESHOLDS`.
        eyes: (V, 3) places of the cameras, None if unknown [m].
        support: what the object stands on, None if unknown.
        header: frame and stamp, empty frame if its place is not known.
        T_frame_object: (4, 4).
        doubts: for people.
    """

    header: Header
    T_frame_object: Array
    images: PosedImages | None = None
    depths: PosedDepths | None = None
    field: DensityField | None = None
    measured: PosedDepths | None = None
    threshold: Threshold | None = None
    threshold_by: str = "learning"
    eyes: Array | None = None
    support: SupportPlane | None = None
    doubts: str = ""

    @property
    def seen(self) -> PosedViews | None:
        """What is learned from."""
        return self.depths if self.images is None else self.images


def source_of(request: BuildNeuralObject.Goal) -> str:
    """objects, recording or field.

    Raises:
        InvalidInputError: another number.
    """
    if request.source not in _SOURCES:
        raise InvalidInputError("source", request.source, "OBJECTS 0, RECORDING 1 or FIELD 2")
    return _SOURCES[request.source]


def read_goal(
    request: BuildNeuralObject.Goal, config: BuildConfig, objects: SegmentedObjectArray | None, table: TablePlane | None
) -> Views:
    """The views or the field of a goal.

    Args:
        request: the goal.
        config: of the node.
        objects, table: the latest ones on their topics, None if there were none.

    Raises:
        InvalidInputError, ResourceNotFoundError: nothing to build from, or what is there cannot be used.
    """
    source = source_of(request)
    own, _ = _own_settings(request)
    if source == "objects":
        views = _views_of_objects(request, config, objects, table)
    elif not request.path:
        raise InvalidInputError("path", "nothing", f"the file of the {source}")
    elif source == "recording":
        views = _views_of_recording(Path(request.path), own.get(_FROM), Header(frame_id=config.recording_frame))
    else:
        views = _saved_field(Path(request.path), Header(frame_id=config.recording_frame))
    by = own.get(_THRESHOLD, config.threshold)
    remedy = f"Give another by '{_THRESHOLD}=' in the goal's settings, or by the node's parameter '{_THRESHOLD}'."
    check_threshold_choice(by, views.seen, views.measured, _THRESHOLD, remedy)
    return replace(views, threshold_by=by)


def _own_settings(request: BuildNeuralObject.Goal) -> tuple[dict[str, str], list[str]]:
    """The settings of a goal that are not of learning, by name, and the others."""
    names = (_FROM, _THRESHOLD) if source_of(request) == "recording" else (_THRESHOLD,)
    own, others = {}, []
    for text in request.settings:
        name, _, value = text.partition("=")
        if name.strip() in names:
            own[name.strip()] = value.strip()
        else:
            others.append(text)
    return own, others


def _saved_field(path: Path, header: Header) -> Views:
    from morphit_ros.neural.learning.field_file import load_learned_field

    saved = load_learned_field(path)
    return Views(header, np.eye(4), field=saved.field, threshold=saved.threshold, eyes=saved.eyes)


def _views_of_recording(path: Path, kind: str | None, header: Header) -> Views:
    from morphit_ros.neural.views.recording import load_recording

    if kind is not None and kind not in _KINDS:
        raise InvalidInputError(_FROM, kind, " or ".join(_KINDS))
    recording = load_recording(path)
    kind = kind or ("depth" if recording.depths is not None else "images")
    images, depths = (recording.images, None) if kind == "images" else (None, recording.depths)
    views = images if depths is None else depths
    if views is None:
        other = "depth" if kind == "images" else "images"
        raise InvalidInputError(_FROM, kind, f"what '{path}' holds: {other}")
    eyes = views.T_world_camera[:, :3, 3]
    return Views(header, np.eye(4), images, depths, measured=recording.depths, eyes=eyes)


def _views_of_objects(
    request: BuildNeuralObject.Goal, config: BuildConfig, objects: SegmentedObjectArray | None, table: TablePlane | None
) -> Views:
    given = request.object.cloud.data
    target = request.object if given else (None if objects is None else target_of(objects))
    if target is None:
        seen = "nothing yet" if objects is None else f"{len(objects.objects)} objects, no target"
        raise InvalidInputError(
            interfaces.OBJECTS.name, seen, "an object", "Send it in the goal, or start scene_perception."
        )
    scene = request.scene if request.scene.viewpoints else objects
    if scene is None or not scene.viewpoints:
        raise InvalidInputError(
            "viewpoints", "none", "places of the cameras",
            "Send the scene's in the goal: a cloud alone does not say what was seen to be empty.",
        )  # fmt: skip
    frame = target.header.frame_id
    if scene.header.frame_id != frame:
        raise InvalidInputError("scene: frame", repr(scene.header.frame_id), f"the object's frame '{frame}'")
    cloud = cloud_of(target).finite()
    if cloud.normals is None:
        raise InvalidInputError("object cloud", "no normals", "normal_x normal_y normal_z", "Perception gives them.")
    eyes = viewpoints_of(scene)
    assert eyes is not None
    # Its own frame lies at the middle of what was seen: numbers stay small wherever it stands.
    middle = 0.5 * (cloud.points.min(axis=0) + cloud.points.max(axis=0)) if len(cloud) else np.zeros(3)
    depths = views_of_cloud(cloud.points - middle, cloud.normals, eyes - middle, config.picture_size)
    T_frame_object = make_transform(translation=middle)
    patch = None
    if request.use_table:
        found = request.table if request.table.found else table
        patch = None if found is None else table_from_message(found)
        if patch is None:
            remedy = "Set use_table to false if there is none."
            raise InvalidInputError("use_table", "no table is known", "one in the goal or on table", remedy)
        if found is not None and found.header.frame_id != frame:
            raise InvalidInputError("table: frame", repr(found.header.frame_id), f"the object's frame '{frame}'")
    support = None if patch is None else SupportPlane(invert_transform(T_frame_object) @ patch.T_world_table)
    return Views(
        target.header, T_frame_object, depths=depths, measured=depths, eyes=depths.T_world_camera[:, :3, 3],
        support=support, doubts=object_doubts(target),
    )  # fmt: skip


class Learned(NamedTuple):
    """What a goal's views say of its object.

    Attributes:
        field: in the object's own frame.
        threshold: that learning recommends, None if it has none.
        loss: the last one, NaN if there is none.
        notes: what was done to the views, such as those left out, and what is not known of them.
    """

    field: DensityField
    threshold: Threshold | None
    loss: float
    notes: tuple[str, ...] = ()


def learned(views: Views, request: BuildNeuralObject.Goal, progress: Progress) -> Learned:
    """The field of a goal's views.

    Raises:
        InvalidInputError: a setting that there is not, or views that nothing can be learned from.
    """
    _, settings = _own_settings(request)
    if views.field is not None:
        if settings:
            raise InvalidInputError("settings", settings, f"none but {_THRESHOLD}: a saved field is not learned again")
        return Learned(views.field, views.threshold, float("nan"))
    config_type, learn, data = _learning_of(views)
    config = config_type.from_flat(_settings(config_type, settings, request.seed))
    # Some steps of it tell nothing for seconds.
    progress("learning", 0.0, float("nan"))
    result = learn(data, config, lambda share, loss: progress("learning", share, loss))
    if result.field is None:
        raise InvalidInputError("views", result.message, "views that show an object")
    loss = float(result.losses[-1]) if len(result.losses) else float("nan")
    return Learned(result.field, result.threshold, loss, result.notes)


def _learning_of(views: Views) -> tuple[Any, Any, Any]:
    if views.depths is not None:
        from morphit_ros.neural.learning.config import DepthLearningConfig
        from morphit_ros.neural.learning.depth import learn_from_depths

        return DepthLearningConfig, learn_from_depths, views.depths
    from morphit_ros.neural.learning.config import ImageLearningConfig
    from morphit_ros.neural.learning.images import learn_from_images

    return ImageLearningConfig, learn_from_images, views.images


def _settings(config_type: Any, settings: Sequence[str], seed: int) -> dict[str, Any]:
    if seed < 0:
        raise InvalidInputError("seed", seed, "at least 0")
    return with_assignments({**config_type().to_flat(), "seed": seed}, settings)


def built(
    request: BuildNeuralObject.Goal,
    views: Views,
    found: Learned,
    config: BuildConfig,
) -> PlacedObject:
    """The object of a field as the goal wants it.

    Args:
        request: the goal.
        views: that the field is from.
        found: what was learned of them.
        config: of the node.

    Raises:
        InvalidInputError: negative numbers, materials that do not fit, a field that is no object, or views that do not
            belong to it.
    """
    for name in ("mass", "density"):
        value = getattr(request, name)
        if not (np.isfinite(value) and value >= 0.0):
            raise InvalidInputError(name, value, "a number from 0 up")
    regions = regions_from_messages(request.materials, views.header.frame_id, views.T_frame_object)
    threshold = chosen_threshold(found.field, views.threshold_by, found.threshold, views.seen, views.measured)
    known: KnownObject = know_object(
        found.field, request.density or config.density, regions, request.mass or None, threshold, views.eyes,
        views.support, density_known=request.density > 0.0,
    )  # fmt: skip
    remarks = (*found.notes, *known.inertia.remarks)
    doubts = " ".join([views.doubts, *(f"{remark}." for remark in remarks)]).strip()
    return PlacedObject(request.name or "object", source_of(request), known, views.header, views.T_frame_object, doubts)
