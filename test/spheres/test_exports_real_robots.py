"""Spherised robots in Pinocchio, MuJoCo, yourdfpy and RoboPlan: as many spheres, of that size, at that place."""

import io
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import cKDTree

from morphit_ros.errors import ResourceNotFoundError
from morphit_ros.geometry.mesh import sample_surface
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import collision_mesh
from morphit_ros.robot.semantics import load_semantic_description
from morphit_ros.spheres import (
    FORMATS,
    LinkSpheres,
    SphereFitConfig,
    SphereModel,
    export_model,
    fit_robot_spheres,
    read_model,
    self_collision_matrix,
    spheres_in_frame,
    spherized_urdf,
    touching_pairs,
)

pytest.importorskip("pinocchio")

DATA = Path(os.environ.get("MORPHIT_DATA", Path(__file__).parents[2].parent / "shared" / "data")) / "robots"
ROBOTS = {
    "panda": "package://example-robot-data/robots/panda_description/urdf/panda.urdf",
    "ur5": "package://example-robot-data/robots/ur_description/urdf/ur5_robot.urdf",
    # Meshes mirrored by their scale, package:/// URIs.
    "talos": "package://example-robot-data/robots/talos_data/robots/talos_reduced.urdf",
    "ur3e": "",
}


def sphere_model(description, spheres=6):
    """Spheres on the collision geometry: cheap to have, and as many and as odd as fitted ones."""
    rng = np.random.default_rng(0)
    links = {}
    for name, link in description.links.items():
        if not link.collisions:
            continue
        points = [sample_surface(collision_mesh(element), spheres, rng)[0] for element in link.collisions]
        centers = np.concatenate(points)
        links[name] = LinkSpheres(
            link=name,
            centers=centers,
            radii=rng.uniform(0.005, 0.04, len(centers)),
            d_avg=0.001,
            d_max=0.01,
            content_hash=name,
        )
    return SphereModel(robot_name=description.name, variant="balanced", links=links)


@pytest.fixture(scope="module", params=ROBOTS)
def robot(request):
    """Description, spheres with a grasped object attached to the last link, and its spherised URDF."""
    if request.param == "ur3e":
        folder = DATA / "ur_description" / "urdf"
        if not folder.is_dir():
            pytest.skip(f"{folder} is not there: set MORPHIT_DATA to the data folder")
        description = load_robot_description(next(folder.glob("*.urdf")), [DATA])
    else:
        try:
            description = load_robot_description(ROBOTS[request.param])
        except ResourceNotFoundError as error:
            pytest.skip(f"example-robot-data is not installed: {error}")
    model = sphere_model(description)
    # Attached where no collision geometry is, such as a tool frame.
    bare = next(name for name in reversed(description.links) if name not in model.links)
    attached = LinkSpheres(
        link=bare, centers=np.array([[0.0, 0.05, 0.1]]), radii=np.array([0.07]), d_avg=0, d_max=0, content_hash="held"
    )
    model = SphereModel(robot_name=model.robot_name, variant=model.variant, links={**model.links, bare: attached})
    return description, model, spherized_urdf(description, model)


@pytest.fixture(scope="module")
def placed(robot):
    """A random position of every joint, mimic joints included, and (K, 4) centres and radii there."""
    description, model, _ = robot
    kinematics = KinematicModel(description)
    rng = np.random.default_rng(7)
    low, high = np.maximum(kinematics.position_lower, -3.0), np.minimum(kinematics.position_upper, 3.0)
    positions = dict(zip(kinematics.joint_names, rng.uniform(low, high).tolist(), strict=True))
    centers, radii = spheres_in_frame(model, kinematics.forward_kinematics(positions))
    for joint in description.joints.values():
        if joint.mimic is not None:
            positions[joint.name] = joint.mimic.multiplier * positions[joint.mimic.joint] + joint.mimic.offset
    return positions, np.column_stack([centers, radii])


def assert_same_set(found, expected):
    assert found.shape == expected.shape
    distances, nearest = cKDTree(found).query(expected)
    assert distances.max() < 1e-6
    assert len(set(nearest.tolist())) == len(expected)


def test_spherised_again_it_is_the_same_text(robot):
    description, model, text = robot
    again = load_robot_description(text, [description.directory, *description.package_paths])
    assert spherized_urdf(again, model) == text
    assert {name: joint for name, joint in again.joints.items() if joint.kind == "fixed"}.keys() == {
        name for name, joint in description.joints.items() if joint.kind == "fixed"
    }
    for name, joint in description.joints.items():
        assert (again.joints[name].lower, again.joints[name].upper) == (joint.lower, joint.upper)
    back = read_model(text)
    for name, spheres in back.links.items():
        np.testing.assert_array_equal(spheres.centers, model.links[name].centers)
        np.testing.assert_array_equal(spheres.radii, model.links[name].radii)


def test_pinocchio_has_the_spheres(robot, placed):
    import pinocchio

    _, _, text = robot
    positions, expected = placed
    model = pinocchio.buildModelFromXML(text.strip())
    geometry = pinocchio.buildGeomFromUrdfString(model, text.strip(), pinocchio.GeometryType.COLLISION)
    q = pinocchio.neutral(model)
    for joint, name in zip(model.joints[1:], list(model.names)[1:], strict=True):
        value = positions[name]
        if joint.nq == 2:
            q[joint.idx_q : joint.idx_q + 2] = np.cos(value), np.sin(value)
        else:
            q[joint.idx_q] = value
    data, placements = model.createData(), geometry.createData()
    pinocchio.updateGeometryPlacements(model, data, geometry, placements, q)
    found = [
        [*placements.oMg[number].translation, shape.geometry.radius]
        for number, shape in enumerate(geometry.geometryObjects)
    ]
    assert_same_set(np.array(found), expected)


def test_mujoco_has_the_spheres(robot, placed, mujoco):
    _, _, text = robot
    positions, expected = placed
    # Visual meshes are left out of a URDF by default, so that their files are not looked for.
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    for joint in range(model.njnt):
        data.qpos[model.jnt_qposadr[joint]] = positions[model.joint(joint).name]
    mujoco.mj_kinematics(model, data)
    assert (model.geom_type == mujoco.mjtGeom.mjGEOM_SPHERE).all()
    assert_same_set(np.column_stack([data.geom_xpos, model.geom_size[:, 0]]), expected)


def test_yourdfpy_has_the_spheres(robot, placed):
    yourdfpy = pytest.importorskip("yourdfpy")
    _, _, text = robot
    positions, expected = placed
    urdf = yourdfpy.URDF.load(
        io.BytesIO(text.encode()), load_meshes=False, load_collision_meshes=False, build_scene_graph=True
    )
    urdf.update_cfg({name: positions[name] for name in urdf.actuated_joint_names})
    found = []
    for link in urdf.robot.links:
        pose = urdf.get_transform(link.name, urdf.base_link)
        for collision in link.collisions:
            center = pose @ [*(np.zeros(3) if collision.origin is None else collision.origin[:3, 3]), 1.0]
            found.append([*center[:3], collision.geometry.sphere.radius])
    assert_same_set(np.array(found), expected)


def test_roboplan_sees_the_contacts_that_this_package_sees(robot):
    roboplan = pytest.importorskip("roboplan.core")
    description, model, text = robot
    kinematics = KinematicModel(description)
    matrix = self_collision_matrix(model, description, samples=2000, boxes=500)
    srdf = export_model(model, description, "srdf", self_collision=matrix)
    scene = roboplan.Scene(description.name, roboplan.loadUrdfSceneDescriptionFromXml(text, []))
    scene.importSrdf(srdf)
    rng = np.random.default_rng(5)
    names = list(scene.getJointNames())
    low, high = np.maximum(kinematics.position_lower, -3.0), np.minimum(kinematics.position_upper, 3.0)

    def checked(first, second):
        # RoboPlan leaves out bodies next to each other, whatever fixed links they are made of.
        return len(kinematics.between(first, second).motions.variables) > 1 and (first, second) not in matrix.ignored

    answers = set()
    for _ in range(40):
        # Half of them near the middle, where there are fewer contacts.
        share = rng.uniform(0, 1, len(low)) if rng.uniform() < 0.5 else rng.uniform(0.45, 0.55, len(low))
        positions = dict(zip(kinematics.joint_names, (low + share * (high - low)).tolist(), strict=True))
        q = []
        for name in names:
            # A joint without limits is a unit complex number.
            turns = description.joints[name].kind == "continuous"
            q += [np.cos(positions[name]), np.sin(positions[name])] if turns else [positions[name]]
        touching = touching_pairs(model, kinematics.forward_kinematics(positions))
        expected = any(checked(*pair) for pair in touching)
        assert scene.hasCollisions(np.array(q)) == expected
        answers.add(expected)
    assert answers


@pytest.mark.parametrize("format", FORMATS)
def test_real_models_survive_every_format(robot, format):
    description, model, _ = robot
    matrix = self_collision_matrix(model, description, samples=100, boxes=0)
    text = export_model(model, description, format, self_collision=matrix)
    back = read_model(text, description)
    assert set(back.links) == set(model.links)
    for name, spheres in model.links.items():
        np.testing.assert_array_equal(back.links[name].centers, spheres.centers)
        np.testing.assert_array_equal(back.links[name].radii, spheres.radii)
    if format == "srdf":
        assert export_model(model, description, format, self_collision=matrix, srdf=text) == text


def test_panda_planner_documents_and_srdf():
    import yaml

    panda = RobotConfiguration.load("panda")
    description = load_robot_description(panda.description)
    model = sphere_model(description)
    home = dict(zip(panda.arm_joints, panda.home, strict=True))
    matrix = self_collision_matrix(model, description, home=home)
    assert ("panda_link7", "panda_hand") in matrix.adjacent
    assert ("panda_link0", "panda_link2") in matrix.proven
    assert len(matrix.proven) > 0.8 * len(matrix.never)
    kinematics = yaml.safe_load(export_model(model, description, "curobo", self_collision=matrix, home=home))
    kinematics = kinematics["robot_cfg"]["kinematics"]
    assert kinematics["tool_frames"] == ["panda_hand"]
    assert kinematics["base_link"] == description.root_link
    assert kinematics["cspace"]["joint_names"][:7] == list(panda.arm_joints)
    np.testing.assert_array_equal(kinematics["cspace"]["default_joint_position"][:7], panda.home)
    xrdf = yaml.safe_load(export_model(model, description, "xrdf", self_collision=matrix, home=home))
    assert xrdf["tool_frames"] == ["panda_hand"]
    existing = load_semantic_description(panda.semantic_description)
    merged = export_model(model, description, "srdf", self_collision=matrix, srdf=existing.xml)
    assert export_model(model, description, "srdf", self_collision=matrix, srdf=merged) == merged
    after = load_semantic_description(merged)
    assert (after.groups, after.states) == (existing.groups, existing.states)
    assert "<end_effector" in merged
    assert {pair.links for pair in existing.disabled_pairs if pair.reason == "Default"} <= {
        pair.links for pair in after.disabled_pairs
    }
    ignored = {frozenset(pair) for pair in matrix.ignored}
    for pair in after.disabled_pairs:
        assert pair.reason == "Default" or pair.links in ignored or not pair.links <= set(model.links)
    assert all(after.is_disabled(*pair) for pair in matrix.ignored)


def test_fitted_panda_is_free_at_home_and_blocked_when_folded():
    roboplan = pytest.importorskip("roboplan.core")
    panda = RobotConfiguration.load("panda")
    description = load_robot_description(panda.description)
    model = fit_robot_spheres(description, SphereFitConfig(count=12), cache=False)
    home = dict(zip(panda.arm_joints, panda.home, strict=True)) | {"panda_finger_joint1": 0.02}
    semantics = load_semantic_description(panda.semantic_description)
    matrix = self_collision_matrix(model, description, samples=2000)
    assert ("panda_link4", "panda_link5") in matrix.adjacent
    assert ("panda_link5", "panda_link7") in matrix.sometimes
    kinematics = KinematicModel(description)
    touching = touching_pairs(model, kinematics.forward_kinematics(home))
    assert [p for p in touching if not semantics.is_disabled(*p) and p not in matrix.adjacent] == []
    srdf = export_model(model, description, "srdf", self_collision=matrix, srdf=semantics.xml)
    scene = roboplan.Scene("panda", roboplan.loadUrdfSceneDescriptionFromXml(spherized_urdf(description, model), []))
    scene.importSrdf(srdf)
    names = scene.getJointNames()
    folded = home | {"panda_joint2": 1.7, "panda_joint4": -3.07}
    assert touching_pairs(model, kinematics.forward_kinematics(folded), padding=0.1)
    assert not scene.hasCollisions(np.array([home[name] for name in names]))
    assert scene.hasCollisions(
        np.array([{**folded, "panda_joint6": 0.0, "panda_joint2": -1.7}[name] for name in names])
    )


def test_talos_has_a_tool_at_the_end_of_each_limb():
    from morphit_ros.spheres.exports.planner import MotionPlannerConfig, planner_facts

    try:
        description = load_robot_description(ROBOTS["talos"])
    except ResourceNotFoundError as error:
        pytest.skip(f"example-robot-data is not installed: {error}")
    facts = planner_facts(description, MotionPlannerConfig())
    assert facts.base_link == description.root_link
    assert len(facts.tool_frames) == 4
    assert sum("left" in tip for tip in facts.tool_frames) == sum("right" in tip for tip in facts.tool_frames) == 2
