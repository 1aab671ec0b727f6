"""Every robot of example-robot-data, and those of the shared data: read, with all their collision meshes."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from morphit_ros.geometry.mesh_io import load_mesh
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.links import GeometryKind, collision_mesh, element_mesh
from morphit_ros.robot.packages import resolve_uri

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("MORPHIT_DATA", ROOT / "../shared/data")) / "robots"
ROBOTS = resolve_uri("package://example-robot-data/robots/panda_description/urdf/panda.urdf").parents[2]
# A document without a single link, left over from a failed expansion.
EMPTY = ROBOTS / "ur_description/urdf/ur3.urdf"
MEGABYTES = 1000


def descriptions() -> list[Path]:
    return sorted(path for path in ROBOTS.rglob("*.urdf") if path != EMPTY)


def relative(path: Path) -> str:
    return str(path.relative_to(ROBOTS))


@pytest.mark.slow
def test_every_collision_element_of_every_robot_has_a_sound_surface():
    documents, meshes = 0, {}
    for path in descriptions():
        description = load_robot_description(path)
        elements = [element for link in description.links.values() for element in link.collisions]
        documents += bool(elements)
        for element in elements:
            if element.kind is GeometryKind.MESH:
                meshes.setdefault((element.path, tuple(element.dimensions)), element)
            elif (element.dimensions > 0.0).all():
                assert collision_mesh(element).volume > 0.0
    assert documents >= 60, "descriptions with collision geometry"
    assert len(meshes) > 250
    for (path, scale), element in meshes.items():
        mesh = element_mesh(element)
        assert np.isfinite(mesh.bounds).all(), path
        assert 1e-4 < float(mesh.extents.max()) < 20.0, f"{path} at scale {scale} has the size of no link"
        assert mesh.area > 0.0, path


@pytest.mark.slow
def test_every_visual_mesh_can_stand_in_for_a_collision_mesh():
    paths = sorted(
        {
            element.path
            for path in descriptions()
            for link in load_robot_description(path).links.values()
            for element in link.visuals
            if element.path is not None
        }
    )
    assert len(paths) > 350
    rng = np.random.default_rng(0)
    without_inside = []
    # All of them pass; every fourth takes a quarter of the time.
    for path in paths[::4]:
        mesh = load_mesh(path)
        points = rng.uniform(mesh.bounds[0], mesh.bounds[1], (300, 3))
        if not InsideTest(mesh).contains(points).any():
            without_inside.append(path.name)
    assert without_inside == []


def test_visual_and_collision_meshes_of_a_link_lie_over_each_other():
    """What shows that DAE files are read as their robots mean them: unit applied, up-axis not."""
    compared = 0
    for name in (
        "panda_description/urdf/panda.urdf",
        "ur_description/urdf/ur5_robot.urdf",
        "tiago_description/robots/tiago.urdf",
    ):
        for link in load_robot_description(ROBOTS / name).links.values():
            visuals = [element for element in link.visuals if element.path is not None]
            collisions = [element for element in link.collisions if element.path is not None]
            if len(visuals) == len(collisions) == 1 and visuals[0].path.suffix.lower() == ".dae":
                if collisions[0].path.suffix.lower() == ".dae":
                    continue
                seen, felt = collision_mesh(visuals[0]), collision_mesh(collisions[0])
                assert np.abs(seen.bounds - felt.bounds).max() < 0.06 * float(felt.extents.max()), link.name
                compared += 1
    assert compared > 12


@pytest.mark.parametrize(
    ("name", "links"),
    [("ur_description/urdf/ur3e.urdf", 7), ("iCub/robots/left_hand_mk3/model.urdf", 10)],
)
def test_robots_of_the_shared_data(name, links):
    if not SHARED.is_dir():
        pytest.skip(f"{SHARED} is not there; $MORPHIT_DATA names the folder of the data")
    shapes = [link for link in load_robot_description(SHARED / name, [SHARED]).links.values() if link.collisions]
    assert len(shapes) >= links
    for link in shapes:
        for element in link.collisions:
            assert collision_mesh(element).area > 0.0, link.name


@pytest.mark.slow
def test_the_heaviest_robot_stays_below_a_gigabyte():
    heaviest = max(descriptions(), key=lambda path: sum(file.stat().st_size for file in mesh_files(path)))
    code = (
        "import sys\n"
        "import numpy as np\n"
        "from morphit_ros.geometry.mesh import sample_surface_evenly\n"
        "from morphit_ros.geometry.winding_number import InsideTest\n"
        "from morphit_ros.robot.description import load_robot_description\n"
        "from morphit_ros.robot.links import collision_mesh\n"
        "for link in load_robot_description(sys.argv[1]).links.values():\n"
        "    for element in (*link.collisions, *link.visuals):\n"
        "        if element.kind.value != 'mesh' or element.path is not None:\n"
        "            mesh = collision_mesh(element)\n"
        "            sample_surface_evenly(mesh, 5000, np.random.default_rng(0))\n"
        "            InsideTest(mesh).contains(np.zeros((1, 3)) + mesh.center_of_mass)\n"
        # Not getrusage: what it gives a child includes the parent that it was forked from.
        "lines = open('/proc/self/status').read().splitlines()\n"
        "print(next(int(line.split()[1]) for line in lines if line.startswith('VmHWM')) // 1024)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, str(heaviest)]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    assert int(result.stdout) < MEGABYTES, relative(heaviest)


def mesh_files(path: Path) -> set[Path]:
    links = load_robot_description(path).links.values()
    return {element.path for link in links for element in (*link.collisions, *link.visuals) if element.path is not None}
