"""`morphit` as people type it: exit status, one-line errors, JSON for machines."""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from morphit_ros.cli import main, make_parser
from morphit_ros.commands.demo import summary
from morphit_ros.commands.parser import CommandParser
from morphit_ros.geometry.mesh import sample_surface
from morphit_ros.geometry.primitives import box_mesh

ROOT = Path(__file__).parents[2]


def all_parsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    found = [parser]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                found += all_parsers(child)
    return found


def test_every_command_has_help_and_every_option_says_what_it_does() -> None:
    parsers = all_parsers(make_parser())
    assert {"morphit", "morphit up", "morphit demo", "morphit grasp", "morphit spheres fit"} <= {
        p.prog for p in parsers
    }
    for parser in parsers:
        assert parser.description, parser.prog
        assert isinstance(parser, CommandParser)
        parser.complete()
        assert all(action.help for action in parser._actions if not isinstance(action, argparse._SubParsersAction))
        parser.format_help()


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom morphit_ros.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit as end: assert end.code == 0\n"
        "heavy = {'numpy', 'torch', 'scipy', 'numba', 'open3d', 'mujoco', 'rclpy', 'viser', 'trimesh', 'asyncio'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert result.returncode == 0, result.stderr
    assert "spheres" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["up"], "job"),
        (["up", "grip"], "one of grasp"),
        (["up", "grasp", "objekt:=mug"], "Did you mean 'object'"),
        (["up", "grasp", "mug"], "name:=value"),
        (["demo", "--realtime-factor", "1000"], "realtime_factor"),
        (["demo", "--object", "part.stl", "--mass", "-1"], "object_mass"),
        (["up", "grasp", "sim:=false"], "base_source:=tf"),
        (["grasp", "--cloud", "nowhere.ply", "--gripper", "franka_hand"], "nowhere.ply"),
        (["grasp", "--cloud", "nowhere.ply", "--gripper", "tongs"], "tongs"),
        (["grasp", "--cloud", "a.ply", "--gripper", "franka_hand", "--top", "0"], "--top"),
        (["grasp", "--cloud", "a.ply", "--gripper", "franka_hand", "--table-height", "nan"], "--table-height"),
        (["spheres", "fit", "terminator"], "panda"),
        (["spheres", "fit", "nowhere.urdf"], "nowhere.urdf"),
        (["spheres", "fit", "panda", "--count", "0"], "count"),
        (["spheres", "fit", "panda", "--variant", "cubes"], "balanced"),
        (["spheres", "fit", "panda", "--links", "panda_link99"], "panda_link99"),
        (["spheres", "fit", "panda", "--seed", "-1"], "--seed"),
        (["spheres", "fit", "panda", "--total", "3"], "total"),
        (["spheres", "fit", "panda", "--d-max", "-1"], "d_max"),
        (["spheres", "fit", "panda", "--total", "30", "--links", "panda_hand"], "--links"),
        (["spheres", "fit", "panda", "--total", "30", "--link-count", "panda_hand=3"], "--link-count"),
        (["spheres", "fit", "panda", "--d-max", "30", "--start", "x.json"], "--start"),
        (["spheres", "fit", "panda", "--padding", "0.01", "--output", "x.csv"], "--padding"),
        (["spheres", "fit", "panda", "--links", "panda_link8"], "panda_link8"),
        (["spheres", "fit", "panda", "--variant", "volume", "--cover", "--weight", "peak=1"], "weights"),
        (["spheres", "fit", "panda", "--weight", "peak"], "peak"),
        (["spheres", "fit", "panda", "--weight", "charm=3"], "charm"),
        (["spheres", "fit", "panda", "--link-count", "panda_link99=3"], "panda_link99"),
        (["spheres", "fit", "panda", "--output", "spheres.docx"], ".docx"),
        (["spheres", "fit", "panda", "--method", "amaa", "--cover"], "cover"),
        (["spheres", "fit", "nowhere.stl"], "nowhere.stl"),
    ],
)
def test_mistake_ends_with_status_2_and_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("morphit: ")
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("words", [["fly"], ["grasp"], ["demo", "--seed", "x"], []])
def test_unusable_command_line_ends_with_status_2(words: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2


def test_list_shows_jobs_and_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "--list"]) == 0
    assert capsys.readouterr().out.startswith("grasp")
    assert main(["up", "grasp", "--list"]) == 0
    text = capsys.readouterr().out
    assert "backend:=embedded" in text
    assert "(embedded | moveit)" in text


def test_spheres_fit_writes_urdf_csv_and_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path / "cache"))
    robot = tmp_path / "robot.urdf"
    robot.write_text(
        '<robot name="stick"><link name="stick"><collision><geometry><box size="0.1 0.1 0.3"/></geometry></collision>'
        "</link></robot>",
        encoding="utf-8",
    )
    files = {name: tmp_path / f"out.{name}" for name in ("urdf", "csv", "json")}
    words = ["spheres", "fit", str(robot), "--count", "5", "--output", str(files["urdf"])]
    assert main([*words, "--output", str(files["csv"]), "--json", str(files["json"])]) == 0
    content = json.loads(files["json"].read_text(encoding="utf-8"))
    assert content["count"] == 5
    radii = content["links"]["stick"]["radii"]
    with files["csv"].open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["radius"]) for row in rows] == pytest.approx(radii, rel=1e-6)
    assert files["urdf"].read_text(encoding="utf-8").count("<sphere") == 5
    # What was written can be started from: the same number keeps being asked for and kept.
    again = [*words[:3], "--count", "3", "--start", str(files["csv"]), "--json", str(files["json"])]
    assert main(again) == 0
    assert json.loads(files["json"].read_text(encoding="utf-8"))["count"] == 3


BOXES = (
    '<robot name="two"><link name="large"><collision><geometry><box size="0.3 0.2 0.2"/></geometry></collision></link>'
    '<link name="small"><collision><geometry><box size="0.05 0.05 0.05"/></geometry></collision></link>'
    '<joint name="j" type="fixed"><parent link="large"/><child link="small"/></joint></robot>'
)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--total", "9"], None),
        (["--count", "4", "--link-count", "small=2"], {"large": 4, "small": 2}),
        (["--count", "3", "--links", "small"], {"small": 3}),
        (["--count", "3", "--links", "small", "--links", "large"], {"large": 3, "small": 3}),
        (["--set", "primitive_count=2", "--no-cache"], {"large": 2, "small": 2}),
        (["--d-max", "40"], None),
        (["--count", "4", "--method", "packing"], {"large": 4, "small": 4}),
        (["--count", "4", "--variant", "volume", "--cover"], {"large": 4, "small": 4}),
        (["--count", "4", "--weight", "peak=200", "--weight", "mass=1"], {"large": 4, "small": 4}),
    ],
)
def test_spheres_fit_numbers(
    options: list[str], expected: dict[str, int] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path / "cache"))
    robot, result = tmp_path / "two.urdf", tmp_path / "out.json"
    robot.write_text(BOXES, encoding="utf-8")
    assert main(["spheres", "fit", str(robot), *options, "--json", str(result)]) == 0
    links = json.loads(result.read_text(encoding="utf-8"))["links"]
    counts = {name: len(link["radii"]) for name, link in links.items()}
    if expected is not None:
        assert counts == expected
    elif "--total" in options:
        assert sum(counts.values()) == 9
        assert counts["large"] > counts["small"]
    else:
        assert all(link["d_max"] <= 0.04 for link in links.values())
    if "--cover" in options:
        assert all(link["cover_margin"] > 0.0 for link in links.values())


def test_spheres_fit_of_a_mesh_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path / "cache"))
    mesh, result = tmp_path / "a part & more.off", tmp_path / "out.json"
    corners = "0 0 0\n0.1 0 0\n0 0.1 0\n0 0 0.1\n"
    mesh.write_text(f"OFF\n4 4 0\n{corners}3 0 2 1\n3 0 1 3\n3 0 3 2\n3 1 2 3\n", encoding="utf-8")
    assert main(["spheres", "fit", str(mesh), "--count", "3", "--json", str(result)]) == 0
    assert list(json.loads(result.read_text(encoding="utf-8"))["links"]) == ["a part & more"]


def box_cloud(path: Path, size: tuple[float, float, float]) -> None:
    points, _ = sample_surface(box_mesh(size), 3000, np.random.default_rng(0))
    np.savez(path, points=points)


def test_grasp_prints_ranked_grasps_and_writes_json_and_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud, result, picture = tmp_path / "box.npz", tmp_path / "out.json", tmp_path / "out.png"
    box_cloud(cloud, (0.04, 0.05, 0.12))
    words = ["grasp", "--cloud", str(cloud), "--gripper", "franka_hand", "--top", "3", "--up", "0", "0", "1"]
    assert main([*words, "--json", str(result), "--picture", str(picture)]) == 0
    content = json.loads(result.read_text(encoding="utf-8"))
    scores = [grasp["score"] for grasp in content["grasps"]]
    assert scores == sorted(scores, reverse=True)
    assert np.array(content["grasps"][0]["T_world_gripper"]).shape == (4, 4)
    assert 0.035 < content["grasps"][0]["aperture"] < 0.06
    assert picture.read_bytes().startswith(b"\x89PNG")
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].split()[0] == str(min(3, len(scores)))


def test_object_wider_than_the_gripper_ends_with_status_1_and_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud = tmp_path / "crate.npz"
    box_cloud(cloud, (0.3, 0.3, 0.3))
    assert main(["grasp", "--cloud", str(cloud), "--gripper", "franka_hand", "--no-table", "--json", "-"]) == 1
    content = json.loads(capsys.readouterr().out)
    assert content["success"] is False
    assert "object wider (0.300 m) than the gripper opens (0.080 m)" in content["message"]


def test_demo_of_a_mesh_file_gives_the_job_its_mass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []
    monkeypatch.setattr("morphit_ros.commands.up.run_job", lambda name, words, file: given.extend(words) or 1)
    assert main(["demo", "--object", "a part.stl", "--mass", "0.2", "--output", str(tmp_path / "o")]) == 1
    assert {"object:=a part.stl", "object_mass:=0.2"} <= set(given)
    given.clear()
    main(["demo", "--output", str(tmp_path / "o")])
    assert not [word for word in given if word.startswith("object_mass")]


def test_demo_summary_has_outcome_and_times() -> None:
    text = summary("mug", {"message": "PICKED", "stages": {"plan": 0.5, "lift": 2.25}})
    assert "mug: PICKED" in text
    assert "lift" in text
    assert text.splitlines()[-1].split() == ["total", "2.75", "s"]


def test_spheres_fit_that_could_not_be_proven_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import dataclasses

    from morphit_ros.spheres import robot_model

    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path / "cache"))
    robot = tmp_path / "two.urdf"
    robot.write_text(BOXES, encoding="utf-8")
    fit_shape = robot_model.fit_shape

    def unproven(shape: object, *rest: object) -> object:
        fit = fit_shape(shape, *rest)
        return fit if len(fit.radii) == 3 else dataclasses.replace(fit, cover_margin=None)

    monkeypatch.setattr(robot_model, "fit_shape", unproven)
    words = ["spheres", "fit", str(robot), "--count", "2", "--cover", "--link-count", "small=3"]
    assert main(words) == 1
    output = capsys.readouterr()
    assert "not proven" in output.out
    assert "large" in output.err
    assert "small" not in output.err


def test_fit_and_export_write_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path / "cache"))
    model, fitted, exported = (tmp_path / name for name in ("m.json", "fit.srdf", "export.srdf"))
    fit = ["spheres", "fit", "panda", "--count", "2", "--output", str(model), "--output", str(fitted)]
    assert main(fit) == 0
    assert main(["spheres", "export", str(model), "--robot", "panda", "--output", str(exported)]) == 0
    assert fitted.read_text(encoding="utf-8") == exported.read_text(encoding="utf-8")
