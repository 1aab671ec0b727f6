"""Cloth: pictures per second of one core's time, and how deep nodes are after settling, in both modes of contact.

    OMP_NUM_THREADS=1 python benchmarks/cloth.py [--seeds 5] [--settle 4] [--modes implicit exact] [--json FILE]

100 x 100 nodes fall over 20 drawn superovoids of all squareness, half of them tapered. The rate counts processor time
over the whole fall, and its slowest half second alone. Depths are by the shapes' own closest points: of nodes, and of
points within the triangles between them, of which nothing is promised.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from morphit_ros.cloth import Cloth, ClothConfig, drawn_shapes
from morphit_ros.cloth.warm_up import warm_up

_SHARES = np.array([[1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])


def depth(points: Any, cloth: Cloth) -> float:
    """How deep the deepest of points (N, 3) is in a shape [m], 0 if none is."""
    deepest = 0.0
    for placed in cloth.shapes:
        local = (points - placed.T_link_shape[:3, 3]) @ placed.T_link_shape[:3, :3]
        inside = placed.shape.levels(local) < 1.0
        if inside.any():
            deepest = max(deepest, -float(placed.shape.closest_points(local[inside]).distances.min()))
    return deepest


def measure(mode: str, seed: int, settle: float) -> dict[str, Any]:
    config = ClothConfig(contact=mode)
    cloth = Cloth(drawn_shapes(20, 1.0, seed), config, seed)
    times, ever = [], 0.0
    for _ in range(round(settle / config.time_step)):
        began = time.process_time()
        cloth.step()
        times.append(time.process_time() - began)
        if len(times) % 15 == 0:
            ever = max(ever, depth(cloth.positions, cloth))
    slowest = np.convolve(times, np.ones(30) / 30, "valid").max()
    triangles = cloth.positions[cloth.triangles]
    between = np.einsum("sc,fcx->sfx", _SHARES, triangles).reshape(-1, 3)
    return {
        "mode": mode, "seed": seed, "rate": 1.0 / float(np.mean(times)), "slowest": 1.0 / float(slowest),
        "node_depth": depth(cloth.positions, cloth), "node_depth_ever": ever, "triangle_depth": depth(between, cloth),
        "nearest": float(cloth.distances().min()), "strain_99": float(np.quantile(np.abs(cloth.strains), 0.99)),
        "strain": float(np.abs(cloth.strains).max()),
        "speed": float(np.linalg.norm(cloth.velocities, axis=1).mean()), "uncertified": cloth.uncertified,
        "led_out": cloth.led_out,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--settle", type=float, default=4.0, help="how long each cloth falls [s]")
    parser.add_argument("--modes", nargs="+", choices=("implicit", "exact"), default=("implicit", "exact"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warm_up()
    rows = []
    print("mode      seed  pictures/s  slowest  node depth  ever  between [mm]  nearest [mm]  strain 99 % / max  mm/s")
    for mode in options.modes:
        for seed in range(options.seeds):
            row = measure(mode, seed, options.settle)
            rows.append(row)
            print(
                f"{mode:<9} {seed:>4} {row['rate']:>11.1f} {row['slowest']:>8.1f} {1e3 * row['node_depth']:>11.4f} "
                f"{1e3 * row['node_depth_ever']:>5.3f} {1e3 * row['triangle_depth']:>13.3f} "
                f"{1e3 * row['nearest']:>13.4f} {row['strain_99']:>11.3f} / "
                f"{row['strain']:.3f} {1e3 * row['speed']:>5.2f}   "
                f"uncertified {row['uncertified']}, led out {row['led_out']}",
                flush=True,
            )
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
