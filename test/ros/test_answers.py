"""Asking a service until it answers: lost answers, late answers, no service."""

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from rclpy.task import Future

from morphit_ros.ros.core.answers import ask


class Server:
    """Client and executor at once: each spin works off what is due by then."""

    def __init__(self, ready_at=0, answers=()):
        # Spin → number of the request whose answer arrives.
        self.ready_at, self.answers = ready_at, dict(answers)
        self.spins, self.asked, self.dropped = 0, [], []

    def service_is_ready(self):
        return self.spins >= self.ready_at

    def call_async(self, request):
        assert self.service_is_ready()
        assert request == "question"
        self.asked.append(Future())
        return self.asked[-1]

    def spin_once(self, timeout_sec):
        if self.spins in self.answers:
            number = self.answers[self.spins]
            self.asked[number].set_result(f"answer {number}")
        self.spins += 1

    def remove_pending_request(self, future):
        self.dropped.append(future)


def ask_it(server, timeout=5.0, repeat_after=0.0):
    return ask(server, "question", server, timeout, repeat_after)


def test_the_answer_of_an_earlier_request_counts():
    # As of a busy server: whenever an answer comes, the question has been asked again already.
    server = Server(answers={3: 0})
    assert ask_it(server) == "answer 0"
    assert len(server.asked) == 4
    assert server.dropped == server.asked


def test_a_lost_answer_is_asked_for_again():
    assert ask_it(Server(ready_at=2, answers={6: 1})) == "answer 1"


def test_not_asked_again_before_it_is_time():
    server = Server(answers={50: 0})
    assert ask_it(server, repeat_after=60.0) == "answer 0"
    assert len(server.asked) == 1


@pytest.mark.parametrize("ready_at", [0, 10**9])
def test_no_answer_in_time(ready_at):
    assert ask_it(Server(ready_at), timeout=0.05, repeat_after=60.0) is None
