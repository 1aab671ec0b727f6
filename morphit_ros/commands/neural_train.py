"""`morphit neural train`: learn the density field of a recording.

Learn a density field from the colour or the depth pictures of a recording.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.neural_judgement import judge, print_mass_properties, with_threshold
from morphit_ros.commands.options import add_config, add_settings, read_config, settings
from morphit_ros.commands.output_files import PICTURES, ResultFiles, add_json, add_output
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import progress_bar, say
from morphit_ros.compilation import telling_of_compilation
from morphit_ros.configuration import Config, parameter
from morphit_ros.neural.solid.threshold_choice import THRESHOLDS

if TYPE_CHECKING:
    from morphit_ros.neural.learning.config import DepthLearningConfig, ImageLearningConfig
    from morphit_ros.neural.learning.result import LearningResult, Renderer
    from morphit_ros.neural.views.posed_views import PosedImages
    from morphit_ros.neural.views.recording import Recording

# From so many views on, one is held out to judge the result by.
_ENOUGH_VIEWS = 8


@dataclass(frozen=True)
class TrainConfig(Config):
    """What is learned from, and what the report takes for granted."""

    source: str = parameter("images", "What to learn from", choices=("images", "depth"))
    threshold: str = parameter(
        "learning",
        "Which density the object is cut at, in the report and by what loads the field: what learning recommends (of "
        "images what it cut by their silhouettes, of depth two_levels), halfway between empty and full, as the masks' "
        "silhouettes match best, or as depths tell free points from occupied ones",
        choices=THRESHOLDS,
    )
    mass: float = parameter(1.0, "Known mass of the object, for the report [kg]", minimum=1e-9, maximum=1e9)
    density: float = parameter(500.0, "Else, of its material [kg/m^3]", minimum=1e-6, maximum=1e6)
    threads: int = parameter(1, "Threads of torch", minimum=1, maximum=1024)


def add_options(parser: CommandParser) -> None:
    from morphit_ros.neural.learning.config import DepthLearningConfig, ImageLearningConfig

    parser.add_argument("recording", metavar="RECORDING", help="written by 'morphit neural record'")
    add_output(parser, "--output", "the field (.npz)", required=True)
    add_config(parser, TrainConfig, "source", names={"source": "from"})
    help = "Of depth: carved grid, or network, or network with a grid of features fitted to it"
    add_config(parser, DepthLearningConfig, "method", helps={"method": help})
    for config in (ImageLearningConfig, DepthLearningConfig):
        add_config(parser, config, "iterations", none="500, of a network 800")
        add_config(parser, config, "resolution", none="80, of depth 96")
        add_config(parser, config, "seed", helps={"seed": "Of first weights and samples"})
    add_config(parser, DepthLearningConfig, "noise", helps={"noise": "Of depth: noise to average over [m]"})
    for config in (ImageLearningConfig, DepthLearningConfig):
        add_config(parser, config, "poses")
    add_settings(parser, "learning")
    add_config(parser, TrainConfig, "threshold")
    weight = parser.add_mutually_exclusive_group()
    add_config(weight, TrainConfig, "mass", none="unknown")
    add_config(weight, TrainConfig, "density")
    add_config(parser, TrainConfig, "threads")
    add_output(parser, "--picture", "views next to the result, and slices (PNG)", suffixes=PICTURES)
    add_json(parser)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.neural.learning.field_file import save_field
    from morphit_ros.neural.solid.threshold_choice import check_threshold_choice
    from morphit_ros.neural.views.recording import load_recording

    chosen = read_config(options, TrainConfig)
    for name in ("method", "noise"):
        value = getattr(options, name)
        if chosen.source == "images" and value is not None:
            raise InvalidInputError(f"--{name}", value, "no such option with '--from images'", "It is of depth.")
    if chosen.source == "depth" and options.method in (None, "grid") and options.iterations is not None:
        raise InvalidInputError(
            "--iterations", options.iterations, "no such option where depth is carved into a grid",
            "It is of images, and of depth with '--method network' or 'grid_network'.",
        )  # fmt: skip
    config = _config(options, chosen.source)
    recording = load_recording(options.recording)
    seen = recording.images if chosen.source == "images" else recording.depths
    if seen is None:
        raise InvalidInputError("--from", chosen.source, "what the recording holds")
    check_threshold_choice(chosen.threshold, seen, recording.depths, "--threshold", "Leave it away, or choose another.")
    started, busy = time.perf_counter(), time.process_time()
    result = _learn(recording, config, chosen.threads)
    report: dict[str, Any] = {
        "recording": recording.description,
        "source": chosen.source,
        "status": result.status.value,
        "message": result.message,
        "seconds": time.perf_counter() - started,
        "processor_seconds": time.process_time() - busy,
    }
    with ResultFiles() as files:
        if result.field is None:
            print(result.message, file=sys.stderr)
        else:
            views = recording.depths if chosen.source == "depth" else _learned_from(recording.images)
            assert views is not None
            print("measuring the solid ...", file=sys.stderr)
            learned, problem = with_threshold(result, recording, views, chosen.threshold)
            files.write(
                "--output",
                options.output,
                lambda path: save_field(learned.field, path, recording.description, learned.threshold, learned.eyes),
            )
            if problem:
                report["solid"] = problem
            else:
                mass = None if options.mass is None else chosen.mass
                report |= judge(learned, recording.truth, chosen.threshold, mass, chosen.density)
            if result.psnr == result.psnr:
                report["psnr"] = result.psnr
            if result.render is not None and recording.images is not None and len(recording.images) >= _ENOUGH_VIEWS:
                report["held_out_psnr"] = _held_out_ratio(recording.images, result.render)
            if options.picture:
                from morphit_ros.display.learned_field import draw_learned_field

                print(f"drawing {options.picture} ...", file=sys.stderr)
                files.write(
                    "--picture",
                    options.picture,
                    lambda path: draw_learned_field(recording, learned.field, result.render, path),
                )
        # Judging and drawing take their time too.
        report["total_seconds"] = time.perf_counter() - started
        if options.json != "-":
            _print_report(report)
        files.json(report, options.json)
    return 0 if result.success else 1


def _config(options: argparse.Namespace, source: str) -> ImageLearningConfig | DepthLearningConfig:
    from morphit_ros.neural.learning.config import DepthLearningConfig, ImageLearningConfig

    kind: Any = ImageLearningConfig if source == "images" else DepthLearningConfig
    config: ImageLearningConfig | DepthLearningConfig = read_config(options, kind, settings(options, kind))
    return config


def _learn(recording: Recording, config: ImageLearningConfig | DepthLearningConfig, threads: int) -> LearningResult:
    import torch

    from morphit_ros.neural.learning.config import DepthLearningConfig
    from morphit_ros.neural.learning.depth import learn_from_depths
    from morphit_ros.neural.learning.images import learn_from_images

    torch.set_num_threads(threads)
    source = "depth" if isinstance(config, DepthLearningConfig) else "images"
    with progress_bar(f"learning from {source}", "%", 100) as bar:

        def progress(share: float, loss: float) -> None:
            bar(int(100 * share), f"loss {loss:.2e}")

        if isinstance(config, DepthLearningConfig):
            assert recording.depths is not None
            return learn_from_depths(recording.depths, config, progress)
        images = _learned_from(recording.images)
        assert images is not None
        return learn_from_images(images, config, progress)


def _held_out_ratio(images: PosedImages, render: Renderer) -> float:
    """Peak signal-to-noise ratio [dB] of the object's pixels in the view that was held out."""
    import numpy as np
    from scipy.ndimage import binary_erosion

    from morphit_ros.display.learned_field import drawn_view

    number = drawn_view(images)
    height, width = images.rgb.shape[1:3]
    picture = render(images.intrinsics[number], images.T_world_camera[number], width, height)
    shown = np.ones((height, width), dtype=np.bool_)
    if images.masks is not None:
        # At the outline pixels mix with the background, which is not learned.
        shown = binary_erosion(images.masks[number], np.ones((3, 3)))
    error = ((picture - images.rgb[number])[shown] ** 2).mean()
    return float(-10.0 * np.log10(max(float(error), 1e-12)))


def _learned_from(images: PosedImages | None) -> PosedImages | None:
    """All views; if there are enough, but the one that is drawn, by which the result is judged."""
    if images is None or len(images) < _ENOUGH_VIEWS:
        return images
    import numpy as np

    from morphit_ros.display.learned_field import drawn_view

    return images.part(np.arange(len(images)) != drawn_view(images))


def _print_report(report: dict[str, Any]) -> None:
    print(f"{report['recording'] or 'the recording'}: {report['status']}, {report['message']}")
    learning = f"{report['seconds']:.1f} s, {report['processor_seconds']:.1f} s of a core"
    print(f"  {'time of learning':<24}{learning}; with all else {report['total_seconds']:.1f} s")
    if "psnr" in report:
        print(f"  {'PSNR':<24}{report['psnr']:.1f} dB")
    if "held_out_psnr" in report:
        print(f"  {'PSNR of a new view':<24}{report['held_out_psnr']:.1f} dB")
    if "volume" in report or "solid" in report:
        print_mass_properties(report)
