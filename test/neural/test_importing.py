"""What other programs write, read as recordings and fields; the files are written here, after their formats."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from ball_views import BALL_CENTER, BALL_RADIUS, INTRINSICS, ball_depths, ball_images
from PIL import Image

from morphit_ros.cli import main
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.transforms import invert_transform, quat_xyzw_from_matrix
from morphit_ros.neural.importing.colmap import read_colmap
from morphit_ros.neural.importing.pictures import ViewImportConfig, record_pictures
from morphit_ros.neural.importing.shapes import field_of_mesh, load_distances
from morphit_ros.neural.importing.sources import kind_of
from morphit_ros.neural.importing.splats import field_of_splats, load_splats
from morphit_ros.neural.importing.transforms_json import read_transforms
from morphit_ros.neural.learning.field_file import load_learned_field
from morphit_ros.neural.solid.inertia import inertial_properties
from morphit_ros.neural.views.posed_views import PosedImages
from morphit_ros.neural.views.recording import load_recording

VIEWS = ball_images(6)
SIZE = VIEWS.rgb.shape[1]
# Other programs count from the corner of the first pixel.
CAMERA = [INTRINSICS[0], INTRINSICS[1], INTRINSICS[2] + 0.5, INTRINSICS[3] + 0.5]
BALL_VOLUME = 4.0 / 3.0 * np.pi * BALL_RADIUS**3


def write_pictures(folder: Path, transparent: bool = True) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for number, (rgb, mask) in enumerate(zip(VIEWS.rgb, VIEWS.masks, strict=True)):  # type: ignore[arg-type]
        pixels = np.concatenate([rgb, mask[..., None]], axis=2) if transparent else rgb
        names.append(f"view {number}.png")
        Image.fromarray(np.rint(255.0 * pixels).astype(np.uint8)).save(folder / names[-1])
    return names


def world_to_camera(pose: np.ndarray, unit: float) -> tuple[np.ndarray, np.ndarray]:
    """Quaternion w x y z and translation, as COLMAP has them."""
    inverse = invert_transform(pose)
    return np.roll(quat_xyzw_from_matrix(inverse[:3, :3]), 1), inverse[:3, 3] / unit


def write_colmap(folder: Path, binary: bool, model: tuple[int, str] = (1, "PINHOLE"), params=CAMERA, unit=0.1) -> None:  # type: ignore[no-untyped-def]
    names = write_pictures(folder / "images")
    sparse = folder / "sparse" / "0"
    sparse.mkdir(parents=True)
    rows = [(*world_to_camera(pose, unit), name) for pose, name in zip(VIEWS.T_world_camera, names, strict=True)]
    if binary:
        camera = struct.pack("<QIiQQ", 1, 7, model[0], SIZE, SIZE) + struct.pack(f"<{len(params)}d", *params)
        (sparse / "cameras.bin").write_bytes(camera)
        images = struct.pack("<Q", len(rows))
        for number, (quat, shift, name) in enumerate(rows):
            images += struct.pack("<I7dI", number, *quat, *shift, 7) + name.encode() + b"\0"
            # Two observed points a picture: they are skipped.
            images += struct.pack("<Q", 2) + 2 * struct.pack("<ddq", 1.0, 2.0, -1)
        (sparse / "images.bin").write_bytes(images)
        return
    numbers = " ".join(repr(float(value)) for value in params)
    (sparse / "cameras.txt").write_text(f"# cameras\n7 {model[1]} {SIZE} {SIZE} {numbers}\n")
    lines = ["# IMAGE_ID, QW, QX, QY, QZ, TX, TY, TZ, CAMERA_ID, NAME"]
    for number, (quat, shift, name) in enumerate(rows):
        lines.append(" ".join([str(number), *map(repr, map(float, [*quat, *shift])), "7", name]))
        lines.append("" if number % 2 else "1.0 2.0 -1 3.0 4.0 -1")
    (sparse / "images.txt").write_text("\n".join(lines) + "\n")


def assert_same_views(images: PosedImages, reference: PosedImages = VIEWS) -> None:
    np.testing.assert_allclose(images.T_world_camera, reference.T_world_camera, atol=1e-9)
    np.testing.assert_allclose(images.intrinsics, reference.intrinsics, atol=1e-9)
    np.testing.assert_array_equal(images.masks, reference.masks)
    shown = reference.masks
    assert np.abs(images.rgb - reference.rgb)[shown].max() < 0.003


@pytest.mark.parametrize("binary", [True, False])
def test_a_model_of_colmap_is_read(binary: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_colmap(tmp_path / "model", binary)
    output = tmp_path / "r.npz"
    words = ["neural", "import", str(tmp_path / "model"), "--scale", "0.1", "--size", str(SIZE)]
    assert main([*words, "--output", str(output)]) == 0
    assert "6 views of 40 x 40 px" in capsys.readouterr().out
    images = load_recording(output).images
    assert images is not None
    assert_same_views(images)


def test_a_model_of_colmap_has_no_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_colmap(tmp_path / "model", True)
    assert main(["neural", "import", str(tmp_path / "model"), "--output", str(tmp_path / "r.npz")]) == 2
    assert "--scale" in capsys.readouterr().err
    assert not (tmp_path / "r.npz").exists()


@pytest.mark.parametrize(
    ("damage", "match"),
    [
        (
            lambda f: (f / "images.bin").write_bytes((f / "images.bin").read_bytes()[:-30]),
            r"damaged|as many as the file",
        ),
        (lambda f: (f / "images.bin").write_bytes(struct.pack("<Q", 1 << 40)), "1099511627776 pictures.*at most 4000"),
        (lambda f: (f / "cameras.bin").write_bytes(b"\1"), "damaged"),
        (lambda f: (f / "cameras.bin").unlink(), "was not found"),
        (lambda f: (f / "cameras.bin").write_bytes(struct.pack("<QIiQQ", 1, 7, 7, 40, 40)), "model 7.*undistort"),
        (
            lambda f: (f / "cameras.bin").write_bytes(struct.pack("<QIiQQ4d", 1, 7, 1, 40, 40, -5.0, 5.0, 20.0, 20.0)),
            "fx -5.*focal lengths positive",
        ),
        (lambda f: (f / "cameras.bin").write_bytes(struct.pack("<Q", 0)), "camera 7.*a camera of the model"),
    ],
)
def test_damaged_models_of_colmap_are_refused(damage, match: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    write_colmap(tmp_path, True)
    damage(tmp_path / "sparse" / "0")
    with pytest.raises((InvalidInputError, ResourceNotFoundError), match=match):
        read_colmap(tmp_path)


def test_damaged_texts_of_colmap_are_refused(tmp_path: Path) -> None:
    write_colmap(tmp_path, False)
    images = tmp_path / "sparse" / "0" / "images.txt"
    good = images.read_text()
    for bad, match in (
        (good.replace(" 7 view 3.png", ""), "images.txt:8.*CAMERA_ID NAME"),
        (good.replace("3 ", "3 9", 1), "quaternion of length"),
        ("# none\n", "0 posed pictures"),
    ):
        images.write_text(bad)
        with pytest.raises(InvalidInputError, match=match):
            read_colmap(tmp_path)


def write_transforms(folder: Path, **changes: object) -> Path:
    names = write_pictures(folder)
    flip = np.diag([1.0, -1.0, -1.0, 1.0])
    frames = [
        # NeRF's own scenes leave out the suffix.
        {"file_path": name if number % 2 else f"./{name[:-4]}", "transform_matrix": (pose @ flip).tolist()}
        for number, (name, pose) in enumerate(zip(names, VIEWS.T_world_camera, strict=True))
    ]
    content: dict[str, object] = {
        "fl_x": CAMERA[0],
        "fl_y": CAMERA[1],
        "cx": CAMERA[2],
        "cy": CAMERA[3],
        "frames": frames,
    }
    (folder / "transforms.json").write_text(json.dumps(content | changes))
    return folder / "transforms.json"


def test_transforms_are_read(tmp_path: Path) -> None:
    pictures = read_transforms(write_transforms(tmp_path))
    recording = record_pictures(pictures, tmp_path, 1.0, config=ViewImportConfig(size=SIZE))
    assert recording.images is not None
    assert_same_views(recording.images)
    # The field of view alone, as NeRF's synthetic scenes have it.
    angle = 2.0 * np.arctan(0.5 * SIZE / INTRINSICS[0])
    nothing = dict.fromkeys(("fl_x", "fl_y", "cx", "cy"))
    file = write_transforms(tmp_path, camera_angle_x=angle)
    content = {k: v for k, v in json.loads(file.read_text()).items() if k not in nothing}
    file.write_text(json.dumps(content))
    again = record_pictures(read_transforms(file), tmp_path, 1.0, config=ViewImportConfig(size=SIZE))
    assert again.images is not None
    assert_same_views(again.images)


def test_depths_of_transforms_are_read(tmp_path: Path) -> None:
    file = write_transforms(tmp_path)
    content = json.loads(file.read_text())
    depths = ball_depths(6)
    for number, frame in enumerate(content["frames"]):
        millimetres = np.nan_to_num(1e3 * depths.depth[number]).round().astype(np.uint16)
        Image.fromarray(millimetres).save(tmp_path / f"d{number}.png")
        frame["depth_file_path"] = f"d{number}.png"
    file.write_text(json.dumps(content))
    recording = record_pictures(read_transforms(file), tmp_path, 1.0, config=ViewImportConfig(size=SIZE))
    assert recording.depths is not None
    np.testing.assert_allclose(recording.depths.depth, depths.depth, atol=6e-4)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"frames": []}, "0 frames.*2 to"),
        ({"frames": 3}, "no list 'frames'"),
        ({"frames": [{"file_path": "a"}, {"file_path": "b"}]}, "frame 0.*transform_matrix"),
        ({"fl_x": "wide"}, "a camera of no numbers"),
        ({"fl_x": None}, "a camera of no numbers"),
        ({"camera_model": "EQUIRECTANGULAR"}, "EQUIRECTANGULAR.*one of PINHOLE"),
        ({"fl_x": -100.0}, "focal lengths positive"),
        ({"k4": 0.1}, "k4.*OPENCV_FISHEYE"),
    ],
)
def test_bad_transforms_are_refused(changes: dict, match: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=match):
        read_transforms(write_transforms(tmp_path, **changes))


def test_scaled_poses_of_transforms_are_refused(tmp_path: Path) -> None:
    file = write_transforms(tmp_path)
    content = json.loads(file.read_text())
    content["frames"][2]["transform_matrix"] = (2.0 * np.eye(4)).tolist()
    file.write_text(json.dumps(content))
    with pytest.raises(InvalidInputError, match=r"frame 2.*columns of length 2.*--scale"):
        read_transforms(file)


@pytest.mark.parametrize(
    ("model", "more"),
    [
        ((4, "OPENCV"), [6.0, -3.0, 0.1, -0.2]),
        ((5, "OPENCV_FISHEYE"), [6.0, 0.0, 0.0, 0.0]),
        ((2, "SIMPLE_RADIAL"), [7.0]),
    ],
)
def test_lenses_are_straightened(model: tuple[int, str], more: list[float], tmp_path: Path) -> None:
    """A disc that the lens bends comes back as the disc: drawn finely, each pixel's ray asked for by bisection."""
    params = [*CAMERA, *more] if model[0] != 2 else [CAMERA[0], CAMERA[2], CAMERA[3], *more]
    write_colmap(tmp_path, True, model, params)
    pictures = read_colmap(tmp_path)
    lens = pictures[0].lens
    # Rays finely all over, bent, drawn into the pixel where they arrive.
    fine = np.stack(np.meshgrid(np.linspace(-0.3, 0.3, 1200), np.linspace(-0.3, 0.3, 1200)), axis=-1).reshape(-1, 2)
    places = np.floor(lens.distorted(fine) * CAMERA[:2] + CAMERA[2:]).astype(int)
    seen = ((places >= 0) & (places < SIZE)).all(axis=1)
    disc = np.linalg.norm(fine - [0.03, -0.02], axis=1) < 0.11
    counts, inside = np.zeros((SIZE, SIZE)), np.zeros((SIZE, SIZE))
    np.add.at(counts, (places[seen, 1], places[seen, 0]), 1.0)
    np.add.at(inside, (places[seen, 1], places[seen, 0]), disc[seen].astype(float))
    for picture in pictures:
        share = inside / np.maximum(counts, 1.0)
        rgba = np.repeat(share[..., None], 4, axis=2)
        Image.fromarray(np.rint(255.0 * rgba).astype(np.uint8)).save(tmp_path / "images" / picture.file)
    images = record_pictures(pictures, tmp_path / "images", 0.1, config=ViewImportConfig(size=SIZE)).images
    assert images is not None and images.masks is not None
    v, u = np.mgrid[:SIZE, :SIZE]
    rays = np.stack([(u - INTRINSICS[2]) / INTRINSICS[0], (v - INTRINSICS[3]) / INTRINSICS[1]], axis=-1)
    true = np.linalg.norm(rays - [0.03, -0.02], axis=-1) < 0.11
    assert (images.masks[0] ^ true).sum() <= 0.03 * true.sum()
    bent = share > 0.5
    assert (bent ^ true).sum() > 0.05 * true.sum()


def test_masks_come_from_files_transparency_or_a_plain_background(tmp_path: Path) -> None:
    pictures = read_transforms(write_transforms(tmp_path))
    for number in range(len(VIEWS)):
        write_pictures(tmp_path, transparent=False)
        (tmp_path / "masks").mkdir(exist_ok=True)
        half = np.zeros((SIZE, SIZE), dtype=np.uint8)
        half[:, :20] = 255
        Image.fromarray(half).save(tmp_path / "masks" / f"view {number}.png.png")
    config = ViewImportConfig(size=SIZE)
    given = record_pictures(pictures, tmp_path, 1.0, tmp_path / "masks", config).images
    assert given is not None and given.masks is not None
    np.testing.assert_array_equal(given.masks, np.broadcast_to(half > 0, given.masks.shape))
    plain = record_pictures(pictures, tmp_path, 1.0, None, config).images
    assert plain is not None and plain.masks is not None
    assert (plain.masks ^ VIEWS.masks).mean() < 0.01
    (tmp_path / "masks" / "view 3.png.png").unlink()
    with pytest.raises(ResourceNotFoundError, match=r"mask of 'view 3.png'"):
        record_pictures(pictures, tmp_path, 1.0, tmp_path / "masks", config)
    noise = np.random.default_rng(0).integers(0, 255, (SIZE, SIZE, 3)).astype(np.uint8)
    Image.fromarray(noise).save(tmp_path / "view 2.png")
    with pytest.raises(InvalidInputError, match="border of view 2"):
        record_pictures(pictures, tmp_path, 1.0, None, config)
    Image.fromarray(noise[:10]).save(tmp_path / "view 2.png")
    with pytest.raises(InvalidInputError, match=r"40 x 10 px.*40 x 40 px.*turned or cropped"):
        record_pictures(pictures, tmp_path, 1.0, None, config)


def test_pictures_are_shrunk_with_their_cameras(tmp_path: Path) -> None:
    pictures = read_transforms(write_transforms(tmp_path))
    images = record_pictures(pictures, tmp_path, 1.0, config=ViewImportConfig(size=20, views=3)).images
    assert images is not None and images.masks is not None
    assert images.rgb.shape == (3, 20, 20, 3)
    # The middle of the picture stays where it is: 19.5 of 40 pixels is 9.5 of 20.
    np.testing.assert_allclose(images.intrinsics[0], [55.0, 55.0, 9.5, 9.5])
    assert abs(images.masks.mean() - VIEWS.masks.mean()) < 0.02  # type: ignore[union-attr]


BOX = (0.1, 0.06, 0.04)


@pytest.mark.parametrize("suffix", ["stl", "obj", "ply", "glb"])
def test_meshes_become_fields(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trimesh = pytest.importorskip("trimesh")
    mesh = box_mesh(BOX)
    file = tmp_path / f"box.{suffix}"
    trimesh.Trimesh(1e3 * mesh.vertices, mesh.faces, process=False).export(file)
    output = tmp_path / "f.npz"
    words = ["neural", "import", str(file), "--unit", "mm", "--resolution", "48", "--mass", "0.3"]
    assert main([*words, "--output", str(output)]) == 0
    assert "centre of mass error" in capsys.readouterr().out
    learned = load_learned_field(output)
    found = inertial_properties(learned.field, mass=0.3, threshold=learned.threshold)
    x, y, z = BOX
    moments = 0.3 / 12.0 * np.array([y * y + z * z, x * x + z * z, x * x + y * y])
    assert found.volume == pytest.approx(x * y * z, rel=0.01)
    np.testing.assert_allclose(np.diag(found.inertia), moments, rtol=0.02)
    assert np.linalg.norm(found.center_of_mass) < 1e-4


def test_a_scan_with_a_hole_is_closed_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trimesh = pytest.importorskip("trimesh")
    mesh = trimesh.creation.icosphere(3, 0.05)
    keep = mesh.triangles_center[:, 2] < 0.045
    mesh.update_faces(keep)
    mesh.export(tmp_path / "scan.ply")
    words = ["neural", "import", str(tmp_path / "scan.ply"), "--resolution", "40"]
    assert main([*words, "--output", str(tmp_path / "f.npz"), "--json", str(tmp_path / "f.json")]) == 0
    assert "count as closed" in capsys.readouterr().out
    assert json.loads((tmp_path / "f.json").read_text())["volume"] == pytest.approx(BALL_VOLUME, rel=0.03)


@pytest.mark.parametrize(
    ("thickness", "told"), [(0.001, "walls are thinner than the grid"), (0.0042, "raise --resolution")]
)
def test_walls_thinner_than_the_grid_are_told(
    thickness: float, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tubes with walls thinner than two spacings of 4 mm: refused where no node is inside, else remarked."""
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.annulus(0.05 - thickness, 0.05, 0.2).export(tmp_path / "tube.stl")
    words = ["neural", "import", str(tmp_path / "tube.stl"), "--resolution", "50", "--output", str(tmp_path / "f.npz")]
    status = main(words)
    captured = capsys.readouterr()
    assert told in captured.out + captured.err
    assert status == (2 if thickness < 0.002 else 0)


def ball_distances(count: int = 32, sign: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    bounds = np.stack([BALL_CENTER - 0.07, BALL_CENTER + 0.07])
    axes = [np.linspace(low, high, count) for low, high in bounds.T]
    places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    return sign * (np.linalg.norm(places - BALL_CENTER, axis=-1) - BALL_RADIUS), bounds


def test_grids_of_distances_become_fields(tmp_path: Path) -> None:
    distances, bounds = ball_distances()
    np.savez(tmp_path / "a.npz", sdf=distances, bounds=bounds)
    np.savez(tmp_path / "b.npz", sdf=1e3 * distances, origin=1e3 * bounds[0], spacing=140.0 / 31.0)
    np.save(tmp_path / "c.npy", distances.astype(np.float32))
    for field in (
        load_distances(tmp_path / "a.npz"),
        load_distances(tmp_path / "b.npz", scale=1e-3),
        load_distances(tmp_path / "c.npy", bounds.ravel()),
    ):
        found = inertial_properties(field, density=1000.0, threshold=0.5)
        assert found.volume == pytest.approx(BALL_VOLUME, rel=0.02)
        np.testing.assert_allclose(found.center_of_mass, BALL_CENTER, atol=2e-4)
    assert main(["neural", "import", str(tmp_path / "a.npz"), "--output", str(tmp_path / "f.npz")]) == 0


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({"values": np.zeros((4, 4, 4))}, "the arrays 'values'.*'sdf'"),
        ({"sdf": ball_distances()[0]}, "'bounds'"),
        ({"sdf": ball_distances()[0], "bounds": np.zeros((2, 3))}, "lowest corner first"),
        ({"sdf": np.full((8, 8, 8), np.nan), "bounds": ball_distances()[1]}, "not finite"),
        ({"sdf": np.abs(ball_distances()[0]) + 1e-3, "bounds": ball_distances()[1]}, "Unsigned"),
        ({"sdf": ball_distances(sign=-1.0)[0], "bounds": ball_distances()[1]}, "Turn the sign"),
        ({"sdf": ball_distances()[0] - 0.04, "bounds": ball_distances()[1]}, r"of the border inside.*Enlarge"),
        ({"sdf": 1e3 * ball_distances()[0], "bounds": ball_distances()[1]}, "same unit"),
        ({"sdf": np.zeros((8, 8)), "bounds": ball_distances()[1]}, r"shape \(8, 8\)"),
        ({"sdf": ball_distances()[0], "origin": np.zeros(2), "spacing": 1.0}, "origin of shape"),
    ],
)
def test_grids_that_are_no_distances_are_refused(arrays: dict, match: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(InvalidInputError, match=match):
        load_distances(tmp_path / "a.npz")


def write_splats(path: Path, mesh_radius: float = BALL_RADIUS, hole: float = 2.0, **changes: float) -> None:
    """Discs on a ball, flat along its normal; with a hole above a height, in radii."""
    count = 6000
    number = np.arange(count)
    height = 1.0 - 2.0 * (number + 0.5) / count
    angle = number * np.pi * (3.0 - np.sqrt(5.0))
    normals = np.stack([np.sqrt(1 - height**2) * np.cos(angle), np.sqrt(1 - height**2) * np.sin(angle), height], axis=1)
    normals = normals[normals[:, 2] < hole]
    # The turn from z to the normal: w x y z.
    quats = np.stack([1.0 + normals[:, 2], -normals[:, 1], normals[:, 0], np.zeros(len(normals))], axis=1)
    quats *= 3.0
    names = [
        "x",
        "y",
        "z",
        "nx",
        "ny",
        "nz",
        "f_dc_0",
        "opacity",
        *(f"scale_{k}" for k in range(3)),
        *(f"rot_{k}" for k in range(4)),
    ]
    table = np.zeros((len(normals), len(names)), dtype="<f4")
    table[:, :3] = BALL_CENTER + mesh_radius * normals
    table[:, 7] = 3.0
    table[:, 8:11] = np.log([0.0015, 0.0015, 0.0004])
    table[:, 11:] = quats
    for name, value in changes.items():
        table[:, names.index(name)] = value
    header = "\n".join(["ply", "format binary_little_endian 1.0", f"element vertex {len(table)}",
                        *(f"property float {name}" for name in names), "end_header\n"])  # fmt: skip
    path.write_bytes(header.encode() + table.tobytes())


@pytest.mark.parametrize("resolution", [48, 80])
def test_splats_become_fields(resolution: int, tmp_path: Path) -> None:
    write_splats(tmp_path / "ball.ply")
    assert kind_of(tmp_path / "ball.ply") == "splats"
    found = field_of_splats(load_splats(tmp_path / "ball.ply"), resolution)
    properties = inertial_properties(found.field, density=1000.0, threshold=found.threshold)
    assert properties.volume == pytest.approx(BALL_VOLUME, rel=0.03)
    assert abs(properties.volume - BALL_VOLUME) < 2.0 * properties.mass_error / 1000.0
    np.testing.assert_allclose(properties.center_of_mass, BALL_CENTER, atol=3e-4)


def test_splats_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "ball.ply"
    write_splats(file, hole=0.0)
    with pytest.raises(InvalidInputError, match=r"a skin of \d+ nodes.*closed skin"):
        field_of_splats(load_splats(file), 48)
    write_splats(file, opacity=-5.0)
    with pytest.raises(InvalidInputError, match=r"0 of an opacity of 0\.3"):
        field_of_splats(load_splats(file), 48)
    write_splats(file, x=np.nan)
    with pytest.raises(InvalidInputError, match="splat 0 with numbers that are none"):
        load_splats(file)
    write_splats(file)
    whole = file.read_bytes()
    file.write_bytes(whole[:-100])
    with pytest.raises(InvalidInputError, match=r"claimed|bytes"):
        load_splats(file)
    file.write_bytes(whole.replace(b"opacity", b"density"))
    with pytest.raises(InvalidInputError, match="no opacity"):
        load_splats(file)


def test_what_needs_no_import_or_is_not_known_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("")
    properties = "".join(f"property float {axis}\n" for axis in "xyz")
    cloud = f"ply\nformat ascii 1.0\nelement vertex 1\n{properties}end_header\n0 0 0\n"
    (tmp_path / "cloud.ply").write_text(cloud)
    np.savez(tmp_path / "r.npz", header=np.zeros(1))
    for name, match in (
        ("a.txt", "the ending '.txt'"), (".", "a folder without cameras"), ("cloud.ply", "without faces"),
        ("r.npz", "this package wrote"), ("none.stl", "was not found"),
    ):  # fmt: skip
        with pytest.raises((InvalidInputError, ResourceNotFoundError), match=match):
            kind_of(tmp_path / name)


def test_options_of_other_sources_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_splats(tmp_path / "ball.ply")
    words = ["neural", "import", str(tmp_path / "ball.ply"), "--output", str(tmp_path / "f.npz")]
    assert main([*words, "--masks", "m"]) == 2
    assert "--masks: got m, expected no such option of what is splats" in capsys.readouterr().err


def test_a_mesh_without_an_inside_is_refused() -> None:
    flat = TriangleMesh(np.array([[0.0, 0, 0], [0.1, 0, 0], [0, 0.1, 0.05]]), np.array([[0, 1, 2]]))
    with pytest.raises(InvalidInputError, match="no place deeper than 0 m"):
        field_of_mesh(flat, 16)
