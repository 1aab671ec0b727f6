"""Comparisons: every combination once, honest means, tables, JSON and plots."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from morphit_bench.spheres.comparison.report import markdown_report, markdown_table, plot_cost, plot_quality
from morphit_bench.spheres.comparison.runs import METHODS, compare_fits, robot_shapes
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.robot.description import load_robot_description
from morphit_ros.spheres.configuration import METHODS as FIT_METHODS, VARIANTS

SHEET = TriangleMesh(np.array([[0, 0, 0], [0.2, 0, 0], [0.2, 0.1, 0.05]]), np.array([[0, 1, 2]]))
SHAPES = {"bar": (box_mesh([0.3, 0.1, 0.1]),), "cross": (box_mesh([0.3, 0.1, 0.1]), box_mesh([0.1, 0.3, 0.1]))}
URDF = """<robot name="two"><link name="a"><collision><geometry><box size="1 1 1"/></geometry></collision></link>
<link name="b"/><joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint></robot>"""


@pytest.fixture(scope="module")
def comparison():
    return compare_fits(SHAPES, [2, 8], ["packing", "balanced"], [0, 1], "robo", 2000, 20000)


def test_every_combination_once_with_its_count(comparison):
    keys = [(row.link, row.method, row.count, row.seed) for row in comparison.rows]
    assert len(keys) == len(set(keys)) == 2 * 2 * 2 * 2
    for row in comparison.rows:
        assert row.kept == row.count
        assert row.seconds > 0.0
        assert row.robot == "robo"
    by_method = {(mean.method, mean.count): mean.metrics for mean in comparison.means()}
    assert by_method["balanced", 8].d_avg < 0.7 * by_method["balanced", 2].d_avg
    assert by_method["packing", 8].outside < 0.01 < by_method["balanced", 8].outside


def test_means_are_means_and_their_errors_shrink(comparison):
    rows = [row for row in comparison.rows if (row.method, row.count, row.link) == ("packing", 8, "cross")]
    mean = next(m for m in comparison.means("cross") if (m.method, m.count) == ("packing", 8))
    assert mean.fits == len(rows) == 2
    assert mean.metrics.inside == pytest.approx(np.mean([row.metrics.inside for row in rows]))
    assert mean.seconds == pytest.approx(np.mean([row.seconds for row in rows]))
    expected = math.sqrt(sum(row.metrics.inside_error**2 for row in rows)) / 2
    assert mean.metrics.inside_error == pytest.approx(expected)
    # In the order of the methods' names in METHODS, then by count.
    assert [(m.method, m.count) for m in comparison.means()] == [
        ("balanced", 2), ("balanced", 8), ("packing", 2), ("packing", 8),
    ]  # fmt: skip


def test_shapes_without_volume_count_in_the_distances_only():
    comparison = compare_fits({"sheet": (SHEET,), "bar": SHAPES["bar"]}, [3], ["packing"], [0], "", 500, 2000)
    sheet, bar = comparison.rows
    (mean,) = comparison.means()
    assert math.isnan(sheet.metrics.inside)
    assert mean.metrics.inside == bar.metrics.inside
    assert mean.metrics.d_avg == pytest.approx(0.5 * (sheet.metrics.d_avg + bar.metrics.d_avg))
    content = json.loads(json.dumps(comparison.to_content(), allow_nan=False))
    assert content["rows"][0]["inside"] is None
    assert content["rows"][1]["inside"] == bar.metrics.inside
    assert "–" in markdown_table(comparison.means("sheet"))


def test_tables_hold_the_figures(comparison):
    report = markdown_report(comparison)
    assert "mean over 2 links, 2 seeds" in report
    assert "## cross" in report
    lines = markdown_table(comparison.means()).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert len(lines) == 2 + 4
    cells = [cell.strip() for cell in lines[-1].strip("|").split("|")]
    metrics = comparison.means()[-1].metrics
    assert cells[:3] == ["packing", "8", "8"]
    assert cells[4] == f"{1e3 * metrics.d_avg:.2f} ± {1e3 * metrics.d_avg_error:.2f}"
    assert cells[6] == f"{metrics.inside:.4f} ± {metrics.inside_error:.4f}"


def test_plots_show_every_method_and_repeat(comparison, tmp_path):
    pytest.importorskip("matplotlib")
    from PIL import Image

    for plot, least_width in ((plot_quality, 1000), (plot_cost, 700)):
        first, second = tmp_path / "first.png", tmp_path / "second.png"
        plot(comparison, first)
        plot(comparison, second)
        assert first.read_bytes() == second.read_bytes()
        pixels = np.asarray(Image.open(first).convert("RGB"))
        assert pixels.shape[1] > least_width
        for color in ((0x00, 0x72, 0xB2), (0x55, 0x55, 0x55)):
            assert (pixels == color).all(axis=2).sum() > 200
        # No vssa in this comparison.
        assert (pixels == (0xCC, 0x79, 0xA7)).all(axis=2).sum() == 0
    plot_quality(replace(comparison, rows=comparison.rows[:1]), tmp_path / "one.png")


def test_progress_counts_fits():
    calls = []
    compare_fits({"bar": SHAPES["bar"]}, [1, 2], ["packing"], [0], "", 100, 100, lambda *call: calls.append(call))
    assert calls == [
        ("compiling packing", 0, 2), ("bar, packing, 1", 0, 2), ("bar, packing, 2", 1, 2), ("done", 2, 2),
    ]  # fmt: skip


def test_every_variant_and_method_can_be_compared():
    assert {settings.get("variant") for settings in METHODS.values()} >= set(VARIANTS)
    assert {settings.get("method", "morphit") for settings in METHODS.values()} == set(FIT_METHODS)


def test_shapes_of_a_robot():
    description = load_robot_description(URDF)
    assert list(robot_shapes(description)) == ["a"]
    for links in (["b"], ["c"]):
        with pytest.raises(InvalidInputError, match="links with geometry: a"):
            robot_shapes(description, links)
    with pytest.raises(InvalidInputError, match="visual"):
        robot_shapes(description, source="visual")


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"shapes": {}}, "shapes"),
        ({"counts": []}, "counts"),
        ({"counts": [0]}, "count"),
        ({"methods": ["octree"]}, "methods"),
        ({"seeds": [-1]}, "seeds"),
        ({"volume_samples": 1}, "link 'bar': volume_samples"),
    ],
)
def test_bad_input(changed, name):
    arguments = {"shapes": {"bar": SHAPES["bar"]}, "counts": [2], "methods": ["packing"]} | changed
    with pytest.raises(InvalidInputError) as caught:
        compare_fits(**arguments)
    assert caught.value.name == name
