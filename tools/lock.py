"""Prints the versions of the running environment as constraints for pip.

Left out: what pip did not install (ament puts the metadata of its Python modules beside that of
the wheels), this project's own packages, and the parts of a version that name a build.
"""

from __future__ import annotations

import importlib.metadata
import sys

OWN = {"morphit_ros", "ros-morphit-interfaces", "pip"}


def main() -> None:
    versions = {
        distribution.metadata["Name"]: distribution.version.partition("+")[0]
        for distribution in importlib.metadata.distributions()
        if (distribution.read_text("INSTALLER") or "").strip() == "pip"
    }
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    print(
        "# The whole environment of requirements.txt, requirements-dev.txt and requirements-docs.txt, "
        f"every version of it (Python {python})."
    )
    print("# Made anew by: make lock")
    for name in sorted(set(versions) - OWN, key=str.lower):
        print(f"{name}=={versions[name]}")


if __name__ == "__main__":
    main()
