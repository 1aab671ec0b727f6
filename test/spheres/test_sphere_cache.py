"""Fits kept on disk: used again, ignored when damaged, whole after an interrupt."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from morphit_ros.robot.description import load_robot_description
from morphit_ros.spheres import SphereFitConfig, fit_robot_spheres
from morphit_ros.spheres.links.cache import ShapeFit, fit_key, keep_fit, read_fit

QUICK = SphereFitConfig(count=6, primitive_count=3, iterations=30, rounds=1, starts=1)

ROBOT = """<robot name="r">
  <link name="a"><collision><geometry><box size="0.1 0.06 0.2"/></geometry></collision></link>
  <link name="b"><collision><geometry><cylinder radius="0.05" length="0.2"/></geometry></collision></link>
  <joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint>
</robot>"""

FIT = ShapeFit(np.arange(12.0).reshape(4, 3), np.array([0.1, 0.2, 0.3, 0.4]), 0.01, 0.05, None, "some-key")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path))
    return tmp_path / "spheres"


def equal_models(first, second):
    assert first.content_hash == second.content_hash
    assert list(first.links) == list(second.links)
    for name, link in first.links.items():
        other = second.links[name]
        np.testing.assert_array_equal(link.centers, other.centers)
        np.testing.assert_array_equal(link.radii, other.radii)
        assert (link.d_avg, link.d_max, link.cover_margin) == (other.d_avg, other.d_max, other.cover_margin)


def fitted(**arguments):
    return fit_robot_spheres(load_robot_description(ROBOT), QUICK, **arguments)


def test_second_time_comes_from_the_cache(folder, monkeypatch):
    first = fitted()
    assert len(list(folder.iterdir())) == 2
    monkeypatch.setattr("morphit_ros.spheres.links.fit.fit_spheres", None)
    equal_models(fitted(), first)


def test_warm_started_fits_are_kept_by_what_they_started_from(folder, monkeypatch):
    first = fitted()
    warm = fitted(start=first)
    assert len(list(folder.iterdir())) == 4
    monkeypatch.setattr("morphit_ros.spheres.links.fit.fit_spheres", None)
    equal_models(fitted(start=first), warm)
    equal_models(fitted(), first)


def test_without_cache_nothing_is_read_or_written(folder):
    first = fitted(cache=False)
    assert not folder.exists() or not list(folder.iterdir())
    fitted()
    for path in folder.iterdir():
        path.write_bytes(b"damaged")
    equal_models(fitted(cache=False), first)
    assert all(path.read_bytes() == b"damaged" for path in folder.iterdir())


def test_damaged_files_are_fitted_again_and_mended(folder, monkeypatch):
    first = fitted()
    one, other = sorted(folder.iterdir())
    one.write_bytes(b"damaged")
    other.write_bytes(other.read_bytes()[:-40])
    equal_models(fitted(), first)
    monkeypatch.setattr("morphit_ros.spheres.links.fit.fit_spheres", None)
    equal_models(fitted(), first)


@pytest.mark.parametrize(
    ("centers", "radii", "figures"),
    [
        (np.zeros((3, 3)), np.array([0.1, -0.1, 0.1]), [0.01, 0.02, np.nan]),
        (np.zeros((3, 2)), np.ones(3), [0.01, 0.02, np.nan]),
        (np.full((3, 3), np.nan), np.ones(3), [0.01, 0.02, np.nan]),
        (np.zeros((3, 3)), np.ones((3, 1)), [0.01, 0.02, np.nan]),
        (np.zeros((0, 3)), np.ones(0), [0.01, 0.02, np.nan]),
        (np.zeros((3, 3)), np.ones(3), [0.03, 0.02, np.nan]),
        (np.zeros((3, 3)), np.ones(3), [0.01, np.inf, np.nan]),
        (np.zeros((3, 3)), np.ones(3), [0.01, 0.02]),
        # Sound spheres, but not as many as were asked for.
        (np.zeros((2, 3)), np.ones(2), [0.01, 0.02, np.nan]),
        (np.array(["x"]), np.ones(1), [0.01, 0.02, np.nan]),
    ],
)
def test_cached_spheres_that_make_no_sense_are_fitted_again(folder, centers, radii, figures):
    first = fitted()
    for path in folder.iterdir():
        np.savez(path, centers=centers, radii=radii, figures=np.array(figures))
    equal_models(fitted(), first)


COVER = replace(QUICK, cover=True)
# Its element that is a sphere is a sphere of the fit, which knows nothing of the box beside it.
MIXED = ROBOT.replace(
    "</link>", '<collision><origin xyz="0 0 0.3"/><geometry><sphere radius="0.07"/></geometry></collision></link>', 1
)


def forge(path, spoil):
    """A file whose contents are changed and whose hash is right, as nobody but a forger would write it."""
    with np.load(path) as data:
        fit = ShapeFit(data["centers"], data["radii"], *data["figures"].tolist(), path.stem)
    keep_fit(spoil(fit))


def tiny(fit):
    return replace(fit, radii=np.full(len(fit.radii), 1e-6))


@pytest.mark.parametrize("robot", [ROBOT, MIXED], ids=["plain", "with a sphere"])
def test_a_forged_cover_is_refused_and_fitted_again(folder, robot, monkeypatch):
    description = load_robot_description(robot)
    first = fit_robot_spheres(description, COVER)
    assert all(link.cover_margin is not None for link in first.links.values())
    for path in folder.iterdir():
        forge(path, lambda fit: replace(tiny(fit), cover_margin=0.001))
    equal_models(fit_robot_spheres(description, COVER), first)
    # An honest file is used, and says what the fit said.
    monkeypatch.setattr("morphit_ros.spheres.links.fit.fit_spheres", None)
    equal_models(fit_robot_spheres(description, COVER), first)


def test_figures_of_a_file_are_not_believed(folder):
    description = load_robot_description(ROBOT)
    first = fit_robot_spheres(description, COVER)
    for path in folder.iterdir():
        forge(path, lambda fit: replace(fit, d_avg=0.0, d_max=1e-6, cover_margin=0.05))
    equal_models(fit_robot_spheres(description, COVER), first)


def test_spheres_without_a_cover_are_measured_again(folder):
    honest = fitted()
    for path in folder.iterdir():
        forge(path, tiny)
    for name, link in fitted().links.items():
        assert link.d_max > 1.2 * honest.links[name].d_max


def test_a_file_is_used_for_what_it_was_written_for_only(folder):
    keep_fit(FIT)
    (path,) = folder.iterdir()
    path.rename(folder / "another-key.npz")
    assert read_fit("another-key") is None


def test_changed_bytes_never_raise_and_never_give_spheres_that_are_none(folder):
    keep_fit(FIT)
    (path,) = folder.iterdir()
    sound = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(400):
        damaged = bytearray(sound)
        for place in rng.integers(0, len(sound), rng.integers(1, 6)):
            damaged[place] = rng.integers(0, 256)
        path.write_bytes(bytes(damaged[: rng.integers(1, len(sound) + 1)] if rng.random() < 0.3 else damaged))
        fit = read_fit(FIT.key)
        if fit is not None:
            assert fit.centers.shape == (len(fit.radii), 3)
            assert np.isfinite(fit.centers).all()
            assert (fit.radii > 0.0).all()
            assert fit.d_avg <= fit.d_max


@pytest.mark.parametrize("margin", [None, 0.0, 0.0013])
def test_a_fit_is_read_as_it_was_kept(margin):
    assert read_fit(FIT.key) is None
    keep_fit(replace(FIT, cover_margin=margin))
    fit = read_fit(FIT.key)
    np.testing.assert_array_equal(fit.centers, FIT.centers)
    np.testing.assert_array_equal(fit.radii, FIT.radii)
    assert (fit.d_avg, fit.d_max, fit.cover_margin, fit.key) == (0.01, 0.05, margin, FIT.key)


def test_interrupted_write_leaves_the_cache_whole(folder, monkeypatch):
    def interrupted(stream, **arrays):
        stream.write(b"half")
        raise KeyboardInterrupt

    keep_fit(FIT)
    (path,) = folder.iterdir()
    before = path.read_bytes()
    with monkeypatch.context() as context:
        context.setattr("morphit_ros.spheres.links.cache.np.savez", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fitted(workers=1)
        with pytest.raises(KeyboardInterrupt):
            keep_fit(replace(FIT, d_max=0.06))
    assert list(folder.iterdir()) == [path]
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_used_costs_no_result(tmp_path, monkeypatch):
    first = fitted()
    occupied = tmp_path / "file"
    occupied.write_text("in the way")
    monkeypatch.setenv("MORPHIT_CACHE", str(occupied))
    equal_models(fitted(), first)


def test_threads_may_keep_the_same_fit_at_the_same_time(folder):
    threads = [threading.Thread(target=keep_fit, args=(FIT,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(folder.iterdir())) == 1
    assert read_fit(FIT.key) is not None


def test_key_depends_on_everything_that_decides_a_fit():
    start = (np.zeros((2, 3)), np.ones(2))
    keys = [
        fit_key("shape", QUICK, 0, None),
        fit_key("other", QUICK, 0, None),
        fit_key("shape", replace(QUICK, count=7), 0, None),
        fit_key("shape", replace(QUICK, cover=True), 0, None),
        fit_key("shape", replace(QUICK, method="packing"), 0, None),
        fit_key("shape", QUICK, 1, None),
        fit_key("shape", QUICK, 0, start),
        fit_key("shape", QUICK, 0, (start[0], 2.0 * start[1])),
        fit_key("shape", QUICK, 0, (start[0] + 1e-9, start[1])),
    ]
    assert len(set(keys)) == len(keys)
    assert keys == [*keys[:-1], fit_key("shape", QUICK, 0, (start[0] + 1e-9, start[1]))]
