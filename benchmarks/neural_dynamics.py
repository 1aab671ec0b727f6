"""Motion of neural objects in contact: agreement, energy, gradients and times.

    python benchmarks/neural_dynamics.py [--data DIR] [--json FILE]

Times are processor time of one thread, the least of several repeats. MuJoCo is the referee for slides, the integral of
μ p r over the base for spins. --data is the folder whose neural/ has the authors' bodies and trajectories.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
from tqdm import tqdm  # noqa: E402

from morphit_bench.data_option import add_data  # noqa: E402
from morphit_ros.geometry.rotations import multiply_quats  # noqa: E402
from morphit_ros.neural.body import ContactBody  # noqa: E402
from morphit_ros.neural.contact.parameters import ContactParameters  # noqa: E402
from morphit_ros.neural.contact.shapes import ContactHalfSpace  # noqa: E402
from morphit_ros.neural.dynamics.rollouts import simulate_batch  # noqa: E402
from morphit_ros.neural.dynamics.simulate import rollout_derivatives, simulate  # noqa: E402
from morphit_ros.neural.dynamics.state import BodyState  # noqa: E402
from morphit_ros.neural.dynamics.world import Obstacle, World  # noqa: E402

TABLE = Obstacle(ContactHalfSpace(), name="table")
CORNERS = list(itertools.product([1e4, 1e5], [1e5, 1e6], [0.0, 1.0], [0.0, 0.1]))


def filled(size: tuple[float, float, float], count: int, disc: bool = False, mass: float = 2.0) -> ContactBody:
    """A uniform box, or the upright cylinder in it, filled with jittered points."""
    edges = np.array(size)
    cells = np.maximum(2, np.round(edges * (count / edges.prod() * (4 / np.pi if disc else 1)) ** (1 / 3))).astype(int)
    grid = np.stack(np.meshgrid(*[(np.arange(n) + 0.5) / n - 0.5 for n in cells], indexing="ij"), axis=-1)
    points = grid.reshape(-1, 3) * edges
    points += np.random.default_rng(0).uniform(-0.4, 0.4, points.shape) * edges / cells
    x, y, z = edges
    moments = [y**2 + z**2, x**2 + z**2, x**2 + y**2]
    if disc:
        points = points[np.hypot(points[:, 0], points[:, 1]) < 0.5 * x]
        moments = [0.75 * x**2 + z**2] * 2 + [1.5 * x**2]
    points -= points.mean(axis=0)
    weights = np.full(len(points), mass / len(points))
    return ContactBody(points, weights, np.zeros_like(points), mass, mass / 12.0 * np.diag(moments), np.zeros(3))


def least_time(function: Callable[[], Any], repeats: int = 7) -> float:
    """Least processor time of a call [s]."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def settled(world: World, height: float) -> np.ndarray:
    """(1, 13) state at rest on the table."""
    return simulate(world, BodyState([0.0, 0.0, height]), 800).states[-1]


def mujoco_slide(size: tuple[float, float, float], velocity: tuple[float, float], friction: float) -> np.ndarray:
    """Where a box comes to rest (2,) [m], from MuJoCo at a step of 2 ms."""
    import mujoco

    edges = " ".join(str(0.5 * edge) for edge in size)
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="0.002" cone="elliptic" impratio="100" integrator="implicitfast"/><worldbody>
        <geom type="plane" size="10 10 1" friction="{friction} 0 0"/>
        <body pos="0 0 {0.5 * size[2]}"><freejoint/><geom type="box" size="{edges}" mass="2" friction="{friction} 0 0"/>
        </body></worldbody></mujoco>"""
    )
    data = mujoco.MjData(model)
    for _ in range(500):
        mujoco.mj_step(model, data)
    data.qvel[:] = 0.0
    data.qvel[:2] = velocity
    before = data.qpos[:2].copy()
    for _ in range(1500):
        mujoco.mj_step(model, data)
    return np.array(data.qpos[:2] - before)


def free_flight(folder: Path) -> dict[str, float]:
    """Against the authors' trajectory: largest distance in flight, and after contact with their single-point form."""
    from morphit_ros.neural.published import load_published_body, load_published_trajectory

    body = load_published_body(folder / "bunny.npz", second_moment_as_inertia=True)
    figures = {}
    for friction in (0.1, 0.3):
        track = load_published_trajectory(folder / f"bunny_trajectory_{friction}.csv")
        turn = multiply_quats(track.quats_xyzw[0] * [-1.0, -1.0, -1.0, 1.0], track.quats_xyzw[1])
        start = BodyState(
            track.positions[1], track.quats_xyzw[1], (track.positions[1] - track.positions[0]) / 0.002, turn[:3] / 0.001
        )
        parameters = ContactParameters(friction=friction, spring=1e5, damper=1e6, sliding_drag=0.01, size=1.0)
        moved = simulate(World([body], [TABLE], parameters, form="published"), start, 3498).positions[:, 0]
        errors = np.linalg.norm(moved - track.positions[1:], axis=1)
        for name, step in (("free flight", 237), ("contact +2 steps", 240), ("+12 steps", 250), ("+0.5 s", 490),
                           ("end, 6.5 s later", 3498)):  # fmt: skip
            figures[f"μ {friction}: {name} [m]"] = float(errors[: step + 1].max())
    return figures


def slides() -> dict[str, float]:
    """Distance against MuJoCo's and against v²/(2 μ g), largest relative differences."""
    size = (0.1, 0.06, 0.04)
    body = filled(size, 5000)
    figures = {}
    for friction, velocity in ((0.2, (0.6, 0.0)), (0.3, (0.8, 0.4)), (0.6, (0.0, 1.2))):
        world = World([body], [TABLE], ContactParameters(friction=friction), 0.002)
        start = settled(world, 0.021)
        start[0, 7:9] = velocity
        moved = simulate(world, start, 1500).positions[-1, 0, :2] - start[0, :2]
        referee = mujoco_slide(size, velocity, friction)
        name = f"slide, μ {friction}, {np.hypot(*velocity):.2g} m/s"
        figures[f"{name}: MuJoCo [m]"] = float(np.linalg.norm(referee))
        figures[f"{name}: ours [m]"] = float(np.linalg.norm(moved))
        figures[f"{name}: difference [%]"] = 100.0 * float(np.linalg.norm(moved - referee) / np.linalg.norm(referee))
        figures[f"{name}: Coulomb [m]"] = float(np.dot(velocity, velocity) / (2.0 * friction * 9.81))
    return figures


def spins() -> dict[str, float]:
    """Loss of spin in 0.1 s against the integral of μ p r over the base [%]."""
    figures = {}
    for name, disc, size in (("disc", True, (0.1, 0.1, 0.02)), ("box", False, (0.1, 0.06, 0.02))):
        body = filled(size, 5000, disc)
        world = World([body], [TABLE], ContactParameters(friction=0.3), 0.002)
        start = settled(world, 0.5 * size[2] + 0.001)
        start[0, 12] = 15.0
        moved = simulate(world, start, 50)
        if disc:
            radius = size[0] / 3.0
        else:
            x, y = (np.stack(np.meshgrid(*[(np.arange(1000) + 0.5) / 1000 - 0.5] * 2)).reshape(2, -1).T * size[:2]).T
            radius = float(np.hypot(x, y).mean())
        expected = 0.3 * body.mass * 9.81 * radius / body.inertia[2, 2] * 0.1
        lost = 15.0 - moved.angular_velocities[-1, 0, 2]
        figures[f"spin of a {name}: loss against the integral [%]"] = 100.0 * (lost / expected - 1.0)
    return figures


def energies() -> dict[str, float]:
    """Over 10 s of all corners of Table I: largest gain of energy, and residual speed at the end."""
    body = filled((1.0, 0.6, 0.4), 5000)
    gains, speeds = [], []
    for spring, damper, friction, drag in tqdm(CORNERS, desc="corners of Table I", leave=False, disable=None):
        parameters = ContactParameters(friction=friction, spring=spring, damper=damper, sliding_drag=drag)
        world = World([body], [TABLE], parameters, 0.01)
        start = BodyState([0.0, 0.0, 0.8], [0.2, 0.3, 0.1, 1.0], [1.0, 0.5, 0.0], [1.0, 2.0, -1.0])
        states = simulate(world, start, 1000).states[:, 0]
        spin = states[:, 10:]
        energy = 0.5 * body.mass * (states[:, 7:10] ** 2).sum(axis=1) + body.mass * 9.81 * states[:, 2]
        energy += 0.5 * np.einsum("ti,ij,tj->t", spin, body.inertia, spin)
        gains.append(float(energy.max() / energy[0] - 1.0))
        rest = simulate(world, BodyState([0.0, 0.0, 0.21]), 1000)
        speeds.append(float(np.abs(rest.velocities[-1]).max()) / body.size)
    return {
        "16 corners of Table I, 10 s at 0.01 s: largest gain of energy": max(gains),
        "the same at rest: largest residual speed [sizes/s]": max(speeds),
    }


def gradient_error() -> dict[str, float]:
    """Sensitivity of 50 sliding and tumbling steps against central differences of fourth order, relative."""
    body = filled((1.0, 0.6, 0.4), 5000)
    world = World([body], [TABLE], ContactParameters(friction=0.3, indicator_width=0.01), 0.005)
    start = settled(world, 0.21)
    start[0, 7:10] = 1.0, 0.3, 0.0
    start[0, 10:] = 0.1, 0.2, 1.0
    names = ("friction", "inertia_scale", "spring")
    values = np.array([0.3, 1.0, 3e4])
    _, by_parameters = rollout_derivatives(world, start, 50, names=names, values=values).chained()

    def last(factors: np.ndarray) -> np.ndarray:
        state = simulate(world, start, 50, names=names, values=values * factors).states[-1, 0]
        return np.concatenate([state[:3], state[7:]])

    rows = [0, 1, 2, 6, 7, 8, 9, 10, 11]
    errors = []
    for k in range(3):
        e = 1e-4 * np.eye(3)[k]
        expected = (8.0 * (last(1 + e) - last(1 - e)) - (last(1 + 2 * e) - last(1 - 2 * e))) / 12e-4
        errors.append(np.abs(by_parameters[-1][rows, k] * values[k] - expected).max() / np.abs(expected).max())
    return {"gradient of 50 contact steps against differences, relative": float(max(errors))}


def times() -> dict[str, float]:
    """Of a step with 5000 points, with and without derivatives, and of a rollout alone and in a batch [µs]."""
    body = filled((1.0, 0.6, 0.4), 5000)
    figures: dict[str, float] = {"points": float(len(body.points))}
    for form, name, step in (
        ("points", "by point", 0.002),
        ("points", "by point", 0.01),
        ("smooth_single_point", "single point, smooth", 0.002),
        ("published", "published", 0.002),
    ):
        world = World([body], [TABLE], ContactParameters(friction=0.3), step, form=form)  # type: ignore[arg-type]
        rest = settled(world, 0.21)
        # Before friction has stopped it.
        steps = round(0.5 / step)
        for state, speed in (("rest", 0.0), ("slide", 3.0)):
            start = rest.copy()
            start[0, 7] = speed
            label = f"{name}, {1e3 * step:g} ms, {state} [µs]"
            seconds = least_time(lambda world=world, start=start, steps=steps: simulate(world, start, steps))
            figures[f"step, {label}"] = 1e6 * seconds / steps
            seconds = least_time(lambda world=world, start=start, steps=steps: rollout_derivatives(world, start, steps))
            figures[f"step with derivatives, {label}"] = 1e6 * seconds / steps
    world = World([body], [TABLE], ContactParameters(friction=0.3), 0.01)
    start = settled(world, 0.21)
    start[0, 7] = 3.0
    starts = np.repeat(start[None], 1024, axis=0)
    # As many alone as in a batch, in turns: the least of a few hundred short times is less than their mean.
    ways: list[tuple[str, Callable[[], Any], Callable[[], float]]] = [
        ("alone, processor time", lambda: [simulate(world, row, 50) for row in starts], time.process_time),
        ("one of 1024, one thread, processor time", lambda: simulate_batch(world, starts, 50, threads=1),
         time.process_time),
        ("alone, wall", lambda: [simulate(world, row, 50) for row in starts], time.perf_counter),
        ("one of 1024, wall", lambda: simulate_batch(world, starts, 50), time.perf_counter),
    ]  # fmt: skip
    for _ in range(3):
        for name, function, clock in ways:
            label = f"rollout of 50 steps, {name} [µs]"
            figures[label] = min(figures.get(label, np.inf), 1e6 * _clocked(function, clock) / len(starts))
    return figures


def _clocked(function: Callable[[], Any], clock: Callable[[], float]) -> float:
    start = clock()
    function()
    return clock() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "neural")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures: dict[str, float] = {}
    if (arguments.data / "neural").is_dir():
        figures |= free_flight(arguments.data / "neural")
    for part in (slides, spins, energies, gradient_error, times):
        figures |= part()
    for name, value in figures.items():
        print(f"{name:78s} {value:.4g}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
