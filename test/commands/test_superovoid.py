"""`morphit superovoid` and `morphit distance` as people type them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from morphit_ros.cli import main
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.robot.example_robots import example_robots
from morphit_ros.superovoid.distances.min_distance import min_distance
from morphit_ros.superovoid.robots.model_file import load_model
from morphit_ros.superovoid.robots.urdf_extension import superovoids_from_urdf

URDF = """<robot name="arm">
  <link name="base"><collision><geometry><box size="0.1 0.1 0.3"/></geometry></collision></link>
  <link name="middle"><collision><origin xyz="0 0 0.1"/><geometry><sphere radius="0.05"/></geometry></collision></link>
  <link name="tip"><collision><origin xyz="0 0 0.4"/><geometry><sphere radius="0.05"/></geometry></collision></link>
  <joint name="j1" type="prismatic"><parent link="base"/><child link="middle"/><origin xyz="0 0 0.3"/>
    <axis xyz="0 0 1"/><limit lower="0" upper="1" effort="1" velocity="1"/></joint>
  <joint name="j2" type="fixed"><parent link="middle"/><child link="tip"/></joint>
</robot>
"""


@pytest.fixture
def robot(tmp_path: Path) -> Path:
    file = tmp_path / "arm.urdf"
    file.write_text(URDF)
    return file


def test_fit_writes_a_model_and_a_urdf_and_distances_follow(
    robot: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, extended, report = tmp_path / "model.yaml", tmp_path / "out.urdf", tmp_path / "fit.json"
    words = ["superovoid", "fit", str(robot), "--output", str(model), "--output", str(extended), "--json", str(report)]
    assert main([*words, "--comment", "made by a test"]) == 0
    assert "3 superovoids on 3 links" in capsys.readouterr().out
    assert model.read_text().startswith("# made by a test\n")
    assert load_model(model).links["tip"].shapes[0].shape.kind == "sphere"
    assert superovoids_from_urdf(extended.read_text()).count == 3
    assert json.loads(report.read_text())["count"] == 3

    words = ["distance", "--robot", str(robot), "--model", str(model), "--joint", "j1=0.2", "--json", "-"]
    assert main(words) == 0
    [pair] = json.loads(capsys.readouterr().out)["pairs"]
    assert pair["links"] == ["base", "tip"]
    base, tip = (load_model(model).links[link].shapes[0] for link in ("base", "tip"))
    lifted = make_transform(translation=[0.0, 0.0, 0.5]) @ tip.T_link_shape
    expected = min_distance(base.shape, base.T_link_shape, tip.shape, lifted)
    assert pair["distance"] == pytest.approx(expected.distance, abs=1e-12)
    # The ball at 0.3 + 0.2 + 0.4 and the top of the box.
    assert pair["distance"] == pytest.approx(0.9 - 0.05 - 0.15, abs=5e-3)
    assert main([*words[:5], "--all-pairs"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_distance_of_two(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "ball.yaml"
    file.write_text("semi_axes: [0.1, 0.1, 0.1]\nxyz: [1.0, 0.0, 0.0]\n")
    assert main(["distance", "{semi_axes: [0.2, 0.2, 0.2]}", str(file)]) == 0
    assert "distance     700.000000 mm" in capsys.readouterr().out
    assert main(["distance", "{semi_axes: [0.2, 0.2, 0.2]}", str(file), "--json", "-"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["distance"] == pytest.approx(0.7)
    assert content["normal"] == pytest.approx([1.0, 0.0, 0.0])
    assert content["status"] == "certified"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["distance"], "0 of them"),
        (["distance", "{semi_axes: [1, 1]}", "{semi_axes: [1, 1, 1]}"], "superovoid 1, line 1: semi_axes"),
        (["distance", "none.yaml", "{semi_axes: [1, 1, 1]}"], "none.yaml"),
        (["distance", "--joint", "a=1"], "--joint"),
        (["distance", "--robot", "panda", "--joint", "elbow=1"], "elbow"),
        (["distance", "--robot", "panda", "--joint", "panda_joint1=x"], "panda_joint1=x"),
        (["distance", "--robot", "panda", "--links", "none"], "--links"),
        (["distance", "--robot", "panda", "--model", "none"], "none"),
        (["superovoid", "fit", "panda", "--output", "model.json"], "--output"),
        (["superovoid", "fit", "panda", "--link-count", "panda_link0"], "--link-count"),
        (["superovoid", "fit", "panda", "--link-count", "panda_link0=many"], "many"),
        (["superovoid", "fit", "panda", "--link-count", "none=2"], "none"),
        (["superovoid", "fit", "panda", "--link-family", "panda_link0=cube"], "cube"),
        (["superovoid", "fit", "panda", "--max-count", "0"], "--max-count"),
        (["superovoid", "fit", "panda", "--seed", "-1"], "--seed"),
        (["superovoid", "fit", "no_such_robot"], "no_such_robot"),
    ],
)
def test_mistakes_are_one_line_and_status_2(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("morphit: ")
    assert len(error.splitlines()) == 1


def test_distance_names_the_folders_that_it_looked_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert main(["distance", "a.yaml", "../b.yaml"]) == 2
    assert f"looked in: {tmp_path / 'here'}." in capsys.readouterr().err
    (tmp_path / "here" / "a.yaml").write_text("semi_axes: [0.03, 0.02, 0.05]", encoding="utf-8")
    assert main(["distance", "a.yaml", "../b.yaml"]) == 2
    assert f"looked in: {tmp_path}." in capsys.readouterr().err


def test_distances_of_links_named_in_several_options(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    words = ["distance", "--robot", "panda", "--json", str(result), "--links", "panda_link1", "--links", "panda_link5"]
    assert main(words) == 0
    pairs = [set(pair["links"]) for pair in json.loads(result.read_text(encoding="utf-8"))["pairs"]]
    for link in ("panda_link1", "panda_link5"):
        assert any(link in pair for pair in pairs)


def test_a_robot_of_the_library_has_a_model_and_distances(tmp_path: Path) -> None:
    if "icub" not in example_robots():
        pytest.skip("example-robot-data, which has iCub's meshes, is not installed")
    result = tmp_path / "result.json"
    assert main(["distance", "--robot", "icub", "--json", str(result), "--links", "l_hand"]) == 0
    pairs = json.loads(result.read_text(encoding="utf-8"))["pairs"]
    [hands] = [pair for pair in pairs if set(pair["links"]) == {"l_hand", "r_hand"}]
    low, high = hands["robot_bounds"]
    assert 0.0 < low < hands["distance"] < high
