"""Feeds damaged files to a reader, in a process of its own: ``fuzz.py mesh|robot SUFFIX COUNT FOLDER``.

The folder holds the sound files (those of the suffix are damaged) and takes the damaged one. The process fails with
any exception that is not ours, when an input takes over ten seconds, and when one makes the memory grow by 400 MB.
"""

import signal
import sys
from pathlib import Path
from types import FrameType

import numpy as np
from mutations import mutated

from morphit_ros.errors import MorphitError
from morphit_ros.geometry.mesh_io import load_mesh
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.links import collision_mesh

SECONDS, MEGABYTES = 10.0, 400


class TookTooLong(BaseException):
    """Not an Exception, or the reader's own handlers would swallow it."""


def read_mesh(path: Path) -> None:
    mesh = load_mesh(path)
    assert np.isfinite(mesh.bounds).all()
    assert np.isfinite(mesh.volume)
    assert np.isfinite(mesh.face_normals).all()


def read_robot(path: Path) -> None:
    description = load_robot_description(path)
    assert set(description.links) == {description.root_link} | {j.child for j in description.joints.values()}
    for link in description.links.values():
        for geometry in (*link.collisions, *link.visuals):
            assert np.isfinite(geometry.T_link_geometry).all()
            assert np.isfinite(geometry.dimensions).all()
            try:
                assert np.isfinite(collision_mesh(geometry).bounds).all()
            except MorphitError:
                continue


def fuzz(kind: str, suffix: str, count: int, folder: Path) -> tuple[int, int]:
    """Returns how many damaged files were read, and how many refused."""
    read = {"mesh": read_mesh, "robot": read_robot}[kind]
    sound = sorted(folder.glob(f"sound*{suffix}"))
    for path in sound:
        read(path)
    target = folder / f"damaged{suffix}"
    accepted = refused = 0
    signal.signal(signal.SIGALRM, give_up)
    for index in range(count):
        rng = np.random.default_rng([index, len(suffix)])
        target.write_bytes(mutated(sound[index % len(sound)].read_bytes(), rng))
        before = peak_kilobytes()
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            read(target)
            accepted += 1
        except MorphitError as error:
            assert len(str(error)) < 2000, "a message that can be read"
            refused += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            grown = (peak_kilobytes() - before) / 1024
        assert grown < MEGABYTES, f"mutation {index} took {grown:.0f} MB"
    return accepted, refused


def peak_kilobytes() -> int:
    """Most memory that this process ever held; getrusage would include the parent that it was forked from."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def give_up(signal_number: int, frame: FrameType | None) -> None:
    raise TookTooLong


if __name__ == "__main__":
    print(*fuzz(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])))
