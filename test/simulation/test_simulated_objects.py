"""Objects: closed surfaces, pieces that fill them, a stable stance, and what happens to bad names."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import trimesh

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy, transform_points
from morphit_ros.simulation import convex_pieces as convex_pieces_module
from morphit_ros.simulation.convex_pieces import convex_pieces
from morphit_ros.simulation.objects import OBJECT_NAMES, available_objects, load_object, printed_mass
from morphit_ros.simulation.own_objects import OWN_OBJECTS, TOO_WIDE
from morphit_ros.simulation.resting import mass_properties, resting_transform
from morphit_ros.simulation.solids import block, convex_hull, lathe

DATA = Path(os.environ.get("MORPHIT_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
needs_data = pytest.mark.skipif(not (DATA / "ycb").is_dir(), reason=f"no test data at {DATA} (set MORPHIT_DATA)")


@pytest.mark.parametrize("name", OWN_OBJECTS)
def test_own_object_is_one_closed_surface_filled_by_convex_pieces(name: str) -> None:
    thing = load_object(name)
    surface = trimesh.Trimesh(thing.mesh.vertices, thing.mesh.faces, process=False)
    assert surface.is_watertight
    assert surface.body_count == 1
    assert thing.mesh.volume > 0.0
    for piece in thing.pieces:
        # A point of each piece is behind all of its facets, and so are its corners: closed, outward, convex.
        planes = np.einsum("fk,fk->f", piece.face_normals, piece.triangles[:, 0])
        assert (piece.vertices @ piece.face_normals.T - planes).max() < 1e-6
        assert piece.volume > 0.0
    # Pieces overlap a little where solids meet, and flatten curves a little.
    assert sum(piece.volume for piece in thing.pieces) == pytest.approx(thing.mesh.volume, rel=0.15)


@pytest.mark.parametrize("name", OWN_OBJECTS)
def test_own_object_stands_centred_on_the_ground(name: str) -> None:
    thing = load_object(name)
    corners = np.concatenate([piece.vertices for piece in thing.pieces])
    assert corners[:, 2].min() == pytest.approx(0.0, abs=1e-9)
    assert thing.mesh.bounds[0, 2] == pytest.approx(0.0, abs=5e-4)
    assert np.allclose(corners.min(axis=0)[:2] + corners.max(axis=0)[:2], 0.0, atol=1e-9)
    assert (thing.center_of_mass > corners.min(axis=0)).all()
    assert (thing.center_of_mass < corners.max(axis=0)).all()


@pytest.mark.parametrize("name", OWN_OBJECTS)
def test_own_object_fits_an_80_mm_gripper_somewhere_unless_it_is_the_crate(name: str) -> None:
    thing = load_object(name)
    points = trimesh.sample.sample_surface(trimesh.Trimesh(thing.mesh.vertices, thing.mesh.faces), 20000, seed=0)[0]
    # The width, along x or y, of slices as thick as a pad.
    widths = []
    for across in (0, 1, 2):
        for start in np.arange(thing.mesh.bounds[0, across], thing.mesh.bounds[1, across] - 0.018, 0.018):
            band = points[(points[:, across] >= start) & (points[:, across] <= start + 0.018)]
            widths += [np.ptp(band[:, along]) for along in (0, 1) if along != across]
    assert (min(widths) < 0.079) == (name not in TOO_WIDE)


def test_mug_and_glass_are_hollow_to_see_and_to_touch() -> None:
    for name, level in (("mug", 0.06), ("wine_glass", 0.15)):
        thing = load_object(name)
        # The mug's handle moves its middle away from the frame's origin.
        axis_x = thing.mesh.bounds[0, 0] + 0.039 if name == "mug" else 0.0
        probe = np.array([axis_x, 0.0, level])
        for piece in thing.pieces:
            planes = np.einsum("fk,fk->f", piece.face_normals, piece.triangles[:, 0])
            assert (piece.face_normals @ probe - planes).max() > 0.005


def test_hammer_is_heavier_at_its_head() -> None:
    hammer = load_object("hammer")
    assert hammer.center_of_mass[0] > hammer.mesh.center_of_mass[0] + 0.02


def test_mass_properties_of_a_box_match_the_formula() -> None:
    size, mass = np.array([0.1, 0.2, 0.3]), 2.0
    pose = make_transform(matrix_from_rpy((0.3, -0.4, 1.0)), (1.0, -2.0, 0.5))
    piece = block(size).surface.transformed(pose)
    center, inertia = mass_properties([piece], [3.0], mass)
    expected = np.diag(mass / 12.0 * (np.sum(size**2) - size**2))
    assert np.allclose(center, pose[:3, 3])
    assert np.allclose(inertia, pose[:3, :3] @ expected @ pose[:3, :3].T, rtol=1e-6)


def test_mass_properties_weigh_pieces_by_density() -> None:
    light, heavy = block((0.1, 0.1, 0.1), (0.0, 0.0, 0.0)).surface, block((0.1, 0.1, 0.1), (1.0, 0.0, 0.0)).surface
    center, _ = mass_properties([light, heavy], [1.0, 3.0], 1.0)
    assert np.allclose(center, (0.75, 0.0, 0.0))


def test_resting_pose_is_the_stable_one_nearest_to_upright() -> None:
    corners = block((0.1, 0.2, 0.3)).surface.vertices
    tilted = transform_points(make_transform(matrix_from_rpy((0.3, 0.2, 0.0)), (5.0, 6.0, 7.0)), corners)
    standing = transform_points(resting_transform(tilted, tilted.mean(axis=0)), tilted)
    assert np.allclose(np.ptp(standing, axis=0)[2], 0.3)
    assert standing[:, 2].min() == pytest.approx(0.0, abs=1e-12)
    # Told that x is up, it lies on the face across x.
    lying = transform_points(resting_transform(corners, (0.0, 0.0, 0.0), up=(1.0, 0.0, 0.0)), corners)
    assert np.allclose(np.ptp(lying, axis=0)[2], 0.1)


def test_a_body_that_cannot_stand_on_its_tip_lies_down() -> None:
    corners = lathe([(0, 0), (0.001, 0), (0.05, 0.2), (0, 0.2)], [(0, 0, 0.001), (0.2, 0, 0.05)]).surface.vertices
    standing = transform_points(resting_transform(corners, (0.01, 0.0, 0.13)), corners)
    assert np.ptp(standing[:, 2]) < 0.11


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ResourceNotFoundError) as error:
        load_object("teapot")
    for name in ("teapot", "wine_glass", "mustard_bottle", "ycb/mug"):
        assert name in str(error.value)


def test_missing_data_folder_names_the_environment_variable(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFoundError, match="MORPHIT_DATA"):
        load_object("banana", data_dir=tmp_path)


def test_own_object_wins_over_a_ycb_one_of_the_same_name(tmp_path: Path) -> None:
    assert load_object("mug", data_dir=tmp_path).mass == pytest.approx(0.300)
    with pytest.raises(ResourceNotFoundError):
        load_object("ycb/mug", data_dir=tmp_path)


@pytest.mark.parametrize("mass", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_mass_is_refused(mass: float) -> None:
    with pytest.raises(InvalidInputError, match="mass"):
        load_object("box", mass=mass)


def test_given_mass_scales_the_inertia() -> None:
    ordinary, heavy = load_object("box"), load_object("box", mass=2.0)
    assert np.allclose(heavy.inertia, ordinary.inertia * 2.0 / ordinary.mass, atol=1e-12)


@pytest.fixture
def l_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An L of two cubes and a bar as an STL file, and an empty cache."""
    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path / "cache"))
    first = trimesh.creation.box((0.03, 0.03, 0.12))
    second = trimesh.creation.box((0.12, 0.03, 0.03))
    second.apply_translation((0.045, 0.0, -0.045))
    path = tmp_path / "l_block.stl"
    trimesh.boolean.union([first, second]).export(path)
    return path


def test_mesh_file_needs_a_mass(l_block: Path) -> None:
    with pytest.raises(InvalidInputError, match="mass"):
        load_object(l_block)


def test_mesh_file_is_split_once_and_then_read_from_the_cache(l_block: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_object(l_block, mass=0.1)
    assert len(first.pieces) >= 2
    assert sum(piece.volume for piece in first.pieces) == pytest.approx(first.mesh.volume, rel=0.1)

    def refuse(mesh: TriangleMesh, seed: int) -> list[np.ndarray]:
        raise AssertionError("computed again")

    monkeypatch.setattr(convex_pieces_module, "_decompose", refuse)
    again = load_object(l_block, mass=0.1)
    for one, other in zip(first.pieces, again.pieces, strict=True):
        assert np.array_equal(one.vertices, other.vertices)


def test_damaged_cache_entry_is_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path))
    mesh = block((0.1, 0.1, 0.1)).surface
    calls: list[int] = []

    def decompose(mesh: TriangleMesh, seed: int) -> list[np.ndarray]:
        calls.append(seed)
        return [mesh.vertices]

    monkeypatch.setattr(convex_pieces_module, "_decompose", decompose)
    convex_pieces(mesh)
    (entry,) = (tmp_path / "convex_pieces").glob("*.npz")
    whole = entry.read_bytes()
    for damage in (b"", b"no archive", whole[: len(whole) // 2]):
        entry.write_bytes(damage)
        assert convex_pieces(mesh)[0].volume == pytest.approx(1e-3)
    assert len(calls) == 4
    convex_pieces(mesh)
    assert len(calls) == 4


def test_flat_points_have_no_hull() -> None:
    with pytest.raises(InvalidInputError, match="plane"):
        convex_hull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)])


@needs_data
@pytest.mark.parametrize("name", ["banana", "cracker_box", "mustard_bottle"])
def test_ycb_object_stands_on_its_pieces(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path))
    monkeypatch.setattr(convex_pieces_module, "_decompose", lambda mesh, seed: [mesh.vertices])
    thing = load_object(name, data_dir=DATA)
    assert thing.mass == load_object(f"ycb/{name}", data_dir=DATA).mass
    assert abs(thing.mesh.bounds[0, 2]) < 3e-3
    assert f"ycb/{name}" not in OBJECT_NAMES


@needs_data
@pytest.mark.parametrize("name", ["known/T", "known/RubberDuck", "known/Hammer"])
def test_known_shape_weighs_what_a_print_weighs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path))
    monkeypatch.setattr(convex_pieces_module, "_decompose", lambda mesh, seed: [mesh.vertices])
    thing = load_object(name, data_dir=DATA)
    # The paper simulates 7 to 27 g.
    assert 0.03 < thing.mass < 0.2
    assert thing.mass == pytest.approx(printed_mass(thing.mesh), rel=1e-9)
    assert thing.mass < 1240.0 * thing.mesh.volume
    assert load_object(name, mass=0.5, data_dir=DATA).mass == 0.5


def test_printed_mass_of_a_cube() -> None:
    # 1.2 mm walls on the 600 cm² of a cube of 1 dm³: 72 cm³ solid, the rest at 20 %.
    assert printed_mass(block((0.1, 0.1, 0.1)).surface) == pytest.approx(1240.0 * (72e-6 + 0.2 * (1e-3 - 72e-6)))
    # Thinner than its walls: solid.
    assert printed_mass(block((0.1, 0.1, 0.001)).surface) == pytest.approx(1240.0 * 1e-5)


def test_without_data_only_our_own_objects_are_available(tmp_path: Path) -> None:
    assert available_objects(tmp_path) == ("mug", "wine_glass", "hammer", "box", "t_block", "bottle")
    (tmp_path / "ycb" / "mug").mkdir(parents=True)
    (tmp_path / "ycb" / "banana").mkdir()
    assert set(available_objects(tmp_path)) - set(available_objects(tmp_path / "ycb")) == {"banana", "ycb/mug"}


@needs_data
def test_everything_is_available_with_data() -> None:
    # The files of these are elsewhere (docs/picks.md).
    further = {"extra_large_clamp", "scissors", "known/OldCamera", "known/WineGlass"}
    missing = set(OBJECT_NAMES) - set(available_objects(DATA))
    assert missing - further == set(TOO_WIDE)


@pytest.mark.parametrize(("name", "mass"), [("scissors", 0.082), ("known/WineGlass", None)])
def test_a_file_that_is_laid_into_the_data_folder_is_an_object(
    name: str, mass: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path))
    monkeypatch.setattr(convex_pieces_module, "_decompose", lambda mesh, seed: [mesh.vertices])
    file = tmp_path / ("grasp" if mass is None else "ycb") / (f"{name}.obj" if mass is None else f"{name}/textured.obj")
    file.parent.mkdir(parents=True)
    surface = block((0.05, 0.04, 0.09)).surface
    trimesh.Trimesh(surface.vertices, surface.faces).export(file)
    assert name in available_objects(tmp_path)
    thing = load_object(name, data_dir=tmp_path)
    assert thing.mass == pytest.approx(mass or printed_mass(thing.mesh))
