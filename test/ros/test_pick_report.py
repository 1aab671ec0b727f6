"""What a pick's client makes of its result: the verdict, and what is written of it."""

import json

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from morphit_interfaces.action import Pick
from morphit_interfaces.msg import Grasp
from morphit_ros.ros.core.conversions import message_from_image
from morphit_ros.ros.execution.pick_report import pick_verdict, save_picture, save_report

PICKED = Pick.Result(success=True, stages=["plan", "lift"], durations=[0.5, 2.0])


@pytest.mark.parametrize(
    ("result", "heights", "words", "success"),
    [
        (PICKED, None, "PICKED", True),
        (PICKED, [0.1, 0.2, 0.25], "lifted by 0.150 m and held", True),
        (
            Pick.Result(success=True, mass=0.4, mass_deviation=0.003),
            [0.1, 0.25],
            "held; it weighs 0.400 ± 0.003 kg",
            True,
        ),
        (PICKED, [0.1, 0.3, 0.15], "rose by 0.050 m only", False),
        (PICKED, [], "nobody published object_pose", False),
        (Pick.Result(failed_stage="lift", outcome="slip", message="gone"), [0.1, 0.3], "lift (slip): gone", False),
    ],
)
def test_only_an_object_that_is_up_at_the_end_was_picked(result, heights, words, success):
    text, picked = pick_verdict(result, heights, 0.1)
    assert words in text
    assert picked is success
    assert text.startswith("PICKED" if success else "FAILED")


def test_report_and_picture_hold_what_happened(tmp_path):
    from PIL import Image

    result = Pick.Result(
        success=True, stages=["plan", "lift"], durations=[0.5, 2.0], attempt_modes=["slip", "success"],
        grasp=Grasp(metric_names=["q"], metric_values=[0.75]),
    )  # fmt: skip
    save_report(
        str(tmp_path / "report.json"), "PICKED", True, result, [0.125, 0.375], {"release": 0.5}, [0.25, 0.0, 0.0]
    )
    written = json.loads((tmp_path / "report.json").read_text())
    assert written["stages"] == {"plan": 0.5, "lift": 2.0}
    assert written["grasp"] == {"q": 0.75}
    assert (written["place_stages"], written["object_moved"]) == ({"release": 0.5}, [0.25, 0.0, 0.0])
    assert (written["object_rise"], written["attempt_modes"]) == (0.25, ["slip", "success"])
    rgb = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    save_picture(tmp_path / "pick.png", message_from_image(rgb, "world", 0.0))
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "pick.png")), rgb)
