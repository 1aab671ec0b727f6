"""A shape that is changed while it is used: each change whole, none lost, and what was fitted before at once."""

import sys
import threading

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.robot.description import load_robot_description
from morphit_ros.spheres import LinkSpheres, SphereFitConfig, SphereModel, adaptation
from morphit_ros.spheres.adaptation import AdaptiveShape
from morphit_ros.spheres.objects.attachment import AttachedObject

DESCRIPTION = """<robot name="post">
  <link name="base"><collision><geometry><box size="0.2 0.2 0.1"/></geometry></collision></link>
  <link name="arm"><collision><geometry><cylinder radius="0.03" length="0.3"/></geometry></collision></link>
  <joint name="turn" type="fixed"><parent link="base"/><child link="arm"/></joint>
</robot>"""
ONE, TWO, THREE = (SphereFitConfig(count=count) for count in (1, 2, 3))


class Fits:
    """Instead of the fit: `count` spheres a link, and what was asked for."""

    def __init__(self):
        self.calls = []
        self.before_each_link = lambda: None

    def __call__(self, description, config, links=None, seed=0, progress=None, start=None):
        self.calls.append((config.count, seed, tuple(links or ()), start))
        fitted = {}
        chosen = [name for name in description.links if links is None or name in links]
        for done, name in enumerate(chosen):
            self.before_each_link()
            if config.count == 13:
                raise InvalidInputError("count", 13, "another number")
            fitted[name] = LinkSpheres(
                name, np.zeros((config.count, 3)), np.ones(config.count), 0.0, 0.0, f"{config.count} {seed}"
            )
            if progress is not None:
                progress(name, done + 1, len(chosen))
        kept = {} if start is None else {name: link for name, link in start.links.items() if name not in fitted}
        return SphereModel(description.name, config.variant, {**kept, **fitted})


@pytest.fixture
def fits(monkeypatch):
    fake = Fits()
    monkeypatch.setattr(adaptation, "fit_robot_spheres", fake)
    return fake


@pytest.fixture
def description():
    return load_robot_description(DESCRIPTION)


@pytest.fixture
def published():
    return []


@pytest.fixture
def adaptive(fits, description, published):
    shape = AdaptiveShape(published.append)
    shape.describe(description, ONE)
    return shape


def counts(shape):
    return {name: len(link.radii) for name, link in shape.model.links.items()}


def box(name="box", link="arm"):
    return AttachedObject(name, link, np.zeros((1, 3)), np.full(1, 0.1))


def attach(adaptive, name="box", link="arm"):
    return adaptive.attach(name, link, lambda: box(name, link))


def test_every_change_is_published_in_order(adaptive, published):
    shapes = [adaptive.shape, adaptive.adapt(TWO), attach(adaptive), adaptive.switch(ONE), adaptive.detach("box")]
    assert published == shapes
    assert adaptive.shape is shapes[-1]
    assert [len(shape.attached) for shape in shapes] == [0, 0, 1, 1, 0]
    assert counts(shapes[3]) == {"base": 1, "arm": 1}


def test_what_was_fitted_before_is_there_without_a_fit(adaptive, fits):
    assert adaptive.switch(TWO) is None
    first = adaptive.shape.content_hash
    adaptive.adapt(TWO)
    adaptive.adapt(TWO, seed=1)
    done = len(fits.calls)
    assert adaptive.switch(ONE).content_hash == first
    assert counts(adaptive.adapt(TWO)) == {"base": 2, "arm": 2}
    assert adaptive.switch(TWO, seed=1) is not None
    assert adaptive.switch(TWO, seed=2) is None
    assert len(fits.calls) == done


def test_links_fitted_apart_are_not_taken_for_a_whole_robot(adaptive, fits):
    adaptive.adapt(TWO, links=["arm"])
    assert counts(adaptive.shape) == {"base": 1, "arm": 2}
    assert adaptive.switch(TWO) is None
    # From the present spheres: the result depends on them.
    before = adaptive.shape.model
    adaptive.adapt(THREE, links=["arm"], warm_start=True)
    assert fits.calls[-1][3] is before
    assert counts(adaptive.shape) == {"base": 1, "arm": 3}
    adaptive.adapt(TWO, warm_start=True)
    assert adaptive.switch(TWO) is None
    assert counts(adaptive.switch(ONE)) == {"base": 1, "arm": 1}


def test_a_fit_that_fails_or_is_ended_changes_nothing(adaptive, published):
    class Ended(Exception):
        pass

    def end(_link, _done, _total):
        raise Ended

    before = adaptive.shape
    with pytest.raises(Ended):
        adaptive.adapt(TWO, progress=end)
    with pytest.raises(InvalidInputError):
        adaptive.adapt(SphereFitConfig(count=13))
    with pytest.raises(InvalidInputError):
        adaptive.describe(load_robot_description(DESCRIPTION), SphereFitConfig(count=13))
    assert adaptive.shape is before
    assert published == [before]
    assert adaptive.switch(TWO) is None
    assert counts(adaptive.adapt(TWO)) == {"base": 2, "arm": 2}


def test_what_cannot_be_published_is_not_taken(adaptive, published, description):
    attach(adaptive)
    before = adaptive.shape

    def refuse(_shape):
        raise InvalidInputError("shape", "one", "another")

    publish, adaptive._changed = adaptive._changed, refuse
    for change in (
        lambda: adaptive.adapt(TWO),
        lambda: adaptive.switch(ONE),
        lambda: adaptive.describe(description, THREE),
        lambda: attach(adaptive, "cup"),
        lambda: adaptive.detach("box"),
    ):
        with pytest.raises(InvalidInputError, match="another"):
            change()
        assert adaptive.shape is before
    adaptive._changed = publish
    # Nor is it known: what was known before still is.
    assert adaptive.switch(TWO) is None
    assert adaptive.switch(THREE) is None
    assert adaptive.switch(ONE) is not None


@pytest.mark.parametrize("anew", [False, True], ids=["adapt", "describe"])
def test_a_fit_that_was_overtaken_at_its_end_is_not_taken(adaptive, published, description, anew):
    """A switch that comes after the last link is finished, and before the model is taken."""

    class Overtaken(Exception):
        pass

    switching, wanted = threading.Event(), [TWO]

    def publish(shape):
        published.append(shape)
        switching.set()
        # The fit is waiting for this change now.
        fit_at_its_end.wait(30.0)

    def progress(_link, done, total):
        if done == total:
            wanted[0] = ONE
            threads.append(threading.Thread(target=adaptive.switch, args=(ONE,)))
            threads[-1].start()
            assert switching.wait(30.0)
            fit_at_its_end.set()

    def check():
        if wanted[0] is not TWO:
            raise Overtaken

    threads, fit_at_its_end = [], threading.Event()
    adaptive._changed = publish
    with pytest.raises(Overtaken):
        if anew:
            adaptive.describe(description, TWO, progress=progress, check=check)
        else:
            adaptive.adapt(TWO, progress=progress, check=check)
    threads[0].join(30.0)
    assert counts(adaptive.shape) == {"base": 1, "arm": 1}
    assert adaptive.shape is published[-1]
    assert adaptive.switch(TWO) is None


def test_another_robot_starts_anew_and_keeps_what_it_can_carry(adaptive):
    adaptive.adapt(TWO)
    attach(adaptive)
    attach(adaptive, "cup", "base")
    other = load_robot_description(DESCRIPTION.replace('"arm"', '"pole"'))
    shape = adaptive.describe(other, ONE)
    assert list(shape.attached) == ["cup"]
    assert adaptive.switch(TWO) is None


def test_attaching_and_switching_do_not_wait_for_a_fit(adaptive, fits):
    adaptive.adapt(TWO)
    adaptive.adapt(ONE)
    fitting, go_on = threading.Event(), threading.Event()

    def wait():
        fitting.set()
        assert go_on.wait(30.0)

    fits.before_each_link = wait
    worker = threading.Thread(target=adaptive.adapt, args=(THREE,), kwargs={"links": ["arm"]})
    worker.start()
    assert fitting.wait(30.0)
    attach(adaptive)
    assert counts(adaptive.switch(TWO)) == {"base": 2, "arm": 2}
    go_on.set()
    worker.join(30.0)
    # Nothing of what happened meanwhile is lost.
    assert counts(adaptive.shape) == {"base": 2, "arm": 3}
    assert list(adaptive.shape.attached) == ["box"]


@pytest.fixture
def restless_threads():
    """Threads that take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_changes_from_many_threads_do_not_interleave(adaptive, published, restless_threads):
    for config in (TWO, THREE):
        adaptive.adapt(config)
    open_changes, seen, errors = [], [], []

    def publish(shape):
        open_changes.append(shape)
        published.append(shape)
        assert shape.content_hash
        seen.append(len(open_changes))
        open_changes.pop()

    adaptive._changed = publish

    def switch(offset):
        for turn in range(60):
            adaptive.switch((ONE, TWO, THREE)[(turn + offset) % 3])

    def carry(name):
        try:
            for _ in range(30):
                attach(adaptive, name)
                adaptive.detach(name)
        except InvalidInputError as error:
            errors.append(error)

    threads = [threading.Thread(target=switch, args=(offset,)) for offset in range(3)]
    threads += [threading.Thread(target=carry, args=(name,)) for name in ("mug", "cup")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert not errors, "a change was lost"
    assert set(seen) == {1}
    assert len(seen) == 3 * 60 + 2 * 60
    assert all(len(set(counts(shape).values())) == 1 for shape in published), "spheres of two variants in one model"
    assert adaptive.shape is published[-1]
    assert not adaptive.shape.attached


def test_before_a_description_nothing_can_be_done(fits):
    empty = AdaptiveShape(lambda _: None)
    for change in (
        lambda: empty.adapt(ONE),
        lambda: attach(empty),
        lambda: empty.detach("box"),
    ):
        with pytest.raises(InvalidInputError, match="robot_description"):
            change()
    assert empty.switch(ONE) is None
    assert empty.shape is None


def test_an_object_is_made_only_if_it_can_be_attached(adaptive):
    def make():
        raise AssertionError("made")

    with pytest.raises(InvalidInputError, match="elbow"):
        adaptive.attach("box", "elbow", make)


def test_only_so_many_models_are_kept(adaptive, monkeypatch):
    monkeypatch.setattr(adaptation, "_MOST_KNOWN", 2)
    adaptive.adapt(TWO)
    adaptive.switch(ONE)
    adaptive.adapt(THREE)
    assert adaptive.switch(TWO) is None
    assert adaptive.switch(ONE) is not None


def test_with_real_fits(description, monkeypatch, tmp_path):
    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path))
    quick = {"count": 3, "iterations": 5, "starts": 1, "rounds": 0, "interior_samples": 200, "surface_samples": 200}
    balanced, volume = SphereFitConfig(**quick), SphereFitConfig(**quick, variant="volume")
    adaptive = AdaptiveShape(lambda _: None)
    first = adaptive.describe(description, balanced)
    second = adaptive.adapt(volume)
    assert second.model.variant == "volume"
    assert second.content_hash != first.content_hash
    back = adaptive.switch(balanced)
    assert back.content_hash == first.content_hash
    mixed = adaptive.adapt(volume, links=["arm"])
    assert mixed.model.links["base"] is first.model.links["base"]
    np.testing.assert_array_equal(mixed.model.links["arm"].radii, second.model.links["arm"].radii)
    warm = adaptive.adapt(balanced, links=["arm"], warm_start=True)
    assert warm.model.links["base"] is first.model.links["base"]
    assert len(warm.model.links["arm"].radii) == 3
