"""The hook of the documentation site: gallery, reference, and links that hold in repository and site."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("mkdocs", reason="the site needs requirements-docs.txt (make docs)")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site() -> Any:
    import importlib.util

    spec = importlib.util.spec_from_file_location("docs_site", ROOT / "tools/docs_site.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rewritten(site: Any, markdown: str, page: str) -> str:
    text: str = site.on_page_markdown(markdown, SimpleNamespace(file=SimpleNamespace(src_uri=page)), None, None)
    return text


def test_gallery_shows_title_picture_and_source_in_order(site: Any, tmp_path: Path) -> None:
    examples, images = tmp_path / "examples", tmp_path / "images"
    examples.mkdir()
    images.mkdir()
    (examples / "02_cover.py").write_text('"""Prove a cover.\n\nMore."""\nprint(2)\n', encoding="utf-8")
    (examples / "01_fit.py").write_text('"""Fit spheres."""\nprint(1)\n', encoding="utf-8")
    (examples / "helper.py").write_text('"""No example."""\n', encoding="utf-8")
    (images / "01_fit.png").write_bytes(b"")
    page = site.gallery_page(examples, images)
    assert page.index("## Fit spheres.") < page.index("## Prove a cover.")
    assert "![Fit spheres.](images/examples/01_fit.png)" in page
    assert "02_cover.png" not in page and "No example" not in page
    assert "print(2)" in page


def test_gallery_without_examples_is_a_page(site: Any, tmp_path: Path) -> None:
    assert site.gallery_page(tmp_path, tmp_path).startswith("# Gallery\n")


def test_reference_has_every_public_name(site: Any) -> None:
    import morphit_ros.spheres

    title, text = site.reference_pages()["reference/spheres.md"]
    assert title == "morphit_ros.spheres"
    names = {line.removeprefix("::: morphit_ros.spheres.") for line in text.splitlines() if line.startswith(":::")}
    assert names == set(morphit_ros.spheres.__all__)


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("covers.md", "[a](../ARCHITECTURE.md)", "[a](architecture.md)"),
        ("architecture.md", "[a](docs/neural/node.md#x)", "[a](neural/node.md#x)"),
        ("neural/solid.md", "![a](../images/b.png)", "![a](../images/b.png)"),
        ("covers.md", "`[a](../setup.py)`", "`[a](../setup.py)`"),
        ("covers.md", "[a](#here) [b](https://example.org/c)", "[a](#here) [b](https://example.org/c)"),
    ],
)
def test_links_of_the_repository_become_links_of_the_site(site: Any, page: str, link: str, expected: str) -> None:
    assert rewritten(site, link, page) == expected


def test_a_link_out_of_the_site_is_a_warning(site: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        rewritten(site, "[a](../setup.py)", "covers.md")
    assert "../setup.py" in caplog.text


def test_changelog_becomes_markdown(site: Any) -> None:
    text = "^^^\nLog\n^^^\n\nForthcoming\n-----------\n* New: ``name``.\n"
    assert site.markdown_from_changelog(text) == "# Log\n\n## Forthcoming\n\n* New: `name`.\n"
