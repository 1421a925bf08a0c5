"""Traces as files and tables, and measures of them."""

import sys

import numpy as np
import pytest
from refusals import raises_code

from submax import Bernoulli, Combinatorial, make_policy, simulate
from submax.simulation.trace import (
    Trace,
    lai_robbins,
    pulls,
    quantiles,
    regret_per_period,
    share_of_best,
)

MEANS = [0.8, 0.5, 0.2]


@pytest.fixture(scope="module")
def trace():
    policy = make_policy("epsilon-greedy-0.2")
    return simulate(Bernoulli.of(MEANS), policy, observations=100, replicas=4, points=None)


def test_a_saved_trace_is_loaded_as_it_was(trace, tmp_path):
    trace.save(tmp_path / "trace.npz")
    for one, two in zip(trace, Trace.load(tmp_path / "trace.npz"), strict=True):
        assert np.array_equal(one, two)
        assert one.dtype == two.dtype
    (tmp_path / "other.npz").write_bytes(b"no trace")
    with raises_code("invalid-input"):
        Trace.load(tmp_path / "other.npz")


def test_a_table_of_pandas_has_every_number(trace):
    table = trace.to_pandas()
    assert len(table) == 400
    row = table[(table["replica"] == 2) & (table["step"] == 37)].iloc[0]
    assert row["action"] == trace.actions[2, 36, 0]
    assert row["accumulated_regret"] == trace.accumulated_regret[2, 36]
    policy = make_policy("random")
    slots = simulate(Combinatorial((2, 3), dimension=2), policy, observations=4, replicas=2)
    assert {"action_0", "action_1"} <= set(slots.to_pandas().columns)


def test_a_data_set_of_xarray_has_the_numbers_of_the_trace(trace):
    pytest.importorskip("xarray")
    found = trace.to_xarray()
    assert dict(found.sizes) == {"replica": 4, "step": 100, "slot": 1}
    one = found.sel(replica=2, step=37)
    assert float(one.accumulated_regret) == trace.accumulated_regret[2, 36]
    assert float(one.accumulated_reward) == trace.accumulated_reward[2, 36]
    assert float(one.reward) == trace.rewards[2, 36]
    assert int(one.action.item()) == trace.actions[2, 36, 0]
    mean = found.accumulated_regret.mean("replica").values
    np.testing.assert_allclose(mean, trace.accumulated_regret.mean(axis=0))


def test_a_missing_xarray_is_named(trace, monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with raises_code("missing-extra"):
        trace.to_xarray()


def test_measures_are_those_of_the_decisions(trace):
    regret = 0.8 - np.array(MEANS)[trace.actions[..., 0]]
    by_period = regret.reshape(4, 5, 20)
    found = regret_per_period(trace, 5)
    assert found.ends.tolist() == [20, 40, 60, 80, 100]
    np.testing.assert_allclose(found.values, by_period.mean(axis=2), atol=1e-12)
    best = share_of_best(trace, 5).values
    np.testing.assert_allclose(best, (by_period == 0).mean(axis=2))
    counted = pulls(trace, 3)
    np.testing.assert_allclose(counted @ (0.8 - np.array(MEANS)), trace.final_regret)
    middle = np.median(trace.accumulated_regret, axis=0)
    np.testing.assert_allclose(quantiles(trace, [0.5])[0], middle)


def test_what_a_trace_does_not_keep_is_not_guessed():
    short = simulate(Bernoulli(2), make_policy("random"), observations=50, replicas=2, points=5)
    with raises_code("invalid-input"):
        share_of_best(short)
    with raises_code("invalid-input", "periods"):
        regret_per_period(short, 6)
    assert regret_per_period(short, 5).values.shape == (2, 5)


def test_the_bound_of_lai_and_robbins_is_the_sum_over_the_worse_arms():
    kl = 0.5 * np.log(0.5 / 0.8) + 0.5 * np.log(0.5 / 0.2)
    expected = 0.3 / kl * np.log(1000)
    assert lai_robbins([0.8, 0.5, 0.8], np.array([1000]))[0] == pytest.approx(expected)
