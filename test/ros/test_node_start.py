"""A caller's mistake at start ends a node with status 2 and one line that names it; Ctrl-C ends it with 0."""

import signal

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
pytestmark = pytest.mark.ros


@pytest.mark.parametrize(
    ("executable", "parameters", "words"),
    [
        ("robot_spheres", {"robot": "pandaa"}, ["pandaa", "panda"]),
        ("robot_spheres", {"description_file": "/nowhere/robot.urdf"}, ["/nowhere/robot.urdf"]),
        ("robot_spheres", {"robot_description": "<robot name='r'><link"}, ["XML"]),
        ("robot_spheres", {"robot": "panda", "description_file": "x.urdf"}, ["at most one"]),
        ("robot_spheres", {"count": 0}, ["count", "0"]),
        ("robot_spheres", {"variant": "tight"}, ["variant", "balanced"]),
        ("grasp_planning", {"gripper": "tweezers"}, ["tweezers", "franka_hand"]),
        ("grasp_planning", {"sed": 3}, ["sed", "seed"]),
        ("scene_perception", {"crop__voxel_size": 0.5}, ["crop.voxel_size", "0.5"]),
        ("scene_perception", {"left_extrinsics": "[1.0, 2.0]"}, ["left_extrinsics", "7 numbers"]),
        ("scene_perception", {"camera_source": "tf"}, ["tf2_ros"]),
        ("workcell_sim", {"object": "unicorn"}, ["unicorn", "mug"]),
        ("workcell_sim", {"friction": 9.0}, ["friction", "9"]),
        ("web_viewer", {"port": 70000}, ["port", "70000"]),
    ],
)
def test_mistakes_are_named(graph, executable, parameters, words):
    process = graph.start(executable, **parameters)
    assert process.wait() == 2
    for word in words:
        assert word in process.output
    assert "Traceback" not in process.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_node_ends_cleanly(graph, number):
    process = graph.start("grasp_planning")
    process.wait_for_line("ready for franka_hand")
    assert process.stop(number) == 0
    assert "Traceback" not in process.output
    assert "terminate called" not in process.output
