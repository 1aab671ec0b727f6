"""morphit_moveit: manifest, CMake, plugin description and sources agree, and nothing builds it unasked."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import yaml

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "morphit_moveit"
MANIFEST = ElementTree.parse(PACKAGE / "package.xml").getroot()
CMAKE = (PACKAGE / "CMakeLists.txt").read_text(encoding="utf-8")
# Headers that come with another package.
COMES_WITH = {"Eigen": "moveit_core", "moveit": "moveit_core", "octomap": "moveit_core"}


def test_the_manifest_is_that_of_an_ament_cmake_package_of_the_same_release() -> None:
    other = ElementTree.parse(ROOT / "package.xml").getroot()
    assert MANIFEST.get("format") == "3"
    assert MANIFEST.findtext("name") == "morphit_moveit"
    assert MANIFEST.findtext("export/build_type") == "ament_cmake"
    for tag in ("version", "license", "maintainer"):
        assert MANIFEST.findtext(tag) == other.findtext(tag)
    assert "project(morphit_moveit " in CMAKE


def test_cmake_finds_what_the_manifest_depends_on() -> None:
    depends = {element.text for element in MANIFEST.iter("depend")}
    found = set(re.findall(r"find_package\((\w+) REQUIRED\)", CMAKE)) - {"ament_cmake"}
    assert found == depends
    targets = re.findall(r"^  (\w+)::", CMAKE, re.MULTILINE)
    assert set(targets) <= depends


def test_every_included_package_is_a_dependency() -> None:
    depends = {element.text for element in MANIFEST.iter("depend")}
    for path in [*PACKAGE.glob("src/*.cpp"), *PACKAGE.glob("include/**/*.hpp")]:
        for package in re.findall(r"#include <(\w+)/", path.read_text(encoding="utf-8")):
            if package != "morphit_moveit":
                assert COMES_WITH.get(package, package) in depends, (path.name, package)


def test_every_source_is_compiled() -> None:
    listed = set(re.findall(r"src/(\w+\.cpp)", CMAKE))
    assert listed == {path.name for path in PACKAGE.glob("src/*.cpp")}


def test_the_plugin_description_names_library_classes_and_base_class() -> None:
    name = "collision_detectors.xml"
    description = ElementTree.parse(PACKAGE / name).getroot()
    library = description.get("path")
    assert f"add_library({library} SHARED" in CMAKE
    assert re.search(rf"install\(TARGETS [^)]*\b{library}\b", CMAKE)
    # MoveIt's loader of collision detectors asks for the plugins of moveit_core.
    assert f"pluginlib_export_plugin_description_file(moveit_core {name})" in CMAKE
    source = (PACKAGE / "src/collision_detectors.cpp").read_text(encoding="utf-8")
    exported = re.findall(r"PLUGINLIB_EXPORT_CLASS\(([\w:]+), ([\w:]+)\)", source)
    plugins = description.findall("class")
    assert exported == [(plugin.get("type"), plugin.get("base_class_type")) for plugin in plugins]
    environments = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.glob("src/collision_env_*.cpp"))
    for plugin in plugins:
        assert plugin.get("base_class_type") == "collision_detection::CollisionPlugin"
        assert f'NAME("{plugin.get("name")}")' in environments


def test_the_plugin_follows_topics_that_nodes_publish() -> None:
    headers = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.glob("include/**/*_models.hpp"))
    topics = re.findall(r'ModelFollower\("\w+", "(\w+)"\)', headers)
    assert sorted(topics) == ["sphere_model", "superovoid_model"]
    interfaces = (ROOT / "docs/interfaces.md").read_text(encoding="utf-8")
    assert all(f"`{topic}`" in interfaces for topic in topics)


def test_the_default_build_leaves_it_out() -> None:
    defaults = yaml.safe_load((ROOT / "colcon_defaults.yaml").read_text(encoding="utf-8"))
    assert all("morphit_moveit" not in settings["base-paths"] for settings in defaults.values())
    assert not (PACKAGE / "COLCON_IGNORE").exists()
