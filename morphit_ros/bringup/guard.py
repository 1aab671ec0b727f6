"""The guard of a job: leads its process group and kills it when the supervisor is gone.

Its standard input is a pipe from the supervisor, which nobody ever writes to. However the
supervisor ends (cleanly, by an error, by SIGKILL), the pipe closes with it, and then nothing of
the group survives: neither the nodes nor what they started. What moves something gets the time to
stop it: they are interrupted first, and killed a moment later. As leader of the group it also keeps
the group's number from being given to other processes. The folder of the job, its argument, goes with it.

Run by its file: it needs the standard library only.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time

# From the interruption to the end [s]: an arm brakes in a tenth of that.
_GRACE = 0.5


def main() -> None:
    """Wait for the end of the supervisor, then end the own process group, this process included."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # The supervisor signals the whole group, and the guard is to be its last member.
        signal.signal(number, signal.SIG_IGN)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while os.read(sys.stdin.fileno(), 64):
        pass
    os.killpg(os.getpgrp(), signal.SIGINT)
    time.sleep(_GRACE)
    if folder := sys.argv[1]:
        shutil.rmtree(folder, ignore_errors=True)
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    main()
