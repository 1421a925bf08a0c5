"""Figures for papers, from traces and from a result folder."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from refusals import raises_code

from submax import Bernoulli, make_policy, simulate
from submax.cli import main
from submax.simulation.experiment import parse
from submax.simulation.figures import COLUMN_INCHES, curves
from submax.simulation.runner import run_study
from submax.simulation.trace import lai_robbins

FILE = """
observations = 60
replicas = 4
points = 20
policies = ["random", "rcp-submax"]
[environment]
kind = "bernoulli"
arms = [2, 4]
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return run_study(parse(FILE, "tiny"), tmp_path_factory.mktemp("drawn"))


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


@pytest.mark.parametrize("ribbon", ["ci", "range", "none"])
def test_ribbons_are_intervals_of_the_mean_or_ranges_of_replicas(traces, ribbon):
    figure = curves(traces, policies=["random"], ribbon=ribbon)
    patches = figure.axes[0].collections
    assert len(patches) == (ribbon != "none")
    if not patches:
        return
    final = traces["random"].final_regret
    low, high = np.quantile(final, (0.025, 0.975))
    if ribbon == "ci":
        reach = 1.96 * final.std(ddof=1) / np.sqrt(5)
        low, high = final.mean() - reach, final.mean() + reach
    corners = patches[0].get_paths()[0].vertices
    last = corners[corners[:, 0] == 80, 1]
    assert (last.min(), last.max()) == pytest.approx((low, high))


def test_a_folder_gives_the_same_numbers_as_its_file(directory):
    figure = curves(directory, configuration={"arms": 4})
    rows = pq.read_table(directory / "results.parquet").to_pylist()
    expected = [r["regret_mean"] for r in rows if r["arms"] == 4 and r["policy"] == "rcp-submax"]
    np.testing.assert_allclose(lines_of(figure)["rcp-submax"].get_ydata(), expected)
    with raises_code("invalid-input"):
        curves(directory)
    with raises_code("invalid-input", "policy"):
        curves(directory, policies=["ucb9"], configuration={"arms": 4})


def test_a_bound_for_a_folder_is_a_function_of_its_decisions(directory):
    means, one = [0.8, 0.4], {"arms": 2}
    figure = curves(
        directory, configuration=one, log=True, bound=lambda steps: lai_robbins(means, steps)
    )
    assert figure.axes[0].get_xscale() == "log"
    line = lines_of(figure)["lower bound"]
    np.testing.assert_allclose(line.get_ydata(), lai_robbins(means, line.get_xdata()))
    assert len(line.get_xdata()) == 20
    with raises_code("invalid-input"):
        curves(directory, configuration=one, bound=np.ones(60))


def test_the_command_draws_a_file_for_each_configuration(directory):
    def command(*options):
        return CliRunner().invoke(main, ["plot", str(directory), *options])

    options = ["--policies", "rcp-submax,random", "--measure", "reward", "--ribbon", "range"]
    done = command(*options, "--log", "--latex", "--format", "svg")
    assert done.exit_code == 0, done.output
    names = {path.name for path in (directory / "figures").iterdir()}
    assert names == {"column-arms=2-reward.svg", "column-arms=4-reward.svg"}
    wrong = command("--only", "arms=3", "--log")
    assert wrong.exit_code != 0
    assert "2, 4" in wrong.output
