"""A caller's mistake at start ends a node with status 2 and one line that names it; Ctrl-C ends it with 0."""

import importlib
import signal
import subprocess
import sys

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from morphit_ros.ros.core.interfaces import NODES

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


def test_the_second_node_of_a_name_ends_with_a_message(graph):
    """Also when the first has been killed, its name is free at once: the graph would still show it."""
    first = graph.start("scene_perception", self_filter=False)
    first.wait_for_line("nothing received")
    second = graph.start("scene_perception", self_filter=False)
    assert second.wait() == 2
    assert "/scene_perception: got a second one on this machine" in second.output
    assert "Traceback" not in second.output
    first.stop(signal.SIGKILL)
    graph.start("scene_perception", self_filter=False).wait_for_line("nothing received")


@pytest.mark.parametrize("node", NODES, ids=lambda node: node.executable)
def test_executables_answer_for_help_and_take_no_stray_words(node, capsys):
    """`ros2 run morphit_ros pick_client --help` once sent a pick."""
    main = importlib.import_module(f"morphit_ros.nodes.{node.executable}").main
    for words, status in ((["--help"], 0), (["box"], 2), (["--hlep", "--ros-args", "-p", "seed:=1"], 2)):
        with pytest.raises(SystemExit) as ended:
            main([node.executable, *words])
        assert ended.value.code == status
        said = capsys.readouterr()
        assert f"ros2 run morphit_ros {node.executable}" in said.out + said.err
        assert status == 0 or words[0] in said.err


@pytest.mark.parametrize(("interrupted", "status"), [(True, 0), (False, 1)])
def test_what_an_interrupted_compiler_raises_ends_a_start_as_the_interrupt_does(ros_environment, interrupted, status):
    signalled = "signal.raise_signal(signal.SIGINT)" if interrupted else "pass"
    program = (
        "import signal\n"
        "from morphit_ros.ros.core.runner import run_node\n"
        "def make():\n"
        f"    try: {signalled}\n"
        "    except KeyboardInterrupt: pass\n"
        "    raise RuntimeError('no compiled object yet')\n"
        "run_node(make, ['node'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=ros_environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == status, done.stderr
    assert ("no compiled object yet" in done.stderr) is not interrupted


def test_a_node_that_hangs_while_it_is_taken_down_says_where_and_ends(ros_environment):
    """A gate was once not gone eight seconds after it was told to stop, and had to be killed."""
    program = (
        "import signal, time\n"
        "from rclpy.node import Node\n"
        "from morphit_ros.ros.core.runner import run_node\n"
        "class Hanging(Node):\n"
        "    def __init__(self):\n"
        "        super().__init__('hanging')\n"
        "        self.create_timer(0.01, lambda: signal.raise_signal(signal.SIGINT))\n"
        "    def destroy_node(self):\n"
        "        time.sleep(50.0)\n"
        "run_node(Hanging, ['node'], threads=1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=ros_environment, capture_output=True, text=True, timeout=40, check=False
    )
    assert done.returncode == 1
    assert "in destroy_node" in done.stderr
