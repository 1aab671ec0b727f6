"""Memory that refusing one input takes, at most: of a process forked for it, whose peak is counted from there."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_outside_bytes import CORPUS, MOST_MEGABYTES, READERS

from morphit_ros.errors import MorphitError


def refuse(path: Path, answer: multiprocessing.connection.Connection) -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = memory("VmHWM")
    try:
        READERS[path.parent.name](path)
        refused = False
    except MorphitError:
        refused = True
    answer.send((refused, (memory("VmHWM") - before) / 1024))


def memory(name: str) -> int:
    """A row of this process' status [kB]."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(f"{name}:"))


@pytest.mark.parametrize("path", sorted(CORPUS.glob("[cfmy]*/*")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_refusal_takes_little_memory(path: Path) -> None:
    pytest.importorskip("open3d", reason="needs open3d")
    pytest.importorskip("trimesh")
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=refuse, args=(path, theirs))
    child.start()
    assert ours.poll(60), "an answer"
    refused, megabytes = ours.recv()
    child.join()
    assert refused
    assert megabytes < MOST_MEGABYTES
