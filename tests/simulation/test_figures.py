"""Figures for papers, from traces and from a result folder."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure
from refusals import raises_code

from submax import Bernoulli, make_policy, simulate
from submax.research.paper.figures import draw_offline
from submax.simulation.experiment import parse
from submax.simulation.figures import COLUMN_INCHES, curves, draw_sweep_figure, sweep_figures
from submax.simulation.runner import run_study


@pytest.fixture
def drawn(monkeypatch):
    """Figures by the name of their file; the files are empty, because rendering takes long."""
    kept = {}

    def keep(figure, path, **options):
        kept[path.name] = figure
        path.touch()

    monkeypatch.setattr(Figure, "savefig", keep)
    return kept


FILE = """
observations = 40
replicas = 3
measure = "reward"
policies = ["random", "linucb"]
reference = { shift = 0 }
[environment]
kind = "contextual"
arms = 2
dimension = 3
shift = [0, -2]
[delay]
kind = "batched-rewards"
size = 10
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return run_study(parse(FILE, "own"), tmp_path_factory.mktemp("drawn"))


@pytest.fixture(scope="module")
def traces():
    environment = Bernoulli.of([0.8, 0.4])
    return {
        name: simulate(environment, make_policy(name), observations=80, replicas=5, points=40)
        for name in ("random", "ucb1")
    }


def lines_of(figure):
    return {line.get_label(): line for line in figure.axes[0].get_lines()}


def test_curves_are_the_means_in_the_given_order_and_colours(traces):
    figure = curves(
        traces, policies=["ucb1", "random"], colours={"ucb1": "#ff0000"}, width=COLUMN_INCHES
    )
    lines = lines_of(figure)
    assert list(lines) == ["ucb1", "random"]
    assert lines["ucb1"].get_color() == "#ff0000"
    mean = traces["ucb1"].accumulated_regret.mean(axis=0)
    np.testing.assert_allclose(lines["ucb1"].get_ydata(), mean)
    assert figure.get_size_inches()[0] == 3.3


@pytest.mark.parametrize("measure", ["regret", "reward"])
@pytest.mark.parametrize("ribbon", ["ci", "range", "none"])
def test_ribbons_are_intervals_of_the_mean_or_ranges_of_replicas(traces, ribbon, measure):
    figure = curves(traces, policies=["random"], ribbon=ribbon, measure=measure)
    patches = figure.axes[0].collections
    assert len(patches) == (ribbon != "none")
    if not patches:
        return
    final = getattr(traces["random"], f"final_{measure}")
    assert figure.axes[0].lines[0].get_ydata()[-1] == pytest.approx(final.mean())
    low, high = np.quantile(final, (0.025, 0.975))
    if ribbon == "ci":
        reach = 1.96 * final.std(ddof=1) / np.sqrt(5)
        low, high = final.mean() - reach, final.mean() + reach
    corners = patches[0].get_paths()[0].vertices
    last = corners[corners[:, 0] == 80, 1]
    assert (last.min(), last.max()) == pytest.approx((low, high))


def test_a_folder_gives_the_same_numbers_as_its_file_or_says_what_it_has_not(directory):
    figure = curves(directory, configuration={"shift": 0})
    rows = pq.read_table(directory / "results.parquet").to_pylist()
    expected = [r["regret_mean"] for r in rows if r["shift"] == 0 and r["policy"] == "linucb"]
    np.testing.assert_allclose(lines_of(figure)["linucb"].get_ydata(), expected)
    with raises_code("invalid-input"):
        curves(directory)
    with raises_code("invalid-input", "policy"):
        curves(directory, policies=["ucb9"], configuration={"shift": 0})
    with raises_code("invalid-input", "measure"):
        curves(directory, measure="regrets")
    with raises_code("invalid-input"):
        curves({})


def test_a_bar_goes_from_the_tenth_to_the_ninetieth_percentile_of_the_errors(tmp_path, drawn):
    values, truth = np.random.default_rng(3).normal(0.5, 0.1, 21), 0.4
    rows = [f"iris,linucb,ips,{value!r},{truth}\n" for value in values.tolist()]
    header = "file,policy,estimator,value,truth\n"
    (tmp_path / "estimates.csv").write_text(header + "".join(rows), encoding="utf-8")
    assert [path.name for path in draw_offline(tmp_path)] == ["offline.png", "offline.pdf"]
    (axes,) = [axes for axes in drawn["offline.png"].axes if axes.axison]
    (bar,) = axes.containers
    line, _, (ends,) = bar.lines
    low, middle, high = np.quantile(values - truth, [0.1, 0.5, 0.9])
    assert line.get_ydata() == pytest.approx([middle])
    assert ends.get_segments()[0][:, 1] == pytest.approx([low, high])


def test_a_panel_for_each_configuration_and_all_side_by_side(directory):
    figures = sweep_figures(directory)
    names = ["panel-shift=0", "panel-shift=-2", "varying-shift", "all-configurations"]
    # An experiment that is measured by reward has its regret as well.
    assert [figure.name for figure in figures if figure.measure == "reward"] == names
    regret = [figure.name for figure in figures if figure.measure == "regret"]
    assert regret == [f"{name}-regret" for name in names]


def test_the_measure_of_the_experiment_is_drawn(directory, drawn):
    first = sweep_figures(directory)[0]
    assert len(draw_sweep_figure(directory, first)) == 2
    figure = drawn[f"{first.name}.png"]
    (axes,) = figure.axes
    assert "3 replicas" in axes.get_ylabel()
    rows = pq.read_table(directory / "results.parquet").to_pylist()
    for line in axes.lines:
        last = [
            row["reward_mean"]
            for row in rows
            if (row["shift"], row["policy"], row["step"]) == (0, line.get_label(), 40)
        ]
        assert [line.get_ydata()[-1]] == pytest.approx(last)
