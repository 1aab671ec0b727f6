"""How long does a newcomer wait? Each command of the README in a fresh process, as the set-up leaves the machine.

    python benchmarks/first_answer.py [--repeats 3] [--fresh] [--only WORD] [--json FILE]

Standard error is a terminal, as it is for who types. "first sign" is the time from the start of the process to the
first byte that it writes, a progress bar or a line; "answer" is the time to its end: the result is printed and written.
Learning, planning a push, rendering and fits of whole robots are work in themselves: of those the bar holds the first
sign. Kernels are those of the user's cache, as `make setup` or `morphit compile` left it; earlier fits are not used.
With --fresh each process has an empty cache instead: the price of compiling. Processor time is of the process and its
children; on a machine that does other work at the same time it is the better measure.
An exit status other than 0 says that a command failed or missed its bar.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import selectors
import statistics
import subprocess
import sys
import tempfile
import termios
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SHAPES = (
    "{semi_axes: [0.03, 0.02, 0.05]}",
    "{semi_axes: [0.04, 0.03, 0.02], squareness: [0.8, 0.6], xyz: [0.2, 0, 0]}",
)
HELP_BAR, IMPORT_BAR, BAR = 0.5, 0.1, 3.0


@dataclass(frozen=True)
class Case:
    """A command line; `working` where the work itself takes longer than the bar, which then holds its first sign."""

    name: str
    words: tuple[str, ...]
    bar: float = BAR
    working: bool = False


@dataclass(frozen=True)
class Run:
    """One process: seconds to its first byte and to its end, of the processor, and its exit status."""

    first_sign: float
    answer: float
    processor: float
    status: int


# In this order: what one writes, a later one reads.
CASES = (
    Case("import morphit_ros", ("-c", "import morphit_ros"), IMPORT_BAR),
    Case("--help", ("--help",), HELP_BAR),
    Case("distance, a pair", ("distance", *SHAPES)),
    Case("distance, a robot", ("distance", "--robot", "panda", "--joint", "panda_joint4=-2.0")),
    *(
        Case(f"grasp, {name}", ("grasp", "--cloud", "cup.ply", "--gripper", name))
        for name in ("franka_hand", "hande", "umi")
    ),
    Case("grasp, picture", ("grasp", "--cloud", "cup.ply", "--gripper", "hande", "--picture", "grasp.png")),
    Case("spheres fit, a mesh", ("spheres", "fit", "part.stl")),
    Case("spheres fit, a mesh, cover", ("spheres", "fit", "part.stl", "--cover")),
    Case("spheres fit, a robot", ("spheres", "fit", "panda")),
    Case(
        "spheres fit, a robot's 120", ("spheres", "fit", "panda", "--total", "120", "--output", "panda.urdf"),
        working=True,
    ),
    Case("superovoid fit, a mesh", ("superovoid", "fit", "part.stl", "--output", "part.yaml")),
    Case("superovoid fit, a robot", ("superovoid", "fit", "panda", "--output", "panda.yaml"), working=True),
    Case("cover run, a second", ("cover", "run", "8x8", "--duration", "1")),
    Case("cover run, plot", ("cover", "run", "8x8", "--plot", "cover.png"), working=True),
    Case("neural record", ("neural", "record", "--object", "t_block", "--output", "t.npz"), working=True),
    Case(
        "neural train", ("neural", "train", "t.npz", "--from", "depth", "--mass", "0.2", "--output", "field.npz"),
        working=True,
    ),
    Case(
        "neural push", ("neural", "push", "field.npz", "--mass", "0.2", "--goal", "0.15", "0.03"), working=True
    ),
)  # fmt: skip


def write_inputs(folder: Path) -> None:
    """The README's `cup.ply` and `part.stl`: cloud and mesh of a T that every gripper can hold."""
    import trimesh

    from morphit_ros.geometry.mesh import sample_surface
    from morphit_ros.geometry.point_cloud import PointCloud
    from morphit_ros.geometry.point_cloud_io import save_point_cloud
    from morphit_ros.simulation.objects import load_object

    part = load_object("t_block").mesh
    points, _ = sample_surface(part, 6000, np.random.default_rng(0))
    save_point_cloud(PointCloud(points), folder / "cup.ply")
    trimesh.Trimesh(part.vertices, part.faces, process=False).export(folder / "part.stl")


def measure(case: Case, folder: Path, cache: Path, kernels: Path) -> Run:
    """Run a command to its end, with its standard error on a terminal."""
    front = () if case.words[0] == "-c" else ("-m", "morphit_ros.cli")
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ,
        "MORPHIT_CACHE": str(cache), "MORPHIT_KERNELS": str(kernels), "PYTHONPATH": os.pathsep.join(paths),
    }  # fmt: skip
    leader, follower = pty.openpty()
    # A terminal without columns shows no progress bar.
    termios.tcsetwinsize(follower, (24, 80))
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *front, *case.words],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=follower,
    )  # fmt: skip
    os.close(follower)
    assert process.stdout is not None
    first, said = float("nan"), b""
    with selectors.DefaultSelector() as selector:
        selector.register(leader, selectors.EVENT_READ)
        selector.register(process.stdout.fileno(), selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                data = _read(key.fd)
                if not data:
                    selector.unregister(key.fd)
                elif said == b"":
                    first = time.perf_counter() - began
                said += data
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    answer = time.perf_counter() - began
    os.close(leader)
    process.stdout.close()
    if process.returncode:
        print(said.decode(errors="replace"), file=sys.stderr)
    return Run(first if said else answer, answer, usage.ru_utime + usage.ru_stime, process.returncode)


def _read(file: int) -> bytes:
    try:
        return os.read(file, 65536)
    except OSError:
        # A terminal whose other end is closed.
        return b""


def measure_all(cases: list[Case], repeats: int, fresh: bool, folder: Path) -> dict[str, list[Run]]:
    """All runs by command: all commands in turn, then all again."""
    from morphit_ros.jit import kernel_directory

    runs: dict[str, list[Run]] = {case.name: [] for case in cases}
    for _ in range(repeats):
        for case in cases:
            # A cache of its own, as earlier fits would answer; with the kernels that the set-up compiled.
            with tempfile.TemporaryDirectory() as cache:
                kernels = Path(cache) / "kernels" if fresh else kernel_directory()
                runs[case.name].append(measure(case, folder, Path(cache), kernels))
            print(f"  {case.name}: {runs[case.name][-1].answer:.2f} s", file=sys.stderr)
    return runs


def held(case: Case, run: Run) -> float:
    """The seconds that the bar of a command holds."""
    return run.first_sign if case.working else run.answer


def print_table(cases: list[Case], runs: dict[str, list[Run]]) -> None:
    print(f"{'command':<28}{'first sign [s]':>20}{'answer [s]':>22}{'processor [s]':>15}{'bar':>15}")
    for case in cases:
        of_case = runs[case.name]
        cells = ["".join(_spread([getattr(run, name) for run in of_case])) for name in ("first_sign", "answer")]
        processor = statistics.median(run.processor for run in of_case)
        bar = f"{case.bar:g}{' first sign' if case.working else ''}"
        met = "" if statistics.median(held(case, run) for run in of_case) <= case.bar else "  missed"
        failed = "  failed" if any(run.status for run in of_case) else ""
        print(f"{case.name:<28}{cells[0]:>20}{cells[1]:>22}{processor:>15.2f}{bar:>15}{met}{failed}")


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="runs of each command (default: %(default)s)")
    parser.add_argument("--fresh", action="store_true", help="with an empty cache: what compiling costs")
    parser.add_argument("--only", default="", metavar="WORD", help="commands whose name holds this word")
    parser.add_argument("--json", metavar="FILE", help="write all runs as JSON")
    options = parser.parse_args()
    cases = [case for case in CASES if options.only in case.name]
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder))
        runs = measure_all(cases, options.repeats, options.fresh, Path(folder))
    print_table(cases, runs)
    if options.json:
        content = {
            case.name: {
                "bar": case.bar,
                "of_first_sign": case.working,
                "runs": [asdict(run) for run in runs[case.name]],
            }
            for case in cases
        }
        Path(options.json).write_text(json.dumps({"fresh": options.fresh, "commands": content}, indent=2) + "\n")
    good = all(
        statistics.median(held(case, run) for run in runs[case.name]) <= case.bar
        and not any(run.status for run in runs[case.name])
        for case in cases
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
