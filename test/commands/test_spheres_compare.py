"""`morphit spheres compare` as people type it."""

import json

import pytest

from morphit_bench.spheres import compare as spheres_compare
from morphit_bench.spheres.compare import number_list
from morphit_ros.cli import main
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.robots import GeometryConfig
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.primitives import box_mesh


@pytest.fixture
def mesh_file(tmp_path):
    mesh = box_mesh([0.3, 0.1, 0.1])
    lines = [f"v {x} {y} {z}" for x, y, z in mesh.vertices.tolist()]
    lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in mesh.faces.tolist()]
    path = tmp_path / "bar.obj"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("6,20,64", [6, 20, 64]), ("1..4", [1, 2, 3, 4]), ("1..20:5", [1, 6, 11, 16]), ("9,1..3,2", [1, 2, 3, 9])],
)
def test_number_lists(text, numbers):
    assert number_list("--counts", text, 1, 2000) == numbers


@pytest.mark.parametrize("text", ["", "0", "1..2001", "5..1", "a", "1,,2", "3:2", "1..9:0", "1..", "-3", "1.5"])
def test_bad_number_lists_say_what_is_meant(text):
    with pytest.raises(InvalidInputError, match=r"--counts.*from 1 to 2000.*1\.\.20"):
        number_list("--counts", text, 1, 2000)


def test_mesh_file_gives_a_table_files_and_plots(mesh_file, tmp_path, capsys):
    folder = tmp_path / "made" / "here"
    words = ["spheres", "compare", str(mesh_file), "--counts", "1..3:2", "--methods", "packing", "packing"]
    words += ["--samples", "500", "5000", "--output", str(folder), "--json", str(tmp_path / "own.json")]
    assert main(words) == 0
    table = capsys.readouterr().out
    assert table.count("packing") == 2
    assert sorted(path.name for path in folder.iterdir()) == [
        "comparison.json", "comparison.md", "cost.png", "quality.png",
    ]  # fmt: skip
    assert table in (folder / "comparison.md").read_text()
    content = json.loads((folder / "comparison.json").read_text())
    assert content == json.loads((tmp_path / "own.json").read_text())
    assert [(row["link"], row["count"], row["kept"]) for row in content["rows"]] == [("bar", 1, 1), ("bar", 3, 3)]
    assert content["volume_samples"] == 5000


def test_json_on_standard_output_stands_alone(mesh_file, capsys):
    words = ["spheres", "compare", str(mesh_file), "--counts", "2", "--methods", "packing", "--samples", "100", "100"]
    assert main([*words, "--seeds", "0..1", "--json", "-"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["seed"] for row in content["rows"]] == [0, 1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--counts", "0"], "--counts"),
        (["--seeds", "x"], "--seeds"),
        (["--methods", "octree"], "one of balanced"),
        (["--links", "nowhere"], "nowhere"),
        (["--samples", "0", "100"], "0 surface samples"),
        (["--samples", "100", "3"], "at least 16"),
        (["--output", "/dev/null/folder"], "--output"),
    ],
)
def test_mistakes_end_with_status_2(words, message, mesh_file, capsys):
    assert main(["spheres", "compare", str(mesh_file), *words]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_methods_offered_are_those_of_the_comparison():
    from morphit_bench.spheres.comparison.runs import METHODS
    from morphit_ros.robot.link_elements import SOURCES

    parser = CommandParser()
    spheres_compare.add_options(parser)
    assert f"some of {', '.join(METHODS)} (default: all)" in " ".join(parser.format_help().split())
    assert GeometryConfig.flat_fields()["source"][1].choices == SOURCES


def test_an_interrupt_keeps_what_was_measured(mesh_file, tmp_path, monkeypatch, capsys):
    from morphit_bench.spheres.comparison import runs

    fit, counts = runs.fit_spheres, []

    def interrupted_fit(meshes, config, seed=0):
        counts.append(config.count)
        if config.count == 5:
            raise KeyboardInterrupt
        return fit(meshes, config, seed)

    monkeypatch.setattr(runs, "fit_spheres", interrupted_fit)
    words = ["spheres", "compare", str(mesh_file), "--counts", "3..6", "--methods", "packing,balanced"]
    assert main([*words, "--samples", "500", "5000", "--output", str(tmp_path / "out")]) == 130
    content = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert 0 < len(content["rows"]) < 8
    assert 5 not in [row["count"] for row in content["rows"]]
    assert 5 in counts
    assert "packing" in capsys.readouterr().out
