"""Comparisons of policies in a result folder, compared with scipy and with tables of books."""

import csv
import io

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from refusals import raises_code
from scipy import stats

from submax.cli import main
from submax.simulation.compare import compare, holm
from submax.simulation.experiment import parse
from submax.simulation.runner import run_study

FILE = """
observations = 60
replicas = 12
points = 5
policies = ["random", "rcp-submax", "ucb1"]
[environment]
kind = "bernoulli"
arms = [2, 3, 4, 5]
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return run_study(parse(FILE, "tiny"), tmp_path_factory.mktemp("compared"))


def values(directory, policy, arms, column="regret"):
    rows = pq.read_table(directory / "finals.parquet").to_pylist()
    return np.array([r[column] for r in rows if r["policy"] == policy and r["arms"] == arms])


@pytest.mark.parametrize("measure", ["regret", "reward"])
def test_intervals_and_p_values_are_those_of_the_paired_t_test(directory, measure):
    found = compare(directory, ["random", "rcp-submax"], measure=measure, confidence=0.9)
    assert len(found) == 4
    for one in found:
        left, right = (
            values(directory, name, one.configuration["arms"], measure)
            for name in ("random", "rcp-submax")
        )
        expected = stats.ttest_rel(left, right)
        interval = expected.confidence_interval(0.9)
        assert one.p_value == pytest.approx(expected.pvalue)
        assert (one.low, one.high) == pytest.approx((interval.low, interval.high))
        assert one.corrected >= one.p_value


def test_all_pairs_are_corrected_together(directory):
    found = compare(directory)
    assert len(found) == 12
    assert [one.corrected for one in found] == pytest.approx(holm([one.p_value for one in found]))


def test_holms_correction_is_the_step_down_rule():
    # By hand: 4 × 0.005, 3 × 0.01, 2 × 0.03, then the maximum so far.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_wrong_comparisons_are_refused(directory, tmp_path):
    for policies in (["random", "ucb9"], ["random"]):
        with raises_code("invalid-input"):
            compare(directory, policies)
    for folder in (tmp_path, directory.parent):
        with raises_code("invalid-input"):
            compare(folder)


def test_the_command_prints_the_differences_in_every_form(directory):
    command = ["compare", str(directory), "--policies", "random,rcp-submax", "--format"]
    table, text = (CliRunner().invoke(main, [*command, form]) for form in ("table", "csv"))
    assert (table.exit_code, text.exit_code) == (0, 0)
    assert "rcp-submax" in table.output
    found = [float(row["difference"]) for row in csv.DictReader(io.StringIO(text.output))]
    expected = [one.difference for one in compare(directory, ["random", "rcp-submax"])]
    assert found == pytest.approx(expected, rel=1e-3)
