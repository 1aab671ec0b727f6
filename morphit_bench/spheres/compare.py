"""What `morphit spheres compare` does: its options, its run, its report."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from morphit_ros.commands.options import read_config
from morphit_ros.commands.output_files import ResultFiles, add_json, add_output
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.robots import GeometryConfig, add_links, add_robot, load_robot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from morphit_bench.spheres.comparison.runs import Comparison, ComparisonRow
    from morphit_ros.geometry.mesh import TriangleMesh

_MAX_COUNT, _MAX_SEED = 2000, 2**31 - 1
_INTERRUPTED = 130


def add_options(parser: CommandParser) -> None:
    from morphit_bench.spheres.comparison.runs import METHODS

    add_robot(parser)
    parser.add_argument(
        "--counts",
        default="6,20,64",
        metavar="LIST",
        help="spheres a link: 6,20,64 or 1..100 or 1..100:5, every fifth (default: %(default)s)",
    )
    add_links(parser, "compare on these links only")
    parser.add_argument(
        "--methods",
        nargs="+",
        action="extend",
        metavar="NAME",
        help=f"some of {', '.join(METHODS)} (default: all)",
    )
    parser.add_argument("--seeds", default="0", metavar="LIST", help="seeds of the fits: 0,1 or 0..4 (default: 0)")
    parser.add_argument(
        "--samples",
        nargs=2,
        type=int,
        default=(20000, 200000),
        metavar=("SURFACE", "VOLUME"),
        help="points that distances and volumes are measured at (default: 20000 200000)",
    )
    add_output(parser, "--output", "write comparison.md, .json, quality.png and cost.png there", "DIR")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    from morphit_bench.spheres.comparison.report import markdown_table
    from morphit_bench.spheres.comparison.runs import METHODS, robot_shapes
    from morphit_ros.errors import InvalidInputError

    counts = number_list("--counts", options.counts, 1, _MAX_COUNT)
    seeds = number_list("--seeds", options.seeds, 0, _MAX_SEED)
    methods = list(dict.fromkeys(name for word in options.methods or METHODS for name in word.split(",")))
    for method in methods:
        if method not in METHODS:
            raise InvalidInputError("--methods", repr(method), f"one of {', '.join(METHODS)}")
    for name, samples, least in zip(("surface", "volume"), options.samples, (1, 16), strict=True):
        if samples < least:
            raise InvalidInputError("--samples", f"{samples} {name} samples", f"at least {least}")
    description, _ = load_robot(options.robot, options)
    shapes = robot_shapes(description, options.links, read_config(options, GeometryConfig).source)
    comparison, complete = _compare(shapes, counts, methods, seeds, description.name, options.samples)
    if not comparison.rows:
        return _INTERRUPTED
    if options.json != "-":
        print(markdown_table(comparison.means()), end="")
    with ResultFiles() as files:
        if options.output:
            _write_report(comparison, Path(options.output), files)
        files.json(comparison.to_content(), options.json)
    return 0 if complete else _INTERRUPTED


def number_list(option: str, text: str, lowest: int, highest: int) -> list[int]:
    """The whole numbers of a list such as ``6,20,64``, ``1..100`` or ``1..100:5``, sorted, each once.

    Raises:
        InvalidInputError: not such a list, or a number out of range.
    """
    from morphit_ros.errors import InvalidInputError

    form = f"whole numbers from {lowest} to {highest}"
    remedy = "Write them as 6,20,64 or as a range, 1..20, or with a step, 1..20:5."
    numbers: set[int] = set()
    for part in text.split(","):
        span, colon, step = part.partition(":")
        low, dots, high = span.partition("..")
        try:
            first = int(low)
            last = int(high) if dots else first
            stride = int(step) if colon else 1
        except ValueError:
            raise InvalidInputError(option, repr(text), form, remedy) from None
        if not lowest <= first <= last <= highest or stride < 1 or (colon and not dots):
            raise InvalidInputError(option, repr(part), form, remedy)
        numbers.update(range(first, last + 1, stride))
    return sorted(numbers)


def _compare(
    shapes: Mapping[str, Sequence[TriangleMesh]],
    counts: Sequence[int],
    methods: Sequence[str],
    seeds: Sequence[int],
    robot: str,
    samples: Sequence[int],
) -> tuple[Comparison, bool]:
    """What was measured, and whether that is all."""
    from tqdm import tqdm

    from morphit_bench.spheres.comparison.runs import Comparison, compared_fits

    rows: list[ComparisonRow] = []
    complete = False

    with tqdm(desc=f"{robot}: comparing", unit="fit", disable=not sys.stderr.isatty()) as bar:

        def progress(text: str, done: int, total: int) -> None:
            bar.total = total
            bar.set_postfix_str(text, refresh=False)
            bar.update(done - bar.n)

        try:
            # An interrupt leaves the rows so far in the list.
            rows.extend(compared_fits(shapes, counts, methods, seeds, robot, samples[0], samples[1], progress))
            complete = True
        except KeyboardInterrupt:
            bar.set_postfix_str("interrupted", refresh=False)
    return Comparison(tuple(rows), samples[0], samples[1]), complete


def _write_report(comparison: Comparison, folder: Path, files: ResultFiles) -> None:
    from morphit_bench.spheres.comparison.report import markdown_report, plot_cost, plot_quality

    files.text("--output", folder / "comparison.md", markdown_report(comparison))
    files.json(comparison.to_content(), folder / "comparison.json", "--output")
    files.write("--output", folder / "quality.png", lambda path: plot_quality(comparison, path))
    files.write("--output", folder / "cost.png", lambda path: plot_cost(comparison, path))
