"""A robot description as data: its tree of links, and the URDF or xacro that it is read from."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr, unescape

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.robot.links import Joint, Link
from morphit_ros.robot.packages import ament_share, resolve_uri
from morphit_ros.robot.urdf import read_urdf
from morphit_ros.robot.xacro_files import expand_xacro

# Of a URDF, hundreds of times the size of a humanoid's: a mesh or an image given by mistake is refused unread.
MAX_DOCUMENT_BYTES = 1 << 26


@dataclass(frozen=True)
class RobotDescription:
    """A robot as a tree of links.

    Attributes:
        name: of the robot.
        root_link: the link that has no parent.
        links, joints: by name, in the order of the document.
        xml: the URDF text (after xacro).
        directory: folder of the document; None if it came as text.
        package_paths: where its packages are looked for first.
    """

    name: str
    root_link: str
    links: Mapping[str, Link]
    joints: Mapping[str, Joint]
    xml: str
    directory: Path | None = None
    package_paths: tuple[Path, ...] = ()

    def parent_joint(self, link: str) -> Joint | None:
        """The joint that carries a link, None for the root."""
        return next((joint for joint in self.joints.values() if joint.child == link), None)

    def neighbours(self, links: Collection[str]) -> set[frozenset[str]]:
        """Pairs of some links that are next to each other once all other links are passed over."""
        known, pairs = set(links), set()
        for link in links:
            joint = self.parent_joint(link)
            while joint is not None and joint.parent not in known:
                joint = self.parent_joint(joint.parent)
            if joint is not None:
                pairs.add(frozenset((link, joint.parent)))
        return pairs

    def xml_with_files(self) -> str:
        """The URDF text with the files' places instead of packages, for readers that don't know where packages are.

        Raises:
            ResourceNotFoundError: a file of it is missing.
        """

        return self._with_mesh_uris(lambda uri: self._file(uri).as_uri())

    def xml_to_publish(self) -> str:
        """The URDF text as RViz and MoveIt can read it: they look for packages in the ament index alone.

        Meshes of packages that are elsewhere (installed with pip, or in `package_paths`) get their files' places.
        """

        def place(uri: str) -> str:
            name = uri.removeprefix("package://").partition("/")[0]
            if uri.startswith("file://") or (uri.startswith("package://") and ament_share(name) is not None):
                return uri
            try:
                return self._file(uri).as_uri()
            # Of visual geometry: whoever draws it says so.
            except (InvalidInputError, ResourceNotFoundError):
                return uri

        return self._with_mesh_uris(place)

    def _file(self, uri: str) -> Path:
        return resolve_uri(uri, self.package_paths, self.directory).absolute()

    def _with_mesh_uris(self, replaced: Callable[[str], str]) -> str:
        def place(match: re.Match[str]) -> str:
            return match["before"] + quoteattr(replaced(unescape(match["uri"], {"&quot;": '"'})))

        pattern = r"""(?P<before><mesh\b[^>]*?\bfilename\s*=\s*)(?P<quote>["'])(?P<uri>.*?)(?P=quote)"""
        return re.sub(pattern, place, self.xml)

    def adjacent_links(self) -> list[tuple[str, str]]:
        """Pairs (parent, child) of links that a joint connects."""
        return [(joint.parent, joint.child) for joint in self.joints.values()]


def load_robot_description(
    source: str | Path,
    package_paths: Sequence[str | Path] = (),
    xacro_arguments: Mapping[str, str] | None = None,
) -> RobotDescription:
    """Read a robot description and find the files that it names.

    Args:
        source: path or URI (package://, file://) of a URDF or xacro file, or the XML text itself.
        package_paths: folders that hold packages; looked at before the ament index and the environment.
        xacro_arguments: arguments of a xacro file.

    Raises:
        ResourceNotFoundError: the file or a collision mesh is missing; names link, package and places.
        InvalidInputError: XML that cannot be parsed (with its line), or a tree that is not one: duplicate names,
            a joint whose link does not exist, a cycle, no or several roots; a xacro file that takes too long.
        MissingDependencyError: a xacro file, and the package xacro is not installed.
    """
    paths = tuple(Path(path) for path in package_paths)
    text = str(source).removeprefix("\ufeff")
    if text.lstrip().startswith("<") or "\n" in text:
        return _described(text, None, paths, "robot description")
    path = resolve_uri(text, paths)
    if path.stat().st_size > MAX_DOCUMENT_BYTES:
        raise InvalidInputError(
            path.name, f"{path.stat().st_size >> 20} MiB", f"at most {MAX_DOCUMENT_BYTES >> 20} MiB"
        )
    try:
        document = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InvalidInputError(str(path), f"unreadable ({error})", "a file that can be read") from error
    if path.suffix == ".xacro":
        document = expand_xacro(path, xacro_arguments or {})
    return _described(document, path.parent, paths, path.name)


def _described(text: str, directory: Path | None, package_paths: tuple[Path, ...], source: str) -> RobotDescription:
    return RobotDescription(*read_urdf(text, directory, package_paths, source), text, directory, package_paths)
