"""`morphit spheres export` as people type it."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from morphit_ros.cli import make_parser
from morphit_ros.commands import spheres_export
from morphit_ros.commands.parser import CommandParser
from morphit_ros.errors import InvalidInputError, MorphitError, ResourceNotFoundError
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.semantics import load_semantic_description
from morphit_ros.spheres import FORMATS, format_of, read_model

ROBOT = """<robot name="two"><link name="a"/><link name="b"><collision><geometry><box size="1 1 1"/></geometry>
</collision></link><joint name="j" type="revolute"><parent link="a"/><child link="b"/><origin xyz="1 0 0"/>
<axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint></robot>
"""
TABLE = "link,x,y,z,radius\na,0.0,0.0,0.0,0.25\nb,0.1,0.0,0.0,0.5\nb,0.2,0.0,0.0,0.125\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "two.urdf").write_text(ROBOT)
    (tmp_path / "spheres.csv").write_text(TABLE)
    return tmp_path


def export(*words: str | Path) -> int:
    options = make_parser().parse_args(["spheres", "export", *map(str, words)])
    status: int = options.run(options)
    return status


def test_its_formats_are_those_of_the_library() -> None:
    parser = CommandParser()
    spheres_export.add_options(parser)
    choices = {action.dest: action.choices for action in parser._actions}
    assert choices["format"] == choices["source_format"] == tuple(FORMATS)


@pytest.mark.parametrize("format", FORMATS)
def test_there_and_back(folder: Path, capsys: pytest.CaptureFixture[str], format: str) -> None:
    target = folder / f"out{FORMATS[format].suffixes[0]}"
    robot = ["--robot", folder / "two.urdf"]
    # Earlier versions of a format have to be asked for.
    asked = [] if format_of(target) == format else ["--format", format]
    assert export(folder / "spheres.csv", *robot, *asked, "--output", target) == 0
    said = capsys.readouterr().out
    assert f"{format}, 3 spheres on 2 links" in said
    assert ("adjacent" in said) == (format in ("srdf", "curobo", "curobo-0.7", "xrdf"))
    assert export(target, *robot, "--output", folder / "back.csv") == 0
    assert (folder / "back.csv").read_text() == TABLE
    # Standard output carries the document and nothing else.
    capsys.readouterr()
    assert export(folder / "spheres.csv", *robot, "--format", format, "--output", "-") == 0
    assert capsys.readouterr().out == target.read_text()


def test_tables_need_no_robot(folder: Path) -> None:
    assert export(folder / "spheres.csv", "--output", folder / "out.json") == 0
    assert export(folder / "out.json", "--output", folder / "back.csv") == 0
    assert (folder / "back.csv").read_text() == TABLE


def test_srdf_is_merged_in_place(folder: Path) -> None:
    path = folder / "two.srdf"
    path.write_text('<robot name="two">\n  <group name="g"><joint name="j"/></group>\n</robot>\n')
    words = [folder / "spheres.csv", "--robot", folder / "two.urdf", "--merge", path, "--output", path]
    assert export(*words) == 0
    first = path.read_text()
    assert list(load_semantic_description(first).groups) == ["g"]
    assert export(*words) == 0
    assert path.read_text() == first


def test_options_reach_the_document(folder: Path) -> None:
    robot = ["--robot", folder / "two.urdf"]
    export(folder / "spheres.csv", *robot, "--padding", "0.5", "--output", folder / "fat.urdf")
    np.testing.assert_array_equal(read_model(folder / "fat.urdf").links["a"].radii, [0.75])
    export(folder / "spheres.csv", *robot, "--tool", "a", "--format", "xrdf", "--output", folder / "out.yaml")
    assert "tool_frames: [a]" in (folder / "out.yaml").read_text()


def test_robots_by_name_bring_their_home_position(tmp_path: Path) -> None:
    try:
        panda = RobotConfiguration.load("panda")
        load_robot_description(panda.description)
    except ResourceNotFoundError as error:
        pytest.skip(f"example-robot-data is not installed: {error}")
    (tmp_path / "hand.csv").write_text("link,x,y,z,radius\npanda_hand,0,0,0,0.05\n")
    export(tmp_path / "hand.csv", "--robot", "panda", "--output", tmp_path / "panda.xrdf")
    document = yaml.safe_load((tmp_path / "panda.xrdf").read_text())
    assert [document["default_joint_positions"][name] for name in panda.arm_joints] == list(panda.home)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["spheres.csv", "--output", "out.urdf"], "--robot"),
        (["spheres.csv", "--output", "out.stl"], "suffix"),
        (["spheres.csv", "--output", "-"], "--format"),
        (["gone.csv", "--output", "out.json"], "gone.csv"),
        (["spheres.csv", "--from", "json", "--output", "out.json"], "spheres.csv"),
        (["spheres.csv", "--robot", "two.urdf", "--merge", "gone.srdf", "--output", "out.srdf"], "gone.srdf"),
        (["spheres.csv", "--robot", "two.urdf", "--merge", "two.urdf", "--output", "out.xrdf"], "--merge"),
        (["spheres.csv", "--robot", "two.urdf", "--seed", "-1", "--output", "out.srdf"], "--seed"),
        (["spheres.csv", "--robot", "two.urdf", "--samples", "0", "--output", "out.srdf"], "samples"),
        (["spheres.csv", "--robot", "two.urdf", "--tool", "ghost", "--output", "out.xrdf"], "ghost"),
        (["spheres.csv", "--padding", "0.1", "--output", "out.json"], "padding"),
        (["spheres.csv", "--robot", "two.urdf", "--padding", "-1", "--output", "out.urdf"], "padding"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(MorphitError, match=says):
        export(*words)
    assert not list(folder.glob("out.*"))


def test_links_that_the_robot_lacks_are_refused(folder: Path) -> None:
    (folder / "ghost.csv").write_text("link,x,y,z,radius\nghost,0,0,0,1\n")
    with pytest.raises(InvalidInputError, match="ghost"):
        export(folder / "ghost.csv", "--robot", folder / "two.urdf", "--output", folder / "out.json")
