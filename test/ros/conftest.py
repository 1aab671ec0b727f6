"""A ROS graph of its own for each test process: real nodes as child processes, waited for by events."""

from __future__ import annotations

import contextlib
import heapq
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Generous: a loaded machine with two cores takes half a minute to start a handful of nodes.
PATIENCE = 60.0
# An answer is lost if the server does not know the client's reader yet when it answers: then the question is repeated.
REPEAT_AFTER = 10.0
# So long after a goal was taken back its server may be busy with its end [s].
TAKEN_BACK = 1.0
# So long after a publisher knows of its subscriber that may not know of it yet [s].
MATCHING = 0.1
# A topic may come later than the answer that it belongs to. Tests must pass with any delay of it [s].
TOPIC_DELAY = float(os.environ.get("MORPHIT_TEST_TOPIC_DELAY", "0"))
# What a test publishes may come later than the question that it asks next: with a delay of it [s] goals that overtake
# what they are about are found. (Tests of how old a message may be fail then.)
PUBLISH_DELAY = float(os.environ.get("MORPHIT_TEST_PUBLISH_DELAY", "0"))


class NodeServer:
    """Starts nodes with everything imported that they need (node_server.py), one for all tests of this process."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._process: subprocess.Popen | None = None

    def start(self, words: list[str]) -> Fork:
        if self._process is None:
            self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with other:
                self._process = subprocess.Popen(
                    [sys.executable, str(Path(__file__).with_name("node_server.py")), str(other.fileno())],
                    env=self._environment, cwd=ROOT, pass_fds=[other.fileno()],
                )  # fmt: skip
        return Fork(self._socket, words)

    def close(self) -> None:
        if self._process is not None:
            self._socket.close()
            self._process.wait(PATIENCE)


class Fork:
    """A process that the server started, with what is used here of `subprocess.Popen`."""

    def __init__(self, server: socket.socket, words: list[str]) -> None:
        output, report = os.pipe(), os.pipe()
        socket.send_fds(server, [json.dumps(words).encode()], [output[1], report[1]])
        os.close(output[1])
        os.close(report[1])
        self.stdout = os.fdopen(output[0], encoding="utf-8", errors="replace")
        self._report = os.fdopen(report[0])
        self._ended = threading.Event()
        self._status = 0
        self.pid = int(self._report.readline() or pytest.fail("the server of nodes has ended"))
        threading.Thread(target=self._await_end, daemon=True).start()

    def _await_end(self) -> None:
        with self._report:
            self._status = int(self._report.readline() or -signal.SIGKILL)
        self._ended.set()

    def poll(self) -> int | None:
        return self._status if self._ended.is_set() else None

    def wait(self, timeout: float) -> int:
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return self._status

    def send_signal(self, number: int) -> None:
        # Its server may have seen its end and not said so yet.
        if not self._ended.is_set():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def new_process(words: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip


class Process:
    """A node as a child process whose output can be waited for."""

    def __init__(self, process: subprocess.Popen[str] | Fork) -> None:
        self.lines: list[str] = []
        self._new_line = threading.Condition()
        self._process = process
        self._told: set[int] = set()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    @property
    def about(self) -> str:
        """Its process, and whether that has ended."""
        status = self._process.poll()
        return f"{self._process.pid}, " + ("running" if status is None else f"ended with status {status}")

    def _read(self) -> None:
        for line in self._process.stdout:
            with self._new_line:
                self.lines.append(line.rstrip())
                self._new_line.notify_all()
        with self._new_line:
            self._new_line.notify_all()

    def wait_for_line(self, text: str, timeout: float = PATIENCE, times: int = 1) -> str:
        """The line that has a text for the `times`-th time; fails with the output if the process ends or is late."""
        deadline = time.monotonic() + timeout
        with self._new_line:
            while True:
                found = [line for line in self.lines if text in line]
                if len(found) >= times:
                    return found[times - 1]
                left = deadline - time.monotonic()
                if left <= 0.0 or not self._reader.is_alive():
                    pytest.fail(f"no line with {text!r} from the node; it printed:\n{self.output}")
                self._new_line.wait(min(left, 0.5))

    def wait(self, timeout: float = PATIENCE) -> int:
        """Exit status of a process that ends by itself."""
        status = self._process.wait(timeout)
        self._reader.join(PATIENCE)
        return status

    @contextlib.contextmanager
    def paused(self):
        """While it is not let run: what comes in that time it finds all at once."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def tell(self, number: int) -> None:
        """Send a signal to the node, once: it may come to its end while others come to theirs."""
        if number not in self._told and self._process.poll() is None:
            self._told.add(number)
            self._process.send_signal(number)

    def stop(self, number: int = signal.SIGINT) -> int:
        """End the whole group; the exit status of the node."""
        self.tell(number)
        if self._process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.wait(PATIENCE)


class Graph:
    """Starts nodes and waits for what they do."""

    # How many there are now in this process.
    _open = 0

    def __init__(self, environment: dict[str, str], server: NodeServer) -> None:
        import rclpy
        from rclpy.executors import SingleThreadedExecutor

        Graph._open += 1
        self._environment, self._server = environment, server
        self._processes: list[Process] = []
        self.node = rclpy.create_node("test_client")
        self._clients: dict = {}
        self._on_their_way: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = 0
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)

    def start(self, executable: str, node: str = "", /, fresh: bool = False, **parameters: object) -> Process:
        """A node of this package, by another name if given; dots of parameters are given as ``crop__voxel_size``.

        Args:
            fresh: in an interpreter that it starts itself, as users do; otherwise in one that has imported all.
        """
        words = [f"morphit_ros.nodes.{executable}", "--ros-args"]
        words += ["-r", f"__node:={node}"] if node else []
        for name, value in parameters.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            words += ["-p", f"{name.replace('__', '.')}:={text}"]
        if fresh:
            return self.run([sys.executable, "-m", *words])
        return self._watch(self._server.start(words))

    def run(self, words: list[str]) -> Process:
        """Any program."""
        return self._watch(new_process(words, self._environment))

    def _watch(self, started: subprocess.Popen[str] | Fork) -> Process:
        process = Process(started)
        self._processes.append(process)
        return process

    def wait_until(self, condition, timeout: float = PATIENCE, what: str = "the awaited event"):
        """Spin until a condition is true; its value."""
        deadline = time.monotonic() + timeout
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > deadline:
                outputs = "\n---\n".join(process.output for process in self._processes)
                pytest.fail(f"{what} did not happen within {timeout:g} s; the nodes printed:\n{outputs}")
            self._executor.spin_once(timeout_sec=0.05)
            self._deliver()

    def latest(self, topic, depth: int | None = None) -> list:
        """A list that receives the messages of a topic of the table.

        With its own depth a test's process that was not let run for a while misses states that lasted for a moment.
        """
        received: list = []
        receive = self._late(received.append, TOPIC_DELAY)
        self.node.create_subscription(topic.type, topic.name, receive, topic.quality.profile(depth))
        return received

    def told(self) -> list[tuple[str, str]]:
        """What each node is, or how it ended, and the last of what it printed."""
        return [(f"node {process.about}", process.output[-4000:]) for process in self._processes]

    def _late(self, deliver, delay: float):
        """The same later by a delay [s], in order."""

        def receive(message):
            self._numbers += 1
            heapq.heappush(self._on_their_way, (time.monotonic() + delay, self._numbers, partial(deliver, message)))
            self._deliver()

        return receive

    def _deliver(self) -> None:
        while self._on_their_way and self._on_their_way[0][0] <= time.monotonic():
            heapq.heappop(self._on_their_way)[2]()

    def publisher(self, topic):
        """A publisher for a topic of the table that has at least one subscriber."""
        publisher = self.node.create_publisher(topic.type, topic.name, topic.quality.profile())
        self.wait_until(publisher.get_subscription_count, what=f"a subscriber of {topic.name}")
        if topic.quality.value != "latched":
            # A publisher knows its subscriber before that knows it: what is sent meanwhile is lost.
            matched = time.monotonic()
            self.wait_until(lambda: time.monotonic() - matched > MATCHING)
        if PUBLISH_DELAY:
            publish = publisher.publish
            # Also while the test waits for something else than the graph.
            publisher.publish = lambda message: threading.Timer(PUBLISH_DELAY, publish, (message,)).start()
        return publisher

    def call(self, service, request, timeout: float = PATIENCE):
        """The response of a service of the table (or of a type and name)."""
        client = self._client(("service", service.name), lambda: self.node.create_client(service.type, service.name))
        self.wait_until(client.service_is_ready, what=f"service {service.name}")
        return self.answer(lambda: client.call_async(request), timeout, f"an answer of {service.name}")

    def send_goal(self, action, goal, timeout: float = PATIENCE, feedback=None):
        """Accepted, status and result of an action of the table; (False, None, None) if it is refused."""
        handle = self.start_goal(action, goal, timeout, feedback)
        return (True, *self.result(handle, timeout)) if handle.accepted else (False, None, None)

    def start_goal(self, action, goal, timeout: float = PATIENCE, feedback=None):
        """The handle of a goal of an action of the table, accepted or not.

        Feedback comes by its topic: an ActionClient forgets whom to tell as soon as it has the result, and what was
        said before that and is still on its way would be lost. It may come after the result.
        """
        from morphit_ros.ros.core.endpoints import new_goal_id

        client, listeners = self._client(("action", action.name), lambda: self._action_client(action))
        self.wait_until(client.server_is_ready, what=f"action {action.name}")

        asked: list = []

        def ask():
            if asked:
                # Its answer is lost; the server may have accepted it, and has nothing to do for another one meanwhile.
                client.take_back(asked[-1])
                since = time.monotonic()
                self.wait_until(lambda: time.monotonic() - since > TAKEN_BACK)
            asked.append(new_goal_id())
            if feedback is not None:
                listeners[bytes(asked[-1].uuid)] = feedback
            return client.send_goal_async(goal, goal_uuid=asked[-1])

        return self.answer(ask, timeout, f"an answer of {action.name}")

    def _action_client(self, action):
        """A client, and whom to tell of feedback by the number of the goal."""
        listeners: dict[bytes, Callable] = {}

        def tell(message):
            if (listener := listeners.get(bytes(message.goal_id.uuid))) is not None:
                listener(message)

        self.node.create_subscription(
            action.type.Impl.FeedbackMessage, f"{action.name}/_action/feedback", self._late(tell, TOPIC_DELAY), 100
        )
        return action.call(self.node), listeners

    def result(self, handle, timeout: float = PATIENCE):
        """Status and result of an accepted goal."""
        result = handle.get_result_async()
        self.wait_until(result.done, timeout, "the result of a goal")
        return result.result().status, result.result().result

    def _client(self, key, make):
        # One for the whole test: only the first question may meet a server that has just been discovered.
        if key not in self._clients:
            self._clients[key] = make()
        return self._clients[key]

    def answer(self, ask, timeout: float = PATIENCE, what: str = "an answer"):
        """The first answer to a question, which `ask` asks and tells the future of; repeated if it stays out."""
        deadline, asked = time.monotonic() + timeout, []

        def answered():
            if not asked or time.monotonic() - asked[-1][0] > REPEAT_AFTER:
                future = ask()
                asked.append((time.monotonic(), future))
            return next((future for _, future in asked if future.done()), None)

        return self.wait_until(answered, deadline - time.monotonic(), what).result()

    def close(self) -> None:
        import rclpy

        for process in self._processes:
            process.tell(signal.SIGINT)
        for process in self._processes:
            process.stop()
        self._executor.shutdown()
        for (kind, _), client in self._clients.items():
            if kind == "action":
                client[0].destroy()
        self.node.destroy_node()
        Graph._open -= 1
        if Graph._open == 0:
            # Nodes that were killed stay in this process's view of the graph for 20 s, while one of its nodes is left:
            # the next test would take them for its own that are still starting.
            rclpy.try_shutdown()
            rclpy.init()


@pytest.fixture(scope="session")
def ros_environment(tmp_path_factory):
    """Environment of child processes: this process's domain, local discovery, a cache of their own."""
    rclpy = pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
    from morphit_ros.bringup.domains import own_domain
    from morphit_ros.ros.core.runner import use_large_shared_memory

    # Of all tests that run on this machine: other processes of them, and other jobs.
    with own_domain() as domain:
        settings = {
            "ROS_DOMAIN_ID": domain,
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "OMP_NUM_THREADS": "1",
            "PYTHONUNBUFFERED": "1",
        }
        os.environ.update(settings)
        use_large_shared_memory()
        rclpy.init()
        yield {
            **os.environ,
            "MORPHIT_CACHE": str(tmp_path_factory.mktemp("cache")),
            "MORPHIT_STATE": str(tmp_path_factory.mktemp("state")),
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
        }
        rclpy.try_shutdown()


@pytest.fixture(scope="session")
def node_server(ros_environment):
    server = NodeServer(ros_environment)
    yield server
    server.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A test that fails tells what its nodes printed: a cause by chance may not come again."""
    report = yield
    running = getattr(item, "funcargs", {}).get("graph")
    if report.when == "call" and report.failed and isinstance(running, Graph):
        report.sections += running.told()
    return report


@pytest.fixture
def graph(ros_environment, node_server):
    """Nodes started in it are ended with the test, and know nothing of those of another one that failed."""
    for kept in Path(ros_environment["MORPHIT_STATE"]).iterdir():
        shutil.rmtree(kept)
    running = Graph(ros_environment, node_server)
    yield running
    running.close()


@pytest.fixture(scope="module")
def shared_graph(ros_environment, node_server):
    """Nodes started in it serve all tests of a module, for nodes that take long to start."""
    running = Graph(ros_environment, node_server)
    yield running
    running.close()
