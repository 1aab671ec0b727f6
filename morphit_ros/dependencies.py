"""What this package needs from elsewhere, once: by project, least version, import name, extra and rosdep key.

setup.py makes its extras of this table, tools/requirements.py the requirements files (with the versions of
constraints.txt), and a module that is missing is named with the extra that brings it. setup.py runs this file by its
path: nothing of the package may be imported at its head.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from morphit_ros.errors import MissingDependencyError

# Extra → what it is for.
EXTRAS = {
    "spheres": "fit, measure and export sphere models of robots and mesh files",
    "superovoid": "fit superovoids to robots and mesh files, distances of robots",
    "grasp": "grasps on recorded clouds (PLY and PCD), and their pictures",
    "cover": "morphing covers, and plots of their runs",
    "neural": "learn objects from pictures, identify and push them",
    "simulation": "MuJoCo: simulated workcell and cameras, recordings of objects",
    "view": "views in the browser",
    "record": "recordings of topics as MCAP files",
    "batch": "batch work by several processes (`--workers`) and machines (`--scheduler`)",
    "ros": "ROS 2 Jazzy as wheels, where no ROS 2 is installed",
}


@dataclass(frozen=True)
class Dependency:
    """A project of the Python Package Index.

    Args:
        project: its name there.
        least: the least version that it was tried with; "==" before it where no other will do.
        modules: what it is imported as, separated by spaces; empty if it only brings data or serves another project.
        extras: which extras need it, separated by spaces; empty if everything does.
        rosdep: key of its native package in ROS distributions, empty if there is none, or none that serves.
        options: its own extra.
    """

    project: str
    least: str
    modules: str = ""
    extras: str = ""
    rosdep: str = ""
    options: str = ""

    @property
    def requirement(self) -> str:
        """As pip reads it."""
        options = f"[{self.options}]" if self.options else ""
        return f"{self.project}{options}{self.least if self.least.startswith('==') else f'>={self.least}'}"


_ROBOTS = "spheres superovoid simulation"
DEPENDENCIES = (
    Dependency("numpy", "1.26", "numpy", rosdep="python3-numpy"),
    Dependency("scipy", "1.11.4", "scipy", rosdep="python3-scipy"),
    Dependency("numba", "0.58.1", "numba", rosdep="python3-numba"),
    Dependency("PyYAML", "6.0.1", "yaml", rosdep="python3-yaml"),
    Dependency("tqdm", "4.66", "tqdm", rosdep="python3-tqdm"),
    Dependency("urdf-parser-py", "0.0.4", "urdf_parser_py", rosdep="urdfdom_py"),
    # geometry and robots
    Dependency("trimesh", "5.2", "trimesh", extras=f"{_ROBOTS} view"),
    # trimesh reads the DAE files of visuals with it.
    Dependency("pycollada", "0.9.3", extras="simulation view"),
    Dependency("xacro", "2.1.1", "xacro", extras=_ROBOTS, rosdep="xacro"),
    Dependency("example-robot-data", "6.0", extras=_ROBOTS),
    Dependency("coal", "3.0.3", "coal", extras="spheres"),
    Dependency("open3d", "0.20", "open3d", extras="grasp"),
    # pictures and plots
    Dependency("pillow", "10.2", "PIL", extras="grasp neural view", rosdep="python3-pil"),
    Dependency("matplotlib", "3.6.3", "matplotlib", extras="spheres cover neural", rosdep="python3-matplotlib"),
    # quadratic programmes of the cover's controller
    Dependency("daqp", "0.11", "daqp", extras="cover"),
    # learning
    Dependency("torch", "2.13", "torch", extras="neural", rosdep="python3-torch"),
    # simulation
    Dependency("mujoco", "4.0", "mujoco", extras="simulation neural"),
    Dependency("coacd", "1.0.14", "coacd", extras="simulation"),
    Dependency("manifold3d", "3.5.4", "manifold3d", extras="simulation neural"),
    # the browser view
    Dependency("viser", "1.1.1", "viser", extras="view"),
    Dependency("websockets", "16.1", "websockets", extras="view"),
    # batch work; Ubuntu 24.04's joblib is too old for it, and its distributed goes with another Python stack
    Dependency("joblib", "1.6", "joblib", extras="batch"),
    Dependency("distributed", "2026.8", "distributed", extras="batch"),
    # recordings; it brings lz4 and zstandard
    Dependency("mcap", "1.6", "mcap zstandard", extras="record"),
    # ROS 2 Jazzy: other versions are of other distributions, which do not mix.
    Dependency("ros-rclpy", "==7.1.6", "rclpy", extras="ros", rosdep="rclpy", options="fastrtps"),
    Dependency("ros-action-msgs", "==2.0.3", "action_msgs", extras="ros", rosdep="action_msgs"),
    Dependency("ros-ament-index-python", "==1.8.1", "ament_index_python", extras="ros", rosdep="ament_index_python"),
    Dependency("ros-builtin-interfaces", "==2.0.3", "builtin_interfaces", extras="ros", rosdep="builtin_interfaces"),
    Dependency("ros-diagnostic-msgs", "==5.3.6", "diagnostic_msgs", extras="ros", rosdep="diagnostic_msgs"),
    Dependency("ros-geometry-msgs", "==5.3.6", "geometry_msgs", extras="ros", rosdep="geometry_msgs"),
    # The services of rclpy's lifecycle nodes.
    Dependency("ros-lifecycle-msgs", "==2.0.3", "lifecycle_msgs", extras="ros", rosdep="lifecycle_msgs"),
    Dependency("ros-rcl-interfaces", "==2.0.3", "rcl_interfaces", extras="ros", rosdep="rcl_interfaces"),
    Dependency("ros-rosgraph-msgs", "==2.0.3", "rosgraph_msgs", extras="ros", rosdep="rosgraph_msgs"),
    Dependency("ros-sensor-msgs", "==5.3.6", "sensor_msgs", extras="ros", rosdep="sensor_msgs"),
    Dependency("ros-shape-msgs", "==5.3.6", "shape_msgs", extras="ros", rosdep="shape_msgs"),
    Dependency("ros-std-msgs", "==5.3.6", "std_msgs", extras="ros", rosdep="std_msgs"),
    Dependency("ros-trajectory-msgs", "==5.3.6", "trajectory_msgs", extras="ros", rosdep="trajectory_msgs"),
    Dependency("ros-visualization-msgs", "==5.3.6", "visualization_msgs", extras="ros", rosdep="visualization_msgs"),
    # Behaviour trees of tasks; a package of the distribution, and of the Python Package Index.
    Dependency("py-trees", "==2.6.0", "py_trees", extras="ros", rosdep="py_trees"),
)
# What only a ROS 2 installation has: import name → rosdep key.
ONLY_IN_ROS = {
    "control_msgs": "control_msgs",
    "launch": "launch",
    "launch_ros": "launch_ros",
    "moveit": "moveit_py",
    "moveit_msgs": "moveit_msgs",
    "std_srvs": "std_srvs",
    "tf2_msgs": "tf2_msgs",
    "tf2_ros": "tf2_ros_py",
}
# The messages of this project, which no registry has.
OWN_MESSAGES = "morphit_interfaces"
_OURS = ("morphit_ros", "morphit_bench")
_LIBRARIES = "It is a library of the system: see 'System libraries' in docs/installation.md."


def requirements(extra: str = "") -> list[str]:
    """What pip is to install for an extra, or for everything if it is empty; "all" is every extra but "ros"."""
    wanted = set(EXTRAS) - {"ros"} if extra == "all" else {extra}
    return [entry.requirement for entry in DEPENDENCIES if wanted & set(entry.extras.split() or [""])]


def missing_dependency(module: str, needed_for: str) -> MissingDependencyError:
    """The error that names a module that could not be imported, what for, and how to get it.

    Args:
        module: as it is imported; a submodule stands for its package.
        needed_for: the feature that needs it.
    """
    from morphit_ros.errors import MissingDependencyError

    package = module.partition(".")[0]
    return MissingDependencyError(package, needed_for, how_to_install(package))


@contextlib.contextmanager
def needed_for(feature: str) -> Iterator[None]:
    """Around imports of what may be missing.

    Raises:
        MissingDependencyError: a module is not installed; names the feature, the module and the extra that brings it.
            Or a library of the system that a module needs is not.
    """
    from morphit_ros.errors import MissingDependencyError, MorphitError

    try:
        yield
    except MorphitError:
        raise
    except ModuleNotFoundError as error:
        # One of ours that is not there is a mistake of ours.
        if (error.name or _OURS[0]).partition(".")[0] in _OURS:
            raise
        raise missing_dependency(error.name or "", feature) from error
    except (ImportError, OSError) as error:
        library, _, reason = str(error).partition(": ")
        if "cannot open shared object file" not in reason:
            raise
        raise MissingDependencyError(library, feature, _LIBRARIES) from error


def require(feature: str, *modules: str) -> None:
    """Make sure that modules can be found, without importing them.

    Raises:
        MissingDependencyError: as of `needed_for`.
    """
    with needed_for(feature):
        for module in modules:
            if importlib.util.find_spec(module) is None:
                raise ModuleNotFoundError(name=module)


def is_listed(project: str) -> bool:
    """Whether a project is one of `DEPENDENCIES`."""
    return any(entry.project == project for entry in DEPENDENCIES)


def how_to_install(name: str) -> str:
    """What a user types to get a module or a project, with the extra that brings it if there is one."""
    if name in ONLY_IN_ROS:
        package = f"ros-jazzy-{ONLY_IN_ROS[name].replace('_', '-')}"
        return f"It comes with ROS 2 only: sudo apt install {package}, and source /opt/ros/jazzy/setup.sh."
    entry = next((entry for entry in DEPENDENCIES if name in (entry.project, *entry.modules.split())), None)
    if name == OWN_MESSAGES or (entry and entry.extras == "ros"):
        return (
            "Source a ROS 2 Jazzy installation and the workspace with morphit_interfaces; or without one, in the "
            "sources of morphit_ros: pip install '.[ros]' ./morphit_interfaces"
        )
    if entry is None:
        return f"pip install {name}"
    if not entry.extras:
        return f"pip install '{entry.requirement}'"
    extra = entry.extras.split()[0]
    whole = f"in the sources of morphit_ros the extra [{extra}]: pip install '.[{extra}]'"
    return f"pip install '{entry.requirement}', or {whole}"
