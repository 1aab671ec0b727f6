"""Robots and meshes that somebody hands over as a file: a mesh, a URDF, or a zip of a URDF's folder."""

from __future__ import annotations

import errno
import io
import stat
import zipfile
from pathlib import Path, PurePosixPath

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.array_files import UNREADABLE

_MESHES = (".stl", ".obj", ".ply", ".dae", ".glb", ".off")
# More is no robot [bytes unpacked, files].
_LARGEST, _MOST = 1 << 30, 10_000
# Of a file where another member has a folder, and of a name that no file can have; without a number from bz2.
_ZIPS_OWN_FAULTS = (None, errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG)


def store_upload(name: str, content: bytes, folder: Path) -> Path:
    """Keep an upload, unpacked if it is a zip.

    Args:
        name: of the file; folders in it are left out.
        content: of the file.
        folder: that it is written into, and nowhere else.

    Returns:
        The mesh file, or the URDF: of several in a zip the only one that lies highest.

    Raises:
        InvalidInputError: a file of another kind, a zip that is damaged, too large, or names places outside its own
            folder, or one without a URDF or with several side by side.
    """
    own = PurePosixPath(name.replace("\\", "/")).name
    suffix = Path(own).suffix.lower()
    if suffix in (*_MESHES, ".urdf"):
        path = folder / own
        path.write_bytes(content)
        return path
    if suffix != ".zip":
        bound = f"a zip of a URDF's folder, or a file {' '.join((*_MESHES, '.urdf'))}"
        raise InvalidInputError("upload", repr(own), bound)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_members(own, archive.infolist())
            archive.extractall(folder)
    except UNREADABLE as error:
        if isinstance(error, OSError) and error.errno not in _ZIPS_OWN_FAULTS:
            raise
        raise InvalidInputError("upload", f"{own} ({error})", "a zip that can be unpacked") from error
    found = sorted(folder.rglob("*.urdf"), key=lambda path: (len(path.parts), str(path)))
    highest = [path for path in found if len(path.parts) == len(found[0].parts)]
    if len(highest) != 1:
        names = ", ".join(str(path.relative_to(folder)) for path in highest) or "no .urdf"
        raise InvalidInputError(f"upload {own}", names, "one URDF", "Expand xacro files first; leave others out.")
    return highest[0]


def _check_members(name: str, members: list[zipfile.ZipInfo]) -> None:
    """Refuse what would be written elsewhere, or fill the disk."""
    for member in members:
        path = PurePosixPath(member.filename.replace("\\", "/"))
        drive = ":" in path.parts[0] if path.parts else False
        if path.is_absolute() or drive or ".." in path.parts or stat.S_ISLNK(member.external_attr >> 16):
            raise InvalidInputError(f"upload {name}", repr(member.filename), "files inside the zip's own folder")
    size = sum(member.file_size for member in members)
    if size > _LARGEST or len(members) > _MOST:
        found = f"{size / 1e6:.0f} MB in {len(members)} files"
        raise InvalidInputError(f"upload {name}", found, f"at most {_LARGEST / 1e6:.0f} MB in {_MOST} files")
