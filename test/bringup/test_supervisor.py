"""The supervisor with small processes that behave like good and bad nodes."""

from __future__ import annotations

import io
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from morphit_ros.bringup.job import MOST_RESTARTS, REFUSED, RESTARTS_FORGOTTEN, Restarts, WhenEnded
from morphit_ros.bringup.output import LineSplitter, PrefixedOutput
from morphit_ros.bringup.supervisor import ChildProcess, run_processes

# Longer than anything takes where it works [s].
PATIENCE = 60.0
LONG = "import signal; signal.pause()"
IGNORE = """
import signal
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
"""
STUBBORN = f"{IGNORE}print('stubborn', flush=True)\n{LONG}"


def child(name: str, code: str, when_ended: WhenEnded = WhenEnded.FAIL_JOB) -> ChildProcess:
    return ChildProcess(name, [sys.executable, "-S", "-c", code], when_ended)


def run(*children: ChildProcess) -> tuple[int, str, str]:
    stream = io.StringIO()
    outcome = run_processes(children, stream=stream)
    return outcome.exit_status, outcome.cause, stream.getvalue()


def after_line_of_other(fifo: Path, code: str) -> str:
    """Code that runs once another process has opened and closed the named pipe."""
    return f"open({str(fifo)!r}).read(); {code}"


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "ready"
    os.mkfifo(path)
    return path


def ends(pid: int) -> bool:
    """Whether a process, that need not be a child, has ended or does so in time."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], PATIENCE)[0])
    finally:
        os.close(handle)


def test_end_of_required_process_ends_the_job_with_its_status() -> None:
    for status in (0, 7):
        code = f"import sys; print('done'); sys.exit({status})"
        result, cause, text = run(child("long", LONG), child("pick", code, WhenEnded.END_JOB))
        assert result == status
        assert cause == f"pick ended with exit status {status}"
        assert "[pick]" in text


def test_unexpected_end_names_process_and_status() -> None:
    result, cause, _ = run(child("long", LONG), child("planner", "import sys; sys.exit(3)"))
    assert (result, cause) == (1, "planner ended unexpectedly with exit status 3")


def test_an_unexpected_end_with_status_zero_fails_the_job_too() -> None:
    assert run(child("long", LONG), child("planner", "pass"))[0] == 1


def test_a_process_that_refused_its_input_makes_it_a_mistake_in_the_input() -> None:
    result, cause, text = run(child("long", LONG), child("cover", "import sys; sys.exit(2)"))
    assert (result, cause) == (2, "cover refused its input with exit status 2")
    assert cause in text


def test_crash_names_the_signal() -> None:
    crash = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    result, cause, _ = run(child("long", LONG), child("planner", crash))
    assert (result, cause) == (1, "planner ended unexpectedly with signal SIGSEGV")


def test_a_process_that_may_is_started_again_and_the_job_goes_on(tmp_path: Path, fifo: Path) -> None:
    mark = tmp_path / "was here"
    code = f"""
import os, pathlib, signal
mark = pathlib.Path({str(mark)!r})
if not mark.exists():
    mark.touch()
    os.kill(os.getpid(), signal.SIGKILL)
open({str(fifo)!r}, 'w').close()
signal.pause()
"""
    pick = child("pick", after_line_of_other(fifo, "print('picked')"), WhenEnded.END_JOB)
    result, cause, text = run(child("perception", code, WhenEnded.RESTART), pick)
    assert (result, cause) == (0, "pick ended with exit status 0")
    assert "ended unexpectedly with signal SIGKILL; starts again in 0.5 s (1 of 3)" in text


def test_a_process_that_keeps_dying_fails_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("morphit_ros.bringup.job.RESTART_DELAY", 0.01)
    result, cause, text = run(child("long", LONG), child("perception", "import sys; sys.exit(3)", WhenEnded.RESTART))
    assert (result, cause) == (1, "perception ended unexpectedly with exit status 3")
    assert text.count("starts again") == MOST_RESTARTS


def test_what_a_process_refused_it_is_not_asked_again() -> None:
    result, cause, text = run(child("long", LONG), child("perception", "import sys; sys.exit(2)", WhenEnded.RESTART))
    assert (result, cause) == (2, "perception refused its input with exit status 2")
    assert "starts again" not in text


def test_nothing_is_started_while_a_job_ends(tmp_path: Path) -> None:
    count = tmp_path / "count"
    # It dies with the others, and takes long enough for that to be started again meanwhile.
    code = f"""
import signal, sys, time
open({str(count)!r}, 'a').write('x')
signal.signal(signal.SIGINT, lambda *_: sys.exit(1))
signal.pause()
"""
    slow = f"{IGNORE}import time; print('stubborn', flush=True); time.sleep(2.0)"
    pick = f"""
import time
while not __import__('os').path.exists({str(count)!r}): time.sleep(0.01)
time.sleep(0.3)
"""
    children = child("perception", code, WhenEnded.RESTART), child("slow", slow), child("pick", pick, WhenEnded.END_JOB)
    result, _, text = run(*children)
    assert result == 0
    assert count.read_text() == "x"
    assert "starts again" not in text


def test_who_has_lived_for_long_may_be_started_as_often_as_at_first() -> None:
    time = [0.0]
    restarts = Restarts(lambda: time[0])
    assert [restarts.delay(1) for _ in range(MOST_RESTARTS + 1)] == [0.5, 1.0, 2.0, None]
    restarts.started()
    time[0] = RESTARTS_FORGOTTEN + 1.0
    assert restarts.delay(-9) == 0.5
    assert restarts.delay(REFUSED) is None


def test_end_of_optional_process_is_told_and_ignored(fifo: Path) -> None:
    window = child("rviz2", f"open({str(fifo)!r}, 'w').close()", WhenEnded.CONTINUE)
    pick = child("pick", after_line_of_other(fifo, "print('picked')"), WhenEnded.END_JOB)
    result, _, text = run(window, pick)
    assert result == 0
    assert "picked" in text


def test_missing_program_is_named_and_ends_the_others() -> None:
    result, cause, _ = run(child("long", LONG), ChildProcess("ghost", ["/nonexistent/program"]))
    assert result == 1
    assert "ghost could not be started" in cause
    assert "/nonexistent/program" in cause


def test_every_line_is_prefixed_and_last_words_are_kept() -> None:
    code = "import sys; print('first\\nsecond'); sys.stderr.write('no newline at the end'); sys.exit(1)"
    _, _, text = run(child("noisy_node", code))
    assert "[noisy_node] first\n[noisy_node] second\n" in text
    assert "[noisy_node] no newline at the end\n" in text
    assert text.index("no newline") < text.index("ended unexpectedly")


def test_very_long_line_arrives_whole() -> None:
    _, _, text = run(child("noisy", "print('x' * 300_000)", WhenEnded.END_JOB))
    assert "x" * 300_000 + "\n" in text


def test_process_that_ignores_signals_is_killed_and_named(fifo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("morphit_ros.bringup.supervisor._INTERRUPT_PATIENCE", 0.2)
    monkeypatch.setattr("morphit_ros.bringup.supervisor._TERMINATE_PATIENCE", 0.2)
    stubborn = STUBBORN.replace(LONG, f"open({str(fifo)!r}, 'w').close()\n{LONG}")
    pick = child("pick", after_line_of_other(fifo, ""), WhenEnded.END_JOB)
    result, _, text = run(child("stubborn", stubborn), pick)
    assert result == 0
    assert "still running: stubborn; sending SIGTERM" in text
    assert "still running: stubborn; killing" in text


def test_grandchild_that_outlives_its_parent_is_killed(fifo: Path, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    parent = (
        f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-S', '-c', {STUBBORN!r}], "
        f"stdout=subprocess.PIPE); p.stdout.readline(); open({str(note)!r}, 'w').write(str(p.pid))"
    )
    run(child("parent", parent, WhenEnded.END_JOB))
    assert ends(int(note.read_text(encoding="utf-8")))


SUPERVISED = """
import sys
from morphit_ros.bringup.job import MOST_RESTARTS, REFUSED, RESTARTS_FORGOTTEN, Restarts, WhenEnded
from morphit_ros.bringup.supervisor import ChildProcess, run_processes
code = {code!r}
child = ChildProcess("node", [sys.executable, "-S", "-c", code], WhenEnded.{when_ended})
sys.exit(run_processes([child, ChildProcess("other", child.command)], folder={folder!r}).exit_status)
"""
TELL_PID = "import os; print('pid', os.getpid(), flush=True)\n"


def start_supervisor(
    code: str, before: str = "", when_ended: WhenEnded = WhenEnded.FAIL_JOB, folder: str = ""
) -> tuple[subprocess.Popen[str], list[int]]:
    """A supervisor in a process of its own, once both its children run: it and their process ids."""
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            SUPERVISED.format(code=before + TELL_PID + code, when_ended=when_ended.name, folder=folder),
        ],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert process.stdout is not None
    pids: list[int] = []
    for line in process.stdout:
        if " pid " in line:
            pids.append(int(line.split()[-1]))
        if len(pids) == 2:
            break
    assert len(pids) == 2
    return process, pids


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_everything_and_a_job_without_an_end_of_its_own_is_done(number: signal.Signals) -> None:
    process, pids = start_supervisor(LONG)
    process.send_signal(number)
    text, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert f"ended by {number.name}" in text
    assert all(ends(pid) for pid in pids)


def test_signal_before_the_end_of_a_job_is_told_by_the_exit_status() -> None:
    process, pids = start_supervisor(LONG, when_ended=WhenEnded.END_JOB)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGINT
    assert "ended by SIGINT" in text
    assert all(ends(pid) for pid in pids)


def test_a_stop_that_needs_to_kill_is_no_success() -> None:
    process, pids = start_supervisor(LONG, before=IGNORE)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "killing" in text
    assert all(ends(pid) for pid in pids)


def test_children_of_a_killed_supervisor_do_not_outlive_it_nor_do_their_files(tmp_path: Path) -> None:
    folder = tmp_path / "parameters"
    folder.mkdir()
    (folder / "node.yaml").touch()
    process, pids = start_supervisor(LONG, before=IGNORE, folder=str(folder))
    process.kill()
    process.wait(timeout=PATIENCE)
    assert all(ends(pid) for pid in pids)
    assert not folder.exists()
    assert process.stdout is not None
    process.stdout.close()


def test_children_of_a_killed_supervisor_may_stop_what_they_move_before_they_die(tmp_path: Path) -> None:
    stopped = tmp_path / "stopped"
    note = f"import signal\nsignal.signal(signal.SIGINT, lambda *_: open({str(stopped)!r}, 'w').close())\n"
    process, pids = start_supervisor("while True: signal.pause()", before=note)
    process.kill()
    process.wait(timeout=PATIENCE)
    assert all(ends(pid) for pid in pids)
    assert stopped.exists()
    assert process.stdout is not None
    process.stdout.close()


def test_empty_job_ends_at_once() -> None:
    assert run()[0] == 0


def test_prefixes_are_aligned_and_plain_without_a_terminal() -> None:
    stream = io.StringIO()
    output = PrefixedOutput(stream, ["a", "longer"])
    output.line("a", "text")
    assert stream.getvalue() == "[a]      text\n"


def test_prefixes_are_coloured_on_a_terminal() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    PrefixedOutput(stream, ["a"]).line("a", "text")
    assert stream.getvalue() == "\033[36m[a]\033[0m text\n"


def test_lines_are_cut_wherever_the_pieces_end() -> None:
    text = "one\r\ntwo Grüße\n10%\r50%\r100%\nrest"
    data = text.encode()
    for step in (1, 2, 3, 7, 100):
        splitter = LineSplitter()
        lines = [line for i in range(0, len(data), step) for line in splitter.feed(data[i : i + step])]
        assert lines + splitter.finish() == ["one", "two Grüße", "100%", "rest"]
