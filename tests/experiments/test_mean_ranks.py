"""Mean ranks, compared with the example that Demšar (2006) computes by hand."""

import numpy as np
import pytest
from click.testing import CliRunner
from refusals import raises_code
from scipy import stats

from submax.cli import main
from submax.experiments.comparing.mean_ranks import MeanRanks, mean_ranks
from submax.experiments.running.study import run_study
from submax.experiments.specification import parse
from submax.plots import critical_difference_figure

FILE = """
observations = 60
replicas = 4
points = 5
policies = ["random", "rcp-submax", "ucb1"]
[environment]
kind = "bernoulli"
arms = [2, 3, 4, 5]
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return run_study(parse(FILE, "tiny"), tmp_path_factory.mktemp("ranked"))


def test_ranks_are_those_of_the_means_in_each_configuration(directory):
    found = mean_ranks(directory)
    assert found.configurations == 4
    assert sum(found.ranks.values()) == pytest.approx(6.0)
    # The quantile of the two-tailed Nemenyi test for 3 classifiers is 2.343 in Demšar's table 5a.
    assert found.critical_difference == pytest.approx(2.343 * np.sqrt(3 * 4 / (6 * 4)), abs=1e-3)
    better = mean_ranks(directory, measure="reward").ranks
    assert set(better) == set(found.ranks)


def test_two_policies_are_compared_by_signs(directory):
    found = mean_ranks(directory, ["random", "rcp-submax"])
    wins = round(4 * (2 - found.ranks["rcp-submax"]))
    assert found.p_value == pytest.approx(stats.binomtest(wins, 4).pvalue)


def test_groups_are_policies_within_the_critical_difference():
    ranks = MeanRanks({"a": 1.0, "b": 1.8, "c": 2.4, "d": 3.9}, 10, 1.0, 0.01)
    assert ranks.groups() == [["a", "b"], ["b", "c"]]


def test_a_bar_joins_each_group():
    ranks = {"a": 1.0, "b": 1.8, "c": 2.4, "d": 3.9}
    figure = critical_difference_figure(ranks, 1.0, [["a", "b"], ["b", "c"]])
    bars = [line for line in figure.axes[0].get_lines() if line.get_label() == "group"]
    assert [line.get_xdata().tolist() for line in map(_as_arrays, bars)] == [[1.0, 1.8], [1.8, 2.4]]
    texts = {text.get_text() for text in figure.axes[0].texts}
    assert {"a 1.00", "d 3.90", "critical difference 1.00"} <= texts


def _as_arrays(line):
    line.set_xdata(np.asarray(line.get_xdata()))
    return line


def test_the_command_draws_the_diagram(directory, tmp_path):
    file = tmp_path / "ranks.svg"
    done = CliRunner().invoke(main, ["compare", str(directory), "--ranks", str(file)])
    assert done.exit_code == 0, done.output
    assert "mean ranks in 4 configurations" in done.output
    assert file.stat().st_size > 1000
    with raises_code("invalid-input"):
        mean_ranks(directory, ["random"])
