"""`morphit robot init`: propose the files of a robot and its gripper from a description.

Propose a robot file, a gripper file and an SRDF from a robot description: arm, fingers, frames, pads, opening, a home,
pairs of links that never meet. Comments in the files say what was read, what was measured and what is only assumed.
The robot needs a hand of two fingers that slide, or that one motor turns; --try has it pick something up in simulation.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from morphit_ros.commands.output_files import PICTURES, ResultFiles, add_output
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import link_progress, say
from morphit_ros.commands.robots import add_package_path, load_robot
from morphit_ros.compilation import telling_of_compilation

if TYPE_CHECKING:
    from morphit_ros.grasping.gripper import Gripper
    from morphit_ros.proposal.propose import Proposal


def add_options(parser: CommandParser) -> None:
    parser.add_argument(
        "robot",
        metavar="URDF",
        help="URDF or xacro file, package:// URI, or a name (morphit spheres library lists all)",
    )
    parser.add_argument("--name", default="", help="of the robot and its files (default: the description's)")
    add_output(parser, "--output", "folder for the files (default: here)", metavar="DIR", default=".")
    parser.add_argument(
        "--tip", metavar="LINK", help="link of the hand that carries the gripper frame; chooses the arm"
    )
    parser.add_argument(
        "--arm", nargs="+", default=[], metavar="JOINT", help="the arm's joints, from the base outwards"
    )
    parser.add_argument("--force", action="store_true", help="write over files that are there")
    add_output(parser, "--picture", "draw the hand with its proposed boxes, pads and frame (png)", suffixes=PICTURES)
    parser.add_argument("--try", dest="pick", action="store_true", help="then pick a box in simulation (needs ROS 2)")
    add_package_path(parser)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.grasping.gripper import Gripper
    from morphit_ros.proposal.propose import open_questions, proposal_name, proposal_texts, propose_robot
    from morphit_ros.robot.configuration import RobotConfiguration

    if options.robot.lstrip().startswith("<"):
        raise InvalidInputError("URDF", "the text of a description", "a file, a URI or a name")
    description, _ = load_robot(options.robot, options)
    name, folder = proposal_name(description, options.name), Path(options.output)
    files = [folder / file for file in (f"{name}.yaml", f"{name}_gripper.yaml", f"{name}.srdf")]
    there = [str(file) for file in files if file.exists()]
    if there and not options.force:
        remedy = "--force writes over them, --name gives others."
        raise InvalidInputError("--output", ", ".join(there), "files that are not there yet", remedy)
    with link_progress(f"{description.name}: fitting spheres") as progress:
        proposal = propose_robot(options.robot, description, name, options.tip, options.arm, progress)
    with ResultFiles() as outputs:
        # The robot's file, which names the others, comes last.
        for file, text in reversed(list(zip(files, proposal_texts(proposal, folder), strict=True))):
            outputs.text("--output", file, text)
    file = files[0]
    robot = RobotConfiguration.load(file)
    robot.check_description(load_robot(str(file), options)[0])
    gripper = Gripper.load(robot.gripper)
    if options.picture:
        with ResultFiles() as outputs:
            outputs.write("--picture", options.picture, lambda path: _draw(proposal, gripper, path))
    print(
        f"{', '.join(map(str, files))}: written, and read as the nodes read them\n"
        f"  arm: {robot.base_link} to {robot.tip_link}, {len(robot.arm_joints)} joints\n"
        f"  gripper: {1e3 * gripper.aperture_min:.0f} to {1e3 * gripper.aperture_max:.0f} mm, pads "
        f"{1e3 * gripper.pad_width:.1f} x {1e3 * gripper.pad_height:.1f} mm, {gripper.max_force:g} N\n"
        "to be checked by a person:"
    )
    for line in open_questions(proposal):
        print(f"  - {line}")
    print(
        f"go on with:\n  morphit spheres fit {file}\n  morphit up grasp robot:={file} pick:=true\n"
        f"  morphit check grasp sim:=false robot:={file}"
    )
    if not options.pick:
        return 0
    from morphit_ros.commands.up import run_job

    return run_job("grasp", [f"robot:={file.absolute()}", "pick:=true", "viewer:=false"], None)


def _draw(proposal: Proposal, gripper: Gripper, path: Path) -> None:
    """The hand half open: its geometry in grey, the proposed boxes, the pads in red and the gripper frame."""
    import numpy as np

    from morphit_ros.display.display_list import MeshItem, SolidsItem, axes_item
    from morphit_ros.display.drawings.grasps import gripper_item
    from morphit_ros.display.picture import draw_items
    from morphit_ros.geometry.mesh import concatenate_meshes
    from morphit_ros.geometry.transforms import invert_transform
    from morphit_ros.robot.link_elements import link_elements
    from morphit_ros.robot.links import collision_mesh

    hand, parts = proposal.hand, proposal.parts
    aperture = 0.5 * (gripper.aperture_min + gripper.aperture_max)
    if hand.finger_positions is not None:
        aperture = float(hand.finger_positions[len(hand.finger_positions) // 2, 0])
    poses = proposal.model.forward_kinematics(hand.half_open)
    T_gripper_root = invert_transform(poses[hand.tip_link] @ hand.T_tip_gripper)
    meshes = [
        collision_mesh(element).transformed(T_gripper_root @ poses[name])
        for name in (*parts.hand_links, *(link for links in parts.finger_links for link in links))
        for element in link_elements(proposal.description.links[name], "collision_or_visual")
    ]
    mesh = concatenate_meshes(meshes)
    pads = np.array([[0.0, side * aperture / 2.0, float(gripper.advance(aperture))] for side in (1.0, -1.0)])
    sizes = np.tile([gripper.pad_width, 0.001, gripper.pad_height], (2, 1))
    items = [
        MeshItem("hand/geometry", (0.6, 0.62, 0.66), mesh.vertices, mesh.faces, flat=True),
        SolidsItem("hand/pads", (0.9, 0.15, 0.1), "box", pads, sizes),
        axes_item("hand/frame", np.eye(4), np.full(3, 0.06)),
        gripper_item("hand", gripper, np.eye(4), aperture, opacity=0.25),
    ]
    # The approach points down in the picture, as at home.
    caption = f"{gripper.name}: {1e3 * aperture:.0f} mm open; z (blue): approach, y (green): closing, pads red"
    turned = np.diag([1.0, -1.0, -1.0, 1.0])
    draw_items(items, path, {"": turned}, caption, size=(960, 720))
