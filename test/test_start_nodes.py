"""Nodes are started by name: `morphit_ros.nodes.start`."""

import subprocess
import sys
import types

import pytest

from morphit_ros import nodes


def put_node(monkeypatch: pytest.MonkeyPatch, main: object) -> None:
    module = types.ModuleType("morphit_ros.nodes.made_up")
    module.main = main  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.parametrize("status", [0, 3])
def test_the_node_decides_on_the_status(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    put_node(monkeypatch, lambda: status)
    with pytest.raises(SystemExit) as end:
        nodes.start("made_up")
    assert end.value.code == status


@pytest.mark.parametrize(("name", "status"), [("motion_gate", 0), ("pick_client", 130), ("arm_client", 130)])
def test_an_interrupted_start_of_a_server_is_a_stop_and_of_a_client_none(name: str, status: int) -> None:
    # The interrupt comes with the first import that the node makes.
    program = (
        "import signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == 'morphit_ros.nodes.{name}': signal.raise_signal(signal.SIGINT)\n"
        "from morphit_ros.nodes import start\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        f"start('{name}')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (status, "")
