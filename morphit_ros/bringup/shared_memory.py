"""Shared memory that dead nodes have left: Fast DDS, the middleware of ROS 2 Jazzy, removes it at an ordinary end only.

A killed node leaves up to 17 MB (`config/fastdds.xml`) in memory until the machine starts anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import re
import time
from collections.abc import Iterator
from pathlib import Path

_FOLDER = Path("/dev/shm")
# A participant's segment, and the file beside it that the participant locks as long as it lives.
_LOCK = re.compile(r"fastrtps_[0-9a-f]{16}_el")
# Between making that file and locking it somebody else can lock it: younger ones are left alone [s].
_YOUNG = 5.0


def remove_dead_segments(folder: Path = _FOLDER) -> int:
    """Remove the segments of participants that live no more; how many there were.

    As `fastdds shm clean` does. Files of other users and what cannot be removed stay.

    Args:
        folder: where shared memory has its files.
    """
    return sum(1 for _ in _removed(folder))


def _removed(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        return
    for lock in folder.iterdir():
        if not _LOCK.fullmatch(lock.name):
            continue
        with contextlib.suppress(OSError):
            if time.time() - lock.stat().st_mtime < _YOUNG:
                continue
            with lock.open("rb") as stream:
                # Raises where its owner lives.
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                segment = lock.with_name(lock.name.removesuffix("_el"))
                segment.unlink(missing_ok=True)
                lock.unlink(missing_ok=True)
                yield segment
