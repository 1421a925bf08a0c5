"""Decisions that are drawn as arrays are like decisions that are drawn one by one."""

import msgspec
import numpy as np
import pytest
from refusals import raises_code
from scipy.stats import chi2

from submax.core.contracts.facts import Facts
from submax.core.errors import InputError
from submax.live.bandits.open import open_bandit
from submax.live.log.records import DecisionMade
from submax.live.serving.checked_policy import UNIFORM
from submax.policies.classic.random import Random
from submax.schema.context_schema import Category, ContextSchema, Number

ARMS = ["A", "B", "C"]


class ByAge(Random):
    """Prefers an arm by the context, and gives the last arm no probability."""

    @property
    def facts(self):
        return Facts(uses_context=True)

    def probabilities(self, state, context):
        share = 1 / (1 + np.exp(-context[..., 0]))
        return np.stack([share, 1 - share, np.zeros_like(share)], axis=-1)


class Broken(ByAge):
    """Fails for contexts below zero."""

    def probabilities(self, state, context):
        return np.where(context[..., :1] < 0, np.nan, super().probabilities(state, context))


def opened(seed, policy=None, **options):
    return open_bandit(
        ":memory:",
        actions=ARMS,
        policy=ByAge() if policy is None else policy,
        background=False,
        rng=np.random.default_rng(seed),
        **{"context": {"age": float}, **options},
    )


def made(pending):
    return [msgspec.msgpack.decode(one.entries[0].body, type=DecisionMade) for one in pending]


def contexts(seed, count):
    return [
        {"context": {"age": float(age)}} for age in np.random.default_rng(seed).normal(size=count)
    ]


@pytest.mark.parametrize(
    "rails",
    [{}, {"minimum": 0.05}, {"control": "B", "control_share": 0.3, "minimum": 0.1}, {"burn_in": 7}],
    ids=["none", "minimum", "control", "burn-in"],
)
@pytest.mark.parametrize("count", [1, 2, 30])
def test_without_a_holdout_the_same_numbers_are_drawn(seed, rails, count):
    one, many = (opened(seed, guard_rails=rails) for _ in range(2))
    requests = contexts(seed, count)
    single = made([one.requests.deciding(**request) for request in requests])
    together = made(many.requests.deciding_many(requests))
    assert [each.action for each in together] == [each.action for each in single]
    for first, second in zip(single, together, strict=True):
        assert second.probabilities == pytest.approx(first.probabilities, abs=1e-12)
        assert second.propensity == second.probabilities[ARMS.index("ABC"[second.action[0]])]
    assert one.requests.draws.decided == many.requests.draws.decided == count


def test_requests_with_different_eligible_arms_are_drawn_each_among_their_own(seed):
    bandit = opened(seed)
    sets = [["A"], ["A", "B"], None, ["C"], ["B", "C"]] * 20
    requests = [
        {**request, "eligible": eligible, "id": f"d{number}"}
        for number, (request, eligible) in enumerate(
            zip(contexts(seed, len(sets)), sets, strict=True)
        )
    ]
    pending = bandit.requests.deciding_many(requests)
    assert [one.entries[0].key for one in pending] == [f"d d{i}" for i in range(len(sets))]
    for request, one in zip(requests, made(pending), strict=True):
        wanted = [ARMS.index(name) for name in request["eligible"] or ARMS]
        assert list(one.eligible[0]) == wanted
        assert one.action[0] in wanted
        share = 1 / (1 + np.exp(-request["context"]["age"]))
        raw = np.array([share, 1 - share, 0.0])[wanted]
        expected = raw / raw.sum() if raw.sum() > 0 else np.full(len(raw), 1 / len(raw))
        assert one.probabilities == pytest.approx(expected)


@pytest.mark.parametrize("context", [{"age": float}, {}], ids=["context", "none"])
def test_holdout_and_shares_are_those_of_single_decisions(seed, context):
    count, holdout = 4000, 0.2
    rails = {"holdout": holdout, "baseline": "C", "minimum": 0.1}
    bandit = opened(seed, guard_rails=rails, context=context)
    request = {"context": {"age": 1.0}} if context else {}
    rows = [
        one
        for _ in range(count // 500)
        for one in made(bandit.requests.deciding_many([request] * 500))
    ]
    held = sum(one.holdout for one in rows)
    # Ten standard deviations of a binomial count: false for one seed in 10²².
    assert abs(held - count * holdout) < 10 * np.sqrt(count * holdout * (1 - holdout))
    assert {(tuple(one.action), one.propensity) for one in rows if one.holdout} == {((2,), 1.0)}
    drawn = [one for one in rows if not one.holdout]
    expected = np.array(drawn[0].probabilities) * len(drawn)
    counts = np.bincount([one.action[0] for one in drawn], minlength=3)
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic < chi2.isf(1e-9, df=2)


def test_rows_for_which_the_policy_fails_are_uniform_and_counted(seed):
    bandit = opened(seed, Broken())
    rows = made(
        bandit.requests.deciding_many([{"context": {"age": age}} for age in (1.0, -1.0, -2.0)])
    )
    assert rows[1].probabilities == rows[2].probabilities == pytest.approx([1 / 3] * 3)
    assert rows[0].probabilities[2] == 0.0
    assert bandit.failures[UNIFORM] == 2


def test_one_invalid_request_stops_all_of_one_caller_and_no_other_caller(seed):
    bandit = opened(seed)
    requests = [*contexts(seed, 2), {"context": {"age": "old"}}, *contexts(seed, 1)]
    with raises_code("invalid-input"):
        bandit.requests.deciding_many(requests)
    assert bandit.requests.draws.decided == 0
    found = bandit.requests.deciding_each(requests)
    assert [isinstance(one, InputError) for one in found] == [False, False, True, False]
    assert bandit.requests.draws.decided == 3


def test_many_joint_actions_are_computed_in_parts(seed, monkeypatch):
    monkeypatch.setattr("submax.live.serving.serving.MAX_PROBABILITIES", 7)
    one, many = opened(seed), opened(seed)
    requests = contexts(seed, 25)
    single = made([one.requests.deciding(**request) for request in requests])
    assert [each.action for each in made(many.requests.deciding_many(requests))] == [
        each.action for each in single
    ]


def test_contexts_are_encoded_together_as_one_by_one():
    schema = ContextSchema(("a", "b"), (Number(), Category(("x", "y"))))
    rows = [[0.1, "y"], [1e-20, "x"]]
    assert np.array_equal(schema.encode_exactly(rows), [schema.encode(row) for row in rows])
    numbers = ContextSchema(("a",), (Number(),))
    assert np.array_equal(numbers.encode_exactly([[0.1], [0.2]]), [[0.1], [0.2]])
