"""Rewards from a table of every decision."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from refusals import raises_code

from submax import BatchedRewards, Lag, make_policy, simulate
from submax.core.problem import Problem
from submax.core.rewards import Continuous
from submax.core.spaces import Slots
from submax.environments.tables import Classification
from submax.research import Adversarial
from submax.research.beyond.designs import Designs
from submax.testing import check_environment

TABLE = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.25, 0.75, 0.5], [1.0, 0.0, 0.5]])


@pytest.mark.parametrize("delay", [BatchedRewards(1), BatchedRewards(3), Lag(2)])
def test_rewards_are_those_of_the_table_under_every_delay(delay):
    settings = {"observations": 4, "replicas": 5, "delay": delay, "points": None}
    trace = simulate(Adversarial.of(TABLE), make_policy("random"), **settings)
    expected = TABLE[np.arange(4), trace.actions[..., 0]]
    np.testing.assert_array_equal(trace.rewards, expected)
    regret = (TABLE.max(axis=1) - expected).cumsum(axis=1)
    np.testing.assert_allclose(trace.accumulated_regret, regret)


def test_a_file_has_a_row_for_each_decision(tmp_path):
    file = tmp_path / "rewards.csv"
    file.write_text("left,right\n1,0\n0,1\n", encoding="utf-8")
    environment = Adversarial(str(file))
    assert environment.most_decisions == 2
    with raises_code("invalid-input", "observations"):
        simulate(environment, make_policy("random"), observations=3)
    with raises_code("invalid-input", "rewards"):
        Adversarial.of([1.0, 2.0])


# Designs

CHOICES = {"compiler": ["clang", "gcc"], "level": [1, 2, 10], "target": ["x86"], "fast": [0.5, 1.5]}


def time_of(compiler, level, target, fast):
    return len(compiler) / level - fast * len(target)


def measured(seed):
    """Every combination, with its time, in no order at all."""
    rows = list(itertools.product(*CHOICES.values()))
    rows = [rows[place] for place in np.random.default_rng(seed).permutation(len(rows))]
    columns = {name: [row[place] for row in rows] for place, name in enumerate(CHOICES)}
    return {**columns, "time": [time_of(*row) for row in rows]}


def written(path, columns):
    write = csv.write_csv if path.suffix == ".csv" else parquet.write_table
    write(pa.table(columns), str(path))
    return str(path)


def every_mean(environment):
    actions = environment.problem.space.listing()
    return environment.mean_reward(1, np.zeros((1, len(actions), 0)), actions[None])[0]


@pytest.mark.parametrize("name", ["designs.csv", "designs.parquet"])
@pytest.mark.parametrize("minimize", [False, True])
def test_every_design_is_worth_what_was_measured(tmp_path, name, minimize, seed):
    environment = Designs(written(tmp_path / name, measured(seed)), minimize=minimize)
    expected = np.array([time_of(*row) for row in itertools.product(*CHOICES.values())])
    expected = -expected if minimize else expected
    assert np.array_equal(every_mean(environment), expected)
    scale = Continuous(expected.min(), expected.max())
    assert environment.problem == Problem(Slots((2, 3, 1, 2)), 0, scale)
    assert environment.shared
    check_environment(environment)
    assert np.array_equal(every_mean(Designs.of(measured(seed), minimize=minimize)), expected)


def test_an_action_is_told_in_the_words_of_the_table(seed):
    environment = Designs.of(measured(seed))
    for action, row in zip(
        environment.problem.space.listing(), itertools.product(*CHOICES.values()), strict=True
    ):
        assert environment.describe(action) == dict(zip(CHOICES, row, strict=True))
    with raises_code("invalid-input"):
        environment.describe(np.array([0, 3, 0, 0]))


@pytest.mark.parametrize(
    ("kind", "text", "parameter"),
    [
        (Designs, "x,y,v\n1,a,3\n1,b,4\n2,b,5\n", None),
        (Designs, "x,v\n1,3\n2,4\n1,5\n2,6\n1,7\n", None),
        (Designs, "x,v\n1,3\n2,inf\n", "v"),
        (Designs, "x,v\n1,3\n,4\n", "x"),
        (Designs, "x,v\n1,3\n2,3\n", "v"),
        (Designs, "x,x,v\n1,1,3\n2,2,4\n", "x"),
        (Designs, "v\n1\n2\n", None),
        (Designs, "x,v\n", None),
        (Classification, "x,lable\n1,a\n2,b\n", None),
        (Classification, "x,label,label\n1,a,b\n2,b,a\n", "label"),
        (Classification, "x,label\n1,a\ntwo,b\n", "x"),
        (Classification, "x,label\n1,a\n2,b\n,b\n", "x"),
        (Classification, "x,label\n1,a\ninf,b\n", "x"),
        (Classification, "x,label\n1,3\n2,\n", "labels"),
        (Classification, "x,label\n1,a\n2,a\n", "labels"),
        (Classification, "label\na\nb\n", "features"),
        (Classification, "x,label\n1,a\n2\n", "file"),
        (Classification, "", "file"),
    ],
)
def test_a_bad_table_is_refused(tmp_path, kind, text, parameter):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with raises_code("invalid-input", parameter):
        _ = kind(str(path)).problem


@pytest.mark.parametrize("kind", [Designs, Classification])
def test_a_bad_file_is_refused(kind, tmp_path):
    broken = tmp_path / "broken.parquet"
    broken.write_text("no table")
    for file in (str(tmp_path / "none.csv"), "table.txt", 3, str(broken)):
        with raises_code("invalid-input", "file"):
            _ = kind(file).problem
