"""`morphit cover view`: watch a case in a web browser.

Simulate a case of config/cover or of a YAML file, and show it to web browsers on this machine.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.cover_case import add_case, case_of
from morphit_ros.commands.options import PageConfig, add_config, read_config
from morphit_ros.commands.output_files import PICTURES, ResultFiles, add_output
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import say
from morphit_ros.compilation import telling_of_compilation

if TYPE_CHECKING:
    from morphit_ros.cover.cases import CoverCase
    from morphit_ros.cover.control.controller import StepResult
    from morphit_ros.cover.control.reach import Reach
    from morphit_ros.cover.plant import CoverPlant
    from morphit_ros.display.cover_scene import CoverView

_FRAMES = 10.0
# Longest search for how near the cover comes, before it moves [s].
_FORECAST_TIME = 10.0


def add_options(parser: CommandParser) -> None:
    from morphit_ros.cover.simulation import SimulationConfig

    add_case(parser)
    add_config(parser, SimulationConfig, "duration", none="the case's")
    add_config(parser, PageConfig)
    help = "don't wait for browsers: save a picture (PNG) of the end, and end"
    add_output(parser, "--screenshot", help, suffixes=PICTURES)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    from morphit_ros.cover.control.controller import CoverController
    from morphit_ros.cover.control.forecast import forecast_reach
    from morphit_ros.cover.kinematics.null_space import NullSpaceSolver
    from morphit_ros.cover.plant import CoverPlant
    from morphit_ros.cover.simulation import SimulationConfig
    from morphit_ros.display.cover_scene import CoverScene
    from morphit_ros.geometry.transforms import make_transform, matrix_from_quat_xyzw

    case, port = case_of(options), read_config(options, PageConfig).port
    duration = read_config(options, SimulationConfig, {"duration": case.duration}).duration
    shared = NullSpaceSolver(case.cover)
    controller = CoverController(case.cover, case.controller, null_space=shared)
    plant = CoverPlant(case.cover, case.state, shared)
    reach = forecast_reach(case.cover, case.state, case.target, case.controller, duration, _FORECAST_TIME)
    if not reach.within:
        say(f"forecast: the target at the end of the run is out of reach, {reach.description}")
    with CoverScene(port=0 if options.screenshot else port) as scene:
        if case.body is None:
            scene.set_cover(case.cover, case.controller.rate_limit)
        else:
            pose = make_transform(matrix_from_quat_xyzw(case.body.pose[3:]), case.body.pose[:3])
            scene.set_cover(case.cover, case.controller.rate_limit, (case.body.radius, case.body.length), pose)
        try:
            moved = _play(case, controller, plant, scene, duration, options.screenshot, reach)
            if options.screenshot:
                from morphit_ros.display.screenshot import screenshot

                with ResultFiles() as files:
                    files.write("--screenshot", options.screenshot, lambda path: screenshot(scene.url, path))
            else:
                print("at its end; Ctrl-C ends the view")
                while True:
                    time.sleep(1.0)
        except KeyboardInterrupt:
            return 0
    return 0 if moved else 1


def _play(
    case: CoverCase, controller: Any, plant: CoverPlant, scene: Any, duration: float, picture: str | None, reach: Reach
) -> bool:
    """The simulation, as fast as the clock unless there is only a picture to take; whether it reached its end."""
    if not picture:
        print(f"view at {scene.url}; Ctrl-C ends it", flush=True)
    period = case.controller.period
    begin, shown = time.monotonic(), float("-inf")
    steps = max(1, round(duration / period))
    for number in range(steps):
        now = number * period
        result = controller.step(plant.state, case.target, now, reach)
        last = number == steps - 1 or not result.status.moves
        if last or (not picture and now - shown >= 1.0 / _FRAMES):
            scene.show(_moment(case, plant, result, now))
            shown = now
        if not result.status.moves or not plant.step(result.rates, period):
            return False
        if not picture:
            time.sleep(max(0.0, begin + now + period - time.monotonic()))
    return True


def _moment(case: CoverCase, plant: CoverPlant, result: StepResult, now: float) -> CoverView:
    import numpy as np

    from morphit_ros.cover.control.step import StepStatus
    from morphit_ros.cover.goals.target_surface import target_surface
    from morphit_ros.display.cover_scene import CoverView

    positions = plant.state.positions(case.cover)
    points, triangles = target_surface(case.target, case.cover, positions, now)
    figures = {
        "motor speed, mean": f"{np.degrees(np.abs(result.rates).mean()):.2f}°/s",
        "degrees of freedom": str(result.dof),
        "condition": f"{result.condition:.3g}",
        "axes at their limit": str(result.saturated),
        "time": f"{now:.1f} s",
    }
    status = "following" if result.status.moves else f"stopped: {result.message or result.status.value}"
    if result.status is StepStatus.OUT_OF_REACH:
        status += f", {result.status.value}: {result.message}"
    return CoverView(
        positions, plant.state.rotations, result.angles, result.distances, result.rates, points, triangles, status,
        figures,
    )  # fmt: skip
