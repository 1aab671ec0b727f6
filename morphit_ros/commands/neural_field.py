"""The object of a saved field, as `morphit neural identify` and `push` take it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from morphit_ros.neural.body import ContactBody
    from morphit_ros.neural.solid.extraction import Solid


def load_body(path: str, mass: float) -> tuple[Solid, ContactBody]:
    """The solid of a saved field, cut at the threshold that was saved with it, and the points that stand for it.

    Args:
        path: of the field (.npz).
        mass: of the object [kg].

    Raises:
        ResourceNotFoundError: there is no such file.
        InvalidInputError: what `load_learned_field` and `extract_solid` refuse, or a mass that is not positive.
    """
    from morphit_ros.neural.learning.field_file import load_learned_field
    from morphit_ros.neural.solid.extraction import extract_solid
    from morphit_ros.neural.solid.inertia import inertial_properties
    from morphit_ros.neural.solid.sampling import sample_body

    learned = load_learned_field(path)
    solid = extract_solid(learned.field, learned.threshold)
    return solid, sample_body(solid, inertial_properties(solid, mass=mass))
