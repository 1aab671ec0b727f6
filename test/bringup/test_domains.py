"""Domains of their own for simulated picks, names that only one node on this machine has, and mistakes found early."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from morphit_ros.bringup import domains, find_job
from morphit_ros.bringup.domains import own_domain, stands_alone
from morphit_ros.commands import up
from morphit_ros.errors import InvalidInputError, MorphitError, ResourceNotFoundError
from morphit_ros.resources import check_writable, hold_name


def test_each_job_gets_another_domain_and_gives_it_back(monkeypatch) -> None:
    with own_domain() as first, own_domain() as second:
        assert first != second
        assert {int(first), int(second)} <= set(range(40, 102))
    monkeypatch.setattr(domains, "_DOMAINS", range(int(first), int(first) + 1))
    with own_domain() as again:
        assert again == first
        with pytest.raises(InvalidInputError, match="ROS_DOMAIN_ID"), own_domain():
            pass


def test_a_domain_whose_ports_are_used_is_passed_over(monkeypatch) -> None:
    with own_domain() as free:
        pass
    monkeypatch.setattr(domains, "_DOMAINS", range(int(free), int(free) + 1))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as participant:
        participant.bind(("127.0.0.1", 7410 + 250 * int(free)))
        with pytest.raises(InvalidInputError), own_domain():
            pass


def test_a_name_is_free_when_its_holder_was_killed() -> None:
    words = (
        "from morphit_ros.resources import hold_name; import time\n"
        "with hold_name('test', '/a b') as held: print(held, flush=True); time.sleep(99)"
    )
    with subprocess.Popen([sys.executable, "-c", words], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "True\n"
        with hold_name("test", "/a b") as held, hold_name("test", "/a") as other:
            assert not held and other
        holder.kill()
    with hold_name("test", "/a b") as held:
        assert held


@pytest.mark.parametrize(
    ("words", "alone"),
    [({"pick": "true"}, True), ({}, False), ({"pick": "true", "sim": "false", "base_pose": "0 0 0 0 0 0 1"}, False)],
)
def test_only_a_simulated_pick_stands_alone(words: dict[str, str], alone: bool, monkeypatch, capsys) -> None:
    environments = []

    def run_nodes(_nodes, environment):
        environments.append(environment)
        return type("Outcome", (), {"exit_status": 0, "cause": ""})()

    nodes = find_job("grasp").nodes(words)
    assert stands_alone(nodes) == alone
    monkeypatch.setattr("morphit_ros.bringup.supervisor.run_nodes", run_nodes)
    monkeypatch.delenv("ROS_DOMAIN_ID", raising=False)
    up.run_job("grasp", [f"{name}:={value}" for name, value in words.items()], None)
    assert ("ROS_DOMAIN_ID" in environments[0]) == alone == ("domain of its own" in capsys.readouterr().out)
    # Who has chosen one means it.
    monkeypatch.setenv("ROS_DOMAIN_ID", "7")
    up.run_job("grasp", [f"{name}:={value}" for name, value in words.items()], None)
    assert environments[1]["ROS_DOMAIN_ID"] == "7"


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        ({"object": "nothing"}, ResourceNotFoundError, "Known objects"),
        ({"object": "none.stl", "object_mass": "0.1"}, ResourceNotFoundError, "none.stl"),
        ({"object": "bad.stl", "object_mass": "0.1"}, InvalidInputError, "bad.stl"),
        ({"object": "bad.stl"}, InvalidInputError, "mass"),
        ({"object": "mug", "object_unit": "mm"}, InvalidInputError, "unit"),
        ({"object_mass": "nan"}, InvalidInputError, "object_mass"),
        ({"namespace": "a b"}, InvalidInputError, "namespace"),
        ({"namespace": "1a"}, InvalidInputError, "namespace"),
        ({"namespace": "a//b"}, InvalidInputError, "namespace"),
        ({"namespace": "a; rm"}, InvalidInputError, "namespace"),
        ({"pick": "true", "report": "bad.stl/report.json"}, InvalidInputError, "report"),
        ({"pick": "true", "report": "."}, InvalidInputError, "report"),
        ({"pick": "true", "output": "bad.stl"}, InvalidInputError, "output"),
        ({"robot": "bomb.yaml"}, InvalidInputError, "bomb.yaml"),
        ({"params_file": "bomb.yaml"}, InvalidInputError, "bomb.yaml"),
    ],
)
def test_mistakes_are_found_before_a_process_is_started(words, error, said, tmp_path, monkeypatch) -> None:
    (tmp_path / "bad.stl").write_bytes(bytes(100))
    (tmp_path / "bomb.yaml").write_text("a: &a {x: 1}\nb: {<<: [" + ", ".join(["*a"] * 60_000) + "]}")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=said) as caught:
        find_job("grasp").nodes(words)
    assert isinstance(caught.value, MorphitError)


def test_a_full_disk_is_found_before_the_work(tmp_path, monkeypatch) -> None:
    check_writable("--output", tmp_path / "a" / "b.txt")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("morphit_ros.resources.os.posix_fallocate", full)
    with pytest.raises(InvalidInputError, match="No space left"):
        check_writable("--output", tmp_path / "b.txt")
