"""Quality and cost of sphere fits on Panda links: `python benchmarks/spheres.py [--json FILE]`.

Compare the distances with other tools only at the same sample counts: 20k on the surface, 200k in the volume.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from pathlib import Path

from morphit_ros.resources import atomic_write
from morphit_ros.robot.description import collision_mesh, load_robot_description
from morphit_ros.spheres import SphereFitConfig, fit_spheres, measure_spheres
from morphit_ros.spheres.configuration import VARIANTS

PANDA = "package://example-robot-data/robots/panda_description/urdf/panda.urdf"
LINKS = ("panda_link0", "panda_link5", "panda_hand")
COLUMNS = ("link", "count", "seconds", "d_avg_mm", "d_max_mm", "inside", "outside")


def measure(link: str, count: int, variant: str, seeds: int) -> dict[str, object]:
    """Medians over the seeds; seconds are processor time of one thread."""
    mesh = collision_mesh(load_robot_description(PANDA).links[link].collisions[0])
    config = SphereFitConfig(count=count, variant=variant)
    rows = []
    for seed in range(seeds):
        start = time.process_time()
        result = fit_spheres(mesh, config, seed)
        seconds = time.process_time() - start
        quality = measure_spheres(mesh, result.centers, result.radii)
        rows.append((seconds, quality.d_avg * 1e3, quality.d_max * 1e3, quality.inside, quality.outside))
    medians = [statistics.median(column) for column in zip(*rows, strict=True)]
    return dict(zip(COLUMNS, [link, count, *medians], strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=[6, 20, 64], help="spheres a link")
    parser.add_argument("--variant", choices=VARIANTS, default="balanced", help="preset of the losses")
    parser.add_argument("--seeds", type=int, default=3, help="fits a cell; medians are shown")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    arguments = parser.parse_args()
    # Imports and compilation belong to no cell.
    measure(LINKS[0], 6, arguments.variant, 1)
    print(f"{'link':<14}{'count':>6}{'seconds':>9}{'d_avg mm':>10}{'d_max mm':>10}{'inside':>8}{'outside':>9}")
    rows = []
    for link in LINKS:
        for count in arguments.counts:
            row = measure(link, count, arguments.variant, arguments.seeds)
            rows.append(row)
            print(
                f"{row['link']:<14}{row['count']:>6}{row['seconds']:>9.2f}{row['d_avg_mm']:>10.2f}"
                f"{row['d_max_mm']:>10.2f}{row['inside']:>8.3f}{row['outside']:>9.3f}",
                flush=True,
            )
    if arguments.json:
        with atomic_write(arguments.json) as stream:
            document = {"machine": platform.processor() or platform.machine(), "variant": arguments.variant}
            json.dump({**document, "seeds": arguments.seeds, "rows": rows}, stream, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
