"""Mistakes at the start of the cover's nodes are named; poses drive the control too; the browser view shows a cover."""

import urllib.request

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from diagnostic_msgs.msg import DiagnosticStatus

from morphit_ros.ros.core import interfaces

pytestmark = pytest.mark.ros


@pytest.mark.parametrize(
    ("executable", "parameters", "words"),
    [
        ("cover_control", {"rows": 1, "cols": 1}, ["1 x 1", "at least two nodes"]),
        ("cover_control", {"case": "9x9"}, ["9x9"]),
        ("cover_sim", {"case": "3x3", "cover_file": "a.json"}, ["at most one"]),
        ("cover_control", {"rows": 3, "cols": 3, "target": "x*wind"}, ["wind"]),
        ("cover_sim", {"rows": 3, "cols": 3, "start_surface": "0*x"}, ["motors"]),
    ],
)
def test_mistakes_are_named(graph, executable, parameters, words):
    process = graph.start(executable, **parameters)
    assert process.wait() == 2
    for word in words:
        assert word in process.output
    assert "Traceback" not in process.output


def test_a_chain_follows_from_poses_and_is_seen_in_the_browser(graph):
    pytest.importorskip("viser", reason="needs the browser view")
    chain = {"rows": 1, "cols": 4}
    diagnostics, commands = graph.latest(interfaces.DIAGNOSTICS), graph.latest(interfaces.COVER_COMMANDS)
    viewer = graph.start("web_viewer", scene="cover", port=0)
    graph.start("cover_sim", publish="poses", **chain)
    control = graph.start(
        "cover_control", state_source="poses", autostart=True, target="0.1*sin(3*x)", state_timeout=100.0,
        overrun_limit=200.0, **chain,
    )  # fmt: skip

    def followed():
        statuses = [s for m in diagnostics for s in m.status if s.name == "/cover_control"]
        return any(s.level == DiagnosticStatus.OK and s.message.startswith("following") for s in statuses)

    graph.wait_until(followed, what="a chain that follows its target")
    graph.wait_until(lambda: any(any(c.data) for c in commands), what="commands")
    assert len(commands[-1].data) == 9
    url = viewer.wait_for_line("view at http://").rpartition("view at ")[2].strip()
    with urllib.request.urlopen(url, timeout=20.0) as reply:
        assert reply.status == 200
    states = graph.latest(interfaces.COVER_STATE)
    graph.wait_until(lambda: len(states) > 2, what="states for displays")
    assert "not shown" not in viewer.output
    assert control.stop() == 0
    assert viewer.stop() == 0
