"""Fields in files: what comes back is what was saved, with what was learned of it, and hostile files are refused."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ball_views import ball_images
from field_samples import EVERY_FIELD, FIELDS, points_around

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.archive import read_archive, write_archive
from morphit_ros.neural.fields.analytic import SphereField
from morphit_ros.neural.fields.grid import GridField
from morphit_ros.neural.learning.config import ImageLearningConfig
from morphit_ros.neural.learning.field_file import LearnedField, load_field, load_learned_field, save_field
from morphit_ros.neural.learning.images import learn_from_images
from morphit_ros.neural.objects.known_object import know_object
from morphit_ros.neural.solid.extraction import SolidConfig
from morphit_ros.neural.solid.moments import VolumeMoments
from morphit_ros.neural.solid.silhouette_hull import HullThreshold, MomentDeviation
from morphit_ros.neural.solid.thresholds import Threshold

BOUNDS = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
HULL = VolumeMoments(0.2, np.array([0.5, 0.4, 0.5]), np.diag([0.003, 0.002, 0.004]))
EYES = np.array([[2.0, 0.5, 0.5], [-1.0, 0.5, 0.7]])


@EVERY_FIELD
def test_round_trip(field, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "field.npz"
    save_field(field, file, "a test")
    loaded = load_field(file)
    assert type(loaded) is type(field)
    points = points_around(field, 500, 0.01)
    np.testing.assert_array_equal(loaded.bounds, field.bounds)
    np.testing.assert_array_equal(loaded.density(points), field.density(points))
    np.testing.assert_array_equal(loaded.gradient(points), field.gradient(points))
    again = tmp_path / "again.npz"
    save_field(loaded, again, "a test")
    assert again.read_bytes() == file.read_bytes()


def test_an_own_class_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    class Own(SphereField):
        pass

    with pytest.raises(InvalidInputError, match="Own"):
        save_field(Own(0.1), tmp_path / "field.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "field.npz"
    save_field(GridField(np.random.default_rng(0).uniform(size=(8, 8, 8)), BOUNDS), path)
    return path


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path: Path, content: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def npy(array: np.ndarray, **options: bool) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **options)  # type: ignore[arg-type]
    return stream.getvalue()


def header_of(path: Path) -> dict:
    return json.loads(np.load(io.BytesIO(members(path)["header.npy"])).tobytes())


def with_header(path: Path, **changes: object) -> None:
    text = json.dumps(header_of(path) | changes).encode()
    rewrite(path, members(path) | {"header.npy": npy(np.frombuffer(text, dtype=np.uint8))})


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFoundError, match="density field"):
        load_field(tmp_path / "none.npz")


@pytest.mark.parametrize("length", [0, 1, 10, 100, 1000, -30, -1])
def test_truncated(file: Path, length: int) -> None:
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(InvalidInputError, match="complete file"):
        load_field(file)


def test_no_field_at_all(file: Path) -> None:
    for content in (b"ply\nformat ascii", pickle.dumps({"a": 1}), b"\x00" * 500):
        file.write_bytes(content)
        with pytest.raises(InvalidInputError, match="complete file"):
            load_field(file)
    with file.open("wb") as stream:
        np.savez(stream, points=np.zeros((3, 3)))
    with pytest.raises(InvalidInputError, match="without a readable header"):
        load_field(file)


def test_flipped_bytes_never_load_silently(file: Path) -> None:
    good = file.read_bytes()
    rng = np.random.default_rng(0)
    expected = load_field(file).density(np.full((1, 3), 0.4))
    for position in rng.integers(len(good), size=150):
        bad = bytearray(good)
        bad[position] ^= 0xFF
        file.write_bytes(bytes(bad))
        try:
            loaded = load_field(file)
        except InvalidInputError:
            continue
        # Some bytes of a zip file mean nothing (times, attributes).
        assert loaded.density(np.full((1, 3), 0.4)) == expected


def test_other_kind_or_version(file: Path) -> None:
    for version in (99, 0, True, "2", None):
        with_header(file, version=version)
        with pytest.raises(InvalidInputError, match=f"version {version!r}, expected version 1 or 2"):
            load_field(file)
    with_header(file, version=2, kind="recording")
    with pytest.raises(InvalidInputError, match="kind 'recording'"):
        load_field(file)


def test_changed_array(file: Path) -> None:
    rewrite(file, members(file) | {"values.npy": npy(np.ones((8, 8, 8)))})
    with pytest.raises(InvalidInputError, match="do not match the header"):
        load_field(file)


class Trap:
    """Runs when it is unpickled."""

    def __reduce__(self) -> tuple:
        return (pytest.fail, ("a pickle was executed",))


def test_pickled_arrays_are_not_read(file: Path) -> None:
    for name in ("values.npy", "header.npy"):
        good = members(file)
        rewrite(file, good | {name: npy(np.array([Trap()], dtype=object), allow_pickle=True)})
        with pytest.raises(InvalidInputError, match="numbers or booleans"):
            load_field(file)
        rewrite(file, good)


@pytest.mark.parametrize("shape", [(10**6, 10**6, 10**6), (2**40,), (-1, -8), (8, 8, 9)])
def test_absurd_shapes_take_no_memory(file: Path, shape: tuple[int, ...]) -> None:
    stream = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)  # type: ignore[arg-type]
    rewrite(file, members(file) | {"values.npy": stream.getvalue() + b"\x00" * 4096})
    with pytest.raises(InvalidInputError):
        load_field(file)


def test_a_bomb_is_not_unpacked(file: Path) -> None:
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("zeros.npy", "w", force_zip64=True):
        pass
    data = file.read_bytes()
    # Claims in the central directory that the added member unpacks to 3 GB.
    start = data.rindex(b"PK\x01\x02")
    file.write_bytes(data[: start + 24] + (3 << 30).to_bytes(4, "little") + data[start + 28 :])
    with pytest.raises(InvalidInputError, match=r"bytes when unpacked|cannot be read"):
        load_field(file)


def rehashed(path: Path, field: object, arrays: dict[str, np.ndarray] | None = None) -> None:
    """A file whose hash is right and whose description is not."""
    write_archive(path, "density field", 1, {"field": field}, arrays or {})


NETWORK = {"layers": 1, "output": "sigmoid", "frequencies": 0, "scale": 1.0}
WEIGHTS = {"bounds": BOUNDS, "weights0": np.ones((3, 1)), "biases0": np.ones(1)}


@pytest.mark.parametrize(
    ("field", "arrays"),
    [
        (None, {}),
        ([], {}),
        ({}, {}),
        ({"type": "teapot"}, {}),
        ({"type": ["sphere"]}, {}),
        ({"type": "sphere"}, {}),
        ({"type": "sphere", "radius": "1"}, {}),
        ({"type": "sphere", "radius": -1.0}, {}),
        ({"type": "sphere", "radius": 1.0, "color": 3}, {}),
        ({"type": "sphere", "radius": 10**400}, {}),
        ({"type": "grid"}, {}),
        ({"type": "grid"}, {"values": np.zeros(3), "bounds": BOUNDS}),
        ({"type": "grid"}, {"values": np.full((2, 2, 2), np.nan), "bounds": BOUNDS}),
        ({"type": "network", "network": {"layers": 10**9, "output": "sigmoid"}}, {"bounds": BOUNDS}),
        ({"type": "network", "network": NETWORK | {"scale": 10**400}}, WEIGHTS),
        ({"type": "samples", "radius": None}, {"points": np.zeros((1, 3)), "densities": np.ones(1)}),
        ({"type": "union", "fields": []}, {}),
    ],
)
def test_descriptions_that_make_no_field(tmp_path: Path, field: object, arrays: dict[str, np.ndarray]) -> None:
    file = tmp_path / "field.npz"
    rehashed(file, field, arrays)
    with pytest.raises(InvalidInputError, match=r"field\.npz"):
        load_field(file)


def test_fields_within_fields_without_end(tmp_path: Path) -> None:
    field: dict = {"type": "sphere", "radius": 1.0}
    for _ in range(20):
        field = {"type": "union", "fields": [field]}
    rehashed(tmp_path / "field.npz", field)
    with pytest.raises(InvalidInputError, match="levels"):
        load_field(tmp_path / "field.npz")


def test_numbers_that_are_too_long_to_read(file: Path) -> None:
    text = json.dumps(header_of(file)).encode().replace(b'"version": 2', b'"version": ' + b"1" * 5000)
    rewrite(file, members(file) | {"header.npy": npy(np.frombuffer(text, dtype=np.uint8))})
    with pytest.raises(InvalidInputError, match="no JSON"):
        load_field(file)


# What was learned of the surface.


def same_threshold(loaded: Threshold | None, saved: Threshold | None) -> None:
    """To the last bit."""
    assert type(loaded) is type(saved)
    if saved is None or loaded is None:
        return
    assert (loaded.value, loaded.range, loaded.agreement) == (saved.value, saved.range, saved.agreement)
    if isinstance(saved, HullThreshold) and isinstance(loaded, HullThreshold):
        assert (loaded.pixel, loaded.scale, loaded.poses) == (saved.pixel, saved.scale, saved.poses)
        assert (loaded.hull is None) == (saved.hull is None)
        if saved.hull is not None and loaded.hull is not None:
            assert loaded.hull.volume == saved.hull.volume
            np.testing.assert_array_equal(loaded.hull.center, saved.hull.center)
            np.testing.assert_array_equal(loaded.hull.second_moment, saved.hull.second_moment)


@pytest.mark.parametrize(
    "threshold",
    [
        None,
        Threshold(1.0 / 3.0),
        Threshold(0.3, 0.1, 0.7, 0.92),
        HullThreshold(0.5),
        HullThreshold(0.5, 0.4, 0.6, 0.98, HULL, 0.0027),
        HullThreshold(0.5, 0.4, 0.6, 0.98, HULL, 0.0027, 0.0011, 0.0023),
        HullThreshold(0.5, scale=0.02, poses=MomentDeviation(0.1, 0.002, 0.2, 0.1)),
        HullThreshold(np.float32(0.5), hull=VolumeMoments(0.0, BOUNDS.mean(axis=0), np.zeros((3, 3)))),
    ],
)
@pytest.mark.parametrize("eyes", [None, EYES])
def test_threshold_and_eyes_travel_with_the_field(
    threshold: Threshold | None, eyes: np.ndarray | None, tmp_path: Path
) -> None:
    field = GridField(np.random.default_rng(0).uniform(size=(4, 4, 4)), BOUNDS)
    save_field(field, tmp_path / "field.npz", "a test", threshold, eyes)
    loaded = load_learned_field(tmp_path / "field.npz")
    same_threshold(loaded.threshold, threshold)
    assert (loaded.eyes is None) == (eyes is None)
    if eyes is not None:
        np.testing.assert_array_equal(loaded.eyes, eyes)
    save_field(loaded.field, tmp_path / "again.npz", "a test", loaded.threshold, loaded.eyes)
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "field.npz").read_bytes()


def test_a_number_is_a_threshold_without_a_range(tmp_path: Path) -> None:
    save_field(SphereField(0.05), tmp_path / "field.npz", threshold=0.25)
    same_threshold(load_learned_field(tmp_path / "field.npz").threshold, Threshold(0.25))


def test_what_pictures_taught_gives_the_same_mass_and_the_same_errors_from_a_file(tmp_path: Path) -> None:
    views = ball_images(6)
    config = ImageLearningConfig(
        resolution=20, feature_resolution=16, features=4, hidden=16, iterations=20, rays=256, density_rate=0.3,
        check_poses=False,
    )  # fmt: skip
    learned = learn_from_images(views, config)
    assert learned.field is not None and isinstance(learned.threshold, HullThreshold)
    eyes = views.T_world_camera[:, :3, 3]
    save_field(learned.field, tmp_path / "ball.npz", "a ball", learned.threshold, eyes)
    loaded = load_learned_field(tmp_path / "ball.npz")
    same_threshold(loaded.threshold, learned.threshold)

    def known(source: LearnedField) -> Any:
        cells = SolidConfig(resolution=24)
        return know_object(source.field, 500.0, threshold=source.threshold, eyes=source.eyes, config=cells)

    before, after = known(LearnedField(learned.field, learned.threshold, eyes)), known(loaded)
    for name in ("mass", "center_of_mass", "inertia", "mass_error", "center_error", "inertia_error", "seen_share"):
        np.testing.assert_allclose(getattr(after.inertia, name), getattr(before.inertia, name), rtol=1e-12)
    assert after.inertia.remarks == before.inertia.remarks
    assert (after.confidence, after.content_hash) == (before.confidence, before.content_hash)
    # The field alone says to be far surer of its centre than it is.
    assert (
        known(LearnedField(load_field(tmp_path / "ball.npz"))).inertia.center_error < 0.1 * after.inertia.center_error
    )


@EVERY_FIELD
def test_files_of_version_1_still_load(field, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "field.npz"
    save_field(field, path)
    header, arrays = read_archive(path, "density field", 2)
    write_archive(path, "density field", 1, {"description": "", "field": header["field"]}, arrays)
    loaded = load_learned_field(path)
    points = points_around(field, 50)
    np.testing.assert_array_equal(loaded.field.density(points), field.density(points))
    assert loaded.threshold is None and loaded.eyes is None


@pytest.fixture
def learned_file(tmp_path: Path) -> Path:
    path = tmp_path / "learned.npz"
    threshold = HullThreshold(0.5, 0.4, 0.6, 0.98, HULL, 0.0027)
    save_field(GridField(np.random.default_rng(0).uniform(size=(4, 4, 4)), BOUNDS), path, "", threshold, EYES)
    return path


def without(name: str) -> Callable[[dict], object]:
    return lambda threshold: {key: value for key, value in threshold.items() if key != name}


def with_hull(**changes: object) -> Callable[[dict], object]:
    return lambda threshold: threshold | {"hull": threshold["hull"] | changes}


SKEW = [[0.003, 0.001, 0.0], [0.0, 0.002, 0.0], [0.0, 0.0, 0.004]]
NEGATIVE = [[0.003, 0.0, 0.0], [0.0, -0.002, 0.0], [0.0, 0.0, 0.004]]
WIDE = [[0.003, 0.0, 0.0], [0.0, 0.002, 0.0], [0.0, 0.0, 0.06]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda threshold: [], r"threshold: got \[\]"),
        (lambda threshold: 0.5, "threshold: got 0.5, expected the names value"),
        (lambda threshold: {}, "names value, lowest"),
        *((without(name), f"threshold: got .*expected the names .*{name}") for name in ("value", "agreement", "pixel")),
        (without("hull"), "expected the names .*hull"),
        (lambda threshold: threshold | {"color": 3}, "color.*expected the names"),
        *(
            (lambda threshold, bad=bad: threshold | {"value": bad}, "threshold: value: got .*a finite number. Write")
            for bad in (None, "0.5", True, [0.5], float("nan"), float("inf"), 10**400, "1" * 5000)
        ),
        (lambda threshold: threshold | {"value": -0.5}, "threshold: got -0.5, expected a positive density"),
        (lambda threshold: threshold | {"value": 0.3}, "0.3 in .0.4, 0.6."),
        (lambda threshold: threshold | {"lowest": 0.0}, "positive range"),
        (lambda threshold: threshold | {"agreement": 1.2}, "agreement of the threshold: got 1.2"),
        (lambda threshold: threshold | {"agreement": -0.1}, "agreement of the threshold: got -0.1"),
        (lambda threshold: threshold | {"pixel": -1e-3}, "pixel of the threshold: got -0.001"),
        (lambda threshold: threshold | {"pixel": 2.0}, "at most 1.732, the field's diagonal"),
        (lambda threshold: threshold | {"hull": [1.0]}, "threshold: hull: got .*volume, center, second_moment"),
        (with_hull(volume=-0.1), "volume of the hull: got -0.1"),
        (with_hull(volume=1.1), "at most 1, that of the field's bounds.*learned together"),
        (with_hull(volume=1e308), "volume of the hull"),
        (with_hull(center=[0.5, 0.5]), r"hull: center: got .*shape \(3,\)"),
        (with_hull(center=[0.5, 0.5, "0.5"]), "hull: center: got '0.5'"),
        (with_hull(center=[0.5, 0.5, 1.2]), "a place within the field's bounds"),
        (with_hull(second_moment=[0.003, 0.002, 0.004]), "second_moment: got 0.003"),
        (with_hull(second_moment=SKEW), "a symmetric matrix"),
        (with_hull(second_moment=NEGATIVE), "without negative moments"),
        (with_hull(second_moment=WIDE), "along the field's axes"),
    ],
)
def test_thresholds_that_are_none_are_refused_by_name(
    learned_file: Path, change: Callable[[dict], object], words: str
) -> None:
    changed = change(header_of(learned_file)["threshold"])
    with_header(learned_file, threshold=changed)
    with pytest.raises(InvalidInputError, match=rf"learned\.npz: .*{words}") as refused:
        load_learned_field(learned_file)
    assert len(str(refused.value)) < 600
    # The field alone would be another's.
    with pytest.raises(InvalidInputError, match=words):
        load_field(learned_file)


def test_a_file_of_version_2_says_whether_there_is_a_threshold(learned_file: Path) -> None:
    good = header_of(learned_file)
    for name in ("threshold", "eyes"):
        text = json.dumps({key: value for key, value in good.items() if key != name}).encode()
        rewrite(learned_file, members(learned_file) | {"header.npy": npy(np.frombuffer(text, dtype=np.uint8))})
        with pytest.raises(InvalidInputError, match=f"cannot be read.*{name}"):
            load_learned_field(learned_file)


@pytest.mark.parametrize(
    "eyes",
    [np.zeros((0, 3)), np.zeros(3), np.zeros((2, 2)), EYES * np.nan, EYES + np.inf, EYES > 0.0],
    ids=["none", "one row", "flat", "nan", "infinite", "truths"],
)
def test_eyes_that_are_no_places(learned_file: Path, eyes: np.ndarray, tmp_path: Path) -> None:
    header, arrays = read_archive(learned_file, "density field", 2)
    write_archive(learned_file, "density field", 2, header, arrays | {"eyes": eyes})
    with pytest.raises(InvalidInputError, match=r"learned\.npz: eyes: .*places \(V, 3\)"):
        load_learned_field(learned_file)
    with pytest.raises(InvalidInputError, match="eyes"):
        save_field(FIELDS["sphere"], tmp_path / "field.npz", eyes=eyes)
    assert not (tmp_path / "field.npz").exists()


def test_cameras_that_are_too_far_away_to_see_anything(tmp_path: Path) -> None:
    far = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1e300]])
    with pytest.raises(InvalidInputError, match=r"eyes: got a camera 1e\+300 m away, expected at most .*same frame"):
        save_field(FIELDS["sphere"], tmp_path / "field.npz", eyes=far)


def test_eyes_that_are_told_of_and_missing_or_there_and_not_told_of(learned_file: Path) -> None:
    header, arrays = read_archive(learned_file, "density field", 2)
    for told, there in ((True, False), (False, True), (2, True), ("yes", True), (None, False)):
        kept = {name: array for name, array in arrays.items() if there or name != "eyes"}
        write_archive(learned_file, "density field", 2, header | {"eyes": told}, kept)
        with pytest.raises(InvalidInputError, match=r"learned\.npz: eyes"):
            load_learned_field(learned_file)


class OwnThreshold(Threshold):
    pass


@pytest.mark.parametrize(
    ("threshold", "words"),
    [
        (-1.0, "threshold: got -1.0"),
        (OwnThreshold(0.5), "OwnThreshold"),
        (HullThreshold(0.5, hull=HULL._replace(center=np.array([0.5, 0.5, 3.0]))), "learned together with this field"),
        (HullThreshold(0.5, pixel=5.0), "pixel"),
    ],
)
def test_thresholds_of_another_field_are_not_saved(threshold: Any, words: str, tmp_path: Path) -> None:
    field = GridField(np.random.default_rng(0).uniform(size=(4, 4, 4)), BOUNDS)
    with pytest.raises(InvalidInputError, match=words):
        save_field(field, tmp_path / "field.npz", threshold=threshold)
    assert list(tmp_path.iterdir()) == []
