"""The cloth: known answers, conservation, contact in both modes with shapes of all kinds, and what it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from morphit_ros.cloth import Cloth, ClothConfig, drawn_shapes, simulate_cloth
from morphit_ros.cloth.certified import closest_surface_point, find_dents
from morphit_ros.cloth.tree import mark_groups, refit, tree_levels
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy
from morphit_ros.superovoid import PlacedSuperovoid, Superovoid
from morphit_ros.superovoid.distances.support import SECTIONS

SMALL = {"rows": 30, "cols": 30, "pitch": 0.01}
MODES = ("implicit", "exact")


def sphere(radius: float, *place: float) -> PlacedSuperovoid:
    return PlacedSuperovoid(Superovoid.sphere(radius), make_transform(translation=place))


def levels(points: Array, shapes: Sequence[PlacedSuperovoid]) -> Array:
    """Least N of each point (N,), by the shapes' own function: below 1 inside."""
    found = [
        placed.shape.levels((points - placed.T_link_shape[:3, 3]) @ placed.T_link_shape[:3, :3]) for placed in shapes
    ]
    return np.min(found, axis=0)


def drawn(rng: np.random.Generator, ends: bool) -> PlacedSuperovoid:
    """A shape somewhere, of squareness at an end of what there is, or in between."""
    squareness = rng.choice([0.1, 1.9], 2) if ends else rng.uniform(0.1, 1.9, 2)
    tapering = rng.choice([-0.5, 0.0, 0.5], 2) if ends else rng.uniform(-0.5, 0.5, 2)
    shape = Superovoid(tuple(rng.uniform(0.03, 0.09, 3)), tuple(squareness), tuple(tapering))
    place = [*rng.uniform(-0.1, 0.1, 2), rng.uniform(0.0, 0.1)]
    return PlacedSuperovoid(shape, make_transform(matrix_from_rpy(rng.uniform(-3.0, 3.0, 3)), place))


@pytest.mark.parametrize("mode", MODES)
def test_a_cloth_lies_on_a_sphere_and_hangs_from_it(mode: str) -> None:
    radius, height = 0.08, 0.3
    config = ClothConfig(**SMALL, contact=mode, damping=3.0, floor=False, friction=0.6)
    cloth = simulate_cloth([sphere(radius, 0.0, 0.0, height)], config, 300)
    points = cloth.positions
    out = np.linalg.norm(points - [0.0, 0.0, height], axis=1)
    assert out.min() >= radius + config.gap - 1e-6
    # Its top lies on the sphere's top, and what is beside the sphere hangs.
    top = points[points[:, 2].argmax()]
    assert top[2] == pytest.approx(height + radius + config.gap, abs=5e-4)
    assert np.linalg.norm(points[[0, 29, 870, 899], :2], axis=1).max() < 0.2
    assert points[[0, 29, 870, 899], 2].max() < height
    # By symmetry the four corners hang alike.
    assert np.ptp(points[[0, 29, 870, 899], 2]) < 0.02
    assert cloth.velocities.__abs__().max() < 0.1


def test_a_held_cloth_hangs_straight_and_hardly_longer() -> None:
    config = ClothConfig(**SMALL, floor=False, damping=5.0)
    cloth = Cloth([], config)
    cloth.hold(np.arange(870, 900))
    held = cloth.positions[870:]
    cloth.step(400)
    points = cloth.positions.reshape(30, 30, 3)
    assert (points[29] == held).all()
    # Hanging straight down from a held edge, with the strain of its own weight: 30 rows at most, w h g / k.
    assert np.abs(points[:, :, 1] - points[29, :, 1]).max() < 5e-3
    assert points[29, 0, 2] - points[0, :, 2] == pytest.approx(0.29, abs=1.5e-3)
    assert np.abs(cloth.strains).max() < 0.01


def test_a_flat_cloth_comes_to_lie_on_the_floor() -> None:
    cloth = simulate_cloth([], ClothConfig(**SMALL, clearance=0.1), 60)
    assert np.abs(cloth.positions[:, 2] - cloth.config.gap).max() < 2e-5
    assert np.abs(cloth.strains).max() < 1e-3


def test_a_free_cloth_keeps_its_momentum_and_falls_as_things_do() -> None:
    # Folds and shear would store energy and give it back.
    limp = {"bending_stiffness": 0.0, "shear_stiffness": 0.0}
    config = ClothConfig(**SMALL, **limp, floor=False, gravity=0.0, damping=0.0)
    cloth = Cloth([], config)
    rng = np.random.default_rng(0)
    cloth.set_velocities(np.array([1.0, 0.0, -0.5]) + rng.normal(0.0, 0.3, (900, 3)))
    middle, momentum = cloth.positions.mean(axis=0), cloth.momentum
    turning = np.cross(cloth.positions, cloth.velocities).sum(axis=0) * cloth.node_mass
    energies = [cloth.energy]
    for _ in range(30):
        cloth.step()
        energies.append(cloth.energy)
    assert cloth.momentum == pytest.approx(momentum, rel=1e-9, abs=1e-12)
    assert cloth.positions.mean(axis=0) == pytest.approx(middle + momentum / (900 * cloth.node_mass) * cloth.time)
    later = np.cross(cloth.positions, cloth.velocities).sum(axis=0) * cloth.node_mass
    assert np.linalg.norm(later - turning) < 0.05 * np.linalg.norm(turning)
    # Motion against each other dies out; none comes from nowhere.
    assert (np.diff(energies) < 1e-6 * energies[0]).all()

    falling = Cloth([], ClothConfig(**SMALL, floor=False, damping=0.0))
    start = falling.positions[:, 2].mean()
    falling.step(30)
    dt = falling.config.time_step / falling.config.substeps
    # Semi-implicit steps fall g t dt / 2 too far.
    assert falling.positions[:, 2].mean() == pytest.approx(start - 0.5 * 9.81 * 0.5 * (0.5 + dt), abs=1e-9)


def test_energy_falls() -> None:
    limp = {"bending_stiffness": 0.0, "shear_stiffness": 0.0}
    cloth = Cloth(drawn_shapes(4, 0.3, 3), ClothConfig(**SMALL, **limp))
    energies = []
    for _ in range(120):
        cloth.step()
        energies.append(cloth.energy)
    assert np.diff(energies).max() < 2e-3 * (energies[0] - energies[-1])
    assert energies[-1] < energies[0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_no_node_is_inside_of_any_shape(mode: str, ends: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shapes = [drawn(rng, ends) for _ in range(6)]
    cloth = Cloth(shapes, ClothConfig(**SMALL, contact=mode))
    for _ in range(60):
        cloth.step()
        # The exact mode promises it; the other one leaves 0.1 mm to tapered shapes.
        if mode == "exact":
            assert levels(cloth.positions, cloth.shapes).min() > 1.0
    assert np.isfinite(cloth.positions).all()
    assert cloth.distances().min() > -1e-4
    assert np.quantile(np.abs(cloth.strains), 0.99) < 0.1


@pytest.mark.parametrize("seed", range(3))
def test_shapes_that_are_thrown_about_catch_no_node(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cloth = Cloth([drawn(rng, seed == 2) for _ in range(5)], ClothConfig(**SMALL, contact="exact"))
    cloth.step(20)
    for _ in range(40):
        for number, placed in enumerate(cloth.shapes):
            pose = placed.T_link_shape.copy()
            # 6 m/s and 24 rad/s.
            pose[:3, 3] += rng.uniform(-0.1, 0.1, 3)
            pose[:3, :3] = matrix_from_rpy(rng.uniform(-0.4, 0.4, 3)) @ pose[:3, :3]
            shape = drawn(rng, True).shape if rng.random() < 0.2 else placed.shape
            cloth.set_shape(number, PlacedSuperovoid(shape, pose))
        cloth.step()
        assert levels(cloth.positions, cloth.shapes).min() > 1.0
    assert np.isfinite(cloth.velocities).all()


def test_a_thin_plate_does_not_pass_through_the_cloth() -> None:
    """In one substep the plate moves by ten times its thickness: places before and after say nothing."""
    plate = Superovoid((0.2, 0.2, 5e-4), (0.3, 0.3))
    for mode, through in (("exact", False), ("implicit", True)):
        config = ClothConfig(**SMALL, contact=mode, floor=False, gravity=0.0, substeps=5, gap=2e-4)
        cloth = Cloth([PlacedSuperovoid(plate, make_transform(translation=(0.0, 0.0, -0.05)))], config)
        for step in range(1, 9):
            cloth.set_shape(0, PlacedSuperovoid(plate, make_transform(translation=(0.0, 0.0, -0.05 + 0.025 * step))))
            cloth.step()
        passed = cloth.positions[:, 2] < cloth.shapes[0].T_link_shape[2, 3]
        assert passed.any() == through


def test_friction_holds_on_a_slope_and_lets_go_on_a_steeper_one() -> None:
    for degrees, slides in ((15.0, False), (35.0, True)):
        # The flat top of a large, nearly box-shaped body, tilted: friction 0.4 holds up to 22 degrees.
        pose = make_transform(matrix_from_rpy((0.0, np.radians(degrees), 0.0)), (0.0, 0.0, 0.0))
        slab = PlacedSuperovoid(Superovoid((1.0, 1.0, 0.1), (0.1, 0.1)), pose)
        cloth = Cloth([slab], ClothConfig(rows=10, cols=10, floor=False, clearance=0.0), center=(0.0, 0.0))
        cloth.step(45)
        before = cloth.positions
        cloth.step(15)
        moved = np.linalg.norm((cloth.positions - before).mean(axis=0))
        assert (moved > 0.05) == slides
        assert slides or moved < 1e-3


def test_a_cloth_that_meets_itself_keeps_its_sheets_apart() -> None:
    def nearest_strangers(self_collision: bool) -> float:
        cloth = Cloth([], ClothConfig(rows=20, cols=20, self_collision=self_collision, clearance=0.25))
        # Folded over: its right half is thrown onto the left one.
        points = cloth.positions
        speed = np.where(points[:, :1] > 0.0, 1.0, 0.0) * [-2.5, 0.0, 1.5]
        cloth.set_velocities(speed)
        cloth.step(90)
        places = cloth.positions
        gaps = np.linalg.norm(places[:, None] - places, axis=2)
        rest = np.linalg.norm(points[:, None] - points, axis=2)
        return float(gaps[rest > 0.03].min())

    assert nearest_strangers(False) < 0.004
    assert nearest_strangers(True) > 0.006


def test_the_same_seed_gives_the_same_cloth() -> None:
    shapes = drawn_shapes(3, 0.3, 1)
    first, again, other = (simulate_cloth(shapes, ClothConfig(**SMALL), 30, seed).positions for seed in (1, 1, 2))
    assert (first == again).all()
    assert not (first == other).all()


def test_a_shape_may_come_go_grow_and_vanish() -> None:
    cloth = Cloth([sphere(0.05, 0.0, 0.0, 0.05)], ClothConfig(**SMALL))
    cloth.step(40)
    cloth.add_shape(sphere(0.05, 0.08, 0.0, 0.08))
    cloth.set_shape(0, sphere(0.09, 0.0, 0.0, 0.05))
    cloth.step(20)
    assert cloth.distances().min() > -1e-5
    cloth.remove_shape(0)
    cloth.remove_shape(0)
    assert cloth.shapes == ()
    cloth.step(60)
    assert np.isinf(cloth.distances()).all()
    cloth.reset()
    assert cloth.time == 0.0
    assert cloth.positions[:, 2].min() > 0.1


def test_closest_points_are_those_of_the_shape_itself() -> None:
    rng = np.random.default_rng(5)
    sections = np.empty((SECTIONS, 3))
    for seed in range(30):
        shape = drawn(rng, seed % 3 == 0).shape
        dented = find_dents(shape.parameters, sections)
        points = rng.uniform(-1.5, 1.5, (20, 3)) * shape.bounding_box[1]
        points = points[shape.levels(points) > 1.0]
        expected = shape.closest_points(points).distances
        for point, distance in zip(points, expected, strict=True):
            *found, certified = closest_surface_point(shape.parameters, dented, sections, *point)
            # A certificate is the proof; without one the search of the shape may be better.
            error = np.linalg.norm(point - found) - distance
            assert error == pytest.approx(0.0, abs=1e-7 if certified else 1e-3)


def test_the_tree_finds_every_group_that_a_shape_may_meet() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        rows, cols = rng.integers(2, 40, 2)
        before, after = rng.uniform(-0.3, 0.3, (2, 3, rows, cols))
        tree = tree_levels(rows, cols)
        boxes = np.empty((2, tree[-1, 0] + 1, 6))
        refit(before, tree, boxes[0])
        refit(after, tree, boxes[1])
        poses = np.stack(
            [np.concatenate([matrix_from_rpy(r).ravel(), t]) for r, t in rng.uniform(-0.3, 0.3, (2, 2, 3))]
        )
        half, masks = rng.uniform(0.01, 0.1, 3), np.zeros(tree[0, 1] * tree[0, 2], dtype=np.uint64)
        stack = np.empty((60, 3), dtype=np.int64)
        mark_groups(tree, boxes[0], boxes[1], poses[:1], poses[1:], half[None], 0.0, masks, stack)
        shares = np.linspace(0.0, 1.0, 21)[:, None, None, None]
        local = [
            np.einsum("ji,jrc->irc", pose[:9].reshape(3, 3), x - pose[9:, None, None])
            for pose, x in zip(poses, (before, after), strict=True)
        ]
        way = (1.0 - shares) * local[0] + shares * local[1]
        met = (np.abs(way) <= half[:, None, None]).all(axis=1).any(axis=0)
        for r, c in np.argwhere(met):
            assert masks[r // 8 * tree[0, 2] + c // 8] == 1


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"rows": 1}, "rows"), ({"cols": 500}, "cols"), ({"pitch": 0.0}, "pitch"), ({"pitch": float("nan")}, "pitch"),
        ({"density": -1.0}, "density"), ({"friction": -0.1}, "friction"), ({"gap": 0.0}, "gap"),
        ({"contact": "soft"}, "contact"), ({"substeps": 0}, "substeps"), ({"time_step": float("inf")}, "time_step"),
    ],
)  # fmt: skip
def test_bad_settings_are_refused_by_name(values: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^{name}: got"):
        ClothConfig(**values)


def test_bad_input_is_refused_with_its_bound() -> None:
    cloth = Cloth([sphere(0.1, 0.0, 0.0, 0.1)], ClothConfig(**SMALL))
    with pytest.raises(InvalidInputError, match="at most 60"):
        Cloth([sphere(0.1, 0.0, 0.0, 0.1)] * 61)
    with pytest.raises(InvalidInputError, match="a number from 0 to 0"):
        cloth.set_shape(1, sphere(0.1, 0.0, 0.0, 0.1))
    with pytest.raises(InvalidInputError, match="integers from 0 to 899"):
        cloth.hold([900])
    with pytest.raises(InvalidInputError, match="finite numbers of shape"):
        cloth.set_velocities([np.nan, 0.0, 0.0])
    with pytest.raises(InvalidInputError, match="two finite numbers"):
        Cloth([], center=(0.0, np.inf))
    with pytest.raises(InvalidInputError, match="0 or more"):
        simulate_cloth([], steps=-1)
    with pytest.raises(InvalidInputError, match="from 0 to 60"):
        drawn_shapes(61, 1.0)
    with pytest.raises(InvalidInputError, match="a positive length"):
        drawn_shapes(3, 0.0)
