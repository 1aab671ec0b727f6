"""Suction cups: seals on shapes whose answer is known, loads by statics, ranked places, and who refuses cups."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from morphit_ros.cli import main
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.mesh import TriangleMesh, sample_surface_evenly
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector
from morphit_ros.grasping import Grasp, GraspPlan, Gripper, PlannerConfig
from morphit_ros.grasping.gripper import GripperBox
from morphit_ros.grasping.scene import prepare_scene
from morphit_ros.grasping.suction.cup import SuctionCup, load_gripper
from morphit_ros.grasping.suction.load import cup_load
from morphit_ros.grasping.suction.planner import plan_suction
from morphit_ros.grasping.suction.press import steadiness
from morphit_ros.grasping.suction.seal import SealTest
from morphit_ros.resources import share_directory
from morphit_ros.robot.configuration import RobotConfiguration

CUP = SuctionCup.load("cup_30")
FILE = yaml.safe_load((share_directory() / "config/suction_cups/cup_30.yaml").read_text(encoding="utf-8"))
DOWN = np.array([0.0, 0.0, -1.0])
TABLE = SupportPlane(np.eye(4), (1.0, 1.0))


def sheet(
    height, size: float = 0.06, step: float = 0.0015, noise: float = 0.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Points and normals of a surface z = height(x, y) about the origin."""
    axis = np.arange(-size, size, step)
    x, y = (values.ravel() for values in np.meshgrid(axis, axis))
    z = height(x, y)
    d = 1e-6
    gradients = np.column_stack([(height(x + d, y) - z) / d, (height(x, y + d) - z) / d, -np.ones(len(x))])
    normals = -gradients / np.linalg.norm(gradients, axis=1, keepdims=True)
    z = z + np.random.default_rng(seed).normal(0.0, noise, len(x))
    return np.column_stack([x, y, z]), normals


def along(test: SealTest, axis: np.ndarray = DOWN):
    """The seal on the origin."""
    return test.along(np.zeros((1, 3)), axis[None])[0]


def seal_of(height, axis: np.ndarray = DOWN, cup: SuctionCup = CUP, keep=None, **options: Any):
    points, normals = sheet(height, **options)
    if keep is not None:
        chosen = keep(points)
        points, normals = points[chosen], normals[chosen]
    return along(SealTest(points, normals, cup), axis)


def test_a_plane_seals_and_the_cups_axis_finds_its_normal() -> None:
    seal = seal_of(lambda x, y: 0.0 * x)
    assert (seal.reason, seal.coverage) == ("", 1.0)
    assert seal.quality == pytest.approx(1.0, abs=1e-6)
    slope = 0.4
    points, normals = sheet(lambda x, y: slope * x)
    (axis,), (tilted,) = SealTest(points, normals, CUP).along_normals(np.zeros((1, 3)), -DOWN[None])
    assert axis == pytest.approx(np.array([slope, 0.0, -1.0]) / math.hypot(slope, 1.0), abs=1e-6)
    assert tilted.quality == pytest.approx(1.0, abs=1e-3)
    # Along another axis the bellows takes up the tilt, within stroke and misalignment.
    small = along(SealTest(*sheet(lambda x, y: 0.1 * x), CUP))
    assert small.misalignment == pytest.approx(math.atan(0.1), abs=1e-3)
    assert small.travel == pytest.approx(0.1 * 2.0 * CUP.cup_radius, rel=0.1)
    assert 0.0 < small.quality < 1.0
    assert along(SealTest(points, normals, CUP)).reason == "misaligned"


@pytest.mark.parametrize("radius", [0.025, 0.04, 0.08])
def test_travel_and_strain_on_a_cylinder_are_those_of_geometry(radius: float) -> None:
    seal = seal_of(lambda x, y: np.sqrt(np.maximum(radius**2 - x**2, 0.0)) - radius, size=min(0.02, 0.95 * radius))
    r = CUP.cup_radius
    depth = radius - math.sqrt(radius**2 - r**2)
    assert seal.travel == pytest.approx(depth, abs=0.12 * depth + 1e-4)
    # Along the ring the height goes by r² sin φ cos φ / √(R² − r² cos² φ) for each radian.
    angles = np.linspace(0.0, 2.0 * math.pi, 721)
    rate = r * np.sin(angles) * np.cos(angles) / np.sqrt(radius**2 - (r * np.cos(angles)) ** 2)
    assert seal.strain == pytest.approx(np.hypot(1.0, rate).max() - 1.0, rel=0.3)
    assert seal.curvature == pytest.approx(1.0 / radius, rel=0.25)
    assert (seal.reason == "") == (radius > 0.02)


def test_what_bulges_into_the_cup_takes_the_stroke_of_the_bellows() -> None:
    """The ring of a sphere is level, but its top is inside the cup."""

    def ball(radius: float):
        return lambda x, y: np.sqrt(np.maximum(radius**2 - x**2 - y**2, 0.0)) - radius

    depths = []
    for radius in (0.018, 0.02, 0.05):
        # Beyond what the lip needs, so that it does not end where the patch does.
        seal = seal_of(ball(radius), size=0.0173)
        depth = radius - math.sqrt(radius**2 - CUP.cup_radius**2)
        assert seal.travel == pytest.approx(depth, rel=0.15)
        assert seal.strain < 0.02
        depths.append((depth, seal.reason))
    assert [reason for depth, reason in depths if depth > CUP.bellows_stroke] == ["bellows stroke"] * 1
    # A dish of the same curvature has nothing inside the cup.
    assert seal_of(lambda x, y: -ball(0.02)(x, y), size=0.0188).travel < 1.5e-3


@pytest.mark.parametrize(
    ("keep", "seals"),
    [
        (lambda p: p[:, 0] < 0.03, True),
        (lambda p: p[:, 0] < 0.012, False),
        (lambda p: np.hypot(p[:, 0] - 0.006, p[:, 1]) > 0.004, False),
        (lambda p: np.hypot(p[:, 0] - 0.03, p[:, 1]) > 0.01, True),
        (lambda p: ~((np.abs(p[:, 0]) < 0.003) & (np.abs(p[:, 1]) < 0.05)), False),
    ],
    ids=["edge beyond the lip", "edge under the lip", "hole inside", "hole outside", "slot"],
)
def test_edges_and_holes_leak_where_the_cup_is_on_them(keep, seals: bool) -> None:
    seal = seal_of(lambda x, y: 0.0 * x, keep=keep)
    assert (seal.quality > 0.9) is seals
    assert seal.reason == ("" if seals else "edge or hole")


def test_steps_and_grooves_stretch_the_lip_and_noise_of_cameras_does_not() -> None:
    step = seal_of(lambda x, y: np.where(x > 0.004, 0.003, 0.0))
    assert step.reason == "lip strain"
    ribs = seal_of(lambda x, y: 0.0015 * np.sin(2.0 * math.pi * x / 0.012))
    assert ribs.quality < 0.4
    qualities = [seal_of(lambda x, y: 0.0 * x, noise=5e-4, seed=seed).quality for seed in range(5)]
    assert min(qualities) > 0.5
    assert max(qualities) < 1.0


def test_seals_move_with_the_object() -> None:
    points, normals = sheet(lambda x, y: 4.0 * x**2 + 2.0 * x * y)
    T = make_transform(matrix_from_rotation_vector([0.4, -1.1, 0.7]), [0.3, -0.2, 0.5])
    moved = points @ T[:3, :3].T + T[:3, 3], normals @ T[:3, :3].T
    (axis,), (seal,) = SealTest(points, normals, CUP).along_normals(points[820:821], normals[820:821])
    (other_axis,), (other,) = SealTest(*moved, CUP).along_normals(moved[0][820:821], moved[1][820:821])
    assert other_axis == pytest.approx(T[:3, :3] @ axis, abs=1e-9)
    for name in ("quality", "travel", "strain", "curvature", "coverage"):
        # The ring's first vertex is elsewhere.
        assert getattr(other, name) == pytest.approx(getattr(seal, name), abs=0.05 * abs(getattr(seal, name)) + 2e-4)


def test_a_load_is_held_as_often_as_statics_says() -> None:
    weight, mu, r, force = np.array([0.0, 0.0, -5.0]), 0.5, CUP.cup_radius, CUP.force
    assert force == pytest.approx(60000.0 * math.pi * 0.015**2)
    # Hanging straight below: all of the force against the pull.
    hanging = cup_load(CUP, np.zeros(3), DOWN, weight, np.array([0.0, 0.0, -0.1]), mu)
    assert (hanging.pull, hanging.shear, hanging.moment, hanging.limit) == (5.0, 0.0, 0.0, "pull")
    assert hanging.times == pytest.approx(force / 5.0)
    # Its centre 20 mm beside: s (M + r P / 2) = F r / 2.
    beside = cup_load(CUP, np.zeros(3), DOWN, weight, np.array([0.02, 0.0, -0.1]), mu)
    assert beside.limit == "moment"
    assert beside.times == pytest.approx(0.5 * r * force / (5.0 * 0.02 + 0.5 * r * 5.0))
    # On a wall, level with the centre: friction; the moment of the object's depth.
    wall = cup_load(CUP, np.zeros(3), np.array([1.0, 0.0, 0.0]), weight, np.array([1e-4, 0.0, 0.0]), mu)
    assert wall.limit == "shear"
    assert wall.times == pytest.approx(mu * force / 5.0)
    turned = cup_load(CUP, np.zeros(3), np.array([1.0, 0.0, 0.0]), weight, np.array([1e-4, 0.03, 0.0]), mu)
    assert turned.torsion == pytest.approx(0.15)
    assert turned.times == pytest.approx(mu * force / math.hypot(5.0, 0.15 / r))
    # From below the weight presses onto the lip.
    below = cup_load(CUP, np.zeros(3), -DOWN, weight, np.array([0.0, 0.0, 0.1]), mu)
    assert below.pull == -5.0
    assert below.times == math.inf


def cloud_of(mesh: TriangleMesh, count: int = 6000) -> PointCloud:
    points, normals = sample_surface_evenly(mesh, count, np.random.default_rng(0))
    return PointCloud(points - [0.0, 0.0, points[:, 2].min()], normals=normals)


def test_the_best_place_of_a_box_is_over_its_centre_and_poses_stand_on_it() -> None:
    cloud = cloud_of(box_mesh(np.array([0.08, 0.12, 0.1])))
    plan = plan_suction(cloud, CUP, PlannerConfig(mass=0.4), table=TABLE)
    assert len(plan.grasps) >= 5
    best = plan.grasps[0]
    assert best.T_world_gripper[:3, 2] == pytest.approx(DOWN, abs=1e-3)
    assert best.T_world_gripper[2, 3] == pytest.approx(0.1, abs=1e-3)
    assert np.linalg.norm(best.T_world_gripper[:2, 3]) < 0.012
    assert best.metrics["seal"] > 0.98
    assert best.metrics["load"] == pytest.approx(
        0.4 * 9.81 * (1.0 + 2.0 * best.metrics["lever"] / CUP.cup_radius) / CUP.force, rel=0.05
    )
    scores = [grasp.score for grasp in plan.grasps]
    assert scores == sorted(scores, reverse=True)
    for grasp in plan.grasps:
        T = grasp.T_world_gripper
        assert np.linalg.det(T[:3, :3]) == pytest.approx(1.0)
        # The rim is on the surface, a lip's radius about the axis.
        local = (grasp.contact_points - T[:3, 3]) @ T[:3, :3]
        assert np.linalg.norm(local[:, :2], axis=1) == pytest.approx(CUP.cup_radius, abs=1e-9)
        assert np.abs(local[:, 2]).max() < 1e-3
        before = T[:3, 3] - grasp.T_world_pregrasp[:3, 3]
        assert before == pytest.approx(0.1 * T[:3, 2])
        # Sides, whose axes are level, and the top; the mount keeps above the table.
        for box in CUP.collision_boxes():
            corners = box.center + 0.5 * box.size * np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
            assert (corners @ T[:3, :3].T + T[:3, 3])[:, 2].min() > 0.0
    again = plan_suction(cloud, CUP, PlannerConfig(mass=0.4), table=TABLE)
    assert [grasp.score for grasp in again.grasps] == scores


@pytest.mark.parametrize(
    ("mesh", "cup", "mass", "parts"),
    [
        (box_mesh(np.array([0.02, 0.02, 0.02])), CUP, 0.1, ("whole lip of 30 mm", "Use a smaller cup")),
        (sphere_mesh(0.016), replace(CUP, bellows_stroke=0.003), 0.1, ("the surface is bent", "at most 3.0 mm")),
        (box_mesh(np.array([0.1, 0.1, 0.1])), CUP, 9.0, ("42.4 N hold 0.", "the weight of 9 kg", "expected 2 times")),
        (box_mesh(np.array([0.3, 0.3, 0.02])), replace(CUP, safety=4.0), 1.3, ("limited by", "expected 4 times")),
    ],
    ids=["small", "bent", "heavy", "safety"],
)
def test_no_place_is_told_with_cause_value_and_bound(
    mesh: TriangleMesh, cup: SuctionCup, mass: float, parts: tuple[str, ...]
) -> None:
    plan = plan_suction(cloud_of(mesh), cup, PlannerConfig(mass=mass), table=TABLE)
    assert not plan.success
    for part in (*parts, "Removed: "):
        assert part in plan.message


def test_obstacles_and_noise_leave_what_is_free_and_seals() -> None:
    cloud = cloud_of(cylinder_mesh(0.04, 0.1))
    free = plan_suction(cloud, CUP, PlannerConfig(mass=0.3), table=TABLE)
    tops = [grasp for grasp in free.grasps if grasp.T_world_gripper[2, 2] < -0.9]
    assert tops and free.grasps[0] in tops
    roof = np.column_stack(
        [*(values.ravel() for values in np.meshgrid(*[np.linspace(-0.06, 0.06, 40)] * 2)), np.full(1600, 0.16)]
    )
    under = plan_suction(cloud, CUP, PlannerConfig(mass=0.3), table=TABLE, obstacles=PointCloud(roof))
    assert under.rejected["collision"] > 0
    assert all(grasp.T_world_gripper[2, 2] > -0.9 for grasp in under.grasps)
    noisy = PointCloud(
        cloud.points + np.random.default_rng(1).normal(0.0, 4e-4, cloud.points.shape), normals=cloud.normals
    )
    plan = plan_suction(noisy, CUP, PlannerConfig(mass=0.3), table=TABLE)
    assert plan.grasps[0].T_world_gripper[2, 2] < -0.98
    assert plan.grasps[0].metrics["seal"] > 0.4


def test_a_mount_does_not_reach_into_space_that_no_camera_saw_unless_told() -> None:
    """A step beside a tower, seen over the tower: its shadow is 80 mm high and 67 mm long at 50° of elevation."""
    slope, step = math.tan(math.radians(50.0)), 0.0015
    x = np.arange(-0.03, 0.03, step)
    faces = []
    for normal, y, z in (
        ([0.0, 0.0, 1.0], np.arange(-0.13, -0.08 / slope, step), [0.04]),
        ([0.0, 0.0, 1.0], np.arange(0.0, 0.06, step), [0.12]),
        ([0.0, 1.0, 0.0], [0.06], np.arange(0.0, 0.12, step)),
    ):
        points = np.stack(np.meshgrid(x, y, z), axis=-1).reshape(-1, 3)
        faces.append((points, np.tile(normal, (len(points), 1))))
    cloud = PointCloud(*map(np.concatenate, zip(*faces, strict=True)))
    wide = replace(CUP, mount_boxes=(GripperBox(np.array([0.0, 0.0, -0.06]), np.array([0.12, 0.12, 0.05])),))
    eye = 5.0 * np.array([[0.0, 1.0, slope]])

    def overhang(plan: GraspPlan) -> float:
        """How far any mount over the step reaches into the shadow, with the cup pressed [m]."""
        places = [grasp.T_world_gripper for grasp in plan.grasps if grasp.T_world_gripper[2, 3] < 0.05]
        lowest = 0.04 + 0.035
        assert places
        return max(abs(T[1, :2]) @ [0.06, 0.06] + T[1, 3] + (0.12 - lowest) / slope for T in places)

    config = PlannerConfig(mass=0.1, unseen="occupied")
    known = {"table": TABLE, "viewpoints": eye, "center_of_mass": [0.0, -0.08, 0.03]}
    kept = plan_suction(cloud, wide, config, **known)
    told = plan_suction(cloud, wide, replace(config, unseen="free"), **known)
    assert kept.rejected["unseen space"] > 0
    assert told.rejected["unseen space"] == 0
    # Cells are 6 mm, and none where a seen surface is near.
    assert overhang(kept) < 0.006 < 0.01 < overhang(told)


def test_two_threads_lay_the_same_seals_as_one() -> None:
    points, normals = sheet(lambda x, y: 4.0 * x**2 + 2.0 * x * y, noise=2e-4)
    for one, two in zip(
        *(SealTest(points, normals, CUP, workers).along_normals(points[::40], normals[::40])[1] for workers in (1, 2)),
        strict=True,
    ):
        assert (one.quality, one.reason, one.coverage) == (two.quality, two.reason, two.coverage)


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"cup_radius": 15.0}, "cup_radius.*15.*at most 0.2 m"),
        ({"vacuum": 0.6}, None),
        ({"vacuum": 600000.0}, "at most 101325 Pa"),
        ({"max_misalignment": 15.0}, "at most 0.8 rad"),
        ({"bellows_stroke": "long"}, "bellows_stroke.*'long'"),
        ({"color": "red"}, "unknown color"),
        ({"palm_boxes": None}, "palm_boxes"),
        ({"name": ""}, "not empty"),
    ],
)
def test_files_that_are_wrong_are_refused_with_key_value_and_bound(
    changes: dict[str, Any], shown: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "cup.yaml"
    path.write_text(yaml.safe_dump({**FILE, **changes}), encoding="utf-8")
    if shown is None:
        assert SuctionCup.load(path).vacuum == 0.6
        return
    with pytest.raises(InvalidInputError, match=shown):
        SuctionCup.load(path)


@pytest.mark.usefixtures("mujoco")
def test_either_kind_is_found_and_fingers_are_asked_for_where_only_they_will_do(tmp_path: Path) -> None:
    assert load_gripper("cup_30").name == "cup_30"
    assert isinstance(load_gripper("hande"), Gripper)
    path = tmp_path / "cup.yaml"
    path.write_text(yaml.safe_dump(FILE), encoding="utf-8")
    assert isinstance(load_gripper(path), SuctionCup)
    with pytest.raises(ResourceNotFoundError, match="no_such"):
        load_gripper("no_such")
    for name in (path, "cup_30"):
        with pytest.raises(InvalidInputError, match=r"kind.*suction.*two fingers here"):
            Gripper.load(name)
    robot = replace(RobotConfiguration.load("ur5e_hande"), gripper=str(path))
    from morphit_ros.simulation.workcell import Workcell, WorkcellConfig

    with pytest.raises(InvalidInputError, match=r"finger_joints.*robotiq_hande.*none with the suction cup"):
        Workcell(WorkcellConfig(), robot)


def test_the_command_ranks_places_and_refuses_what_only_fingers_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import open3d as o3d

    cloud = cloud_of(box_mesh(np.array([0.08, 0.12, 0.1])))
    stored = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(cloud.points))
    stored.normals = o3d.utility.Vector3dVector(cloud.normals)
    o3d.io.write_point_cloud(str(tmp_path / "box.ply"), stored)
    words = [
        "grasp",
        "--cloud",
        str(tmp_path / "box.ply"),
        "--gripper",
        "cup_30",
        "--up",
        "0",
        "0",
        "1",
        "--mass",
        "0.4",
    ]
    assert main([*words, "--json", str(tmp_path / "plan.json"), "--picture", str(tmp_path / "best.png")]) == 0
    told = capsys.readouterr().out
    for part in ("cup_30", "seal", "load", "rejected by edge or hole"):
        assert part in told
    content = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    assert content["grasps"][0]["metrics"]["seal"] > 0.9
    assert (tmp_path / "best.png").stat().st_size > 5_000
    for option in (["--view"], ["--graspnet", str(tmp_path / "rows.npy")]):
        assert main([*words, *option]) == 2
        assert f"{option[0]}: got suction cup cup_30" in capsys.readouterr().err


def test_a_lip_that_reaches_over_an_edge_by_less_than_the_clouds_spacing_does_not_seal() -> None:
    """A point within reach says nothing of the side of an edge that the lip is on."""
    for end, seals in ((CUP.cup_radius + 0.0022, True), (CUP.cup_radius - 0.0008, False)):
        seal = seal_of(lambda x, y: 0.0 * x, keep=lambda p, end=end: p[:, 0] < end)
        assert (seal.reason == "") is seals, end


def tall_box(size: tuple[float, float, float]) -> PointCloud:
    """On the table."""
    mesh = box_mesh(np.array(size)).transformed(make_transform(translation=(0.0, 0.0, size[2] / 2.0)))
    return cloud_of(mesh)


@pytest.mark.parametrize(("mass", "steady"), [(0.05, False), (1.5, True)], ids=["light", "heavy"])
def test_places_from_which_the_press_would_tip_the_object_are_left_out_or_come_last(mass: float, steady: bool) -> None:
    """A box of 40 x 40 x 200 mm that is pressed from the side, near its top: p = f h / (W + ...) beyond 20 mm tips."""
    cloud = tall_box((0.04, 0.04, 0.2))
    config = PlannerConfig(mass=mass, max_approach_tilt=180.0, max_grasps=60)
    plan = plan_suction(cloud, replace(CUP, safety=1.0), config, table=TABLE, approach=[1.0, 0.0, 0.0])
    high = [
        grasp for grasp in plan.grasps if grasp.T_world_gripper[2, 3] > 0.14 and abs(grasp.T_world_gripper[2, 2]) < 0.3
    ]
    if steady:
        assert high
        assert all(grasp.metrics["term_steady"] == 1.0 for grasp in high)
        assert plan.rejected["pushed away"] == 0
    else:
        assert plan.rejected["pushed away"] > 0
        assert all(grasp.metrics["term_steady"] < 1.0 for grasp in high)


def test_the_share_of_a_push_that_an_object_stands_is_statics() -> None:
    """Along the table: tips beyond f h > W b / 2, slides beyond f > mu W."""
    scene = replace(
        prepare_scene(
            tall_box((0.06, 0.06, 0.1)), PlannerConfig(), TABLE, None, [0.0, 0.0, 0.05], np.random.default_rng(0)
        )
    )

    def share(force: float, height: float, friction: float = 10.0, down: float = 0.0) -> float:
        centers, pushes = np.array([[-0.03, 0.0, height]]), np.array([[force, 0.0, -down]])
        return float(steadiness(centers, pushes, 2.0, friction, scene, TABLE)[0])

    # W b / 2 = 0.06 N m.
    assert share(0.55, 0.1) == 1.0
    assert share(0.65, 0.1) == 0.75
    assert share(1.3, 0.1) == 0.25
    assert share(3.0, 0.1) == 0.0
    assert share(0.65, 0.05) == 1.0
    # Friction: 0.2 * 2 N.
    assert share(0.41, 0.01, friction=0.2) == 0.75
    assert share(0.39, 0.01, friction=0.2) == 1.0
    # What presses down as well slides later.
    assert share(0.5, 0.01, friction=0.2, down=1.0) == 1.0


def test_a_robot_is_asked_from_the_best_place_on_and_about_both_turns_of_the_cup() -> None:
    cloud = tall_box((0.12, 0.12, 0.05))
    config = PlannerConfig(mass=0.2, max_grasps=4)
    free = plan_suction(cloud, CUP, config, table=TABLE)
    first = free.grasps[0].T_world_gripper
    asked: list[np.ndarray] = []

    def only_turned(grasp: Grasp) -> bool:
        asked.append(grasp.T_world_gripper)
        return abs(grasp.T_world_gripper[:3, 0] @ first[:3, 0]) < 0.5

    plan = plan_suction(cloud, CUP, config, table=TABLE, reachable=only_turned)
    assert len(plan.grasps) == 4
    assert asked[0] == pytest.approx(first)
    for grasp in plan.grasps:
        assert grasp.T_world_gripper[:3, 2] == pytest.approx(first[:3, 2], abs=1e-9)
        assert abs(grasp.T_world_gripper[:3, 0] @ first[:3, 1]) == pytest.approx(1.0)
    none = plan_suction(cloud, CUP, config, table=TABLE, reachable=lambda grasp: False)
    assert none.grasps == []
    assert none.rejected["unreachable"] > 0
    assert "the robot reaches none of" in none.message
