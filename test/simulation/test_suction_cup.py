"""The simulated suction cup: where its lip seals, what the vacuum holds, and that more than that breaks the seal."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

# Not imported here: this package first chooses what MuJoCo renders with.
if importlib.util.find_spec("mujoco") is None:
    pytest.skip("needs the simulation: mujoco", allow_module_level=True)

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh
from morphit_ros.geometry.transforms import invert_transform, make_transform
from morphit_ros.grasping.suction.cup import SuctionCup
from morphit_ros.resources import share_directory
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.inverse_kinematics import inverse_kinematics
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig

CUP = SuctionCup.load("cup_30")
# The same with a weak pump: what it just holds is well within the arm's payload.
WEAK = replace(CUP, vacuum=20_000.0)
DOWN = np.diag([1.0, -1.0, -1.0])
SIZE = np.array([0.1, 0.12, 0.05])
GRAVITY = 9.81


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Meshes [m]: a box, and a lying cylinder; the file of a weak cup."""
    folder = tmp_path_factory.mktemp("meshes")
    found = {}
    for name, mesh in (("box", box_mesh(SIZE)), ("roll", cylinder_mesh(0.04, 0.1))):
        if name == "roll":
            mesh = mesh.transformed(make_transform([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]))
        path = folder / f"{name}.obj"
        lines = [f"v {x} {y} {z}" for x, y, z in mesh.vertices] + [f"f {a} {b} {c}" for a, b, c in mesh.faces + 1]
        path.write_text("\n".join(lines), encoding="utf-8")
        found[name] = str(path)
    text = (share_directory() / "config/suction_cups/cup_30.yaml").read_text(encoding="utf-8")
    (folder / "weak.yaml").write_text(text.replace("vacuum: 60000.0", f"vacuum: {WEAK.vacuum}"), encoding="utf-8")
    return {**found, "weak": str(folder / "weak.yaml")}


class Bench:
    """A workcell whose cup is put somewhere at once, and moved straight from there."""

    def __init__(self, workcell: Workcell) -> None:
        self.workcell, self.robot = workcell, workcell.robot
        self._model = KinematicModel(load_robot_description(self.robot.description))

    def joints(self, x: float, y: float, z: float, near: np.ndarray | None = None) -> np.ndarray:
        """Of the arm with the lip at rest at a point of the world, straight down; nearest to some positions."""
        state = self.workcell.joint_state().as_dict()
        if near is not None:
            state = dict(zip(self.robot.arm_joints, near.tolist(), strict=True))
        T_base_tip = invert_transform(self.workcell.T_world_base) @ make_transform(DOWN, (x, y, z))
        T_root_tip = self._model.link_pose(state, self.robot.base_link) @ T_base_tip
        found = inverse_kinematics(
            self._model, T_root_tip, self.robot.tip_link, self.robot.arm_joints, state, np.random.default_rng(0)
        )
        assert found.residual[0] < 1e-4
        return np.array([found.positions[name] for name in self.robot.arm_joints])

    def put(self, x: float, y: float, z: float) -> None:
        values = dict(zip(self.robot.arm_joints, self.joints(x, y, z).tolist(), strict=True))
        self.workcell.place(values)
        self.workcell.step(0.2)

    def lift(self, x: float, y: float, low: float, high: float, duration: float = 3.0) -> None:
        """Slowly straight up."""
        s = np.linspace(0.0, 1.0, 60)
        rows = [self.workcell.joint_state().positions]
        for height in low + (10 * s**3 - 15 * s**4 + 6 * s**5)[1:] * (high - low):
            rows.append(self.joints(x, y, height, rows[-1]))
        rates = np.gradient(np.array(rows), s * duration, axis=0)
        self.workcell.command_trajectory(Trajectory(self.robot.arm_joints, s * duration, np.array(rows), rates))
        self.workcell.step(duration + 0.3)


@pytest.fixture
def make_bench(files: dict[str, str]) -> Iterator[object]:
    made: list[Workcell] = []

    def make(thing: str = "box", mass: float = 0.5, weak: bool = False, arm: str = "ur3e_cup") -> Bench:
        robot = RobotConfiguration.load(arm)
        if weak:
            robot = replace(robot, gripper=files["weak"])
        workcell = Workcell(WorkcellConfig(object=files[thing], object_mass=mass), robot)
        made.append(workcell)
        return Bench(workcell)

    yield make
    for workcell in made:
        workcell.close()


@pytest.mark.parametrize("arm", ["ur3e_cup", "panda_cup"])
def test_a_lip_that_is_pressed_on_seals_and_is_sensed_and_let_go_of(make_bench, arm: str) -> None:
    bench = make_bench(arm=arm)
    workcell = bench.workcell
    bench.put(0.5, 0.0, SIZE[2] - 0.003)
    assert workcell.cup.compression(workcell._data) == pytest.approx(0.003, abs=4e-4)
    assert workcell.joint_state().vacuum is False
    assert workcell.cup.leak(workcell._data) == ""
    # Not without the pump.
    workcell.step(0.3)
    assert workcell.cup.sealed_on is None
    workcell.switch_vacuum(True)
    workcell.step(0.04)
    assert not workcell.cup.sensed
    workcell.step(0.4)
    assert workcell.joint_state().vacuum is True
    bench.lift(0.5, 0.0, SIZE[2] - 0.003, SIZE[2] + 0.1)
    assert workcell.object_pose()[2, 3] == pytest.approx(0.1, abs=0.003)
    workcell.switch_vacuum(False)
    workcell.step(0.5)
    assert workcell.joint_state().vacuum is False
    assert workcell.object_pose()[2, 3] < 0.01


@pytest.mark.parametrize(
    ("thing", "place", "leak"),
    [
        ("box", (0.5, 0.0, SIZE[2] + 0.004), "not pressed"),
        ("box", (0.5, 0.05, SIZE[2] - 0.002), "edge or hole"),
        ("roll", (0.5, 0.0, 0.08 - 0.0005), "not pressed"),
        ("roll", (0.5, 0.0, 0.08 - 0.005), ""),
    ],
    ids=["above", "over an edge", "bent, hardly pressed", "bent, pressed"],
)
def test_where_it_leaks_there_is_no_vacuum(make_bench, thing: str, place: tuple[float, ...], leak: str) -> None:
    bench = make_bench(thing)
    bench.put(*place)
    assert bench.workcell.cup.leak(bench.workcell._data) == leak
    bench.workcell.switch_vacuum(True)
    bench.workcell.step(0.6)
    assert bench.workcell.joint_state().vacuum is (leak == "")


def test_heights_below_the_lip_are_those_of_geometry(make_bench) -> None:
    bench = make_bench("roll")
    bench.put(0.5, 0.0, 0.08 - 0.005)
    edge, _, name = bench.workcell.cup.surface_heights(bench.workcell._data)
    assert name == "object"
    # The lip lies on the mean of what is under its width, 13 to 15 mm from the middle.
    depth = 0.04 - math.sqrt(0.04**2 - 0.014**2)
    assert float(np.ptp(edge)) == pytest.approx(depth, abs=3e-4)
    # Above the lip at rest, by what it is pressed but for the facets that the roll lies on.
    assert -0.005 < edge.min() < -0.004


@pytest.mark.parametrize(("share", "holds"), [(0.8, True), (1.1, False)])
def test_it_holds_what_its_vacuum_presses_with_and_no_more(make_bench, share: float, holds: bool) -> None:
    bench = make_bench(mass=share * WEAK.force / GRAVITY, weak=True)
    workcell = bench.workcell
    bench.put(0.5, 0.0, SIZE[2] - 0.003)
    workcell.switch_vacuum(True)
    workcell.step(0.6)
    assert workcell.joint_state().vacuum is True
    bench.lift(0.5, 0.0, SIZE[2] - 0.003, SIZE[2] + 0.06)
    assert workcell.joint_state().vacuum is holds
    # Near its force what is left for the lip bears no moment and no shear, however small.
    assert bool(workcell.cup.broken_by) is not holds
    assert bool(workcell.object_pose()[2, 3] > 0.04) is holds


@pytest.mark.parametrize(("share", "holds"), [(0.85, True), (1.15, False)])
def test_it_holds_a_moment_until_its_lip_would_be_lifted(make_bench, share: float, holds: bool) -> None:
    """Beside the centre of mass: M = W d, and M ≤ r (F − W) / 2."""
    lever, r = 0.03, CUP.cup_radius
    weight = share * 0.5 * r * WEAK.force / (lever + 0.5 * r)
    bench = make_bench(mass=weight / GRAVITY, weak=True)
    workcell = bench.workcell
    bench.put(0.5, lever, SIZE[2] - 0.003)
    workcell.switch_vacuum(True)
    workcell.step(0.6)
    bench.lift(0.5, lever, SIZE[2] - 0.003, SIZE[2] + 0.06)
    assert workcell.joint_state().vacuum is holds
    assert workcell.cup.broken_by == ("" if holds else "moment")


def test_what_is_no_cup_has_no_vacuum_and_a_cup_no_fingers(make_bench, files: dict[str, str]) -> None:
    bench = make_bench()
    with pytest.raises(InvalidInputError, match=r"suction cup cup_30.*fingers.*vacuum"):
        bench.workcell.command_gripper(0.03)
    with pytest.raises(InvalidInputError, match=r"suction cup cup_30.*two fingers"):
        _ = bench.workcell.two_fingers
    with Workcell(WorkcellConfig(robot="ur3e_hande", object=files["box"], object_mass=0.5)) as workcell:
        assert workcell.joint_state().vacuum is None
        with pytest.raises(InvalidInputError, match=r"hande.*suction cup"):
            workcell.switch_vacuum(True)
    robot = replace(RobotConfiguration.load("ur3e_cup"), gripper="hande")
    with pytest.raises(InvalidInputError, match=r"finger_joints.*none.*aperture"):
        Workcell(WorkcellConfig(object=files["box"], object_mass=0.5), robot)


def test_a_reset_forgets_what_was_held(make_bench) -> None:
    bench = make_bench()
    workcell = bench.workcell
    bench.put(0.5, 0.0, SIZE[2] - 0.003)
    workcell.switch_vacuum(True)
    workcell.step(0.5)
    assert workcell.joint_state().vacuum is True
    workcell.reset()
    workcell.step(0.3)
    assert workcell.joint_state().vacuum is False
    assert workcell.cup.sealed_on is None
    assert workcell.object_pose()[2, 3] == pytest.approx(0.0, abs=1e-3)
