"""`morphit neural train`: a density field from a recording, and how good it is."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.neural_judgement import judge, with_threshold
from morphit_ros.commands.reports import add_json_option, say, write_json
from morphit_ros.compilation import telling_of_compilation
from morphit_ros.neural.solid.threshold_choice import THRESHOLDS, check_threshold_choice

if TYPE_CHECKING:
    from morphit_ros.neural.learning.result import LearningResult, Renderer
    from morphit_ros.neural.views.posed_views import PosedImages
    from morphit_ros.neural.views.recording import Recording

# From so many views on, one is held out to judge the result by.
_ENOUGH_VIEWS = 8


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "train",
        help="learn the density field of a recording",
        description="Learn a density field from the colour or the depth pictures of a recording.",
    )
    parser.add_argument("recording", metavar="RECORDING", help="written by 'morphit neural record'")
    parser.add_argument("--output", required=True, metavar="FILE", help="the field (.npz)")
    parser.add_argument(
        "--from",
        dest="source",
        choices=("images", "depth"),
        default="images",
        help="what to learn from (default: %(default)s)",
    )
    parser.add_argument(
        "--method",
        choices=("grid", "network", "grid_network"),
        help="of depth: carved grid, or network, or network with a grid of features fitted to it (default: grid)",
    )
    parser.add_argument(
        "--iterations", type=int, metavar="N", help="steps of the optimiser (default: 500, of a network 800)"
    )
    parser.add_argument(
        "--resolution",
        type=int,
        metavar="N",
        help="nodes along the longest side of the grid (default: 80, of depth 96)",
    )
    parser.add_argument("--noise", type=float, metavar="M", help="of depth: noise to average over [m] (default: 0)")
    parser.add_argument(
        "--threshold",
        choices=THRESHOLDS,
        default="learning",
        help="which density the object is cut at, in the report and by what loads the field: what learning recommends "
        "(of images what it cut by their silhouettes, of depth two_levels), halfway between empty and full, as the "
        "masks' silhouettes match best, or as depths tell free points from occupied ones (default: %(default)s)",
    )
    weight = parser.add_mutually_exclusive_group()
    weight.add_argument("--mass", type=float, metavar="KG", help="known mass of the object, for the report [kg]")
    weight.add_argument(
        "--density", type=float, default=500.0, metavar="N", help="else, of its material [kg/m^3] (default: 500)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of first weights and samples (default: %(default)s)"
    )
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of torch (default: %(default)s)")
    parser.add_argument("--picture", metavar="FILE", help="views next to the result, and slices (PNG)")
    add_json_option(parser)
    parser.set_defaults(run=run)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    import math

    from morphit_ros.commands.output_files import check_output
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.neural.learning.field_file import save_field
    from morphit_ros.neural.views.recording import load_recording

    if options.threads < 1:
        raise InvalidInputError("--threads", options.threads, "1 or more")
    check_output("--output", options.output)
    check_output("--picture", options.picture)
    check_output("--json", None if options.json == "-" else options.json)
    for name in ("mass", "density"):
        value = getattr(options, name)
        if value is not None and not (math.isfinite(value) and value > 0.0):
            raise InvalidInputError(f"--{name}", value, "a positive number")
    for name in ("method", "noise"):
        value = getattr(options, name)
        if options.source == "images" and value is not None:
            raise InvalidInputError(f"--{name}", value, "no such option with '--from images'", "It is of depth.")
    if options.source == "depth" and options.method in (None, "grid") and options.iterations is not None:
        raise InvalidInputError(
            "--iterations", options.iterations, "no such option where depth is carved into a grid",
            "It is of images, and of depth with '--method network' or 'grid_network'.",
        )  # fmt: skip
    recording = load_recording(options.recording)
    seen = recording.images if options.source == "images" else recording.depths
    if seen is None:
        raise InvalidInputError("--from", options.source, "what the recording holds")
    check_threshold_choice(
        options.threshold, seen, recording.depths, "--threshold", "Leave it away, or choose another."
    )
    started, busy = time.perf_counter(), time.process_time()
    result = _learn(recording, options)
    report: dict[str, Any] = {
        "recording": recording.description,
        "source": options.source,
        "status": result.status.value,
        "message": result.message,
        "seconds": time.perf_counter() - started,
        "processor_seconds": time.process_time() - busy,
    }
    if result.field is None:
        print(result.message, file=sys.stderr)
    else:
        views = recording.depths if options.source == "depth" else _learned_from(recording.images)
        assert views is not None
        print("measuring the solid ...", file=sys.stderr)
        learned, problem = with_threshold(result, recording, views, options.threshold)
        save_field(learned.field, options.output, recording.description, learned.threshold, learned.eyes)
        if problem:
            report["solid"] = problem
        else:
            report |= judge(learned, recording, options.threshold, options.mass, options.density)
        if result.psnr == result.psnr:
            report["psnr"] = result.psnr
        if result.render is not None and recording.images is not None and len(recording.images) >= _ENOUGH_VIEWS:
            report["held_out_psnr"] = _held_out_ratio(recording.images, result.render)
        if options.picture:
            from morphit_ros.display.learned_field import draw_learned_field

            print(f"drawing {options.picture} ...", file=sys.stderr)
            draw_learned_field(recording, result.field, result.render, options.picture)
    # Judging and drawing take their time too.
    report["total_seconds"] = time.perf_counter() - started
    if options.json != "-":
        _print_report(report)
    if options.json:
        write_json(report, options.json)
    return 0 if result.success else 1


def _learn(recording: Recording, options: argparse.Namespace) -> LearningResult:
    import torch
    from tqdm import tqdm

    from morphit_ros.neural.learning.config import DepthLearningConfig, ImageLearningConfig
    from morphit_ros.neural.learning.depth import learn_from_depths
    from morphit_ros.neural.learning.images import learn_from_images

    torch.set_num_threads(options.threads)
    names = ("iterations", "resolution", "method", "noise")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    given["seed"] = options.seed
    with tqdm(total=100, desc=f"learning from {options.source}", unit="%", disable=not sys.stderr.isatty()) as bar:

        def progress(share: float, loss: float) -> None:
            bar.set_postfix_str(f"loss {loss:.2e}", refresh=False)
            bar.update(int(100 * share) - bar.n)

        if recording.images is not None and options.source == "images":
            images = _learned_from(recording.images)
            assert images is not None
            return learn_from_images(images, ImageLearningConfig.from_flat(given), progress)
        assert recording.depths is not None
        return learn_from_depths(recording.depths, DepthLearningConfig.from_flat(given), progress)


def _held_out_view(images: PosedImages) -> int:
    """The view that `display.learned_field` draws."""
    from morphit_ros.display.learned_field import drawn_view

    return drawn_view(images)


def _held_out_ratio(images: PosedImages, render: Renderer) -> float:
    """Peak signal-to-noise ratio [dB] of the object's pixels in the view that was held out."""
    import numpy as np
    from scipy.ndimage import binary_erosion

    number = _held_out_view(images)
    height, width = images.rgb.shape[1:3]
    picture = render(images.intrinsics[number], images.T_world_camera[number], width, height)
    shown = np.ones((height, width), dtype=np.bool_)
    if images.masks is not None:
        # At the outline pixels mix with the background, which is not learned.
        shown = binary_erosion(images.masks[number], np.ones((3, 3)))
    error = ((picture - images.rgb[number])[shown] ** 2).mean()
    return float(-10.0 * np.log10(max(float(error), 1e-12)))


def _learned_from(images: PosedImages | None) -> PosedImages | None:
    """All views, but one if there are enough."""
    if images is None or len(images) < _ENOUGH_VIEWS:
        return images
    return _without(images, _held_out_view(images))


def _without(images: PosedImages, number: int) -> PosedImages:
    """All views but one, by which the result is judged."""
    import numpy as np

    from morphit_ros.neural.views.posed_views import PosedImages

    kept = np.arange(len(images)) != number
    masks = None if images.masks is None else images.masks[kept]
    return PosedImages(images.rgb[kept], images.intrinsics[kept], images.T_world_camera[kept], masks, images.bounds)


def _print_report(report: dict[str, Any]) -> None:
    print(f"{report['recording'] or 'the recording'}: {report['status']}, {report['message']}")
    learning = f"{report['seconds']:.1f} s, {report['processor_seconds']:.1f} s of a core"
    print(f"  {'time of learning':<24}{learning}; with all else {report['total_seconds']:.1f} s")
    if "solid" in report:
        print(f"  no solid: {report['solid']}")
    if "psnr" in report:
        print(f"  {'PSNR':<24}{report['psnr']:.1f} dB")
    if "held_out_psnr" in report:
        print(f"  {'PSNR of a new view':<24}{report['held_out_psnr']:.1f} dB")
    if "volume" in report:
        x, y, z = report["center_of_mass"]
        print(f"  {'threshold':<24}{report['threshold']:.3g}, by {report['threshold_by']}")
        print(f"  {'volume':<24}{1e6 * report['volume']:.1f} cm3")
        error = report["estimated_mass_error"]
        told = f", up to {error:.2g} kg off if the density is right" if error else ""
        print(f"  {'mass':<24}{report['mass']:.4g} kg{told}")
        print(f"  {'centre of mass':<24}{1e3 * x:.2f} {1e3 * y:.2f} {1e3 * z:.2f} mm")
        moments = " ".join(f"{1e3 * report['mass'] * value:.4g}" for value in report["moments_per_mass"])
        print(f"  {'principal moments':<24}{moments} g m2")
        print(
            f"  {'to expect':<24}{1e3 * report['estimated_center_error']:.2f} mm off, inertia "
            f"{report['estimated_moments_error']:.1%} off"
        )
        for remark in report["remarks"]:
            print(f"  remark: {remark}")
    if "center_error_of_size" in report:
        print(f"  {'IoU':<24}{report['intersection_over_union']:.3f}")
        print(f"  {'volume error':<24}{report['volume_error']:+.1%}")
        print(f"  {'centre of mass error':<24}{report['center_error_of_size']:.2%} of the size")
        print(f"  {'inertia error':<24}{report['inertia_error']:.2%}")
