"""Each ROS package can be released: manifest, changelog, licence, quality declaration, side by side with the others."""

from __future__ import annotations

import itertools
import re
import runpy
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "morphit_ros": ROOT,
    "morphit_interfaces": ROOT / "morphit_interfaces",
    "morphit_moveit": ROOT / "morphit_moveit",
}
OUTER = ElementTree.parse(ROOT / "package.xml").getroot()


@pytest.fixture(params=PACKAGES)
def package(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def manifest(name: str) -> ElementTree.Element:
    return ElementTree.parse(PACKAGES[name] / "package.xml").getroot()


def test_version_licence_and_maintainer_are_the_same_everywhere(package: str) -> None:
    here = manifest(package)
    assert here.findtext("name") == package
    for tag in ("version", "license", "maintainer"):
        assert here.findtext(tag) == OUTER.findtext(tag), tag
    assert here.find("maintainer").get("email") == OUTER.find("maintainer").get("email")  # type: ignore[union-attr]


def test_changelog_is_what_catkin_tools_read(package: str) -> None:
    lines = (PACKAGES[package] / "CHANGELOG.rst").read_text(encoding="utf-8").splitlines()
    title = f"Changelog for package {package}"
    assert lines[1] == title
    assert lines[0] == lines[2] and set(lines[0]) == {"^"} and len(lines[0]) >= len(title)
    heads = [(above, below) for above, below in itertools.pairwise(lines[3:]) if set(below) == {"-"}]
    assert all(len(below) == len(above) for above, below in heads)
    names = [above for above, _ in heads]
    # What is said of the next release, and of each before; the version of the manifest has been told of.
    assert names[0] == "Forthcoming" or names[0].startswith(str(manifest(package).findtext("version")))
    versions = [re.fullmatch(r"(\d+\.\d+\.\d+) \(\d{4}-\d{2}-\d{2}\)", name) for name in names if name != "Forthcoming"]
    assert all(versions)
    assert manifest(package).findtext("version") == versions[0].group(1)  # type: ignore[union-attr]


def test_licence_and_quality_declaration_come_with_the_package(package: str) -> None:
    assert (PACKAGES[package] / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    text = (PACKAGES[package] / "QUALITY_DECLARATION.md").read_text(encoding="utf-8")
    assert f"`{package}`" in text
    assert re.search(r"\*\*Quality Level [1-5]\*\*", text)
    # The categories of REP 2004.
    for number in range(1, 8):
        assert re.search(rf"^\| {number} ", text, re.MULTILINE), number


def test_dependencies_between_them_go_one_way() -> None:
    def inner(name: str) -> set[str]:
        return {element.text or "" for element in manifest(name) if element.tag.endswith("depend")} & set(PACKAGES)

    assert inner("morphit_interfaces") == set()
    assert inner("morphit_ros") == {"morphit_interfaces"}
    assert inner("morphit_moveit") == {"morphit_interfaces", "morphit_ros"}


def test_release_tree_holds_them_side_by_side(tmp_path: Path) -> None:
    if subprocess.run(["git", "rev-parse"], cwd=ROOT, capture_output=True, check=False).returncode:
        pytest.skip("the sources are no git repository")
    tool = runpy.run_path(str(ROOT / "tools/release_tree.py"))
    tool["write"](tmp_path / "src")
    found = sorted(path.parent.relative_to(tmp_path / "src").as_posix() for path in tmp_path.rglob("package.xml"))
    assert found == sorted(PACKAGES)
    for name in PACKAGES:
        assert ElementTree.parse(tmp_path / "src" / name / "package.xml").getroot().findtext("name") == name
    assert sum(path.is_file() for path in (tmp_path / "src").rglob("*")) == len(tool["files"]())
    with pytest.raises(FileExistsError, match="not empty"):
        tool["write"](tmp_path / "src")
