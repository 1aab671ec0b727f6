"""Edited spheres: each operation changes what it says and nothing else; refits keep locked spheres to the bit; undo."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.spheres import LinkSpheres, SphereModel
from morphit_ros.spheres.editing import EditedLink, EditedModel, EditHistory, edited_from_model, model_from_edited


def link(count: int = 5, seed: int = 0) -> EditedLink:
    rng = np.random.default_rng(seed)
    return EditedLink(rng.normal(size=(count, 3)), rng.uniform(0.1, 0.2, count))


def new_spheres(
    count: int, variant: str, centers: np.ndarray, radii: np.ndarray, locked: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A fit that does as told: the locked ones, then others at random."""
    free = count - int(locked.sum())
    rng = np.random.default_rng(count)
    return (
        np.concatenate([centers[locked], rng.normal(size=(free, 3))]),
        np.concatenate([radii[locked], rng.uniform(0.1, 0.2, free)]),
    )


OPERATIONS: dict[str, tuple[Callable[[EditedLink], EditedLink], set[str]]] = {
    "moved": (lambda spheres: spheres.moved(2, (1, 2, 3)), {"centers"}),
    "resized": (lambda spheres: spheres.resized(2, 0.5), {"radii"}),
    "locked": (lambda spheres: spheres.with_lock(2, True), {"locked"}),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_changes_one_row_of_one_array(name: str) -> None:
    operation, changed = OPERATIONS[name]
    before = link()
    copies = {field: getattr(before, field).copy() for field in ("centers", "radii", "locked")}
    after = operation(before)
    for field, copy in copies.items():
        np.testing.assert_array_equal(getattr(before, field), copy, err_msg="the state before was changed")
        differs = (getattr(after, field) != copy).reshape(5, -1).any(axis=1)
        np.testing.assert_array_equal(differs, (np.arange(5) == 2) & (field in changed), err_msg=field)


def test_values_arrive_where_they_were_sent() -> None:
    spheres = link().moved(1, (1, 2, 3)).resized(4, 0.7).with_lock(0, True).with_variant("volume")
    np.testing.assert_array_equal(spheres.centers[1], (1, 2, 3))
    assert spheres.radii[4] == 0.7
    assert spheres.locked.tolist() == [True, False, False, False, False]
    assert spheres.variant == "volume"
    assert not spheres.with_lock(0, False).locked.any()
    assert spheres.with_all_locks(True).locked.all()


def test_adding_and_removing_are_inverse() -> None:
    before = link().with_lock(1, True)
    longer = before.added((1, 1, 1), 0.3, locked=True)
    assert len(longer) == 6
    assert longer.locked.tolist() == [False, True, False, False, False, True]
    back = longer.removed(5)
    assert back.same_spheres(before.centers, before.radii)
    np.testing.assert_array_equal(back.locked, before.locked)
    shorter = before.removed(0)
    np.testing.assert_array_equal(shorter.centers, before.centers[1:])
    assert shorter.locked.tolist() == [True, False, False, False]


def test_arrays_cannot_be_changed_in_place() -> None:
    source = np.zeros((1, 3))
    spheres = EditedLink(source, np.ones(1))
    source[:] = 9.0
    assert not spheres.centers.any()
    for array in (spheres.centers, spheres.radii, spheres.locked):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 1


@pytest.mark.parametrize("count", [2, 3, 5, 12])
def test_a_refit_keeps_locked_spheres_to_the_bit_and_the_count(count: int) -> None:
    before = link().with_lock(1, True).with_lock(4, True)
    after = before.refitted(new_spheres, count)
    assert len(after) == count
    np.testing.assert_array_equal(after.centers[:2], before.centers[[1, 4]])
    np.testing.assert_array_equal(after.radii[:2], before.radii[[1, 4]])
    np.testing.assert_array_equal(after.locked, np.arange(count) < 2)
    assert [before.row_after_refit(row) for row in range(5)] == [None, 0, None, None, 1]


def test_a_refit_without_count_keeps_it_and_tells_the_fit_everything() -> None:
    told = []

    def fit(*given: object) -> tuple[np.ndarray, np.ndarray]:
        told.append(given)
        return new_spheres(*given)  # type: ignore[arg-type]

    before = link().with_lock(3, True).with_variant("surface")
    assert len(before.refitted(fit)) == 5
    (count, variant, centers, radii, locked) = told[0]
    assert (count, variant) == (5, "surface")
    np.testing.assert_array_equal(centers, before.centers)
    np.testing.assert_array_equal(radii, before.radii)
    np.testing.assert_array_equal(locked, before.locked)
    # With nothing free there is nothing to fit.
    assert before.refitted(fit, 1).same_spheres(before.centers[3:4], before.radii[3:4])
    assert len(told) == 1


def test_counts_that_cannot_be_are_refused() -> None:
    before = link().with_lock(0, True).with_lock(1, True)
    with pytest.raises(InvalidInputError, match=r"at least 2.*Unlock"):
        before.refitted(new_spheres, 1)
    for count in (0, -3):
        with pytest.raises(InvalidInputError, match="at least 1"):
            link().refitted(new_spheres, count)


def test_a_fit_that_moves_a_locked_sphere_or_miscounts_is_refused() -> None:
    before = link().with_lock(2, True)

    def moves(*given: object) -> tuple[np.ndarray, np.ndarray]:
        centers, radii = new_spheres(*given)  # type: ignore[arg-type]
        return centers + 1e-9, radii

    def loses(count: int, *others: object) -> tuple[np.ndarray, np.ndarray]:
        return new_spheres(count - 1, *others)  # type: ignore[arg-type]

    for fit in (moves, loses):
        with pytest.raises(InvalidInputError, match="fit"):
            before.refitted(fit)  # type: ignore[arg-type]


def test_bad_spheres_and_rows_are_named() -> None:
    for centers, radii in (
        (np.empty((0, 3)), np.empty(0)),
        (np.zeros((1, 3)), [0.0]),
        (np.zeros((1, 3)), [np.nan]),
        (np.full((1, 3), np.inf), [1.0]),
        (np.zeros((2, 3)), [1.0]),
    ):
        with pytest.raises(InvalidInputError):
            EditedLink(centers, radii)
    with pytest.raises(InvalidInputError, match="locked"):
        EditedLink(np.zeros((2, 3)), np.ones(2), np.ones(3, dtype=bool))
    spheres = link()
    for row in (-1, 5):
        for operation in (
            lambda row=row: spheres.moved(row, (0, 0, 0)),
            lambda row=row: spheres.resized(row, 1.0),
            lambda row=row: spheres.with_lock(row, True),
            lambda row=row: spheres.removed(row),
        ):
            with pytest.raises(InvalidInputError, match="0 to 4"):
                operation()
    with pytest.raises(InvalidInputError, match="center"):
        spheres.moved(0, (1, 2))
    for radius in (0.0, -1.0, float("nan")):
        with pytest.raises(InvalidInputError, match="radii"):
            spheres.resized(0, radius)
    with pytest.raises(InvalidInputError, match="last one"):
        link(1).removed(0)


def test_other_links_are_left_as_they_are() -> None:
    model = EditedModel({"a": link(3), "b": link(4)})
    changed = model.with_link("a", model["a"].removed(0))
    assert changed["b"] is model["b"]
    assert (model.count, changed.count) == (7, 6)
    with pytest.raises(InvalidInputError, match="one of a, b"):
        model.with_link("c", link())


def test_undo_and_redo_walk_through_all_states() -> None:
    states = [EditedModel({"a": link(3, seed)}) for seed in range(5)]
    history = EditHistory(states[0])
    for state in states[1:]:
        history = history.changed(state)
    seen = [history.present]
    while history.past:
        history = history.undone()
        seen.append(history.present)
    assert seen == states[::-1]
    assert history.undone() is history
    for state in states[1:]:
        history = history.redone()
        assert history.present is state
    assert history.redone() is history
    # A new step after an undo drops what was undone.
    branched = history.undone().changed(states[0])
    assert branched.redone() is branched
    assert branched.undone().present is states[3]


def test_merged_steps_are_undone_together() -> None:
    states = [EditedModel({"a": link(3, seed)}) for seed in range(4)]
    history = EditHistory(states[0]).changed(states[1]).changed(states[2], merged=True).changed(states[3], merged=True)
    assert history.present is states[3]
    assert history.undone().present is states[0]
    assert EditHistory(states[0]).changed(states[1], merged=True).undone().present is states[0]


def test_the_past_has_an_end() -> None:
    history = EditHistory(EditedModel({"a": link()}))
    for seed in range(300):
        history = history.changed(EditedModel({"a": link(2, seed)}))
    assert len(history.past) == 200


def sphere_model() -> SphereModel:
    links = {name: LinkSpheres(name, link(3).centers, link(3).radii, 0.1, 0.2, f"hash {name}") for name in "ab"}
    return SphereModel("robot", "balanced", links)


def test_a_model_goes_through_an_edit_unchanged() -> None:
    original = sphere_model()

    def never(name: str, spheres: EditedLink) -> tuple[float, float]:
        raise AssertionError("nothing changed: there is nothing to measure")

    back = model_from_edited(edited_from_model(original), original, never)
    assert back.content_hash == original.content_hash
    assert all(back.links[name] is original.links[name] for name in "ab")


def test_what_changed_gets_new_figures_hash_and_variant() -> None:
    original = sphere_model()
    edited = edited_from_model(original)
    moved = edited.with_link("a", edited["a"].moved(0, (9, 9, 9)))
    model = model_from_edited(moved, original, lambda name, spheres: (0.3, 0.4))
    assert (model.links["a"].d_avg, model.links["a"].d_max) == (0.3, 0.4)
    np.testing.assert_array_equal(model.links["a"].centers[0], (9, 9, 9))
    assert model.links["a"].content_hash != original.links["a"].content_hash
    assert model.links["b"] is original.links["b"]
    assert model.variant == "balanced"
    other = moved.with_link("a", moved["a"].with_variant("volume"))
    mixed = model_from_edited(other, original, lambda name, spheres: (0.3, 0.4))
    assert mixed.variant == "mixed"
    assert {spheres.variant for spheres in edited_from_model(mixed).links.values()} == {"balanced"}
