"""What a node logs of its state: what changed, and nothing twice."""

from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from builtin_interfaces.msg import Time

from morphit_ros.ros.core.diagnostics import ERROR, OK, WARN, Diagnostics


class Node:
    """Keeps what a node would publish and log."""

    def __init__(self) -> None:
        self.published, self.logged, self.timers = [], [], []

    def create_publisher(self, *_):
        return SimpleNamespace(publish=lambda message: self.published.append(message.status[0].message))

    def create_timer(self, period, callback, **_):
        self.timers.append((period, callback))

    def pass_a_second(self):
        for period, callback in self.timers:
            assert period == 1.0
            callback()

    def get_clock(self):
        return SimpleNamespace(now=lambda: SimpleNamespace(to_msg=Time))

    def get_fully_qualified_name(self):
        return "/node"

    def get_logger(self):
        return SimpleNamespace(info=self.logged.append, warning=self.logged.append, error=self.logged.append)


@pytest.fixture
def node():
    return Node()


def test_a_text_is_logged_when_it_changes(node):
    diagnostics = Diagnostics(node)
    for level, text in ((WARN, "no object"), (WARN, "no object"), (OK, "1 object"), (ERROR, "no cloud")):
        diagnostics.report(level, text)
    assert node.logged == ["no object", "1 object", "no cloud"]
    assert len(node.published) == 4


def test_other_numbers_every_period_are_published_but_not_logged(node):
    diagnostics = Diagnostics(node)
    texts = [f"{count} points above the table, {count} dropped, 1.{count} s" for count in (19, 18, 210)]
    for text in [*texts, "1 object", texts[0]]:
        diagnostics.report(WARN, text, periodic=True)
    assert node.published == [*texts, "1 object", texts[0]]
    # What comes back after something else is news.
    assert node.logged == [texts[0], "1 object", texts[0]]


def test_other_numbers_of_a_single_answer_are_news(node):
    diagnostics = Diagnostics(node)
    for text in ("12 grasps", "13 grasps"):
        diagnostics.report(OK, text)
    assert node.logged == ["12 grasps", "13 grasps"]


def test_who_listens_later_hears_the_last_status_and_the_log_does_not_repeat_it(node):
    diagnostics = Diagnostics(node)
    node.pass_a_second()
    assert node.published == []
    diagnostics.report(WARN, "no object")
    # Said within this second: not doubled.
    node.pass_a_second()
    assert node.published == ["no object"]
    node.pass_a_second()
    node.pass_a_second()
    assert node.published == ["no object"] * 3
    diagnostics.report(OK, "1 object")
    node.pass_a_second()
    node.pass_a_second()
    assert node.published[3:] == ["1 object"] * 2
    assert node.logged == ["no object", "1 object"]
