"""README and docs/: commands are taken, links and pictures exist, Python imports what there is."""

from __future__ import annotations

import ast
import importlib
import re
import runpy
import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from morphit_ros.bringup import JOBS, parse_assignments
from morphit_ros.cli import make_parser

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", ROOT / "QUALITY_DECLARATION.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]  # fmt: skip
FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.M | re.S)
# Where a document leaves something to the reader.
PLACEHOLDER = re.compile(r"[…${}<>]|\b(?:CASE|DIR|FILE|FOLDER|JOB|NAME|ROBOT)\b")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def shell_lines(text: str) -> list[str]:
    """Every line of the blocks of a document that are not of another language, and of its indented ones."""
    blocks = [body for language, body in FENCED.findall(text) if language in ("", "sh", "bash")]
    blocks += re.findall(r"^    (morphit .*)$", FENCED.sub("", text), re.M)
    return [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]


def morphit_commands(text: str) -> list[list[str]]:
    """The words of every call of morphit that leaves nothing open."""
    calls = [call for line in shell_lines(text) for call in re.split(r"&&|;", line.split(" #")[0])]
    return [
        shlex.split(call)[1:] for call in calls if call.strip().startswith("morphit ") and not PLACEHOLDER.search(call)
    ]


def recipes() -> dict[str, Any]:
    found: dict[str, Any] = runpy.run_path(str(ROOT / "tools/make_pictures.py"))["RECIPES"]
    return found


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_commands_are_taken_by_the_command_line(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in morphit_commands(path.read_text(encoding="utf-8")):
        try:
            options = make_parser().parse_args(words)
        except SystemExit as end:
            pytest.fail(f"morphit {' '.join(words)} ends with status {end.code}")
        if words[0] == "demo":
            parse_assignments(options.arguments)
        if words[0] == "up" and "--list" not in words:
            known = {argument.name for argument in JOBS[options.job].arguments}
            assert set(parse_assignments(words[2:])) <= known, words


def test_readme_and_tutorials_have_commands() -> None:
    for path in (ROOT / "README.md", *sorted((ROOT / "docs/tutorials").glob("*.md"))):
        assert morphit_commands(path.read_text(encoding="utf-8")), path


def test_make_targets_that_documents_and_workflows_name_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    workflow = yaml.safe_load((ROOT / ".github/workflows/check.yml").read_text(encoding="utf-8"))
    runs = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert {"make lint", "make docs", ".ci/run"} <= set(runs)
    named = {run.split()[1] for run in runs if run.startswith("make ")}
    for path in DOCUMENTS:
        named |= set(re.findall(r"(?:`|^ *)make ([a-z-]+)", path.read_text(encoding="utf-8"), re.M))
    assert named <= targets


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_and_pictures_exist(path: Path) -> None:
    text = re.sub(r"`[^`\n]+`", "", FENCED.sub("", path.read_text(encoding="utf-8")))
    # Made by the site only.
    made = {ROOT / "docs" / name for name in ("gallery.md",)}
    for target in re.findall(r"\]\(([^)\s#]+)", text):
        if "://" not in target:
            assert (path.parent / target).exists() or path.parent / target in made, target


def test_every_picture_is_shown_and_one_command_makes_it_anew() -> None:
    shown = {
        Path(target).name
        for path in DOCUMENTS
        for target in re.findall(r"!\[[^\]]*\]\((\S*images/[^)\s]+)\)", path.read_text(encoding="utf-8"))
    }
    # The gallery shows one of every example.
    shown |= {f"examples/{path.stem}.png" for path in (ROOT / "examples").glob("[0-9][0-9]_*.py")}
    images = ROOT / "docs/images"
    there = {
        path.relative_to(images).as_posix() for path in images.rglob("*") if path.suffix in (".png", ".jpg", ".webp")
    }
    made = {file for recipe in recipes().values() for file in recipe.files}
    assert shown == there == made


def test_film_of_the_readme_moves_and_is_small() -> None:
    from PIL import Image

    path = ROOT / "docs/images/pick.webp"
    assert path.stat().st_size < 1.5e6
    with Image.open(path) as film:
        assert film.n_frames > 20


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_python_imports_what_there_is(path: Path) -> None:
    for language, body in FENCED.findall(path.read_text(encoding="utf-8")):
        if language != "python":
            continue
        indent = len(body) - len(body.lstrip(" "))
        tree = ast.parse("\n".join(line[indent:] for line in body.splitlines()))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("morphit_ros"):
                module = importlib.import_module(node.module or "")
                for alias in node.names:
                    assert hasattr(module, alias.name), f"{node.module}.{alias.name}"


def test_readme_fits_on_a_screen() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 60


def test_lists_and_tables_begin_after_an_empty_line() -> None:
    """GitHub shows others as well, Python-Markdown (the site) runs them into the paragraph before."""
    for path in [*DOCUMENTS, ROOT / "morphit_moveit/README.md"]:
        text = FENCED.sub("", path.read_text(encoding="utf-8"))
        run_in = re.search(r"^(?![-*|#>\d\s])[^|\n]+\n(?:[-*] |1\. |\|).*", text, re.M)
        assert run_in is None, f"{name_of(path)}: {run_in and run_in.group()}"


def test_citation_and_changelog_are_of_this_version() -> None:
    version = ElementTree.parse(ROOT / "package.xml").getroot().findtext("version")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == version
    changelog = (ROOT / "CHANGELOG.rst").read_text(encoding="utf-8")
    # What catkin tools read: versions with an ISO date, newest first, below Forthcoming; underlined to their length.
    sections = re.findall(r"^(Forthcoming|\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\))\n(-+)$", changelog, re.M)
    assert [len(title) for title, _ in sections] == [len(line) for _, line in sections]
    titles = [title for title, _ in sections]
    assert titles[:2] == ["Forthcoming", f"{version} ({citation['date-released']})"]


@pytest.mark.parametrize("path", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.name)
def test_issue_forms_are_forms(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.name != "config.yml":
        assert form["name"] and form["description"]
        assert {part["type"] for part in form["body"]} <= {"textarea", "input", "dropdown", "checkboxes", "markdown"}
        assert len({part["id"] for part in form["body"]}) == len(form["body"])
