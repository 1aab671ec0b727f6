"""The guard of a job: leads its process group and kills it when the supervisor is gone.

Its standard input is a pipe from the supervisor, which nobody ever writes to. However the
supervisor ends (cleanly, by an error, by SIGKILL), the pipe closes with it, and then nothing of
the group survives: neither the nodes nor what they started. As leader of the group it also keeps
the group's number from being given to other processes.

Run by its file: it needs the standard library only.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Wait for the end of the supervisor, then kill the own process group, this process included."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # The supervisor signals the whole group, and the guard is to be its last member.
        signal.signal(number, signal.SIG_IGN)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while os.read(sys.stdin.fileno(), 64):
        pass
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    main()
