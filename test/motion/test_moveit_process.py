"""MoveIt's process: which Python it runs in, and that nothing that happens to it reaches the one who asks."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError, MissingDependencyError
from morphit_ros.motion.moveit import MoveItBackend, MoveItConfig
from morphit_ros.motion.moveit_process import client, interpreter
from morphit_ros.motion.moveit_process.client import MoveItProcess, RequestRefusedError
from morphit_ros.motion.moveit_process.interpreter import Interpreter, choose_interpreter, probe
from morphit_ros.robot.motion_backend import MotionBackendError, MotionStatus

DOUBLE = Path(__file__).parent / "moveit_double"
OWN = Interpreter(sys.executable)
JOINTS = [f"panda_joint{i}" for i in range(1, 8)]
PARAMETERS = {"robot_description_planning": {"cartesian_limits": {"max_trans_vel": 1.0}}}


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A Python that has nothing but NumPy, and the folder that has that."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    packages = folder / "packages"
    packages.mkdir()
    numpy = Path(np.__file__).parent
    for found in (numpy, numpy.parent / "numpy.libs"):
        if found.exists():
            (packages / found.name).symlink_to(found)
    return str(folder / "venv/bin/python"), str(packages)


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bare_python: tuple[str, str]) -> Any:
    """Orders for the stand-in of moveit_py, which every Python that is started finds, and NumPy with it."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(DOUBLE), bare_python[1]]))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("MOVEIT_DOUBLE", str(tmp_path))

    def write(**orders: Any) -> None:
        (tmp_path / "orders.json").write_text(json.dumps(orders), encoding="utf-8")

    return write


@pytest.fixture
def told(tmp_path: Path) -> Any:
    return lambda: json.loads((tmp_path / "told.json").read_text(encoding="utf-8"))


@pytest.fixture
def backend(order: Any, panda: Any) -> Any:
    made = MoveItBackend(panda, PARAMETERS, MoveItConfig(answer_time=1.0, planning_time=0.5))
    yield made
    made.close()


def gone(pid: int) -> bool:
    """Whether a process ends within 5 s; one that nobody has waited for has ended."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


# Which Python


def test_the_server_needs_nothing_of_ours(
    order: Any, told: Any, bare_python: tuple[str, str], panda: Any, home: Any, table: Any, box: Any, from_above: Any
) -> None:
    python, _ = bare_python
    lacking = subprocess.run([python, "-c", "import yaml"], capture_output=True, check=False, text=True)
    assert "ModuleNotFoundError" in lacking.stderr
    backend = MoveItBackend(panda, PARAMETERS, MoveItConfig(python=python))
    backend.set_world(table, [box])
    assert backend.plan_to_pose(home, from_above(0.5, 0.0, 0.3)).status is MotionStatus.SUCCEEDED
    assert told()["executable"] == python
    assert told()["modules_of_ours"] == []
    backend.close()


def test_this_python_is_taken_where_arrays_work(order: Any) -> None:
    assert choose_interpreter("auto").path == sys.executable


def test_another_python_is_taken_where_an_array_ends_this_one(
    order: Any, told: Any, bare_python: tuple[str, str], monkeypatch: pytest.MonkeyPatch, panda: Any
) -> None:
    monkeypatch.setattr(interpreter, "SYSTEM_PYTHON", bare_python[0])
    order(array={sys.executable: "SIGSEGV"})
    backend = MoveItBackend(panda, PARAMETERS)
    assert told()["executable"] == bare_python[0]
    backend.close()


def test_a_refusal_names_each_python_with_its_reason(
    order: Any, bare_python: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "SYSTEM_PYTHON", bare_python[0])
    order(array={sys.executable: "SIGSEGV"}, no_moveit={bare_python[0]: True})
    with pytest.raises(MissingDependencyError) as refusal:
        choose_interpreter("auto")
    said = str(refusal.value)
    assert f"{sys.executable}: it ended by SIGSEGV at the first array" in said
    assert f"NumPy {np.__version__}" in said
    assert f"{bare_python[0]}: ModuleNotFoundError: No module named 'moveit.planning'" in said
    for remedy in ("ros-jazzy-moveit-py", "moveit_python", "backend:=embedded"):
        assert remedy in said


@pytest.mark.parametrize(
    ("orders", "reason"),
    [
        ({"import": "SIGABRT"}, "SIGABRT while moveit_py was loaded"),
        ({"array": "SIGSEGV"}, "SIGSEGV at the first array"),
        ({"array_factor": 2.0}, r"of the array \[0.25\] moveit_py makes \[0.5\]"),
        ({"import": 60.0}, "longer than 3 s"),
    ],
)
def test_reasons_of_the_probe(order: Any, orders: dict[str, Any], reason: str) -> None:
    order(**orders)
    assert re.search(reason, probe(OWN, time_limit=3.0))


def test_a_python_that_is_none(order: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"moveit\.python.*no_such_python"):
        choose_interpreter("no_such_python")
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no such module >&2\nexit 3\n", encoding="utf-8")
    broken.chmod(0o755)
    with pytest.raises(MissingDependencyError, match="status 3: no such module"):
        choose_interpreter(str(broken))


def test_another_python_gets_none_of_our_search_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ours, theirs = str(tmp_path / "venv"), str(tmp_path / "opt/ros")
    monkeypatch.setattr(sys, "prefix", ours)
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    given = {
        "HOME": "/home/me", "PYTHONHOME": ours, "AMENT_PREFIX_PATH": theirs,
        "PYTHONPATH": f"{ours}/lib/python3/site-packages:{theirs}/python",
        "LD_LIBRARY_PATH": f"{ours}/lib:{theirs}/lib", "_ROS_WHEELS_BOOTSTRAP_COMPLETE": "1",
    }  # fmt: skip
    assert Interpreter("/other/python3").environment(given) == {
        "HOME": "/home/me", "AMENT_PREFIX_PATH": theirs, "PYTHONPATH": f"{theirs}/python",
        "LD_LIBRARY_PATH": f"{theirs}/lib",
    }  # fmt: skip
    assert OWN.environment(given) == given
    # Without the wheels the libraries are those that ROS's own set-up names.
    del given["_ROS_WHEELS_BOOTSTRAP_COMPLETE"]
    assert Interpreter("/other/python3").environment(given)["LD_LIBRARY_PATH"] == given["LD_LIBRARY_PATH"]


# What happens to it


@pytest.mark.parametrize("end", ["SIGSEGV", "SIGABRT", "SIGKILL"])
def test_a_crash_is_an_error_and_the_next_request_has_the_whole_world(
    order: Any, told: Any, backend: Any, home: Any, table: Any, box: Any, from_above: Any, end: str
) -> None:
    other = type(box)("other", box.centers + np.array([0.0, 0.3, 0.0]), box.radii)
    backend.set_world(table, [box, other])
    backend.attach("box", from_above(0.5, 0.0, 0.08))
    before = told()
    order(plan=end)
    with pytest.raises(MotionBackendError, match=f"MoveIt's process ended by {end} during request 'plan'"):
        backend.plan_straight(home, from_above(0.5, 0.0, 0.3), 0.1)
    order()
    assert backend.plan_straight(home, from_above(0.5, 0.0, 0.3), 0.1).status is MotionStatus.SUCCEEDED
    now = told()
    assert now["pid"] != before["pid"]
    assert (now["world"], now["attached"]) == (before["world"], before["attached"])
    assert (now["world_while_planning"], now["attached_while_planning"]) == (["other", "table"], ["box"])
    assert ["box", "table"] in now["allowed_while_planning"]


def test_one_that_hangs_is_killed_in_time(order: Any, told: Any, backend: Any, home: Any, from_above: Any) -> None:
    order(plan=60.0)
    began = time.monotonic()
    with pytest.raises(MotionBackendError, match=r"did not answer request 'plan' within 1\.5 s"):
        backend.plan_to_pose(home, from_above(0.5, 0.0, 0.3))
    assert time.monotonic() - began < 4.0
    assert gone(told()["pid"])
    order()
    assert backend.plan_to_pose(home, from_above(0.5, 0.0, 0.3)).status is MotionStatus.SUCCEEDED


def test_one_that_died_unseen_is_replaced(
    order: Any, told: Any, backend: Any, table: Any, box: Any, home: Any, from_above: Any
) -> None:
    backend.set_world(table, [box])
    os.kill(told()["pid"], signal.SIGKILL)
    assert gone(told()["pid"])
    assert backend.plan_to_pose(home, from_above(0.5, 0.0, 0.3)).status is MotionStatus.SUCCEEDED
    assert told()["world_while_planning"] == ["box", "table"]


def test_a_crash_of_each_start_is_an_error_each_time(
    order: Any, told: Any, backend: Any, home: Any, from_above: Any
) -> None:
    os.kill(told()["pid"], signal.SIGKILL)
    order(start="SIGSEGV")
    for _ in range(2):
        assert gone(told()["pid"])
        with pytest.raises(MotionBackendError, match="did not start: MoveIt's process ended by SIGSEGV"):
            backend.plan_to_pose(home, from_above(0.5, 0.0, 0.3))
    order()
    assert backend.plan_to_pose(home, from_above(0.5, 0.0, 0.3)).status is MotionStatus.SUCCEEDED


def test_a_crash_at_the_end_is_of_no_interest(order: Any, told: Any, backend: Any) -> None:
    order(end="SIGSEGV")
    backend.close()
    assert told()["is_shut_down"]
    assert gone(told()["pid"])


def test_one_that_does_not_end_is_killed(order: Any, told: Any, backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_END_TIME", 0.3)
    order(end=60.0)
    backend.close()
    assert gone(told()["pid"])


def test_numbers_that_are_none_are_an_error(order: Any, told: Any, backend: Any, home: Any, from_above: Any) -> None:
    order(not_a_number=True)
    with pytest.raises(RequestRefusedError, match="not JSON compliant"):
        backend.plan_to_pose(home, from_above(0.5, 0.0, 0.3))
    before = told()["pid"]
    order()
    assert backend.plan_to_pose(home, from_above(0.5, 0.0, 0.3)).status is MotionStatus.SUCCEEDED
    assert told()["pid"] == before


# Servers that speak otherwise: `send` writes a message as it is, `say` one of the protocol.
_WRONG = """
import json, socket, struct, sys, time
connection = socket.socket(fileno=int(sys.argv[1]))
send = connection.sendall
def say(content):
    data = json.dumps(content).encode()
    send(struct.pack(">I", len(data)) + data)
def asked():
    length = struct.unpack(">I", connection.recv(4))[0]
    return json.loads(connection.recv(length))
"""
_HELLO = "say({'protocol': 1})\n"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("say({'protocol': 2}); time.sleep(9)", "speaks protocol 2 instead of 1"),
        ("say([1]); time.sleep(9)", "answered the start with what is no answer: .* is no mapping"),
        ("sys.exit(4)", "ended with status 4 during the start"),
        ("send(b'HTTP/1.1 200 OK'); time.sleep(9)", "no answer: a message of 1213486160 bytes is announced"),
        (f"{_HELLO}asked(); send(struct.pack('>I', 3) + b'{{x]'); time.sleep(9)", "no JSON"),
        (f"{_HELLO}asked(); send(struct.pack('>I', 3) + b'\\xff\\xfe1'); time.sleep(9)", "no JSON"),
        (f"{_HELLO}asked(); say({{'id': 7, 'result': 1}}); time.sleep(9)", "answered request 'plan' with .*'id': 7"),
        (f"{_HELLO}asked(); say({{'id': 1}}); time.sleep(9)", "answered request 'plan' with"),
        (f"{_HELLO}asked(); say({{'id': 1, 'result': float('nan')}}); time.sleep(9)", "NaN is not finite"),
        (f"{_HELLO}asked(); send(struct.pack('>I', 9) + b'half'); sys.exit(0)", "ended with status 0 during"),
        (f"{_HELLO}asked(); send(b'\\0'); time.sleep(9)", "did not answer request 'plan' within 0.5 s"),
        (f"{_HELLO}connection.close(); time.sleep(0.1); sys.exit(0)", "ended with status 0"),
    ],
)
def test_what_is_no_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, reason: str) -> None:
    server = tmp_path / "server.py"
    server.write_text(_WRONG + script, encoding="utf-8")
    monkeypatch.setattr(client, "_SERVER", server)
    with pytest.raises(MotionBackendError, match=reason):
        process = MoveItProcess(OWN)
        try:
            process.ask("plan", 0.5)
        finally:
            assert not process.is_alive


@pytest.mark.parametrize(
    "plan",
    [
        None,
        [],
        {"code": "SUCCESS", "time": 0.1},
        {"code": "SUCCESS", "time": None, "message": ""},
        {"code": "SUCCESS", "time": 0.1, "joints": ["a"], "times": [0.0], "positions": [[0.0]], "velocities": [[0.0]]},
        {"code": "SUCCESS", "time": 0.1, "joints": JOINTS, "times": [], "positions": [], "velocities": []},
        {"code": "SUCCESS", "time": 0.1, "joints": JOINTS, "times": [0.0, 1.0], "positions": [[0.0] * 7, [0.0]],
         "velocities": [[0.0] * 7] * 2},
        {"code": "SUCCESS", "time": 0.1, "joints": JOINTS, "times": [0.0, "x"], "positions": [[0.0] * 7] * 2,
         "velocities": [[0.0] * 7] * 2},
        {"code": "SUCCESS", "time": 0.1, "joints": JOINTS, "times": [1.0, 0.0, 2.0], "positions": [[0.0] * 7] * 2,
         "velocities": [[0.0] * 7] * 2},
    ],
)  # fmt: skip
def test_a_plan_that_is_none_is_named(
    order: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, panda: Any, home: Any, from_above: Any, plan: Any
) -> None:
    server = tmp_path / "server.py"
    opened = "for _ in range(2):\n    say({'id': asked()['id'], 'result': None})\n"
    server.write_text(f"{_WRONG}{_HELLO}{opened}say({{'id': asked()['id'], 'result': {plan!r}}})\ntime.sleep(9)")
    monkeypatch.setattr(client, "_SERVER", server)
    backend = MoveItBackend(panda, PARAMETERS)
    process = backend._process
    with pytest.raises(MotionBackendError, match="answered request 'plan' with"):
        backend.plan_to_pose(home, from_above(0.5, 0.0, 0.3))
    assert not process.is_alive
    backend.close()


def test_requests_that_the_server_does_not_know(order: Any) -> None:
    process = MoveItProcess(OWN)
    with pytest.raises(RequestRefusedError, match="before open"):
        process.ask("plan", 5.0)
    with pytest.raises(RequestRefusedError, match="'_remove'"):
        process.ask("_remove", 5.0, name="table")
    assert process.is_alive
    process.close()
    assert gone(process.pid)


# How it ends


_PARENT = """
import sys
from morphit_ros.motion.moveit import MoveItBackend
from morphit_ros.robot.configuration import RobotConfiguration
limits = {"robot_description_planning": {"cartesian_limits": {"max_trans_vel": 1.0}}}
backend = MoveItBackend(RobotConfiguration.load("panda"), limits)
print(backend._process.pid, flush=True)
backend.plan_to_joints(dict.fromkeys(backend.robot.arm_joints, 0.0), {})
"""


def test_it_ends_with_a_parent_that_is_killed_while_moveit_computes(order: Any, told: Any, tmp_path: Path) -> None:
    # A call that does not let other threads of the server run, as many of moveit_py's.
    order(plan="hold the interpreter")
    path = os.pathsep.join([*os.environ["PYTHONPATH"].split(os.pathsep)[:1], str(Path(__file__).parents[2])])
    environment = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(tmp_path / "temporary")}
    Path(environment["TMPDIR"]).mkdir()
    parent = subprocess.Popen([sys.executable, "-c", _PARENT], env=environment, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    server = int(parent.stdout.readline())
    for _ in range(200):
        if "requests" in told():
            break
        time.sleep(0.05)
    os.kill(server, 0)
    assert "requests" in told()
    parent.kill()
    parent.wait()
    assert gone(server)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_it_outlives_the_thread_that_started_it(order: Any, panda: Any, home: Any, from_above: Any) -> None:
    made: list[MoveItBackend] = []
    thread = threading.Thread(target=lambda: made.append(MoveItBackend(panda, PARAMETERS)))
    thread.start()
    thread.join()
    pid = made[0]._process.pid
    time.sleep(0.2)
    assert made[0].plan_to_pose(home, from_above(0.5, 0.0, 0.3)).status is MotionStatus.SUCCEEDED
    assert made[0]._process.pid == pid
    made[0].close()
