"""`morphit compile`: compile what the other commands need, once.

Compile all kernels that commands and nodes call into the cache that every process shares, as 'make setup' does. Returns
at once where they are there. Without it, each command compiles what it needs when it is first called.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
from pathlib import Path

from morphit_ros.commands.parser import CommandParser

# Longest first, and beside each other what has few kernels in common; name → module and function.
PARTS = {
    "superovoid distances": ("morphit_ros.superovoid.warm_up", "warm_up_distances"),
    "sphere fits": ("morphit_ros.spheres.warm_up", "warm_up_fits"),
    "grasps": ("morphit_ros.commands.kernels", "plan_with_all_grippers"),
    "superovoid fits": ("morphit_ros.superovoid.warm_up", "warm_up_fits"),
    "neural objects": ("morphit_ros.neural.objects.warm_up", "warm_up"),
    "pushes and learning": ("morphit_ros.neural.warm_up", "warm_up_learning"),
    "motions": ("morphit_ros.motion.warm_up", "warm_up"),
    "reachability": ("morphit_ros.motion.reachability.warm_up", "warm_up_reachability"),
    "perception": ("morphit_ros.perception.warm_up", "warm_up"),
    "simulated pads": ("morphit_ros.simulation.pad_patches", "warm_up"),
    "contact planning": ("morphit_ros.contact_planning.spinner", "warm_up"),
    "cloths": ("morphit_ros.cloth.warm_up", "warm_up"),
    "covers": ("morphit_ros.cover.warm_up", "warm_up"),
    "sphere clusters": ("morphit_ros.spheres.warm_up", "warm_up"),
}


def add_options(parser: CommandParser) -> None:
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes at a time (default: %(default)s)")


def run(options: argparse.Namespace) -> int:
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.jit import kernel_directory

    if options.jobs < 1:
        raise InvalidInputError("--jobs", options.jobs, "1 or more")
    stamp = kernel_directory() / f"compiled-{_sources()}"
    if stamp.exists():
        print("All kernels are compiled.")
        return 0
    began = time.perf_counter()
    count = compile_parts(list(PARTS), options.jobs)
    # Of earlier sources: each of them is one file.
    for earlier in stamp.parent.glob("compiled-*"):
        earlier.unlink(missing_ok=True)
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.touch()
    print(f"{count} kernels compiled in {time.perf_counter() - began:.0f} s.")
    return 0


def compile_parts(names: list[str], jobs: int) -> int:
    """Compile the kernels of parts in processes of their own: how many were not in the cache."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed

    from tqdm import tqdm

    # numba sets thousands of messages in bold that nobody sees. The processes inherit it.
    os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
    count = 0
    terminal = sys.stderr.isatty()
    with (
        ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool,
        tqdm(total=len(names), desc="compiling", unit="part", disable=not terminal) as bar,
    ):
        futures = {pool.submit(_compile, *PARTS[name]): name for name in names}
        for done, future in enumerate(as_completed(futures), 1):
            compiled, seconds = future.result()
            count += compiled
            bar.set_postfix_str(futures[future], refresh=False)
            bar.update()
            if not terminal:
                print(f"  {done}/{len(names)} {futures[future]}: {compiled} kernels, {seconds:.0f} s", flush=True)
    return count


def _compile(module: str, function: str) -> tuple[int, float]:
    """Call a function that calls everything of a part: kernels that were compiled for it, and seconds."""
    import gc
    from importlib import import_module

    from numba.core import event

    # A compiler makes millions of objects that live until it is done: looking through them takes 7 % of the time.
    gc.disable()
    began = time.perf_counter()
    with event.install_recorder("numba:compile") as recorder:
        getattr(import_module(module), function)()
    return sum(entry.is_start for _, entry in recorder.buffer), time.perf_counter() - began


def plan_with_all_grippers() -> None:
    """A plan with each gripper of config/grippers and each cup of config/suction_cups."""
    from morphit_ros.grasping.suction.cup import load_gripper
    from morphit_ros.grasping.warm_up import warm_up
    from morphit_ros.resources import resource

    for folder in ("config/grippers", "config/suction_cups"):
        for file in sorted(resource(folder).glob("*.yaml")):
            warm_up(load_gripper(file.stem))


def _sources() -> str:
    """What was compiled, as a hash: all sources, and what compiles them."""
    import numba
    from numba.core.registry import cpu_target

    processor = cpu_target.target_context.codegen().magic_tuple()
    digest = hashlib.sha256(f"{sys.version} {numba.__version__} {processor}".encode())
    package = Path(__file__).resolve().parent.parent
    for file in sorted(package.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
