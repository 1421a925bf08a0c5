"""Decisions that are drawn as arrays are like decisions that are drawn one by one."""

from functools import partial

import numpy as np
import pytest

from submax.core.policy import PolicyTraits
from submax.policies.epsilon_greedy import Random

ARMS = ["A", "B", "C"]


class ByAge(Random):
    """Prefers an arm by the context, and gives the last arm no probability."""

    @property
    def traits(self):
        return PolicyTraits(uses_context=True)

    def probabilities(self, state, context):
        share = 1 / (1 + np.exp(-context[..., 0]))
        return np.stack([share, 1 - share, np.zeros_like(share)], axis=-1)


class Broken(ByAge):
    """Fails for contexts below zero."""

    def probabilities(self, state, context):
        return np.where(context[..., :1] < 0, np.nan, super().probabilities(state, context))


@pytest.fixture
def by_age(opened):
    return partial(opened, context={"age": float}, policy=ByAge())


def contexts(seed, count):
    ages = np.random.default_rng(seed).normal(size=count)
    return [{"context": {"age": float(age)}} for age in ages]


@pytest.mark.parametrize(
    "rails",
    [{}, {"minimum": 0.05}, {"control": "B", "control_share": 0.3, "minimum": 0.1}, {"burn_in": 7}],
    ids=["none", "minimum", "control", "burn-in"],
)
@pytest.mark.parametrize(("count", "most"), [(1, 10**6), (30, 10**6), (30, 7)])
def test_without_a_holdout_the_same_numbers_are_drawn(
    by_age, seed, rails, count, most, monkeypatch
):
    # Many probabilities are computed in parts.
    monkeypatch.setattr("submax.bandit.active_version.MAX_PROBABILITIES", most)
    one, many = (by_age(name=name, guard_rails=rails) for name in ("one", "many"))
    requests = contexts(seed, count)
    single = [one.decide(**request) for request in requests]
    together = many.decide_many(requests)
    assert [each.action for each in together] == [each.action for each in single]
    propensities = [each.propensity for each in single]
    assert [each.propensity for each in together] == pytest.approx(propensities, abs=1e-12)


def test_requests_with_different_eligible_arms_are_drawn_each_among_their_own(by_age, seed):
    sets = [["A"], ["A", "B"], ARMS, ["C"], ["B", "C"]] * 20
    requests = [
        {**request, "eligible": eligible}
        for request, eligible in zip(contexts(seed, len(sets)), sets, strict=True)
    ]
    for request, one in zip(requests, by_age().decide_many(requests), strict=True):
        share = 1 / (1 + np.exp(-request["context"]["age"]))
        raw = {"A": share, "B": 1 - share, "C": 0.0}
        total = sum(raw[name] for name in request["eligible"])
        assert one.action in request["eligible"]
        assert one.propensity == pytest.approx(raw[one.action] / total if total else 1.0)


def test_rows_for_which_the_policy_fails_are_uniform_and_counted(by_age):
    bandit = by_age(policy=Broken())
    ages = [1.0, -1.0, -2.0]
    first, *failed = bandit.decide_many([{"context": {"age": age}} for age in ages])
    assert [one.propensity for one in failed] == pytest.approx([1 / 3] * 2)
    assert first.propensity != pytest.approx(1 / 3)
    assert sum(bandit.failures.values()) == 2
