import pyarrow.parquet as pq
import pytest

from submax.simulation.experiment import parse
from submax.simulation.figures import draw_sweep_figure, sweep_figures
from submax.simulation.runner import run_study

OWN = """
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
    return run_study(parse(OWN, "own"), tmp_path_factory.mktemp("sweep"))


def test_a_panel_for_each_configuration_and_all_side_by_side(directory):
    figures = sweep_figures(directory)
    names = [
        "panel-shift=0",
        "panel-shift=-2",
        "varying-shift",
        "all-configurations",
    ]
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
