"""Batches: the same results whoever works, records that a kill does not spoil, and what is told of those who die."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import batch_samples
from batch_samples import (
    IDENTITY,
    PATIENCE,
    ROOT,
    cluster,
    dask,
    die,
    refuse,
    tasks,
    wait_until,
    walk,
    walk_or_die,
    walk_or_wait,
    walk_with_another,
    workers_in,
)

from morphit_ros import batch
from morphit_ros.batch import BatchConfig, BatchRecords, BatchStoppedError, read_batch, run_batch
from morphit_ros.errors import InvalidInputError, MissingDependencyError


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("distributed")
    with cluster(tmp_path_factory.mktemp("dask"), "--nworkers", "2", "--nthreads", "1") as address:
        yield address


def walks(folder: Path, config: BatchConfig | None = None, count: int = 8, resume: bool = False) -> list[Any]:
    """Results by key; the records are in the folder."""
    function = walk_with_another if config else walk
    folder.mkdir(exist_ok=True)
    with BatchRecords(folder / "walks.jsonl", IDENTITY, resume) as records:
        for _ in run_batch(function, tasks(count, folder), records, config):
            pass
        return [records[key] for key, _ in tasks(count, folder)]


def alive(processes: set[int]) -> list[int]:
    return [number for number in processes if Path(f"/proc/{number}").exists()]


def asked(folder: Path) -> list[int]:
    """Of which tasks work was begun, in order."""
    file = folder / "asked"
    return [int(word) for word in file.read_text().split()] if file.exists() else []


def test_results_do_not_depend_on_who_works(tmp_path: Path, scheduler: str) -> None:
    pytest.importorskip("joblib")
    configs = {
        "here": None,
        "processes": BatchConfig(workers=2),
        "scheduler": BatchConfig(scheduler=scheduler),
    }
    results = {name: walks(tmp_path / name, config) for name, config in configs.items()}
    assert results["here"] == results["processes"] == results["scheduler"]
    assert [result["seed"] for result in results["here"]] == list(range(8))
    lines = {name: sorted((tmp_path / name / "walks.jsonl").read_text().splitlines()) for name in configs}
    assert lines["here"] == lines["processes"] == lines["scheduler"]
    # They did work elsewhere, each once.
    assert workers_in(tmp_path / "here") == {os.getpid()}
    assert len(workers_in(tmp_path / "processes") - {os.getpid()}) == 2
    assert len(workers_in(tmp_path / "scheduler") - {os.getpid()}) == 2
    for name in configs:
        assert sorted(asked(tmp_path / name)) == list(range(8))
    # Nobody is left.
    wait_until(lambda: not alive(workers_in(tmp_path / "processes")))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_batch_goes_on_where_it_was(workers: int, tmp_path: Path) -> None:
    pytest.importorskip("joblib")
    command = [sys.executable, batch_samples.__file__, str(tmp_path / "walks.jsonl"), str(tmp_path), str(workers)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        done = {process.stdout.readline().strip() for _ in range(2)}
        assert done == {"['walk', 0]", "['walk', 1]"}
        wait_until(lambda: len(asked(tmp_path)) == 2 + workers)
        process.kill()
    # Its workers do not wait for more.
    wait_until(lambda: not alive(workers_in(tmp_path)))
    # As if it had been writing.
    with (tmp_path / "walks.jsonl").open("a") as stream:
        stream.write('{"key": ["walk", 5], "result": {"seed": 5')
    assert len(read_batch(tmp_path / "walks.jsonl", IDENTITY)) == 2
    (tmp_path / "asked").unlink()
    again = walks(tmp_path, count=6, resume=True)
    assert asked(tmp_path) == [2, 3, 4, 5]
    (tmp_path / "other").mkdir()
    assert again == walks(tmp_path / "other", count=6)
    lines = (tmp_path / "walks.jsonl").read_text().splitlines()
    assert len(lines) == 7 and all(json.loads(line) for line in lines)
    (tmp_path / "asked").unlink()
    assert walks(tmp_path, count=6, resume=True) == again
    assert asked(tmp_path) == []


def test_finished_tasks_are_not_overwritten(tmp_path: Path) -> None:
    walks(tmp_path, count=2)
    before = (tmp_path / "walks.jsonl").read_bytes()
    with pytest.raises(InvalidInputError, match=r"walks\.jsonl: got 2 finished tasks, .*--resume"):
        walks(tmp_path, count=2)
    assert (tmp_path / "walks.jsonl").read_bytes() == before


def test_a_batch_that_was_stopped_before_its_first_task_needs_no_resume(tmp_path: Path) -> None:
    path = tmp_path / "walks.jsonl"
    with BatchRecords(path, {"program": "walks", "settings": {"steps": 1}}):
        pass
    assert len(walks(tmp_path, count=2)) == 2
    assert len(read_batch(path, IDENTITY)) == 2
    # Killed while it wrote its first line.
    header = path.read_bytes().partition(b"\n")[0]
    path.write_bytes(header[:20])
    assert len(walks(tmp_path, count=2)) == 2


@pytest.mark.parametrize(
    ("identity", "told"),
    [
        (
            {**IDENTITY, "settings": {"steps": 60, "sizes": (0.1, 0.2)}},
            "results of settings.steps = 50, expected settings.steps = 60",
        ),
        (
            {"program": "runs", "settings": {"steps": 50, "sizes": (0.1, 0.3)}},
            r'program = "walks", settings.sizes = \[0.1, 0.2\], expected program = "runs"',
        ),
        ({**IDENTITY, "robot": "panda"}, 'results of no robot, expected robot = "panda"'),
    ],
)
def test_results_of_another_batch_are_refused_with_what_differs(
    identity: dict[str, Any], told: str, tmp_path: Path
) -> None:
    walks(tmp_path, count=1)
    path = tmp_path / "walks.jsonl"
    for read in (lambda: BatchRecords(path, identity, resume=True), lambda: read_batch(path, identity)):
        with pytest.raises(InvalidInputError, match=f"{told}.*Give another output folder"):
            read()
    assert "steps = 60" not in path.read_text()


def test_results_of_another_version_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walks(tmp_path, count=1)
    monkeypatch.setattr("morphit_ros.__version__", "9.0")
    with pytest.raises(InvalidInputError, match=r'results of version = "[\d.]+", expected version = "9.0"'):
        walks(tmp_path, count=1, resume=True)


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "walks.jsonl"
    for text in ("no records", "no records\n", '{"key": 1}\n', "[]\n{}\n"):
        path.write_text(text)
        with pytest.raises(InvalidInputError, match=r"line 1: got .*Choose another file"):
            BatchRecords(path, IDENTITY, resume=True)
        assert path.read_text() == text


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    walks(tmp_path, count=3)
    path = tmp_path / "walks.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], lines[2][:30] + "\n", lines[3]]))
    with pytest.raises(InvalidInputError, match=r"walks\.jsonl, line 3: .*Delete the line"):
        walks(tmp_path, count=3, resume=True)


def test_one_batch_at_a_time_holds_a_file(tmp_path: Path) -> None:
    with (
        BatchRecords(tmp_path / "walks.jsonl", IDENTITY),
        pytest.raises(InvalidInputError, match="another run writes"),
    ):
        BatchRecords(tmp_path / "walks.jsonl", IDENTITY)
    BatchRecords(tmp_path / "walks.jsonl", IDENTITY).__exit__(None, None, None)


def test_two_tasks_of_one_key_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r'two of the key \["walk", 0\]'):
        list(run_batch(walk, 2 * tasks(1, tmp_path)))
    assert asked(tmp_path) == []


@pytest.mark.parametrize("engine", ["processes", "scheduler"])
def test_a_worker_that_dies_is_told_with_its_task_and_the_rest_is_kept(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    pytest.importorskip("joblib")
    address = request.getfixturevalue("scheduler") if engine == "scheduler" else ""
    config = BatchConfig(scheduler=address) if address else BatchConfig(workers=2)
    path, seen = tmp_path / "walks.jsonl", []
    with BatchRecords(path, IDENTITY) as records, pytest.raises(BatchStoppedError) as stopped:
        for key, _ in run_batch(walk_or_die, tasks(6, tmp_path), records, config):
            seen.append(key)
    message = str(stopped.value)
    assert '["walk", 3]' in message and '["walk", 0]' not in message
    assert f"What has finished is in {path}: the same command with --resume goes on." in message
    assert ("SIGKILL" if engine == "processes" else address) in message
    kept = {result["seed"] for result in read_batch(path, IDENTITY)}
    assert {["walk", seed] == key for key, seed in zip(seen, [key[1] for key in seen], strict=True)} == {True}
    assert kept == {key[1] for key in seen} and len(kept) >= 2 and 3 not in kept
    (tmp_path / "live").touch()
    with BatchRecords(path, IDENTITY, resume=True) as records:
        again = [key[1] for key, _ in run_batch(walk_or_die, tasks(6, tmp_path), records, config)]
        assert sorted(again) == sorted(set(range(6)) - kept)
        (tmp_path / "other").mkdir()
        assert [records[key] for key, _ in tasks(6, tmp_path)] == walks(tmp_path / "other", count=6)


def test_tasks_that_were_lost_with_the_same_worker_are_told_together(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with cluster(tmp_path, "--nworkers", "1", "--nthreads", "1") as address:
        results = run_batch(die, tasks(2, tmp_path), config=BatchConfig(scheduler=address))
        names = r'one of the tasks \["walk", 0\], \["walk", 1\]\. Give the same'
        with pytest.raises(BatchStoppedError, match=rf"the last one tcp://.*, of {names}"):
            list(results)


def test_an_error_of_a_task_comes_home_as_it_is(scheduler: str) -> None:
    pytest.importorskip("joblib")
    for config in (BatchConfig(), BatchConfig(workers=2), BatchConfig(scheduler=scheduler)):
        with pytest.raises(InvalidInputError) as error:
            list(run_batch(refuse, [(5, 5), (6, 6)], config=config))
        assert error.value.bound == "no seed at all"
        assert str(error.value) in {f"seed: got {seed}, expected no seed at all. Leave it out." for seed in (5, 6)}


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"workers": 0}, r"workers: got 0, expected in \[1, 1024\]"),
        ({"workers": 1025}, r"in \[1, 1024\]"),
        ({"scheduler": "localhost"}, "scheduler: got 'localhost', expected tcp://HOST:PORT .*dask scheduler"),
        ({"scheduler": "tcp://10.0.0.1"}, "expected tcp://HOST:PORT"),
        ({"scheduler": "http://10.0.0.1:8786"}, "expected tcp://HOST:PORT"),
        ({"scheduler": "tcp://10.0.0.1:8786", "workers": 2}, "workers: got 2, expected none with a scheduler"),
    ],
)
def test_bad_settings_are_refused(values: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        BatchConfig(**values)


@pytest.mark.parametrize("listening", [False, True])
def test_a_scheduler_that_does_not_answer_is_named(
    listening: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(batch, "_PATIENCE", 1.0)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if listening:
            server.listen()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(InvalidInputError, match=f"got '{address}', .*answers within 1 s.*dask scheduler --host"):
            list(run_batch(walk, tasks(1, tmp_path), config=BatchConfig(scheduler=address)))


def test_a_scheduler_without_workers_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(batch, "_PATIENCE", 1.0)
    with cluster(tmp_path) as address, pytest.raises(InvalidInputError, match=f"has a worker .*dask worker {address}"):
        list(run_batch(walk, tasks(1, tmp_path), config=BatchConfig(scheduler=address)))


def test_a_scheduler_that_loses_its_workers_is_named_and_the_batch_goes_on_with_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(batch, "_WORKERS_PERIOD", 0.2)
    monkeypatch.setattr(batch, "_PATIENCE", PATIENCE)
    with cluster(tmp_path) as address:
        words = ("worker", address, "--host", "127.0.0.1", "--no-dashboard", "--nthreads", "1")
        results = run_batch(walk_or_wait, tasks(6, tmp_path), config=BatchConfig(scheduler=address))
        with dask(tmp_path, *words):
            done = [next(results)]
        wait_until(lambda: "has no worker any more" in caplog.text)
        assert f"dask worker {address}" in caplog.text
        (tmp_path / "go").touch()
        with dask(tmp_path, *words):
            done += results
    assert sorted(key for key, _ in done) == [key for key, _ in tasks(6, tmp_path)]
    assert caplog.text.count("has no worker any more") == 1


def test_workers_of_several_threads_or_other_versions_are_refused(
    tmp_path: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        cluster(tmp_path, "--nworkers", "1", "--nthreads", "2") as address,
        pytest.raises(InvalidInputError, match=r"the Dask worker tcp://.*: got 2 threads, expected 1\. .*--nthreads 1"),
    ):
        list(run_batch(walk, tasks(1, tmp_path), config=BatchConfig(scheduler=address)))
    monkeypatch.setattr(batch, "_fingerprint", lambda: {"numpy": "0.9", "of which they have none": "1"})
    with pytest.raises(InvalidInputError, match=r"got numpy [\d.]+, expected numpy 0\.9\. Install the same"):
        list(run_batch(walk, tasks(1, tmp_path), config=BatchConfig(scheduler=scheduler)))
    assert asked(tmp_path) == []


@pytest.mark.parametrize(
    ("module", "values"), [("joblib", {"workers": 2}), ("distributed", {"scheduler": "tcp://127.0.0.1:1"})]
)
def test_what_is_missing_is_named_with_its_extra(
    module: str, values: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=rf"'{module}'.*\[batch\]"):
        list(run_batch(walk, tasks(2, tmp_path), config=BatchConfig(**values)))
    # One worker needs nothing.
    assert len(list(run_batch(walk, tasks(2, tmp_path)))) == 2
