"""Starts nodes as processes of their own that need not import anything: forks of one that has.

Much of the time until a node is ready is importing, and loading compiled kernels. This process imports what nodes
import, calls the kernels that most of them need at their start, and forks for each start. A fork reads its command line
as `python -m` would, and is a process with a session, an output and an exit status of its own.

    python node_server.py SOCKET

SOCKET is the number of an inherited socket. A request is a JSON list, the module and its arguments, with two
descriptors: where the node's output goes, and where its process number and, at its end, its return code are written as
two lines. Environment and folder are those of this process.

Tests wait for what a node has said or done, not for how long it takes to start: they must pass with any delay of it
(MORPHIT_TEST_START_DELAY [s]).
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import time
import traceback

START_DELAY = float(os.environ.get("MORPHIT_TEST_START_DELAY", "0"))
# Kernels that start no threads, which forks would lack (`morphit_ros.commands.kernels`).
WARM = ("motions", "reachability", "perception", "sphere clusters", "superovoid distances")
# Imported by nodes when they need it.
HEAVY = ("viser", "trimesh", "PIL.Image")
LARGEST_REQUEST = 1 << 20


def preload() -> None:
    import numba

    from morphit_ros.commands import kernels
    from morphit_ros.ros.core import interfaces

    for node in interfaces.NODES:
        importlib.import_module(f"morphit_ros.nodes.{node.executable}")
    for name in HEAVY:
        with contextlib.suppress(ImportError):  # what needs it says so
            importlib.import_module(name)
    # The first call of a kernel sets up the compiler, also where the kernel is read from a file.
    numba.njit(lambda x: x + 1.0)(1.0)
    for name in WARM:
        module, function = kernels.PARTS[name]
        getattr(importlib.import_module(module), function)()


def be_node(words: list[str], output: int, report: int) -> None:
    """What `python -m MODULE WORDS` does, in this process; does not return."""
    status = 1
    try:
        os.setsid()
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        # Only now can it be interrupted, alone.
        os.write(report, f"{os.getpid()}\n".encode())
        os.closerange(3, 256)
        module, *arguments = words
        # As a process of its own would import it: nothing of it has been run or changed.
        sys.modules.pop(module, None)
        sys.argv = [module, *arguments]
        time.sleep(START_DELAY)
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def keep(words: list[str], output: int, report: int) -> None:
    """Run a node and report its number and how it ended."""
    number = os.fork()
    if number == 0:
        be_node(words, output, report)
    os.close(output)
    _, status = os.waitpid(number, 0)
    os.write(report, f"{os.waitstatus_to_exitcode(status)}\n".encode())


def main() -> None:
    # Ctrl-C ends the tests, which end their nodes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    requests = socket.socket(fileno=int(sys.argv[1]))
    preload()
    # Garbage collection would copy memory that forks share.
    gc.freeze()
    while True:
        text, descriptors, _, _ = socket.recv_fds(requests, LARGEST_REQUEST, 2)
        if not text:
            os._exit(0)  # at once; taking down an interpreter with all this takes seconds
        if os.fork() == 0:
            try:
                requests.close()
                keep(json.loads(text), *descriptors)
            finally:
                os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)
        # Keepers that have ended leave nothing behind.
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


if __name__ == "__main__":
    main()
