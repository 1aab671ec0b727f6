"""Torque at which objects turn in the simulated hand, over what theory says, for several time steps and solvers.

    python benchmarks/pad_slip.py
    python benchmarks/pad_slip.py --gripper hande --force 100 --friction 0.4

morphit_bench/picks/pad_slip.py says what theory each shape is held against.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from morphit_ros.errors import MorphitError

CASES = ((0.002, "newton"), (0.001, "newton"), (0.0005, "newton"), (0.002, "cg"))


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gripper", default="franka_hand", help="of config/grippers")
    parser.add_argument("--force", type=float, default=40.0, help="of the fingers [N]")
    parser.add_argument("--friction", type=float, default=0.5)
    parser.add_argument("--json", help="file for the figures")
    options = parser.parse_args(words)
    from morphit_bench.picks.pad_slip import SHAPES, slip_torque
    from morphit_ros.resources import atomic_write

    rows = []
    print("| shape | theory [Nm] | " + " | ".join(f"{1000 * step:g} ms, {solver}" for step, solver in CASES) + " |")
    print("|---" * (2 + len(CASES)) + "|")
    try:
        for shape in SHAPES:
            found = [
                slip_torque(shape, options.gripper, options.force, options.friction, step, solver)
                for step, solver in CASES
            ]
            rows += [
                {"shape": shape, "timestep": step, "solver": solver, "torque": result.torque, "theory": result.theory}
                for (step, solver), result in zip(CASES, found, strict=True)
            ]
            cells = " | ".join(f"{result.ratio:.2f}" for result in found)
            print(f"| {shape} | {found[0].theory:.4f} | {cells} |", flush=True)
    except MorphitError as error:
        print(f"pad_slip: {error}", file=sys.stderr)
        return 2
    if options.json:
        with atomic_write(Path(options.json)) as stream:
            json.dump({"slips": rows}, stream, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
