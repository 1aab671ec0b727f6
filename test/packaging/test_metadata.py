"""package.xml, setup.py, the scripts and the pinned environment agree with each other and with the code."""

from __future__ import annotations

import ast
import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import setuptools
from packaging.version import Version

from morphit_ros.dependencies import DEPENDENCIES, EXTRAS, ONLY_IN_ROS, OWN_MESSAGES

ROOT = Path(__file__).parents[2]
MANIFEST = ElementTree.parse(ROOT / "package.xml").getroot()


@pytest.fixture
def setup_arguments(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What setup.py hands to setuptools."""
    captured: dict[str, Any] = {}
    monkeypatch.setattr(setuptools, "setup", captured.update)
    monkeypatch.chdir(ROOT)
    runpy.run_path(str(ROOT / "setup.py"))
    return captured


def installed_files(arguments: dict[str, Any]) -> dict[str, set[str]]:
    """Destination folder → names of the files that go there."""
    return {folder: {Path(file).name for file in files} for folder, files in arguments["data_files"]}


def node_modules() -> set[str]:
    return {path.stem for path in (ROOT / "morphit_ros/nodes").glob("[!_]*.py")}


def test_manifest_is_a_complete_format_3_manifest_of_an_ament_python_package() -> None:
    assert MANIFEST.get("format") == "3"
    assert MANIFEST.findtext("name") == "morphit_ros"
    assert MANIFEST.findtext("export/build_type") == "ament_python"
    assert MANIFEST.findtext("license") == "Apache-2.0"
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").split()[:2] == ["Apache", "License"]
    # colcon takes a package with an invalid address for a plain Python one.
    assert re.fullmatch(r"[\w.+-]+@[\w-]+(\.[\w-]+)+", MANIFEST.find("maintainer").get("email"))  # type: ignore[union-attr,arg-type]


def test_dependency_keys_are_native_and_listed_once() -> None:
    keys = [element.text or "" for tag in ("depend", "exec_depend", "test_depend") for element in MANIFEST.iter(tag)]
    assert len(keys) == len(set(keys))
    # A key with pip in it cannot be released into a ROS distribution.
    assert [key for key in keys if key.endswith("-pip")] == []
    assert {"morphit_interfaces", "rclpy", "python3-numpy", "tf2_ros", "tf2_ros_py", "launch_ros", "urdfdom_py"} <= set(
        keys
    )
    # Built against another NumPy than the wheels of requirements-ros.txt, which they would hide.
    assert not {"pinocchio", "coal", "roboplan"} & set(keys)


def test_every_message_package_that_is_imported_is_in_the_manifest() -> None:
    keys = {element.text for element in MANIFEST.iter("exec_depend")}
    pattern = re.compile(
        r"^\s*(?:from|import) (\w+_msgs|\w+_interfaces|launch|launch_ros|rclpy|tf2_ros)\b", re.MULTILINE
    )
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "morphit_ros").rglob("*.py")]
    assert {name for text in texts for name in pattern.findall(text)} - keys == set()


def test_versions_agree(setup_arguments: dict[str, Any]) -> None:
    assert setup_arguments["version"] == MANIFEST.findtext("version")
    interfaces = ElementTree.parse(ROOT / "morphit_interfaces/package.xml").getroot()
    assert interfaces.findtext("version") == MANIFEST.findtext("version")


def test_every_node_has_a_script_and_every_script_a_node(setup_arguments: dict[str, Any]) -> None:
    scripts = installed_files(setup_arguments)["lib/morphit_ros"]
    assert scripts == node_modules()
    for name in scripts:
        path = ROOT / "scripts" / name
        text = path.read_text(encoding="utf-8")
        assert os.access(path, os.X_OK), f"scripts/{name} is not executable"
        assert text.startswith("#!/usr/bin/env python3\n")
        assert text.endswith(f'start("{name}")\n')


def test_console_scripts_do_not_collide_with_the_nodes(setup_arguments: dict[str, Any]) -> None:
    names = {entry.split(" = ")[0] for entry in setup_arguments["entry_points"]["console_scripts"]}
    assert names == {"morphit"}
    assert names.isdisjoint(node_modules())


def test_every_data_file_is_installed(setup_arguments: dict[str, Any]) -> None:
    files = installed_files(setup_arguments)
    assert files["share/ament_index/resource_index/packages"] == {"morphit_ros"}
    assert "package.xml" in files["share/morphit_ros"]
    for folder in ("launch", "config", "urdf", "rviz"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                place = f"share/morphit_ros/{path.parent.relative_to(ROOT).as_posix()}"
                assert path.name in files[place], path


def test_every_package_is_installed(setup_arguments: dict[str, Any]) -> None:
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "morphit_ros").rglob("*.py")}
    assert set(setup_arguments["packages"]) == {".".join(folder.parts) for folder in folders}


def pins(name: str) -> dict[str, str]:
    """Requirement → version of a requirements file."""
    found = {}
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        requirement = line.partition("#")[0].strip()
        if requirement:
            project, _, version = requirement.partition("==")
            found[re.sub(r"[-_.]+", "-", project.partition("[")[0]).lower()] = version
    return found


def test_every_requirement_is_pinned_to_the_locked_version() -> None:
    lock = pins("constraints.txt")
    assert all(lock.values())
    for name in ("requirements.txt", "requirements-dev.txt", "requirements-docs.txt"):
        for project, version in pins(name).items():
            assert version, f"{project} is not pinned"
            assert lock[project] == version
    assert lock["torch"] == "2.13.0"


def test_requirements_files_are_what_the_list_of_dependencies_says() -> None:
    tool = runpy.run_path(str(ROOT / "tools/requirements.py"))
    for name in tool["HEADS"]:
        assert (ROOT / name).read_text(encoding="utf-8") == tool["content"](name), "run: python tools/requirements.py"
    beside_ros = pins("requirements-ros.txt")
    assert not [name for name in beside_ros if name.startswith("ros-")]
    own = {"xacro", "urdf-parser-py", "setuptools", "py-trees"}
    everywhere = pins("requirements.txt")
    assert beside_ros == {k: v for k, v in everywhere.items() if not k.startswith("ros-") and k not in own}
    assert {"ros-rclpy", *own} <= set(everywhere)


def test_extras_ask_for_the_locked_versions_or_earlier_ones(setup_arguments: dict[str, Any]) -> None:
    lock = pins("constraints.txt")
    extras = setup_arguments["extras_require"]
    assert set(extras) == {*EXTRAS, "all", "test"}
    assert set(extras["all"]) == {name for extra in set(EXTRAS) - {"ros"} for name in extras[extra]}
    assert all("==" in requirement for requirement in extras["ros"])
    assert "numpy>=1.26" in setup_arguments["install_requires"]
    for requirement in {*setup_arguments["install_requires"], *(name for extra in EXTRAS for name in extras[extra])}:
        project, compared, least = re.fullmatch(r"([\w.-]+)(?:\[\w+\])?(>=|==)([\d.]+)", requirement).groups()  # type: ignore[union-attr]
        present = lock[re.sub(r"[-_.]+", "-", project).lower()]
        assert present == least if compared == "==" else Version(present) >= Version(least), requirement


def third_party_imports() -> dict[str, str]:
    """Top-level name of every module of others that the package imports anywhere → a file that does."""
    found = {}
    for path in sorted((ROOT / "morphit_ros").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found |= {name.partition(".")[0]: path.name for name in names}
    return {name: file for name, file in found.items() if name not in {*sys.stdlib_module_names, "morphit_ros"}}


def test_every_import_is_of_a_listed_dependency_and_every_dependency_is_imported() -> None:
    listed = {name for entry in DEPENDENCIES for name in entry.modules.split()}
    imported = third_party_imports()
    assert set(imported) - listed - {*ONLY_IN_ROS, OWN_MESSAGES} == set(), imported
    # Solvers of quadratic programmes are imported by their name, and xacro runs in a process of its own.
    assert listed - set(imported) == {"daqp", "xacro"}


def test_native_packages_of_dependencies_are_in_the_manifest_and_no_others() -> None:
    keys = {element.text for element in MANIFEST.iter("exec_depend")}
    native = {entry.rosdep for entry in DEPENDENCIES} - {""}
    assert native - keys == set()
    assert {key for key in keys if key.startswith("python3-")} <= native


def test_lock_names_no_machine() -> None:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert "file:" not in text
    assert "://" not in text
    assert not re.search(r"==\S*\+", text), "a local build, which no registry has"


@pytest.mark.parametrize(("version", "accepted"), [("3.10", False), ("3.11", True), ("3.12", True), ("3.13", False)])
def test_python_version_is_checked(version: str, accepted: bool, tmp_path: Path) -> None:
    # A stand-in that says it is that version.
    fake = tmp_path / "python"
    major, minor = version.split(".")
    fake.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -S -c "import sys; sys.version_info = ({major}, {minor}, 0); '
        'exec(sys.argv[1])" "$2"\n',
        encoding="utf-8",
    )
    fake.chmod(0o755)
    result = subprocess.run([ROOT / "tools/find_python.sh", fake], capture_output=True, text=True, check=False)
    assert (result.returncode == 0) == accepted
    if accepted:
        assert result.stdout.strip() == str(fake)
    else:
        assert "Python 3.11 or 3.12 is needed" in result.stderr


def test_missing_system_packages_are_named_with_the_command(tmp_path: Path) -> None:
    # No library at all, and no right to install any.
    for name, body in {"ldconfig": "echo '\tlibc.so.6 (x) => /x'", "id": "echo 1000", "sudo": "exit 1"}.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        program.chmod(0o755)
    apt = tmp_path / "apt-get"
    apt.write_text("#!/bin/sh\necho 'apt-get was called' >&2; exit 1\n", encoding="utf-8")
    apt.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = [ROOT / "tools/system_packages.sh", sys.executable]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert result.returncode == 1
    assert "sudo apt-get install --yes" in result.stderr
    assert "libusb-1.0-0" in result.stderr
    assert "libegl1" in result.stderr
    assert "apt-get was called" not in result.stderr


def test_every_extra_is_explained_where_users_look() -> None:
    text = (ROOT / "docs/installation.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `\[(\w+)\]` \| ([^|]+) \|", text, re.MULTILINE))
    assert {name: purpose.strip() for name, purpose in rows.items()} == EXTRAS


def test_the_benchmarks_are_installed_whole() -> None:
    with (ROOT / "morphit_bench/pyproject.toml").open("rb") as stream:
        listed = tomllib.load(stream)["tool"]["setuptools"]["packages"]
    folders = [path.parent.relative_to(ROOT) for path in ROOT.glob("morphit_bench/**/__init__.py")]
    assert listed == sorted(".".join(folder.parts) for folder in folders)
