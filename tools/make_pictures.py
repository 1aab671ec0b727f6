"""Makes the pictures of README.md and docs/ anew.

    python tools/make_pictures.py                    # all that need neither other people's data nor a measurement
    python tools/make_pictures.py pick grasp         # these
    python tools/make_pictures.py --data DIR --all   # also recorded clouds and the plots of benchmarks (hours)
    python tools/make_pictures.py --list

Pictures of the browser need Chromium, the pick needs EGL or OSMesa. Those of RViz need it with robot_state_publisher,
tf2_ros, move_group, Xvfb and ImageMagick.
"""

from __future__ import annotations

import argparse
import io
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from morphit_ros.display.sketch_page import SketchPage

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs/images"

# The film of the pick: so many simulated seconds a picture, shown as long; width and height [px].
FRAME_TIME, FRAME_SIZE, FRAME_QUALITY = 0.12, (640, 426), 55
# A picture in the gallery [bytes].
LARGEST_EXAMPLE = 80_000
EXAMPLES = sorted((ROOT / "examples").glob("[0-9][0-9]_*.py"))
# Neither a free port of this machine nor that of a viewer which is open now.
VIEWER_PORT = 8571
# Of the virtual screen.
RVIZ_DISPLAY = ":78"
# A job that has not planned by then will not [s].
LONGEST_START = 240.0
# A machine with other work draws WebGL without a GPU slowly [s].
LONGEST_SCREENSHOT = 600.0


@dataclass(frozen=True)
class Recipe:
    """How a picture is made.

    Attributes:
        files: names in docs/images.
        make: writes them, given the folder of data.
        cost: 0 seconds to minutes; 1 needs --data; 2 needs --data and runs a benchmark; 3 needs a ROS installation.
        says: in --list.
    """

    files: tuple[str, ...]
    make: Callable[[str], None]
    cost: int
    says: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which: {', '.join(RECIPES)} (default: the cheap ones)"
    )
    parser.add_argument("--data", default="", metavar="DIR", help="folder that holds cover/, grasp/, superovoid/, ...")
    parser.add_argument("--all", action="store_true", help="every picture, benchmarks too")
    parser.add_argument("--list", action="store_true", help="say what there is, and make nothing")
    options = parser.parse_args()
    if options.list:
        for name, recipe in RECIPES.items():
            print(f"{name:<18} {', '.join(recipe.files)}: {recipe.says}")
        return 0
    unknown = sorted(set(options.names) - set(RECIPES))
    if unknown:
        parser.error(f"no picture {', '.join(unknown)}; there are {', '.join(RECIPES)}")
    chosen = options.names or [name for name, recipe in RECIPES.items() if options.all or recipe.cost == 0]
    without_data = [name for name in chosen if RECIPES[name].cost in (1, 2) and not options.data]
    if without_data:
        parser.error(f"{', '.join(without_data)}: give --data DIR")
    for name in chosen:
        began = time.perf_counter()
        RECIPES[name].make(options.data)
        for file in RECIPES[name].files:
            size = (IMAGES / file).stat().st_size
            print(f"docs/images/{file}: {size / 1024:.0f} KiB, {time.perf_counter() - began:.0f} s", flush=True)
    return 0


@cache
def filmed_pick() -> tuple[list[Any], Any, Any, Any]:
    """A Panda picks the mug: RGB pictures, the gripper, what the planner saw, and its plan."""
    from morphit_bench.picks.pick import PickJob
    from morphit_ros.simulation.workcell import Workcell, WorkcellConfig

    class FilmedWorkcell(Workcell):
        """Keeps where everything was, so that rendering does not slow the physics down."""

        def __init__(self, *arguments: Any) -> None:
            self.filmed: list[Any] = []
            super().__init__(*arguments)

        def step(self, duration: float) -> None:
            super().step(duration)
            if self.time >= len(self.filmed) * FRAME_TIME:
                self.filmed.append(self.configuration())

    seen: list[Any] = []
    job = PickJob.with_arm("panda")
    with FilmedWorkcell(WorkcellConfig(object="mug"), job.robot) as workcell:
        result = job.pick(workcell, on_plan=lambda view, plan: seen.extend((view, plan)))
        if not result.success:
            raise SystemExit(f"the pick failed at {result.stage}: {result.message}")
        frames = [workcell.picture(*FRAME_SIZE, configuration=moment) for moment in workcell.filmed]
    return frames, job.gripper, *seen


def make_pick(data: str) -> None:
    """The moving picture of README.md."""
    from PIL import Image

    from morphit_ros.resources import atomic_write

    frames = [Image.fromarray(frame) for frame in filmed_pick()[0]]
    # The end is held a while, so that the eye finds the object before it starts again.
    durations = [round(1000 * FRAME_TIME)] * (len(frames) - 1) + [1500]
    with atomic_write(IMAGES / "pick.webp", "wb") as stream:
        frames[0].save(
            stream, "WEBP", save_all=True, append_images=frames[1:], duration=durations, loop=0,
            quality=FRAME_QUALITY, method=6, kmax=60,
        )  # fmt: skip


def make_grasp(data: str) -> None:
    """The best grasp of the same pick, as `morphit grasp --picture` draws it."""
    from morphit_ros.display.picture import draw_grasp

    _, gripper, view, plan = filmed_pick()
    draw_grasp(view.cloud, gripper, plan.grasps[0], IMAGES / "grasp.png")


def make_recorded_clouds(data: str) -> None:
    """The best grasp that `morphit grasp` offers of each gripper on each recorded cloud, upright, on their tables."""
    from PIL import Image

    from morphit_ros.cli import make_parser
    from morphit_ros.commands.grasp import planned
    from morphit_ros.display.grasp_view import draw_view, upright_view
    from morphit_ros.resources import atomic_write

    rows = []
    for name in ("franka_hand", "hande", "umi"):
        row = []
        for path in sorted(Path(data, "grasp/observed").glob("*.ply")):
            done = planned(make_parser().parse_args(["grasp", "--cloud", str(path), "--gripper", name]))
            if not done.plan.success:
                raise SystemExit(f"{path.name}, {name}: {done.plan.message}")
            best, table = done.plan.grasps[0], done.around.table
            if table is None:
                raise SystemExit(f"{path.name}: {done.around.how}")
            view = upright_view(best.T_world_gripper, table.T_world_table[:3, 2])
            row.append(draw_view(done.around.cloud, done.gripper, best, view, (300, 300), table))
        rows.append(np.hstack(row))
    with atomic_write(IMAGES / "recorded_clouds.jpg", "wb") as stream:
        Image.fromarray(np.vstack(rows)).save(stream, "JPEG", quality=88)


def make_spheres_view(data: str) -> None:
    """The editor of `morphit spheres view panda`."""
    from morphit_ros.cli import make_parser
    from morphit_ros.commands.spheres_view import make_editor
    from morphit_ros.display.screenshot import screenshot

    options = make_parser().parse_args(["spheres", "view", "panda", "--port", "0"])
    with make_editor(options) as editor:
        screenshot(editor.url, IMAGES / "spheres_view.png", timeout=LONGEST_SCREENSHOT)


def make_grasp_view(data: str) -> None:
    """The page of `morphit grasp --view` on a recorded cloud: hands that would hit the object, one of them chosen."""
    from morphit_ros.cli import make_parser
    from morphit_ros.commands.grasp import candidate_scene, planned
    from morphit_ros.display.screenshot import screenshot

    cloud = str(Path(data, "grasp/observed/RubberDuck.ply"))
    words = ["grasp", "--cloud", cloud, "--gripper", "franka_hand", "--view"]
    with candidate_scene(planned(make_parser().parse_args(words)), 0) as scene:
        scene.choose_outcome("collision with the object")
        screenshot(scene.url, IMAGES / "grasp_view.png", (1280, 900), timeout=LONGEST_SCREENSHOT)


def make_sketch_hand(data: str) -> None:
    """The page of `morphit sketch`: a hand drawn by six strokes, the palm's hitbox chosen."""
    with tempfile.TemporaryDirectory(prefix="morphit-pictures-") as folder, sketched(folder) as page:

        def do(command: str, **arguments: Any) -> None:
            if not page.session.do({"do": command, **arguments}):
                raise SystemExit(page.session.state()["message"])

        towards, palm = [0.0, -1.0, 0.0], 0.061
        for line in (
            [(0.0, 0.0), (0.0, 0.12)],
            *(
                [(x, 0.129), (x - 0.008, 0.17), (x + 0.005, 0.21), (x - 0.005, 0.24)]
                for x in (-0.048, -0.016, 0.016, 0.048)
            ),
            [(-0.02, 0.025), (-0.09, 0.065), (-0.11, 0.105), (-0.105, 0.14)],
        ):
            ends = np.array([(x, 0.0, z) for x, z in line])
            shares = np.linspace(0.0, 1.0, 20)[:, None]
            points = np.concatenate([(1 - shares) * a + shares * b for a, b in itertools.pairwise(ends)])
            do("stroke", points=points.tolist(), normal=towards, snap=0.005)
        angles = np.linspace(0.0, 2.0 * np.pi, 60)
        round_it = palm * np.column_stack([np.cos(angles), 0.0 * angles, np.sin(angles)]) + [0.0, 0.0, 0.064]
        do("ellipse", points=round_it.tolist(), normal=towards, bone="base")
        values = {"semi_axes": [palm, 0.35 * palm, palm], "squareness": [0.73, 0.46], "tapering": [0.12, 0.0]}
        do("shape", bone="base", row=0, values=values)
        do("fill")
        do("position", joint="bone_4_joint", value=-0.2)
        draw_sketch(page, "base", 0.3, -0.25, IMAGES / "sketch_hand.png")


def make_sketch_icub(data: str) -> None:
    """The page of `morphit sketch` over the iCub's hand, a link of the thumb improved."""
    robots = str(Path(data, "robots"))
    hand = f"{robots}/iCub/robots/left_hand_mk3/model.urdf"
    more = ("--from", hand, "--package-path", robots, "--model", "icub_left_hand")
    with tempfile.TemporaryDirectory(prefix="morphit-pictures-") as folder, sketched(folder, *more) as page:
        page.session.do({"do": "fit", "bone": "l_hand_thumb_proximal_link", "improve": True})
        page.session.wait(LONGEST_SCREENSHOT)
        draw_sketch(page, "l_hand_thumb_proximal_link", -1.3, 0.4, IMAGES / "sketch_icub.jpg")


def sketched(folder: str, *words: str) -> SketchPage:
    """The page of a new sketch."""
    from morphit_ros.cli import make_parser
    from morphit_ros.commands.sketch import make_page

    return make_page(make_parser().parse_args(["sketch", f"{folder}/sketch.yaml", "--port", "0", *words]))


def draw_sketch(page: SketchPage, bone: str, yaw: float, pitch: float, path: Path) -> None:
    """What the page shows with a bone's first hitbox chosen, seen from an angle, in 96 colours or as JPEG."""
    import base64

    from PIL import Image

    from morphit_ros.display.screenshot import opened_page
    from morphit_ros.resources import atomic_write

    look = f"cam.yaw = {yaw}; cam.pitch = {pitch}; setMode('hitbox'); select('{bone}', 0); lookAtAll()"
    shown = f"typeof S !== 'undefined' && S !== null && ({look}, true)".replace("; ", ", ")
    with opened_page(page.url, (1100, 680), LONGEST_SCREENSHOT) as browser:
        while not browser.call("Runtime.evaluate", expression=shown)["result"].get("value"):
            time.sleep(0.1)
        # Two frames, and the fonts.
        time.sleep(2.0)
        content = base64.b64decode(browser.call("Page.captureScreenshot", format="png")["data"])
    picture = Image.open(io.BytesIO(content)).convert("RGB")
    with atomic_write(path, "wb") as stream:
        if path.suffix == ".png":
            picture.quantize(96).save(stream, "PNG", optimize=True)
        else:
            picture.save(stream, "JPEG", quality=82)


def make_viewer(data: str) -> None:
    """The browser's view of the job grasp, when grasps of the mug are planned and the arm is on its way."""
    from morphit_ros.display.screenshot import screenshot

    # Slowed down: the picture takes longer than the way.
    words = ["grasp", "object:=mug", "pick:=true", "realtime_factor:=0.05", f"viewer_port:={VIEWER_PORT}"]
    with job(words, until="pregrasp"):
        screenshot(f"http://127.0.0.1:{VIEWER_PORT}", IMAGES / "viewer.png", settle=20.0, timeout=LONGEST_SCREENSHOT)


def make_system(data: str) -> None:
    """The browser's view of the job system, when the arm is on its way."""
    from morphit_ros.display.screenshot import screenshot

    words = ["system", "object:=mug", "pick:=true", "realtime_factor:=0.05", f"viewer_port:={VIEWER_PORT}"]
    # A machine that draws without a GPU has little left for the job.
    patient = "{ros__parameters: {clock_timeout: 2.0, state_timeout: 2.0}}"
    with tempfile.TemporaryDirectory(prefix="morphit-pictures-") as folder:
        file = Path(folder, "patient.yaml")
        file.write_text(f"motion_gate: {patient}\npick_client: {{ros__parameters: {{timeout: 1000.0}}}}\n")
        with job([*words, f"params_file:={file}"], until="pregrasp"):
            screenshot(
                f"http://127.0.0.1:{VIEWER_PORT}", IMAGES / "system.png", (1280, 1000), settle=6.0,
                timeout=LONGEST_SCREENSHOT,
            )  # fmt: skip


def make_neural_view(data: str) -> None:
    """The browser's view of the job neural, after the client that docs/neural/node.md shows."""
    from morphit_ros.display.screenshot import screenshot

    (client,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/neural/node.md").read_text(encoding="utf-8"), re.S)
    with tempfile.TemporaryDirectory(prefix="morphit-pictures-") as folder:
        recording = str(Path(folder, "part.npz"))
        subprocess.run([*MORPHIT, "neural", "record", "--object", "t_block", "--output", recording], check=True)
        with job(["neural", f"viewer_port:={VIEWER_PORT}"], until="view at"):
            subprocess.run([sys.executable, "-c", client, recording], check=True)
            screenshot(
                f"http://127.0.0.1:{VIEWER_PORT}", IMAGES / "neural_view.png", (1280, 760), timeout=LONGEST_SCREENSHOT
            )


def make_rviz(data: str) -> None:
    """RViz on a virtual display, opened by the jobs that it belongs to."""
    quick = {"LIBGL_ALWAYS_SOFTWARE": "1", "DISPLAY": RVIZ_DISPLAY}
    still = ("robot_state_publisher:=true", "rviz:=true")
    # The job, what it says when there is something to see, and how long after that there is [s].
    jobs = {
        "grasp": (["grasp", "pick:=true", "viewer:=false", "rviz:=true"], "pregrasp", 6.0),
        "spheres": (["moveit", "sim:=true", "execution:=false", *still], "spheres on", 12.0),
        "superovoids": (["distance", *still], "superovoids", 12.0),
        "cover": (["cover", "viewer:=false", "rviz:=true"], "cover", 12.0),
    }
    display = subprocess.Popen(["Xvfb", RVIZ_DISPLAY, "-screen", "0", "1400x900x24", "+extension", "GLX"])
    before = {name: os.environ.get(name) for name in quick}
    os.environ.update(quick)
    try:
        for name, (words, until, patience) in jobs.items():
            with job(words, until), robot_at_home() if still[0] in words else nullcontext():
                time.sleep(patience)
                picture = str(IMAGES / f"rviz_{name}.jpg")
                subprocess.run(["import", "-window", "root", "-resize", "1100x", "-quality", "82", picture], check=True)
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        display.terminate()
        display.wait()


@contextmanager
def robot_at_home() -> Iterator[None]:
    """Joint states of a Panda that stands still, where no driver publishes them."""
    import rclpy
    from sensor_msgs.msg import JointState

    from morphit_ros.robot.configuration import RobotConfiguration

    robot = RobotConfiguration.load("panda")
    state = JointState(
        name=[*robot.arm_joints, "panda_finger_joint1", "panda_finger_joint2"], position=[*robot.home, 0.03, 0.03]
    )
    ended = threading.Event()
    rclpy.init()
    node = rclpy.create_node("robot_at_home")
    publisher = node.create_publisher(JointState, "joint_states", 10)

    def publish() -> None:
        while not ended.wait(0.02):
            state.header.stamp = node.get_clock().now().to_msg()
            publisher.publish(state)

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        node.destroy_node()
        rclpy.shutdown()


@contextmanager
def job(words: list[str], until: str) -> Iterator[None]:
    """`morphit up` while something is done; it begins when a line of it holds these words."""
    process = subprocess.Popen(
        [*MORPHIT, "up", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    try:
        wait_for_line(process.stdout, until)
        # A full pipe would stop the job.
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield
    finally:
        process.terminate()
        process.wait()


def wait_for_line(stream: IO[str], words: str) -> None:
    """Read until a line holds these words.

    Raises:
        SystemExit: none does before the time is over or the stream ends; with what there was.
    """
    lines, deadline = [], time.monotonic() + LONGEST_START
    for line in stream:
        lines.append(line)
        if words in line:
            return
        if time.monotonic() > deadline:
            break
    raise SystemExit(f"no line with {words!r}:\n{''.join(lines[-20:])}")


def make_examples(data: str) -> None:
    """The picture of each examples/NN_name.py, made smaller until it suits the gallery."""
    from PIL import Image

    from morphit_ros.resources import atomic_write

    (IMAGES / "examples").mkdir(exist_ok=True)
    for example in EXAMPLES:
        with tempfile.TemporaryDirectory(prefix="morphit-pictures-") as folder:
            subprocess.run([sys.executable, str(example), folder], check=True, cwd=ROOT)
            with Image.open(Path(folder, f"{example.stem}.png")) as made:
                picture = made.convert("RGB")
        width = picture.width
        while len(stored := png_bytes(picture)) > LARGEST_EXAMPLE:
            width -= 40
            picture.thumbnail((width, picture.height))
        with atomic_write(IMAGES / f"examples/{example.stem}.png", "wb") as stream:
            stream.write(stored)


def png_bytes(picture: Any) -> bytes:
    """A picture of PIL as a file."""
    stream = io.BytesIO()
    picture.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def command(name: str, *words: str) -> Callable[[str], None]:
    """A recipe that runs a command; FOLDER in it is where its picture `name` is made, DATA the folder of data."""

    def make(data: str) -> None:
        with tempfile.TemporaryDirectory(prefix="morphit-pictures-") as folder:
            filled = [word.replace("FOLDER", folder).replace("DATA", data) for word in words]
            subprocess.run(filled, check=True, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"})
            for file in RECIPES[name].files:
                shutil.copyfile(Path(folder, file), IMAGES / file)

    return make


def benchmark(name: str, *words: str) -> Callable[[str], None]:
    """A recipe that runs a benchmark of benchmarks/."""
    return command(name, sys.executable, *words)


MORPHIT = (sys.executable, "-m", "morphit_ros.cli")
COVER_VIEW = (*MORPHIT, "cover", "view", "4x8", "--duration", "6", "--screenshot", "FOLDER/cover_thigh.png")
COVER = ("benchmarks/cover.py", "--data", "DATA", "--images", "FOLDER")
COLLISIONS = ("benchmarks/sphere_collisions.py", "--output", "FOLDER")
PLANNING = (
    *("benchmarks/sphere_planning.py", "--data", "DATA", "--output", "FOLDER", "--seeds", "2", "--goals", "10"),
    *("--nodes", "2500", "--counts", "1", "2", "3", "4", "6", "10", "16", "20", "32", "64"),
)
HANDS = ("benchmarks/superovoid_hands.py", "--data", "DATA", "--pictures", "FOLDER")
LEVEL_SETS = ("benchmarks/neural_level_sets.py", "--data", "DATA", "--picture", "FOLDER/neural_level_sets.png")
RECIPES = {
    "pick": Recipe(("pick.webp",), make_pick, 0, "a simulated Panda picks a mug (README)"),
    "grasp": Recipe(("grasp.png",), make_grasp, 0, "the grasp of that pick"),
    "spheres_view": Recipe(("spheres_view.png",), make_spheres_view, 0, "morphit spheres view panda"),
    "grasp_view": Recipe(("grasp_view.png",), make_grasp_view, 1, "morphit grasp --view, in the browser"),
    "sketch_hand": Recipe(("sketch_hand.png",), make_sketch_hand, 0, "morphit sketch, a hand drawn from nothing"),
    "sketch_icub": Recipe(("sketch_icub.jpg",), make_sketch_icub, 1, "morphit sketch over the iCub's hand"),
    "viewer": Recipe(("viewer.png",), make_viewer, 0, "morphit up grasp object:=mug, in the browser"),
    "system": Recipe(("system.png",), make_system, 0, "morphit up system object:=mug, in the browser"),
    "neural_view": Recipe(
        ("neural_view.png",), make_neural_view, 0, "morphit up neural and its client, in the browser"
    ),
    "cover_thigh": Recipe(("cover_thigh.png",), command("cover_thigh", *COVER_VIEW), 0, "morphit cover view 4x8"),
    "examples": Recipe(
        tuple(f"examples/{example.stem}.png" for example in EXAMPLES), make_examples, 0, "the gallery, from examples/"
    ),
    "recorded_clouds": Recipe(("recorded_clouds.jpg",), make_recorded_clouds, 1, "grasps on recorded clouds"),
    "rviz": Recipe(
        tuple(f"rviz_{name}.jpg" for name in ("grasp", "spheres", "superovoids", "cover")),
        make_rviz,
        3,
        "RViz, by rviz:=true",
    ),
    "cover": Recipe(("cover_open.png", "cover_cost.png"), benchmark("cover", *COVER), 2, COVER[0]),
    "collisions": Recipe(("spheres-collisions.png",), benchmark("collisions", *COLLISIONS), 2, COLLISIONS[0]),
    "planning": Recipe(("spheres-planning.png",), benchmark("planning", *PLANNING), 2, PLANNING[0]),
    "hands": Recipe(("superovoid_times.png", "superovoid_accuracy.png"), benchmark("hands", *HANDS), 2, HANDS[0]),
    "level_sets": Recipe(("neural_level_sets.png",), benchmark("level_sets", *LEVEL_SETS), 2, LEVEL_SETS[0]),
}


if __name__ == "__main__":
    sys.exit(main())
