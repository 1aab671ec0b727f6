"""morphit_moveit: manifest, CMake, plugin description and sources agree, and nothing builds it unasked."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
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


@pytest.mark.parametrize(
    ("name", "source", "base"),
    [
        ("collision_detectors.xml", "collision_detectors.cpp", "collision_detection::CollisionPlugin"),
        ("planner.xml", "planner.cpp", "planning_interface::PlannerManager"),
    ],
)
def test_plugin_descriptions_name_library_classes_and_base_class(name: str, source: str, base: str) -> None:
    description = ElementTree.parse(PACKAGE / name).getroot()
    library = description.get("path")
    assert re.search(rf"add_library\({library} SHARED[^)]*\bsrc/{source}", CMAKE)
    assert re.search(rf"install\(TARGETS [^)]*\b{library}\b", CMAKE)
    # MoveIt's loaders ask for the plugins of moveit_core.
    assert f"pluginlib_export_plugin_description_file(moveit_core {name})" in CMAKE
    text = (PACKAGE / "src" / source).read_text(encoding="utf-8")
    exported = re.findall(r"PLUGINLIB_EXPORT_CLASS\(([\w:]+), ([\w:]+)\)", text)
    plugins = description.findall("class")
    assert exported == [(plugin.get("type"), plugin.get("base_class_type")) for plugin in plugins]
    assert {plugin.get("base_class_type") for plugin in plugins} == {base}


def test_collision_detectors_have_the_names_of_their_environments() -> None:
    environments = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.glob("src/collision_env_*.cpp"))
    for plugin in ElementTree.parse(PACKAGE / "collision_detectors.xml").getroot().iter("class"):
        assert f'NAME("{plugin.get("name")}")' in environments


def test_the_planner_knows_each_status_and_the_settings_of_its_pipeline() -> None:
    interfaces = pytest.importorskip("morphit_ros.ros.core.interfaces")
    source = (PACKAGE / "src/planner.cpp").read_text(encoding="utf-8")
    action = (ROOT / "morphit_interfaces/action/PlanMotion.action").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^string status +# (.*)$", action, re.MULTILINE)
    statuses = set(listed.split(", "))
    # What is refused is a failure to plan, as is any status that is not named.
    assert set(re.findall(r'status == "([\w ]+)"', source)) == statuses - {"refused"}
    pipeline = yaml.safe_load((ROOT / "config/moveit/morphit_planning.yaml").read_text(encoding="utf-8"))
    (plugin,) = ElementTree.parse(PACKAGE / "planner.xml").getroot().findall("class")
    assert pipeline["planning_plugins"] == [plugin.get("name")]
    common = {"planning_plugins", "request_adapters", "response_adapters"}
    assert set(pipeline) - common == set(re.findall(r'read\("(\w+)"', source))
    # It times its motions itself: timed again they would leave what was proven.
    assert not any("Parameterization" in adapter for adapter in pipeline["response_adapters"])
    assert pipeline["action"] == interfaces.PLAN_MOTION.name


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
