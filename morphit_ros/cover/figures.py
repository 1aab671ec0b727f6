"""The paper's plots of a run: alignment error, position error, motor speed, each mean and 10 to 90 percentile."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from morphit_ros.cover.simulation import CoverSimulationResult


def draw_run(result: CoverSimulationResult, path: str | Path, title: str = "") -> None:
    """Draw a run into a PNG, PDF or SVG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 8.0), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(3, 1, sharex=True)
    rows = (
        (np.degrees(result.angles), "alignment error [°]"),
        (result.distances * 1e3, "position error [mm]"),
        (np.degrees(np.abs(result.rates)), "motor speed [°/s]"),
    )
    for panel, (values, label) in zip(panels, rows, strict=True):
        low, high = np.percentile(values, (10.0, 90.0), axis=1)
        panel.fill_between(result.times, low, high, alpha=0.3, linewidth=0.0, label="10 to 90 %")
        panel.plot(result.times, values.mean(axis=1), label="mean")
        panel.set_ylabel(label)
        panel.set_ylim(bottom=0.0)
        panel.grid(alpha=0.3)
    panels[0].legend(loc="upper right")
    panels[-1].set_xlabel("time [s]")
    if title:
        figure.suptitle(title)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
