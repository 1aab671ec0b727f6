"""Puts the three ROS packages side by side, as bloom wants them, from the files that git knows:

    python tools/release_tree.py FOLDER

bloom, rosdep and colcon look for no package inside a package, and here morphit_interfaces and morphit_moveit lie inside
morphit_ros. FOLDER, committed as a repository or a branch of its own, is what `bloom-release` is pointed at; as src/ of
a workspace it is built by `colcon build` without more words.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUTER, INNER = "morphit_ros", ("morphit_interfaces", "morphit_moveit")


def files() -> list[Path]:
    """Every file of the repository, relative to it."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file()]


def write(folder: Path) -> None:
    """Copy all files, each into the folder of its package.

    Raises:
        FileExistsError: the folder holds something already, besides a repository's own .git.
    """
    if folder.is_dir() and any(path.name != ".git" for path in folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty: name a new folder, or remove what is in it")
    for path in files():
        place = folder / path if path.parts[0] in INNER else folder / OUTER / path
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, place)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="a new or empty folder")
    try:
        write(parser.parse_args().folder)
    except FileExistsError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
