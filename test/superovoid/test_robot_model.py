"""A robot as superovoids: links cut where it pays, files that read back, errors that name line and key."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.mesh import concatenate_meshes, sample_surface
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh
from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.link_elements import link_elements, meshes_in_first
from morphit_ros.robot.semantics import load_semantic_description
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.fits.config import LinkFitConfig, SuperovoidFitConfig
from morphit_ros.superovoid.fits.errors import FitErrors
from morphit_ros.superovoid.robots.distance_request import DistanceType, RobotDistanceRequest
from morphit_ros.superovoid.robots.link_fit import fit_link_superovoids
from morphit_ros.superovoid.robots.model_file import format_model, load_model, parse_model, parse_superovoid, save_model
from morphit_ros.superovoid.robots.robot_distance import RobotDistance
from morphit_ros.superovoid.robots.robot_fit import fit_robot_superovoids
from morphit_ros.superovoid.robots.robot_model import LinkSuperovoids, RobotSuperovoids
from morphit_ros.superovoid.robots.urdf_extension import superovoids_from_urdf, urdf_with_superovoids
from morphit_ros.superovoid.shapes.superovoid import Superovoid

DATA = Path(os.environ.get("MORPHIT_DATA", Path(__file__).parents[3] / "shared" / "data"))
POSE = make_transform(matrix_from_rotation_vector([0.3, 0.2, -2.0]), [0.1, -0.2, 0.3])
TAPERED = PlacedSuperovoid(Superovoid((0.03, 0.02, 0.05), (0.6, 0.8), (0.1 + 0.2, -0.2)), POSE)
ERRORS = FitErrors(0.001, 0.002, 0.003, 0.9, 0.1)
MODEL = RobotSuperovoids(
    "arm: 1",
    {
        "base": LinkSuperovoids(
            "base", (TAPERED, PlacedSuperovoid(Superovoid.sphere(0.1), np.eye(4))), ERRORS, "proven"
        ),
        "1": LinkSuperovoids("1", (TAPERED,)),
    },
)
URDF = """<?xml version="1.0"?>
<!-- kept -->
<robot name="arm">
  <link name="base">
    <collision><geometry><box size="0.1 0.1 0.3"/></geometry></collision>
  </link>
  <link name="1"/>
  <joint name="j" type="revolute"><parent link="base"/><child link="1"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
</robot>
"""
CONVEX = LinkFitConfig(fit=SuperovoidFitConfig(convex=True))


def lever() -> list:
    """A bar with a head across its end: no single superovoid is near it."""
    head = box_mesh((0.3, 0.06, 0.06)).transformed(make_transform(translation=[0.0, 0.0, 0.2]))
    return [cylinder_mesh(0.03, 0.4), head]


class TestLink:
    def test_one_is_enough_for_a_box_and_not_for_a_lever(self) -> None:
        assert len(fit_link_superovoids([box_mesh((0.1, 0.2, 0.3))], CONVEX).shapes) == 1
        one = fit_link_superovoids(lever(), CONVEX, count=1)
        several = fit_link_superovoids(lever(), CONVEX)
        assert len(several.shapes) > 1
        assert several.errors.rms < 0.5 * one.errors.rms
        assert several.errors.outside < one.errors.outside

    def test_outer_pieces_hold_all_of_the_link_together(self) -> None:
        fit = fit_link_superovoids(lever(), LinkFitConfig(fit=SuperovoidFitConfig(mode="outer")), count=2)
        assert fit.containment == "proven"
        for mesh in lever():
            points = np.concatenate([mesh.vertices, sample_surface(mesh, 2000, np.random.default_rng(0))[0]])
            held = np.zeros(len(points), dtype=bool)
            for shape in fit.shapes:
                held |= shape.contains(points)
            assert held.all()

    def test_count_is_kept_and_checked(self) -> None:
        assert len(fit_link_superovoids([box_mesh((0.1, 0.2, 0.3))], CONVEX, count=2).shapes) == 2
        with pytest.raises(InvalidInputError, match="count"):
            fit_link_superovoids(lever(), CONVEX, count=0)
        with pytest.raises(InvalidInputError, match="meshes"):
            fit_link_superovoids([], CONVEX)
        with pytest.raises(InvalidInputError, match="geman_mcclure"):
            LinkFitConfig(fit=SuperovoidFitConfig(loss="geman_mcclure"))


class TestRobot:
    def test_equal_links_get_equal_shapes_in_their_places_whatever_the_threads(self) -> None:
        box = "<geometry><box size='0.1 0.2 0.3'/></geometry>"
        urdf = (
            f"<robot name='r'><link name='a'><collision>{box}</collision></link>"
            f"<link name='b'><collision><origin xyz='1 2 3' rpy='0.1 0.2 0.3'/>{box}</collision></link>"
            "<link name='ball'><collision><origin xyz='0 0 1'/><geometry><sphere radius='0.07'/></geometry></collision>"
            "</link><link name='bare'/>"
            + "".join(
                f"<joint name='{c}' type='fixed'><parent link='a'/><child link='{c}'/></joint>"
                for c in ("b", "ball", "bare")
            )
            + "</robot>"
        )
        description = load_robot_description(urdf)
        calls: list[tuple[str, int, int]] = []
        model = fit_robot_superovoids(description, CONVEX, workers=2, progress=lambda *call: calls.append(call))
        assert list(model.links) == ["a", "b", "ball"]
        assert sorted(done for _, done, _ in calls) == [1, 2, 3]
        first, second = model.links["a"].shapes[0], model.links["b"].shapes[0]
        assert first.shape == second.shape
        origin = description.links["b"].collisions[0].T_link_geometry
        assert second.T_link_shape == pytest.approx(origin @ first.T_link_shape)
        assert model.links["ball"].shapes[0].shape == Superovoid.sphere(0.07)
        assert model.links["ball"].shapes[0].T_link_shape[:3, 3] == pytest.approx([0, 0, 1])
        again = fit_robot_superovoids(description, CONVEX, ["b"], workers=1)
        assert again.links["b"].shapes == model.links["b"].shapes

    def test_bad_arguments_name_the_link(self) -> None:
        description = load_robot_description(URDF)
        for arguments, named in (
            ({"links": ["none"]}, "none"),
            ({"links": ["1"]}, "has geometry"),
            ({"counts": {"base": 0}}, "base"),
            ({"families": {"base": "cube"}}, "cube"),
            ({"source": "inertial"}, "inertial"),
            ({"workers": 0}, "workers"),
        ):
            with pytest.raises(InvalidInputError, match=named):
                fit_robot_superovoids(description, CONVEX, **arguments)  # type: ignore[arg-type]

    def test_placed_by_kinematics(self) -> None:
        kinematics = KinematicModel(load_robot_description(URDF))
        model = RobotSuperovoids("arm", {"1": LinkSuperovoids("1", (TAPERED,))})
        [(name, placed)] = model.in_frame(kinematics.forward_kinematics({"j": 0.5}))
        turn = make_transform(matrix_from_rotation_vector([0, 0, 0.5]))
        assert name == "1"
        assert placed.T_link_shape == pytest.approx(turn @ POSE)
        with pytest.raises(InvalidInputError, match="none of 1"):
            list(model.in_frame({}))


class TestYaml:
    def test_round_trip(self, tmp_path: Path) -> None:
        save_model(MODEL, tmp_path / "arm.yaml", "first line\nsecond")
        text = (tmp_path / "arm.yaml").read_text()
        assert text.startswith("# first line\n# second\n")
        read = load_model(tmp_path / "arm.yaml")
        assert read.robot_name == MODEL.robot_name
        assert read.links.keys() == MODEL.links.keys()
        assert read.links["base"].errors == ERRORS
        assert read.links["base"].containment == "proven"
        assert read.links["1"].errors is None
        for name, link in MODEL.links.items():
            for ours, theirs in zip(link.shapes, read.links[name].shapes, strict=True):
                assert ours.shape == theirs.shape
                assert theirs.T_link_shape == pytest.approx(ours.T_link_shape, abs=1e-14)

    @pytest.mark.parametrize(
        ("old", "new", "line", "named"),
        [
            ("semi_axes: [0.1, 0.1, 0.1]", "semi_axes: [0.1, 0.1]", 12, "2 numbers"),
            ("semi_axes: [0.1, 0.1, 0.1]", "semi_axes: [0.1, .nan, 0.1]", 12, r"semi_axes\[1\]"),
            ("semi_axes: [0.1, 0.1, 0.1]", "semi_axes: [0.1, -1, 0.1]", 12, "semi_axes"),
            ("semi_axes: [0.1, 0.1, 0.1]", "semi_axis: [0.1, 0.1, 0.1]", 12, "semi_axis"),
            ("squareness: [1.0, 1.0]", "squareness: [1.0, 2.5]", 13, "squareness"),
            ("tapering: [0.0, 0.0]", "tapering: 0.3", 14, "tapering"),
            ("quat_xyzw: [0.0, 0.0, 0.0, 1.0]", "quat_xyzw: [0, 0, 0, 0]", 16, "quat_xyzw"),
            ("quat_xyzw: [0.0, 0.0, 0.0, 1.0]", "quat_xyzw: [0, 0, 0, 2]", 16, "length 2"),
            ("containment: proven", "containment: certainly", 4, "certainly"),
            ("mean: 0.001", "mean: -0.001", 5, "errors.mean"),
            ("links:", "links: 3\nothers:", 2, "others"),
            ("  base:", "  '1':", 17, "twice"),
            ("robot: 'arm: 1'", "robot: 5", 1, "robot"),
        ],
    )
    def test_mistakes_are_named_with_their_line(self, old: str, new: str, line: int, named: str) -> None:
        text = format_model(MODEL)
        assert old in text
        with pytest.raises(InvalidInputError, match=named) as raised:
            parse_model(text.replace(old, new, 1) if old != "  base:" else text.replace(old, new), "arm.yaml")
        if "others" not in named:
            assert f"arm.yaml, line {line}:" in str(raised.value)

    @pytest.mark.parametrize(
        "text", ["", "[1, 2]", "robot: [", "robot: arm", "!!python/object/apply:os.getcwd []", "a: &a [*a]"]
    )
    def test_not_a_model(self, text: str) -> None:
        with pytest.raises(InvalidInputError):
            parse_model(text)

    def test_missing_file_lists_the_known_models(self, tmp_path: Path) -> None:
        with pytest.raises(ResourceNotFoundError):
            load_model(tmp_path / "none.yaml")
        with pytest.raises(ResourceNotFoundError, match="panda"):
            load_model("no_such_robot")

    def test_failed_write_keeps_the_old_file(self, tmp_path: Path) -> None:
        file = tmp_path / "arm.yaml"
        file.write_text("old")
        broken = RobotSuperovoids("arm", {"base": LinkSuperovoids("base", (None,))})  # type: ignore[arg-type]
        with pytest.raises(AttributeError):
            save_model(broken, file)
        assert file.read_text() == "old"
        assert list(tmp_path.iterdir()) == [file]

    def test_one_superovoid_with_defaults(self) -> None:
        placed = parse_superovoid("{semi_axes: [1, 2, 3]}")
        assert placed == PlacedSuperovoid(Superovoid((1.0, 2.0, 3.0)), np.eye(4))


class TestUrdf:
    def test_round_trip_and_nothing_else_changes(self) -> None:
        text = urdf_with_superovoids(URDF, MODEL)
        read = superovoids_from_urdf(text)
        for name, link in MODEL.links.items():
            for ours, theirs in zip(link.shapes, read.links[name].shapes, strict=True):
                assert ours.shape == theirs.shape
                assert theirs.T_link_shape == pytest.approx(ours.T_link_shape, abs=1e-14)
        lines = text.splitlines()
        for line in URDF.splitlines():
            assert line in lines or line.strip() == '<link name="1"/>'
        assert urdf_with_superovoids(text, MODEL) == text
        assert urdf_with_superovoids(text, RobotSuperovoids("arm", {})).count("superovoid") == 0

    def test_other_readers_load_it(self, tmp_path: Path) -> None:
        file = tmp_path / "arm.urdf"
        file.write_text(urdf_with_superovoids(URDF, MODEL))
        assert set(load_robot_description(file).links) == {"base", "1"}
        yourdfpy = pytest.importorskip("yourdfpy")
        assert set(yourdfpy.URDF.load(str(file), load_meshes=False).link_map) == {"base", "1"}
        pinocchio = pytest.importorskip("pinocchio")
        assert pinocchio.buildModelFromUrdf(str(file)).njoints == 2

    @pytest.mark.parametrize(
        ("attributes", "named"),
        [
            ('squareness="1 1"', "semi_axes"),
            ('semi_axes="1 1"', "semi_axes"),
            ('semi_axes="1 x 1"', "semi_axes"),
            ('semi_axes="1 1 inf"', "semi_axes"),
            ('semi_axes="1 1 1" tapering="0.7 0"', "tapering"),
            ('semi_axes="1 1 1" quat_xyzw="0 0 0 0"', "quat_xyzw"),
        ],
    )
    def test_mistakes_are_named_with_the_link(self, attributes: str, named: str) -> None:
        text = URDF.replace(
            '<link name="1"/>', f'<link name="1"><superovoids><superovoid {attributes}/></superovoids></link>'
        )
        with pytest.raises(InvalidInputError, match=f"link '1': superovoid 1: {named}"):
            superovoids_from_urdf(text)

    def test_unknown_link_and_no_superovoids(self) -> None:
        with pytest.raises(InvalidInputError, match="none"):
            urdf_with_superovoids(URDF, RobotSuperovoids("arm", {"none": LinkSuperovoids("none", (TAPERED,))}))
        with pytest.raises(InvalidInputError, match="no superovoids"):
            superovoids_from_urdf(URDF)


OUTER = ("panda_outer", "icub_left_hand_outer", "ur3e_hande_outer", "ur5e_hande_outer", "iiwa_umi_outer")


class TestCommittedModels:
    def test_every_model_is_usable(self) -> None:
        folder = Path(__file__).parents[2] / "config" / "superovoids"
        names = {file.stem for file in folder.glob("*.yaml")}
        assert {"panda", "ur3e", "ur3e_hande", "icub_left_hand"} <= names
        for name in names:
            model = load_model(name)
            for link in model.links.values():
                assert link.errors is not None
                assert all(placed.shape.convexity().convex for placed in link.shapes)

    def test_icub_hand_is_21_surfaces_tapered_only_at_the_fingertips(self) -> None:
        model = load_model("icub_left_hand")
        assert model.count == 21
        tips = [name for name in model.links if name.endswith("fingertip_link")]
        assert len(tips) == 4
        for name, link in model.links.items():
            for placed in link.shapes:
                assert name in tips or placed.shape.tapering == (0.0, 0.0)

    def test_command_makes_what_is_committed(self) -> None:
        """To 1 % of the lengths: another processor may round elsewhere on a long way."""
        robot = RobotConfiguration.load("panda")
        description = load_robot_description(robot.description)
        made = fit_robot_superovoids(description, CONVEX, ["panda_link5"]).links["panda_link5"]
        kept = load_model("panda").links["panda_link5"]
        assert len(made.shapes) == len(kept.shapes) == 1
        assert made.shapes[0].shape.semi_axes == pytest.approx(kept.shapes[0].shape.semi_axes, rel=0.01)
        for one, other in ((made.errors, kept.errors), (made.deviation, kept.deviation)):
            assert one is not None
            assert other is not None
        assert made.errors.rms == pytest.approx(kept.errors.rms, rel=0.01)
        assert made.deviation == pytest.approx(kept.deviation, rel=0.05)

    def test_more_shapes_are_proven_to_be_nearer(self) -> None:
        few, many = load_model("panda"), load_model("panda_fine")
        assert list(few.links) == list(many.links)
        both = [[max(link.deviation or (9.9,)) for link in model.links.values()] for model in (few, many)]
        assert sorted(both[1])[5] < 0.7 * sorted(both[0])[5]
        assert max(both[1]) <= 0.005
        assert max(both[1]) <= 0.005

    @pytest.mark.parametrize("name", OUTER)
    def test_outer_models_are_proven_to_hold_their_links(self, name: str) -> None:
        for link in load_model(name).links.values():
            assert link.containment == "proven"
            assert link.deviation is not None
            assert link.deviation[0] == 0.0

    def test_no_colliding_pair_is_free_with_the_outer_model(self) -> None:
        """Random states of the Panda, pairs of links that its SRDF leaves, their collision meshes compared by Coal."""
        coal = pytest.importorskip("coal")
        settings = RobotConfiguration.load("panda")
        kinematics = KinematicModel(settings.description)
        model = load_model("panda_outer")
        distance = RobotDistance(model.links, kinematics, load_semantic_description(settings.semantic_description))
        surfaces = {}
        for name in model.links:
            elements = link_elements(kinematics.description.links[name], "collision")
            mesh = concatenate_meshes(meshes_in_first(elements)).transformed(elements[0].T_link_geometry)
            surface = coal.BVHModelOBBRSS()
            surface.beginModel(len(mesh.faces), len(mesh.vertices))
            surface.addVertices(np.asarray(mesh.vertices, dtype=np.float64))
            surface.addTriangles(np.asarray(mesh.faces, dtype=np.int64))
            surface.endModel()
            surfaces[name] = surface
        rng = np.random.default_rng(8)
        rows = rng.uniform(kinematics.position_lower, kinematics.position_upper, (150, len(kinematics.joint_names)))
        states = [dict(zip(kinematics.joint_names, row.tolist(), strict=True)) for row in rows]
        colliding = 0
        for state, found in zip(
            states, distance.compute(states, RobotDistanceRequest(DistanceType.SINGLE)), strict=True
        ):
            poses = kinematics.forward_kinematics(state)
            at = {name: coal.Transform3s(poses[name][:3, :3].copy(), poses[name][:3, 3].copy()) for name in surfaces}
            for pair in found.distances:
                a, b = pair.link_names
                request, result = coal.CollisionRequest(), coal.CollisionResult()
                if coal.collide(surfaces[a], at[a], surfaces[b], at[b], request, result):
                    colliding += 1
                    assert pair.distance <= 0.0
        assert colliding > 10

    def test_models_belong_to_their_robots(self) -> None:
        load_model("panda").check_links(load_robot_description(RobotConfiguration.load("panda").description))
        hand = DATA / "robots" / "iCub" / "robots" / "left_hand_mk3" / "model.urdf"
        if not hand.is_file():
            pytest.skip(f"no {hand}")
        load_model("icub_left_hand").check_links(load_robot_description(hand, [DATA / "robots"]))
