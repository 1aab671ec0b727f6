"""`morphit neural identify`: what it refuses, what it takes where nothing is said, its exit status."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from morphit_ros.cli import main
from morphit_ros.neural.contact.parameters import largest_implicit_step
from morphit_ros.neural.identification import PoseTrack, write_track

DATA = Path(os.environ.get("MORPHIT_DATA", Path(__file__).parents[3] / "shared" / "data")) / "neural"
SIZE = np.array([0.06, 0.045, 0.03])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Track and body of a box of 8 cm that slides from 0.6 m/s, with friction 0.25, in closed form."""
    folder = tmp_path_factory.mktemp("slide")
    times = 0.01 * np.arange(22)
    positions = np.tile([0.0, 0.0, 0.5 * SIZE[2]], (len(times), 1))
    positions[:, 0] = 0.6 * times - 0.5 * 0.25 * 9.81 * times**2
    track = PoseTrack(times, positions, np.tile([0.0, 0.0, 0.0, 1.0], (len(times), 1)))
    write_track(track, folder / "track.csv")
    axes = [np.linspace(-0.5, 0.5, count) * length for count, length in zip((9, 7, 5), SIZE, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    np.savez(
        folder / "body.npz", P=points, d=np.ones(len(points)), G=np.zeros_like(points), m=0.2, com=np.zeros(3),
        I=0.2 / 12.0 * np.diag(SIZE**2),
    )  # fmt: skip
    return str(folder / "track.csv"), str(folder / "body.npz")


def test_an_object_under_ten_centimetres_gets_a_step_that_it_allows(files, capsys):
    track, body = files
    assert main(["neural", "identify", track, "--body", body, "--json", "-"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["parameters"]["friction"]["value"] == pytest.approx(0.25, abs=0.01)
    assert result["step_s"] == pytest.approx(largest_implicit_step(float(np.linalg.norm(SIZE))))
    assert result["step_s"] < 0.01
    # The step's own error, 1.2 mm and slow, is larger than the stated noise of 1 mm, and smaller than one of 2 mm.
    assert not result["explained"]
    assert main(["neural", "identify", track, "--body", body, "--noise", "0.002", "0.02", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["explained"]
    assert main(["neural", "identify", track, "--body", body, "--step", "0.004"]) == 0
    assert "step of the rollouts              4 ms" in capsys.readouterr().out
    # One that is asked for is taken, or refused.
    assert main(["neural", "identify", track, "--body", body, "--step", "0.01"]) == 2
    assert "at most 0.009" in capsys.readouterr().err


def test_exit_status_of_what_is_not_identifiable(files, capsys):
    track, body = files
    assert main(["neural", "identify", track, "--body", body, "--unknown", "mass_scale"]) == 1
    assert "mass_scale" in capsys.readouterr().out


def changed_track(track, path, rows, column=None, text=""):
    """The first rows of a track, a number of the last of them replaced."""
    lines = Path(track).read_text().splitlines()[: rows + 1]
    if column is not None:
        numbers = lines[-1].split(",")
        lines[-1] = ",".join([*numbers[:column], text, *numbers[column + 1 :]])
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize(("rows", "words"), [(2, "too few for 7 unknowns"), (3, "better than its bounds [0, 1]")])
def test_tracks_too_short_say_so_with_the_uncertainty(rows, words, files, tmp_path, capsys):
    short = changed_track(files[0], tmp_path / "short.csv", rows)
    assert main(["neural", "identify", short, "--body", files[1], "--json", str(tmp_path / "result.json")]) == 1
    printed = capsys.readouterr().out
    result = json.loads((tmp_path / "result.json").read_text())
    assert words in printed
    assert words in result["message"]
    assert result["status"] == "not_identifiable"
    assert not result["parameters"]["friction"]["identifiable"]
    deviation = result["parameters"]["friction"]["standard_deviation"]
    assert deviation is None or deviation > 0.14


@pytest.mark.parametrize(("column", "text", "words"), [(1, "nan", "row 4"), (7, "-inf", "row 4"), (0, "0", "row 4"),
                                                       (3, "lost", "eight numbers")])  # fmt: skip
def test_a_broken_row_is_named(column, text, words, files, tmp_path, capsys):
    broken = changed_track(files[0], tmp_path / "broken.csv", 5, column, text)
    assert main(["neural", "identify", broken, "--body", files[1]]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("words", ["--mass -3", "--step 9", "--set friction=0.9", "--frame body", "--frame field",
                                   "--table 0", "--pusher ball.csv 0.1"])  # fmt: skip
def test_soap_refuses_what_it_has_of_its_own(words, tmp_path, capsys):
    # Before any file is read: there is none.
    assert main(["neural", "identify", str(tmp_path), "--soap", *words.split()]) == 2
    error = capsys.readouterr().err
    assert words.split()[0] in error
    assert "--soap" in error


@pytest.mark.parametrize("words", ["--mass 0.5", "--step 0", "--step nan", "--pusher ball.csv wide", "--set friction",
                                   "--unknown friction=1:0", "--noise -1 1", "--window 2"])  # fmt: skip
def test_bad_options_are_refused_by_name(words, files, capsys):
    track, body = files
    assert main(["neural", "identify", track, "--body", body, *words.split()]) == 2
    assert words.split()[0].strip("-") in capsys.readouterr().err.replace("position_noise", "noise")


@pytest.mark.skipif(not DATA.is_dir(), reason=f"published tracks are not in {DATA}: set MORPHIT_DATA")
def test_soap_says_how_much_hangs_on_the_first_velocity(capsys):
    arguments = ["neural", "identify", str(DATA), "--soap", "--json", "-"]
    assert main(arguments) == 0
    result = json.loads(capsys.readouterr().out)
    freer = result["velocity_estimated"]
    assert result["parameters"]["friction"]["value"] == pytest.approx(0.597, abs=0.005)
    assert freer["parameters"]["friction"]["value"] == pytest.approx(0.543, abs=0.005)
    assert freer["position_residual_m"] < 0.2 * result["position_residual_m"]
    # The authors' first velocity leaves far more than the noise: it says so.
    assert not result["explained"]
    assert "6.7 times the stated noise" in result["message"]
    assert freer["explained"]
    assert freer["message"] == "Converged."
    # Asked for one way of starting, that one is all.
    assert main([*arguments[:-2], "--start", "known"]) == 0
    assert "velocity" not in capsys.readouterr().out
