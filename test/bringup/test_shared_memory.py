"""What killed nodes leave in shared memory is removed, and nothing that lives."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from morphit_ros.bringup.shared_memory import remove_dead_segments

DEAD, LIVING, YOUNG = (f"fastrtps_{digit * 16}" for digit in "abc")
OTHERS = ("fastrtps_port7411", "fastrtps_port7411_el", "sem.fastrtps_port7411_mutex", "fastrtps_zz_el", "own_el")


def test_only_segments_whose_owner_is_dead_go(tmp_path):
    for name in (DEAD, LIVING, YOUNG):
        (tmp_path / name).write_bytes(bytes(64))
        (tmp_path / f"{name}_el").touch()
    for name in OTHERS:
        (tmp_path / name).touch()
    past = time.time() - 60.0
    for path in tmp_path.iterdir():
        if YOUNG not in path.name:
            os.utime(path, (past, past))
    with (tmp_path / f"{LIVING}_el").open("rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert remove_dead_segments(tmp_path) == 1
        assert {path.name for path in tmp_path.iterdir()} == {
            LIVING, f"{LIVING}_el", YOUNG, f"{YOUNG}_el", *OTHERS,
        }  # fmt: skip
    assert remove_dead_segments(tmp_path) == 1
    assert not (tmp_path / LIVING).exists()


def test_no_folder_no_error(tmp_path):
    assert remove_dead_segments(tmp_path / "none") == 0


def test_a_living_node_keeps_its_segment_and_a_killed_one_does_not():
    pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
    # Its own segment: the one whose lock it holds open. It maps those of nodes that it has met, too.
    program = (
        "import os, re, rclpy, time; rclpy.init(); node = rclpy.create_node('x')\n"
        "files = [os.path.realpath(f'/proc/self/fd/{number}') for number in os.listdir('/proc/self/fd')]\n"
        "locks = [name for name in files if re.search('fastrtps_[0-9a-f]{16}_el$', name)]\n"
        "print(locks[0].removesuffix('_el') if locks else '', flush=True)\ntime.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        segment = process.stdout.readline().strip()
        if not segment:
            pytest.skip("the middleware uses no shared memory here")
        past = time.time() - 60.0
        os.utime(f"{segment}_el", (past, past))
        remove_dead_segments()
        assert Path(segment).exists()
    finally:
        process.kill()
        process.communicate()
    # A node that another test starts may just be looking whether it is dead, and will remove it itself.
    deadline = time.monotonic() + 10.0
    while Path(segment).exists() and time.monotonic() < deadline:
        remove_dead_segments()
        time.sleep(0.05)
    assert not Path(segment).exists()
