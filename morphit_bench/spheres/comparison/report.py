"""A comparison as tables in Markdown and as plots."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from morphit_bench.spheres.comparison.runs import METHODS, Comparison, ComparisonMean
from morphit_ros.resources import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEADER = ("method", "spheres", "kept", "CPU s", "d_avg [mm]", "d_max [mm]", "inside", "outside", "union")
# A colour that colour-blind people tell apart and a marker of its own for each method.
_STYLES = dict(
    zip(
        METHODS,
        [
            ("#0072b2", "o"),
            ("#d55e00", "s"),
            ("#009e73", "^"),
            ("#000000", "*"),
            ("#a05000", "D"),
            ("#cc79a7", "v"),
            ("#56b4e9", "P"),
            ("#555555", "X"),
        ],
        strict=True,
    )
)


def markdown_table(means: list[ComparisonMean]) -> str:
    """One line a method and count. Ratios are volumes over the shape's; ± is the standard error of the sampling."""
    rows = [_HEADER, *(_cells(mean) for mean in means)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    lines = [
        "| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|")
    return "\n".join(lines) + "\n"


def markdown_report(comparison: Comparison) -> str:
    """The means over all links, then every link by itself."""
    what = f"{_titled(comparison)}. Distances at {comparison.surface_samples} surface samples, "
    what += f"volumes over the shape's at {comparison.volume_samples} samples, ± standard error of the sampling. "
    what += "CPU s is the mean processor time of one fit without compilation."
    parts = ["# Comparison of sphere fits\n", what + "\n", markdown_table(comparison.means())]
    if len(comparison.links) > 1:
        for link in comparison.links:
            parts += [f"## {link}\n", markdown_table(comparison.means(link))]
    return "\n".join(parts)


def plot_quality(comparison: Comparison, path: str | Path) -> None:
    """Mean distance, greatest distance, inside and outside volume against the number of spheres, as a PNG."""
    panels: list[tuple[str, Callable[[ComparisonMean], tuple[float, float]], str]] = [
        ("mean surface distance d_avg [mm]", lambda m: (1e3 * m.metrics.d_avg, 1e3 * m.metrics.d_avg_error), "log"),
        ("greatest surface distance d_max [mm]", lambda m: (1e3 * m.metrics.d_max, 0.0), "log"),
        ("inside: share of the shape's volume covered", lambda m: (m.metrics.inside, m.metrics.inside_error), "linear"),
        (
            "outside: volume beside the shape over its own",
            lambda m: (m.metrics.outside, m.metrics.outside_error),
            "symlog",
        ),
    ]
    figure, axes = _figure(2, 2, (11.0, 8.0))
    for axis, (label, value, scale) in zip(axes, panels, strict=True):
        _draw(axis, comparison, value, label, scale)
    _finish(figure, axes, _titled(comparison), path)


def plot_cost(comparison: Comparison, path: str | Path) -> None:
    """Processor time of a fit against the number of spheres, as a PNG."""
    figure, axes = _figure(1, 1, (7.5, 5.5))
    _draw(axes[0], comparison, lambda m: (m.seconds, 0.0), "processor time of a fit [s]", "log")
    _finish(figure, axes, _titled(comparison), path)


def _cells(mean: ComparisonMean) -> tuple[str, ...]:
    m = mean.metrics
    ratios = ((m.inside, m.inside_error), (m.outside, m.outside_error), (m.union, m.union_error))
    return (
        mean.method,
        str(mean.count),
        f"{mean.kept:g}",
        f"{mean.seconds:.2f}",
        f"{1e3 * m.d_avg:.2f} ± {1e3 * m.d_avg_error:.2f}",
        f"{1e3 * m.d_max:.2f}",
        *("–" if value != value else f"{value:.4f} ± {error:.4f}" for value, error in ratios),
    )


def _titled(comparison: Comparison) -> str:
    links, seeds = comparison.links, comparison.seeds
    robot = comparison.rows[0].robot
    text = f"{robot}: mean over {len(links)} links" if len(links) > 1 else " ".join(dict.fromkeys((robot, links[0])))
    return text if len(seeds) == 1 else f"{text}, {len(seeds)} seeds"


def _figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, list[Axes]]:
    # Figures made this way belong to no window system and to no global list.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def _draw(
    axis: Axes,
    comparison: Comparison,
    value: Callable[[ComparisonMean], tuple[float, float]],
    label: str,
    scale: str,
) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    plain = FuncFormatter(lambda number, _: f"{number:g}")

    means = comparison.means()
    for method, (color, marker) in _STYLES.items():
        own = [mean for mean in means if mean.method == method]
        if own:
            numbers, errors = zip(*(value(mean) for mean in own), strict=True)
            counts = [mean.count for mean in own]
            # Markers on a hundred counts would hide the line.
            every = max(1, len(own) // 12)
            axis.errorbar(
                counts,
                numbers,
                yerr=errors,
                color=color,
                marker=marker,
                markevery=every,
                errorevery=every,
                capsize=2.0,
                label=method,
            )
    counts = sorted({mean.count for mean in means})
    if counts[-1] >= 10 * counts[0]:
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(plain)
    if len(counts) <= 10:
        axis.set_xticks(counts, [str(count) for count in counts])
        axis.minorticks_off()
    if scale == "symlog":
        # Spheres inside the shape have no outside volume, which a logarithm could not show.
        axis.set_yscale("symlog", linthresh=0.01)
        axis.set_ylim(bottom=0.0)
    elif scale == "log":
        axis.set_yscale("log")
        # Most of these plots span little more than a decade.
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.yaxis.set_minor_formatter(NullFormatter())
    axis.yaxis.set_major_formatter(plain)
    axis.set_xlabel("number of spheres")
    axis.set_ylabel(label)
    axis.grid(alpha=0.3)


def _finish(figure: Any, axes: list[Axes], title: str, path: str | Path) -> None:
    figure.suptitle(title)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    with atomic_write(path, "wb") as stream:
        figure.savefig(stream, format="png", dpi=120, metadata={"Software": None})
