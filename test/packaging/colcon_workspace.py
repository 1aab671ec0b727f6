"""A workspace with this repository for colcon, in .colcon/workspace, built.

Compiling the messages takes two minutes of a processor, so what is compiled stays for the next time; a build of other
messages or with other tools begins from nothing. All the rest is copied, built and installed anew each time.
`make test` builds it before the tests; they build it themselves where that was not done.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / ".colcon" / "venv"
FOLDER = ROOT / ".colcon" / "workspace"
SOURCE = FOLDER / "morphit_ros"
# Not part of the sources that are copied for the build.
LEFT_OUT = (".git", ".venv", ".colcon", "build", "install", "log", "__pycache__", ".mypy_cache", ".ruff_cache")
COMPILED = Path("build") / "morphit_interfaces"


def colcon(*words: str) -> subprocess.CompletedProcess[str]:
    """Run colcon in the workspace.

    Raises:
        AssertionError: it failed; with the end of what it printed.
    """
    environment = {
        key: value
        for key, value in os.environ.items()
        # What the ROS wheels, pytest and a sourced workspace put there belongs to another environment.
        if not key.startswith(("_ROS_WHEELS", "LD_LIBRARY_PATH", "PYTEST_", "PYTHON", "AMENT_", "COLCON_", "CMAKE_"))
    }
    environment |= {
        "PATH": f"{ENVIRONMENT / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "AMENT_PREFIX_PATH": str(ENVIRONMENT),
        "CMAKE_PREFIX_PATH": str(ENVIRONMENT),
        "COLCON_DEFAULTS_FILE": str(SOURCE / "colcon_defaults.yaml"),
        "COLCON_HOME": str(SOURCE / "colcon_home"),
        "COLCON_LOG_LEVEL": "30",
        # Otherwise it compiles nothing in parallel while another worker is busy.
        "MAKEFLAGS": "-j2",
    }
    result = subprocess.run(
        [str(ENVIRONMENT / "bin/colcon"), *words],
        cwd=SOURCE, env=environment, capture_output=True, text=True, check=False, timeout=1200,
    )  # fmt: skip
    assert result.returncode == 0, f"colcon {' '.join(words)}:\n{result.stdout[-4000:]}\n{result.stderr[-4000:]}"
    return result


def compiled_from() -> str:
    """Digest of everything that the compiled messages depend on."""
    digest = hashlib.sha256(str(SOURCE).encode())
    interfaces = ROOT / "morphit_interfaces"
    folders = (interfaces / name for name in ("action", "cmake", "msg", "srv"))
    files = [path for folder in folders for path in folder.iterdir()]
    files += [path for path in interfaces.iterdir() if path.is_file()]
    # Which packages the environment holds says its list of installed ones.
    for path in sorted([*files, ROOT / "colcon_defaults.yaml"]):
        digest.update(f"\n{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    digest.update(
        "\n".join(sorted(path.name for path in ENVIRONMENT.glob("lib/python3*/site-packages/*-info"))).encode()
    )
    return digest.hexdigest()


def prepare() -> None:
    """The sources as they are now, with what was compiled from the same messages, and nothing else."""
    mark, kept, now = FOLDER / "compiled_from", FOLDER / "kept", compiled_from()
    shutil.rmtree(kept, ignore_errors=True)
    if (SOURCE / COMPILED).is_dir() and mark.is_file() and mark.read_text() == now:
        (SOURCE / COMPILED).rename(kept)
    mark.unlink(missing_ok=True)
    shutil.rmtree(SOURCE, ignore_errors=True)
    # Times of files are kept: make sees what is as it was.
    shutil.copytree(ROOT, SOURCE, ignore=shutil.ignore_patterns(*LEFT_OUT))
    if kept.is_dir():
        (SOURCE / COMPILED).parent.mkdir()
        kept.rename(SOURCE / COMPILED)


def build() -> Path:
    """Folder of the sources with build/ and install/ of both packages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        prepare()
        # The wheels' CMake files need the same corrections as in pip's build; those of a ROS installation do not.
        corrections = SOURCE / "morphit_interfaces/cmake/wheel_environment.cmake"
        python = ENVIRONMENT / "bin/python"
        colcon(
            "build", "--event-handlers", "console_cohesion+", "--cmake-args", "-DBUILD_TESTING=OFF",
            f"-DCMAKE_PROJECT_INCLUDE={corrections}", f"-DPython3_EXECUTABLE={python}", f"-DPYTHON_EXECUTABLE={python}",
        )  # fmt: skip
        (FOLDER / "compiled_from").write_text(compiled_from())
    return SOURCE


if __name__ == "__main__":
    build()
