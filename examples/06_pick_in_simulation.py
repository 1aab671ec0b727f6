"""Pick a box in simulation: cameras, perception, planning and execution as ROS 2 nodes, run as one job.

`morphit demo` does the same on the command line, `ros2 launch morphit_ros grasp.launch.py` where ROS is installed.
"""

import json
import sys
from pathlib import Path

from morphit_ros.bringup import find_job, parse_assignments
from morphit_ros.bringup.supervisor import run_nodes

picture = Path(*sys.argv[1:2], "06_pick_in_simulation.png")
report = picture.with_name("pick.json")

# The arguments of the job: `morphit up grasp --list`. The nodes run until the pick ends.
arguments = ["object:=box", "robot:=panda", "pick:=true", "viewer:=false"]
arguments += [f"output:={picture.parent}", f"report:={report}"]
outcome = run_nodes(find_job("grasp").nodes(parse_assignments(arguments)))

content = json.loads(report.read_text())
print(f"{outcome.cause} (exit status {outcome.exit_status})")
print(f"pick: {content['message']}")
for stage, seconds in content["stages"].items():
    print(f"  {stage:<20} {seconds:6.2f} s")
if not content["success"]:
    sys.exit(outcome.exit_status or 1)
print(f"the box was lifted by {content['object_rise']:.3f} m, as the simulation says")
picture.with_name("pick.png").rename(picture)
