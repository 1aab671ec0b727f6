"""What was refused is said until a good one of the same kind comes."""

import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.ros.distance.refusals import Refusals


def test_a_good_message_of_another_kind_takes_back_nothing():
    refused = Refusals()
    assert str(refused) == ""
    with refused.of("sphere_model", "what was carried before is kept"):
        raise InvalidInputError("link", "'claw'", "a link of the robot")
    with refused.of("people"):
        pass
    assert str(refused).startswith("sphere_model refused, what was carried before is kept: link: got 'claw'")
    with refused.of("people"):
        raise InvalidInputError("frame", "'map'", "'world'")
    assert "sphere_model refused" in str(refused) and "people refused: frame" in str(refused)
    for kind in ("sphere_model", "people"):
        with refused.of(kind):
            pass
    assert str(refused) == ""


def test_other_errors_are_not_swallowed():
    refused = Refusals()
    with pytest.raises(ZeroDivisionError), refused.of("people"):
        raise ZeroDivisionError
