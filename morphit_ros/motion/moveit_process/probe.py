"""Whether moveit_py takes arrays in an interpreter: tried in a process of its own, which may end by it.

A moveit_py whose pybind11 is older than 2.12, as Ubuntu 24.04's, ends the process at the first array under NumPy 2. Run
by its file, ``python -P probe.py``, with nothing of morphit_ros: lines of JSON on standard output say what is begun
(``stage``) and known, and at last ``stage: passed``, or what was ``failed``.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
from typing import Any

_URDF = """<robot name="probe"><link name="a"/><link name="b"/>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" velocity="1" effort="1"/></joint></robot>
"""
_SRDF = """<robot name="probe"><group name="g"><joint name="j"/></group></robot>
"""


def main() -> None:
    """Hand moveit_py an array, and take one back: of the state of a model with one joint. No ROS node is needed."""
    # It may crash, and that leaves no file.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # What MoveIt prints goes elsewhere.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(**values: Any) -> None:
        print(json.dumps(values), file=out, flush=True)

    try:
        say(stage="import", python=".".join(str(part) for part in sys.version_info[:3]))
        import numpy

        say(numpy=numpy.__version__)
        for module in ("geometry_msgs.msg", "shape_msgs.msg", "moveit_msgs.msg", "moveit.planning"):
            importlib.import_module(module)
        core = importlib.import_module("moveit.core")
        say(stage="arrays")
        model = core.robot_model.RobotModel(urdf_xml_path=_file_in_memory(_URDF), srdf_xml_path=_file_in_memory(_SRDF))
        state = core.robot_state.RobotState(model)
        state.set_joint_group_positions("g", numpy.array([0.25]))
        found = numpy.asarray(state.get_joint_group_positions("g")).tolist()
        if found != [0.25]:
            raise ValueError(f"of the array [0.25] moveit_py makes {found}")
        say(stage="passed")
    except Exception as error:  # noqa: BLE001 - whatever it is: told to the one who chooses
        say(failed=f"{type(error).__name__}: {error}")
    out.flush()
    # Without the end of MoveIt's libraries, which may crash and is not what is asked here.
    os._exit(0)


def _file_in_memory(text: str) -> str:
    """The path, for this process, of a file that is on no disk."""
    number = os.memfd_create("probe")
    os.write(number, text.encode())
    return f"/proc/self/fd/{number}"


if __name__ == "__main__":
    main()
