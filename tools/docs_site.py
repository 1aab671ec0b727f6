"""The pages of the documentation site that are not in docs/: a hook of MkDocs, named in mkdocs.yml.

It makes the reference from the public names of each subpackage, the gallery from examples/, and pages from documents
elsewhere in the repository. Links between documents hold in the repository; it rewrites them for the site.
"""

from __future__ import annotations

import ast
import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "morphit_ros"
# Documents outside docs/ → their pages.
MOUNTED = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "QUALITY_DECLARATION.md": "quality.md",
    "CHANGELOG.rst": "changelog.md",
    "morphit_moveit/README.md": "moveit_plugin.md",
}
# What people import, in the order of the reference; the rest of the package is reached through these or through nodes.
REFERENCE = (
    "", "geometry", "robot", "spheres", "superovoid", "perception", "grasping", "execution", "motion",
    "motion.reachability", "cover", "neural", "simulation", "errors",
)  # fmt: skip
_LOG = logging.getLogger("mkdocs.hooks.docs_site")
_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")


def on_config(config: Any) -> Any:
    """Append a page for every subpackage to the navigation."""
    (reference,) = (section["Reference"] for section in config.nav if "Reference" in section)
    reference += [{title: page} for page, (title, _) in reference_pages().items()]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made here."""
    pages = {page: text for page, (_, text) in reference_pages().items()}
    pages["gallery.md"] = gallery_page()
    for source, page in MOUNTED.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        pages[page] = markdown_from_changelog(text) if source.endswith(".rst") else text
    for page, text in pages.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links of the repository as links of the site; one that leads to neither is a warning, and so an error."""
    here = page.file.src_uri
    source = next((path for path, target in MOUNTED.items() if target == here), f"docs/{here}")

    def site_link(found: re.Match[str]) -> str:
        start, target, anchor, end = found[1], found[2], found[3] or "", found[4]
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path in MOUNTED:
            path = f"docs/{MOUNTED[path]}"
        if not path.startswith("docs/"):
            _LOG.warning("%s: the link to %s leads out of the site", source, target)
            return found[0]
        return f"{start}{posixpath.relpath(path.removeprefix('docs/'), posixpath.dirname(here) or '.')}{anchor}{end}"

    # Not in code: there brackets and parentheses mean something else.
    parts = re.split(r"(^```.*?^```|`[^`\n]+`)", markdown, flags=re.M | re.S)
    return "".join(part if part.startswith("`") else _LINK.sub(site_link, part) for part in parts)


def reference_pages() -> dict[str, tuple[str, str]]:
    """Page → its title and text, of the subpackages that exist and have public names."""
    pages = {}
    for name in REFERENCE:
        dotted = ".".join(filter(None, (PACKAGE, name)))
        folder = ROOT.joinpath(*dotted.split("."))
        names = public_names(folder, dotted)
        if names:
            lines = [f"# {dotted}", "", summary(folder), "", *(f"::: {item}\n" for item in names)]
            pages[f"reference/{name or PACKAGE}.md"] = (dotted, "\n".join(lines))
    return pages


def public_names(folder: Path, dotted: str) -> list[str]:
    """What a subpackage exports by its stub; where it has none, its modules."""
    stub = folder / "__init__.pyi"
    if stub.is_file():
        imports = [
            node for node in ast.parse(stub.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)
        ]
        return sorted(f"{dotted}.{alias.asname or alias.name}" for node in imports for alias in node.names)
    if folder.with_suffix(".py").is_file():
        return [dotted]
    if dotted == PACKAGE or not folder.is_dir():
        return []
    return [f"{dotted}.{path.stem}" for path in sorted(folder.glob("*.py")) if not path.stem.startswith("_")]


def summary(folder: Path) -> str:
    """The docstring of a package or module."""
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def gallery_page(examples: Path = ROOT / "examples", images: Path = ROOT / "docs/images/examples") -> str:
    """Every examples/NN_name.py: what it does, its picture if there is one, its source."""
    lines = ["# Gallery", ""]
    paths = sorted(examples.glob("[0-9][0-9]_*.py"))
    if not paths:
        lines += ["There are no examples in this version. Begin with [first spheres](tutorials/first_spheres.md)."]
    for path in paths:
        source = path.read_text(encoding="utf-8")
        title = (ast.get_docstring(ast.parse(source)) or path.stem).splitlines()[0]
        lines += [f"## {title}", "", f"`python examples/{path.name}`", ""]
        picture = images / f"{path.stem}.png"
        if picture.is_file():
            lines += [f"![{title}](images/examples/{picture.name})", ""]
        lines += ["```python", source.rstrip(), "```", ""]
    return "\n".join(lines)


def markdown_from_changelog(text: str) -> str:
    """CHANGELOG.rst, of which catkin tools ask for titles, bullets and literals only, as Markdown."""
    text = re.sub(r"^\^+\n(.+)\n\^+$", r"# \1", text, flags=re.M)
    text = re.sub(r"^(.+)\n-{3,}$", r"## \1\n", text, flags=re.M)
    return text.replace("``", "`")
