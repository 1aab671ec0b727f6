"""Tasks of batches that tests run, by name in other processes, and Dask clusters of this machine.

python test/batch_samples.py RECORDS FOLDER WORKERS     # a batch that waits for FOLDER/go after two tasks
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from morphit_ros.batch import BatchConfig, BatchRecords, run_batch
from morphit_ros.errors import InvalidInputError

ROOT = Path(__file__).parents[1]
IDENTITY = {"program": "walks", "settings": {"steps": 50, "sizes": (0.1, 0.2)}}
# Longer than anything takes where it works [s].
PATIENCE = 60.0


def wait_until(ready: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def walk(task: tuple[int, Path]) -> dict[str, Any]:
    """The end of a drawn walk; leaves a file with the number of the process that went."""
    seed, folder = task
    (folder / f"worker-{os.getpid()}").touch()
    with (folder / "asked").open("a") as stream:
        stream.write(f"{seed}\n")
    steps = np.random.default_rng(seed).normal(size=(50, 3))
    return {"seed": seed, "end": steps.sum(axis=0).tolist()}


def walk_with_another(task: tuple[int, Path]) -> dict[str, Any]:
    """Two processes at least have to take part."""
    result = walk(task)
    wait_until(lambda: len(workers_in(task[1])) >= 2)
    return result


def walk_or_wait(task: tuple[int, Path]) -> dict[str, Any]:
    """The first two go at once, the others when they may."""
    seed, folder = task
    result = walk(task)
    if seed >= 2:
        wait_until((folder / "go").exists)
    return result


def walk_or_die(task: tuple[int, Path]) -> dict[str, Any]:
    """Number 3 takes its process with it once two others have been written down, as long as nobody forbids it."""
    seed, folder = task
    if seed == 3 and not (folder / "live").exists():
        wait_until(lambda: len((folder / "walks.jsonl").read_text().splitlines()) >= 3)
        os.kill(os.getpid(), signal.SIGKILL)
    return walk(task)


def die(_task: object) -> None:
    """Late enough that the worker has its next task already."""
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(seed: int) -> int:
    raise InvalidInputError("seed", seed, "no seed at all", "Leave it out.")


def tasks(count: int, folder: Path) -> list[tuple[list[Any], tuple[int, Path]]]:
    return [(["walk", seed], (seed, folder)) for seed in range(count)]


def workers_in(folder: Path) -> set[int]:
    return {int(file.name.partition("-")[2]) for file in folder.glob("worker-*")}


@contextlib.contextmanager
def dask(folder: Path, *words: str) -> Iterator[None]:
    """A process of Dask's command; what it says is in the folder."""
    here = [str(ROOT), str(ROOT / "test"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(here), "DASK_TEMPORARY_DIRECTORY": str(folder)}
    with (folder / f"{words[0]}.log").open("a") as log:
        command = [sys.executable, "-m", "dask", *words]
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait()


@contextlib.contextmanager
def cluster(folder: Path, *words: str) -> Iterator[str]:
    """The address of a Dask scheduler on loopback, with the workers that `dask worker` makes of some words, if any."""
    import distributed

    file = folder / "scheduler.json"
    common = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file)]
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask(folder, "scheduler", "--port", "0", *common))
        wait_until(lambda: file.exists() and bool(file.read_text()))
        address = json.loads(file.read_text())["address"]
        if words:
            stack.enter_context(dask(folder, "worker", *common, *words))
            with distributed.Client(address, set_as_default=False) as client:
                client.wait_for_workers(int(words[words.index("--nworkers") + 1]), timeout=PATIENCE)
        yield address


def main(records: str, folder: str, workers: str) -> None:
    with BatchRecords(records, IDENTITY) as finished:
        for key, _ in run_batch(walk_or_wait, tasks(6, Path(folder)), finished, BatchConfig(workers=int(workers))):
            print(key, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
