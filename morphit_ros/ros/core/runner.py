"""Start, spin and end a node: the same clean way for every executable.

A caller's mistake at start (a bad parameter, a missing file) ends the process with one line and
exit status 2; Ctrl-C and SIGTERM end it with status 0.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import NoReturn, Protocol

import rclpy
from rclpy.action import ActionClient, ActionServer
from rclpy.executors import Executor, ExternalShutdownException, MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNodeMixin
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args

from morphit_ros.bringup.shared_memory import remove_dead_segments
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.resources import hold_name, resource
from morphit_ros.ros.core.alive import LifeSign
from morphit_ros.ros.core.clocks import SimulatedClock
from morphit_ros.ros.core.endpoints import watch_events_seldom
from morphit_ros.ros.core.finished import NodeFinished
from morphit_ros.ros.core.motion_transport import use_datagrams


class _StopSignals:
    """SIGINT and SIGTERM: interrupt a node that is being made, and are noted while it runs.

    rclpy's own handlers close the context at once: then a node that moves something cannot say stop any more.
    """

    def __init__(self) -> None:
        self.received = False
        self.interrupt = True
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._receive)

    def _receive(self, _number: int, _frame: object) -> None:
        self.received = True
        if self.interrupt:
            raise KeyboardInterrupt


# Python handles a signal when the main thread is back from waiting in C, so it must not wait for long.
_LONGEST_WAIT = 0.1
# As a shell says it of a program that was interrupted.
_INTERRUPTED = 130
# malloc.h
_M_MMAP_THRESHOLD = -3
# The supervisor and ros2 launch give a process a few seconds.
_STOP_PATIENCE = 1.0
# All that an end takes, and still before the supervisor and ros2 launch send the next signal [s].
_END_PATIENCE = 4.0
# Readers learn of a publisher's end in another thread than they receive in: one that goes at once overtakes what it
# said last, such as that it leaves, and is taken for dead. Under load 3 of 36 such words were lost, with this pause
# none of 75 [s].
_LAST_WORDS = 0.1
# With Python's own 5 ms a thread that has something due (a heartbeat, the watch over a motion) waited up to 0.2 s for
# threads that receive and plan; with this one 0.06 s [s].
_SWITCH_INTERVAL = 0.0005


def _destroy(node: Node) -> None:
    """Take a node off the graph.

    `destroy_node` leaves actions and the state machine of a lifecycle node alone, and as long as they hold the
    node its participant stays: others would take it for alive, and send it requests, until its lease runs out.
    """
    for waitable in list(node.waitables):
        if isinstance(waitable, (ActionClient, ActionServer)):
            waitable.destroy()
    node.destroy_node()
    if isinstance(node, LifecycleNodeMixin):
        node._state_machine = None


class MovesRobot(Protocol):
    """A node that must bring motion to an end before it goes."""

    def end_motion(self) -> None:
        """Tell the robot to stop."""

    def motion_ended(self) -> bool:
        """Whether that has reached it."""


def _hold_full_name(node: Node, held: contextlib.ExitStack) -> None:
    """Refuse a second node of the same name in a domain: clients would reach one of the two, nobody knows which.

    A lock tells at once, and is gone with a process that was killed; the graph would still show that for 20 s. It does
    not see other machines.

    Raises:
        InvalidInputError: there is one.
    """
    domain, name = os.environ.get("ROS_DOMAIN_ID") or "0", node.get_fully_qualified_name()
    if not held.enter_context(hold_name("nodes", f"{domain} {name}")):
        remedy = "End the other job, or give this one a namespace or a ROS_DOMAIN_ID of its own."
        bound = f"one node of this name in ROS domain {domain}"
        raise InvalidInputError(name, "a second one on this machine", bound, remedy)


def _end_motion(node: Node, executor: Executor) -> None:
    """Stop what the node moves, while answers can still be received."""
    if not hasattr(node, "end_motion"):
        return
    moving: MovesRobot = node
    moving.end_motion()
    deadline = monotonic() + _STOP_PATIENCE
    while not moving.motion_ended() and monotonic() < deadline:
        executor.spin_once(timeout_sec=0.02)


def use_large_shared_memory() -> None:
    """Let Fast DDS pass whole clouds through shared memory in this process; before `rclpy.init`.

    Of no effect where FASTRTPS_DEFAULT_PROFILES_FILE is set already, or with another middleware.
    """
    os.environ.setdefault("FASTRTPS_DEFAULT_PROFILES_FILE", str(resource("config/fastdds.xml")))


def keep_memory_flat() -> None:
    """Give memory of large messages back at once, with glibc.

    Its threshold above which blocks are mapped by themselves grows with what is freed, up to 32 MB. Clouds then go
    into the heaps of the threads that receive them, and these grow and fray over hours.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "gnu_get_libc_version"):
        libc.mallopt(_M_MMAP_THRESHOLD, 1 << 20)


def _answer_arguments(make_node: Callable[[], Node], args: Sequence[str]) -> None:
    """Print the help if asked for it, and refuse what no node takes: nothing may start, or move, by a word misread."""
    words = remove_ros_args(args)[1:]
    if not words:
        return
    module = sys.modules[make_node.__module__]
    name = Path(module.__file__ or "node").stem
    usage = f"usage: ros2 run morphit_ros {name} [--ros-args -p PARAMETER:=VALUE ... -r __ns:=/NAMESPACE]"
    if set(words) <= {"-h", "--help"}:
        print(f"{usage}\n\n{module.__doc__}\n\nparameters:")
        for config in getattr(module, "CONFIGS", ()):
            for parameter, (default, info) in config.flat_fields().items():
                print(f"  {parameter} ({default!r}; {info.bound}): {info.description}")
        raise SystemExit(0)
    print(
        f"{name}: {' '.join(words)}: only ROS arguments are taken; --help lists the parameters\n{usage}",
        file=sys.stderr,
    )
    raise SystemExit(2)


def run_node(
    make_node: Callable[[], Node],
    args: Sequence[str] | None = None,
    threads: int = 2,
    serves: bool = True,
    datagrams: bool = False,
) -> NoReturn:
    """Run a node until it is told to stop, then end the process.

    Args:
        make_node: constructor of the node; may raise a MorphitError.
        args: command line, None for the process's own.
        threads: worker threads of the executor; with 1 all callbacks run in the calling thread.
        serves: whether others may wait for it, and are to know that it lives.
        datagrams: whether it moves something, and uses no shared memory (`morphit_ros.ros.core.motion_transport`).

    The exit status is 0 after an ordinary end and after ``--help``, 2 for a caller's mistake at start, or what the node
    says in `NodeFinished`; 130 if a node that does not serve was told to stop before it has finished.
    """
    _answer_arguments(make_node, sys.argv if args is None else args)
    if not (datagrams and use_datagrams()):
        use_large_shared_memory()
    remove_dead_segments()
    keep_memory_flat()
    rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    if threads > 1:
        sys.setswitchinterval(_SWITCH_INTERVAL)
    signals = _StopSignals()
    node: Node | None = None
    # With one thread everything runs in this one: OpenGL contexts belong to the thread that made them.
    executor = MultiThreadedExecutor(num_threads=threads) if threads > 1 else SingleThreadedExecutor()
    life: LifeSign | None = None
    clock: SimulatedClock | None = None
    # Who asks for one thing and is told to stop has not got it.
    status, stopped = 0, 0 if serves else _INTERRUPTED
    held = contextlib.ExitStack()
    try:
        node = make_node()
        _hold_full_name(node, held)
        clock = SimulatedClock(node)
        watch_events_seldom(node)
        executor.add_node(node)
        life = LifeSign(node) if serves else None
        signals.interrupt = False
        while rclpy.ok() and not signals.received:
            executor.spin_once(timeout_sec=_LONGEST_WAIT)
        status = stopped
    except MorphitError as error:
        print(f"{getattr(make_node, '__name__', 'node')}: {error}", file=sys.stderr)
        status = 2
    except NodeFinished as finished:
        status = finished.exit_status
    except (KeyboardInterrupt, ExternalShutdownException):
        status = stopped
    except Exception:
        # A compiler that is interrupted while the node is made says so by an error of its own.
        if node is not None or not signals.received:
            raise
        status = stopped
    finally:
        # From here on a second signal changes nothing: the end is under way.
        signals.interrupt = False
        # The middleware may hang while it is taken down. The robot is at rest by then: say where it hangs, and go.
        faulthandler.dump_traceback_later(_END_PATIENCE, exit=True)
        if node is not None:
            _end_motion(node, executor)
        if life is not None:
            life.end()
        if clock is not None:
            clock.end()
        sleep(_LAST_WORDS)
        # Executor.shutdown of rclpy 7 does not wait for its worker threads, and a callback of a destroyed node crashes.
        executor._work_tracker.wait(timeout_sec=2.0)
        executor.shutdown(timeout_sec=0.0)
        if node is not None:
            _destroy(node)
        rclpy.try_shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    # Node and context are closed. Taking down an interpreter that holds torch, numba and MuJoCo takes seconds more
    # and runs the static destructors of them all, some of which crash: a stop has to be quick and clean.
    os._exit(status)
