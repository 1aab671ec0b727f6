"""Many tasks of one kind, by processes of this machine or by a Dask scheduler's workers, written down as they finish.

    with BatchRecords("fits.jsonl", {"program": "fits", "count": 8}, resume=True) as records:
        for key, result in run_batch(fit, tasks, records, BatchConfig(workers=4)):
            print(key, result)

The engines are joblib's: loky's processes here, Dask's on other machines. Results are the same with either, in another
order: whatever is random in a task has to come from the task.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import logging
import os
import platform
import re
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

from morphit_ros.configuration import Config, parameter
from morphit_ros.dependencies import DEPENDENCIES, needed_for
from morphit_ros.errors import InvalidInputError, MorphitError

Task: TypeAlias = tuple[Any, Any]
"""A key, which JSON can hold and no other task of the batch has, and the argument of the function."""

_Results: TypeAlias = Generator[Task, None, None]

_ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):\d{1,5}")
_START = "Start one, 'dask scheduler --host HOST', and on each machine 'dask worker tcp://HOST:8786 --nthreads 1'."
# How long a scheduler may take to answer, and to have a worker [s].
_PATIENCE = 5.0
# How often it is looked whether there still are workers [s].
_WORKERS_PERIOD = 10.0
# How often a worker looks whether whom it works for is still there [s].
_PARENT_PERIOD = 0.5
# Within which all tasks are told that were lost with one worker [s].
_TOGETHER = 0.5
# Tasks named in a message.
_NAMED = 8
_PACKAGES = ("morphit_ros", "morphit_bench")
_LOG = logging.getLogger(__name__)


class BatchStoppedError(MorphitError):
    """A worker or the scheduler has gone: says which tasks were under way, and how to go on."""


@dataclass(frozen=True)
class BatchConfig(Config):
    """Who does the tasks of a batch."""

    workers: int = parameter(1, "Processes of this machine that do the work", minimum=1, maximum=1024)
    scheduler: str = parameter("", "Dask scheduler whose workers do the work instead, tcp://HOST:PORT")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scheduler and not _ADDRESS.fullmatch(self.scheduler):
            raise InvalidInputError("scheduler", repr(self.scheduler), "tcp://HOST:PORT or tls://HOST:PORT", _START)
        if self.scheduler and self.workers != 1:
            raise InvalidInputError("workers", self.workers, "none with a scheduler", "Its own workers do the work.")

    @property
    def here(self) -> bool:
        """Whether tasks are done by this very process."""
        return self.workers == 1 and not self.scheduler


class BatchRecords:
    """Finished tasks of a batch: a file of lines of JSON. The first says what batch it is, each other one is a task.

    It is written as tasks finish. A last line that was cut short by a kill is dropped, and its task done again. One
    process at a time holds a file.

    Args:
        path: of the file.
        identity: what results must have in common to be in one file: the program, and settings, which JSON can hold.
            The version of this package is added.
        resume: whether to go on with a file that has finished tasks.

    Raises:
        InvalidInputError: the file has finished tasks and `resume` is false; it is of another batch (names what
            differs), in use, damaged, or no such file.
    """

    def __init__(self, path: str | Path, identity: Mapping[str, Any], resume: bool = False) -> None:
        self.path = Path(path)
        header = _line({"batch": _with_version(identity)})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = self.path.open("a+b")
        try:
            self._lock()
            self._stream.seek(0)
            content = self._stream.read()
            whole = content.rpartition(b"\n")[0] + b"\n" if b"\n" in content else b""
            if not whole and not header.startswith(content):
                raise _not_records(self.path, 1, content)
            found, self._results = _parsed(self.path, whole)
            if self._results and not resume:
                raise InvalidInputError(
                    str(self.path),
                    f"{len(self._results)} finished tasks",
                    "a file without any",
                    "Resume it (--resume), or choose another place.",
                )
            if self._results:
                _check_identity(self.path, found, identity)
            self._stream.truncate(len(whole) if self._results else 0)
            if not self._results:
                self._append(header)
        except BaseException:
            self._stream.close()
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            remedy = "Wait until it has ended, or choose another place."
            raise InvalidInputError(str(self.path), "a file that another run writes", "its own", remedy) from None

    def _append(self, line: bytes) -> None:
        self._stream.write(line)
        self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._stream.close()

    def __contains__(self, key: object) -> bool:
        return _text(key) in self._results

    def __len__(self) -> int:
        return len(self._results)

    def __getitem__(self, key: Any) -> Any:
        """The result of a finished task, as it was read from JSON."""
        return self._results[_text(key)]

    def add(self, key: Any, result: Any) -> Any:
        """Write a finished task down; returns its result as a resumed batch will read it."""
        line = _line({"key": key, "result": result})
        self._append(line)
        self._results[_text(key)] = json.loads(line)["result"]
        return self[key]


def read_batch(path: str | Path, identity: Mapping[str, Any] | None = None) -> list[Any]:
    """Results of the tasks in a file of `BatchRecords`, in the order in which they finished; none without a file.

    Args:
        path: of the file.
        identity: what it must be of, None for anything.

    Raises:
        InvalidInputError: it is of another batch (names what differs), damaged, or no such file.
    """
    file = Path(path)
    content = file.read_bytes() if file.is_file() else b""
    found, results = _parsed(file, content[: content.rfind(b"\n") + 1])
    if results and identity is not None:
        _check_identity(file, found, identity)
    return list(results.values())


def _text(key: object) -> str:
    return json.dumps(key, sort_keys=True)


def _line(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content).encode() + b"\n"


def _with_version(identity: Mapping[str, Any]) -> dict[str, Any]:
    import morphit_ros

    plain: dict[str, Any] = json.loads(json.dumps({"version": morphit_ros.__version__, **identity}))
    return plain


def _parsed(path: Path, content: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Identity, and key → result, of whole lines; of several results of one task the last counts."""
    identity: dict[str, Any] = {}
    results = {}
    for number, line in enumerate(content.splitlines(), 1):
        try:
            data = json.loads(line)
            if number == 1:
                identity = dict(data["batch"])
            else:
                results[_text(data["key"])] = data["result"]
        except (ValueError, KeyError, TypeError):
            raise _not_records(path, number, line) from None
    return identity, results


def _not_records(path: Path, number: int, line: bytes) -> InvalidInputError:
    remedy = "Choose another file." if number == 1 else "Delete the line: its task is done again."
    shown = repr(line[:60].decode(errors="replace"))
    return InvalidInputError(f"{path}, line {number}", shown, "a line of the records of a batch", remedy)


def _check_identity(path: Path, found: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
    old, new = dict(_flat(found)), dict(_flat(_with_version(identity)))
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if names:

        def shown(values: Mapping[str, Any]) -> str:
            words = (f"{name} = {json.dumps(values[name])}" if name in values else f"no {name}" for name in names)
            return ", ".join(words)

        remedy = "Give another output folder or file, or the settings that these results were made with."
        raise InvalidInputError(str(path), f"results of {shown(old)}", shown(new), remedy)


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def run_batch(
    function: Callable[[Any], Any],
    tasks: Iterable[Task],
    records: BatchRecords | None = None,
    config: BatchConfig | None = None,
) -> _Results:
    """Do what is not done yet, and yield (key, result) as tasks finish, each written down before.

    Args:
        function: of a task's argument. It and its arguments are pickled for other processes; with records, results are
            what JSON can hold. It may be called in several processes at once, in each of them one call at a time.
        tasks: of the batch; those in the records are left out.
        records: held open for the batch by the caller; None where results are kept otherwise.
        config: who does the tasks. One worker is this process.

    Raises:
        InvalidInputError: two tasks of one key; a scheduler that does not answer, that has no worker, or whose workers
            have several threads or other versions of what results depend on.
        MissingDependencyError: joblib or distributed is not installed.
        BatchStoppedError: a worker or the scheduler has gone; finished tasks are in the records.
        Whatever `function` raises ends the batch.
    """
    config = config or BatchConfig()
    missing, known = [], set()
    for task in tasks:
        if _text(task[0]) in known:
            raise InvalidInputError("tasks", f"two of the key {_text(task[0])}", "one of each")
        known.add(_text(task[0]))
        if records is None or task[0] not in records:
            missing.append(task)
    again = "Give the same command again to go on."
    if records is not None:
        again = f"What has finished is in {records.path}: the same command with --resume goes on."
    if config.scheduler and missing:
        finished = _by_scheduler(function, missing, config.scheduler, again)
    elif min(config.workers, len(missing)) > 1:
        finished = _in_processes(function, missing, min(config.workers, len(missing)), again)
    else:
        finished = ((key, function(argument)) for key, argument in missing)
    with contextlib.closing(finished):
        for key, result in finished:
            yield key, result if records is None else records.add(key, result)


def _in_processes(function: Callable[[Any], Any], tasks: Sequence[Task], workers: int, again: str) -> _Results:
    with needed_for("work by several processes"):
        import joblib
        from joblib.externals.loky import get_reusable_executor
        from joblib.externals.loky.process_executor import TerminatedWorkerError

    running: dict[str, None] = {}

    def calls() -> Iterator[Any]:
        for key, argument in tasks:
            running[_text(key)] = None
            yield joblib.delayed(_work_here)((function, key, argument, os.getpid()))

    # Small matrices on several threads are slower, and the processes share the cores.
    with joblib.parallel_config("loky", inner_max_num_threads=1):
        # No more is handed out than is worked on: a task is written down alone, and known when its worker dies.
        parallel = joblib.Parallel(
            workers, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs", max_nbytes=None
        )
    outputs = parallel(calls())
    try:
        for key, result in outputs:
            del running[_text(key)]
            yield key, result
    except TerminatedWorkerError as error:
        codes = re.search(r"exit codes of the workers are \{(.*)\}", str(error))
        how = f" ({codes[1]})" if codes else ""
        raise BatchStoppedError(
            f"A worker process has died{how}, as where memory is short; under way: {_names(running)}. {again}"
        ) from error
    finally:
        outputs.close()
        get_reusable_executor().shutdown(kill_workers=True)


def _names(keys: Iterable[str]) -> str:
    names = list(keys)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _work_here(call: tuple[Callable[[Any], Any], Any, Any, int]) -> Task:
    function, key, argument, parent = call
    _end_with(parent)
    return key, function(argument)


@functools.cache
def _end_with(parent: int) -> None:
    """Have this process end soon after its parent, however that ends: loky's workers would wait for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_PERIOD)
        os._exit(1)

    threading.Thread(target=watch, name="parent watch", daemon=True).start()


def _by_scheduler(function: Callable[[Any], Any], tasks: Sequence[Task], address: str, again: str) -> _Results:
    with needed_for("work by a Dask scheduler's workers"):
        # Not at the head: `morphit --help` has no use for it.
        import asyncio

        import distributed
        import joblib

    # What it has to say of a lost connection, with tracebacks, is said by our errors.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)

    async def greet() -> None:
        security = distributed.Security().get_connection_args("client")
        comm = await asyncio.wait_for(distributed.comm.connect(address, **security), _PATIENCE)
        await comm.close()

    try:
        # The client itself waits for ever for something else that listens there and says nothing.
        asyncio.run(greet())
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError, TimeoutError) as error:
        # TypeError: tls without certificates.
        bound = f"the address of a Dask scheduler that answers within {_PATIENCE:g} s"
        raise InvalidInputError("scheduler", repr(address), bound, f"{_START} ({error})") from error
    with client:
        with joblib.parallel_config(_dask_backend(client, address, again)):
            # All at once, so that workers which come later get their part.
            parallel = joblib.Parallel(-1, return_as="generator_unordered", batch_size=1, pre_dispatch="all")
        here = _fingerprint()
        try:
            # A tuple: joblib would scatter other arguments, and what was scattered to a worker is lost with it.
            outputs = parallel(joblib.delayed(_work_there)((function, *task, here)) for task in tasks)
        except TimeoutError:
            bound = f"a scheduler that has a worker within {_PATIENCE:g} s"
            remedy = f"On each machine: dask worker {address} --nthreads 1."
            raise InvalidInputError("scheduler", repr(address), bound, remedy) from None
        with contextlib.closing(outputs), _watched(client, address):
            yield from outputs


@contextlib.contextmanager
def _watched(client: Any, address: str) -> Iterator[None]:
    """Say once when a scheduler has no workers left: Dask waits without a word until there is one again."""
    ended = threading.Event()

    def watch() -> None:
        said = False
        while not ended.wait(_WORKERS_PERIOD):
            try:
                alone = not client.nthreads()
            except (OSError, TimeoutError):
                # The scheduler has gone too, which the batch itself says.
                return
            if alone and not said:
                _LOG.warning(
                    "%s has no worker any more; waiting for one: dask worker %s --nthreads 1. Ctrl-C ends the batch.",
                    address, address,
                )  # fmt: skip
            said = alone

    watcher = threading.Thread(target=watch, name="workers watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join(_PATIENCE)


def _dask_backend(client: Any, address: str, again: str) -> Any:
    """joblib's backend for Dask, without what its own does wrong: it waits for ever for a task whose workers died."""
    from distributed import KilledWorker
    from joblib._dask import DaskDistributedBackend

    killed: dict[str, None] = {}

    class DaskBackend(DaskDistributedBackend):
        def effective_n_jobs(self, n_jobs: int) -> int:
            # With a single worker joblib would do the work itself, here.
            return max(2, int(super().effective_n_jobs(n_jobs)))

        def submit(self, func: Any, callback: Any = None) -> Any:
            future = super().submit(func, callback)
            ((_, ((_, key, *_),), _),) = func.items

            def tell(ended: Any) -> None:
                # joblib calls back where a task returns or raises, not where it was lost.
                error = ended.exception()
                if isinstance(error, KilledWorker):
                    # Dask gives a worker its next task before the last has finished, and blames both; the other one is
                    # told in this thread, after this.
                    killed[_text(key)] = None
                    threading.Timer(_TOGETHER, lambda: callback(died(error))).start()
                elif error is not None:
                    reason = str(error).partition("\n")[0]
                    what = f"{address} has lost the task {_text(key)} ({type(error).__name__}: {reason})."
                    callback(BatchStoppedError(f"{what} {again}"))

            future.add_done_callback(tell)
            return future

        def retrieve_result_callback(self, out: Any) -> Any:
            if isinstance(out, BaseException):
                raise out
            return super().retrieve_result_callback(out)

    def died(error: KilledWorker) -> BatchStoppedError:
        tasks = f"{'one of the tasks' if len(killed) > 1 else 'the task'} {_names(sorted(killed))}"
        what = f"Workers of {address} have died, the last one {error.last_worker.address}, of {tasks}."
        return BatchStoppedError(f"{what} {again}")

    return DaskBackend(client=client, wait_for_workers_timeout=_PATIENCE)


def _work_there(call: tuple[Callable[[Any], Any], Any, Any, Mapping[str, str]]) -> Task:
    function, key, argument, wanted = call
    _check_worker(tuple(wanted.items()))
    return key, function(argument)


@functools.cache
def _check_worker(wanted: tuple[tuple[str, str], ...]) -> None:
    """Refuse a Dask worker whose results may be others than those of the machine that asks."""
    from distributed import get_worker

    worker = get_worker()
    name = f"the Dask worker {worker.address}"
    if worker.state.nthreads != 1:
        raise InvalidInputError(name, f"{worker.state.nthreads} threads", "1", "Start it with --nthreads 1.")
    own = _fingerprint()
    others = [(what, version) for what, version in wanted if own.get(what, version) != version]
    if others:
        bound = ", ".join(f"{what} {version}" for what, version in others)
        found = ", ".join(f"{what} {own[what]}" for what, _ in others)
        raise InvalidInputError(name, found, bound, "Install the same there as here, and start it again.")


@functools.cache
def _fingerprint() -> dict[str, str]:
    """What results may depend on: name → version, of what is installed."""
    found = {"Python": platform.python_version()}
    for entry in DEPENDENCIES:
        if entry.extras in ("ros", "view"):
            continue
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            # Without the name of a build.
            found[entry.project] = importlib.metadata.version(entry.project).partition("+")[0]
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            folder = Path(spec.origin).parent
            digest = hashlib.sha256()
            for file in sorted(folder.rglob("*.py")):
                digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
            found[f"the sources of {package}"] = digest.hexdigest()[:12]
    return found
