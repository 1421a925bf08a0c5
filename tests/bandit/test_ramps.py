"""A new choice gets its share little by little, with exact propensities."""

import numpy as np
import pytest
from refusals import raises_code

import submax
from submax.bandit.guard_rails import Limit, within_limits
from submax.schema.actions import Change

SIGMAS = 6.0


def bandit_with(seed, decisions=0, **options):
    options = {"policy": "random", "seed": seed} | options
    bandit = submax.Bandit(["A", "B", "C"], **options)
    for _ in range(decisions):
        bandit.decide()
    return bandit


def test_the_probability_of_a_new_arm_is_limited_by_a_share_that_rises(memory_draws, seed):
    bandit = bandit_with(seed)
    bandit.add("D", ramp=100)
    decided = [
        bandit.decide(),
        *bandit.decide_many([{}] * 9),
        *(bandit.decide() for _ in range(90)),
    ]
    for number, decision in enumerate(decided):
        new = min(0.25, (number + 1) / 100)
        expected = [(1 - new) / 3] * 3 + [new]
        assert memory_draws[decision.id][1] == pytest.approx(expected, rel=1e-12)
    assert not bandit.notices()


@pytest.mark.parametrize(("decisions", "ramp"), [(0, 0), (40, 40), (1500, 1000)])
def test_without_a_word_the_ramp_is_as_long_as_what_is_known_of_the_others(
    memory_draws, seed, decisions, ramp
):
    bandit = bandit_with(seed, decisions)
    bandit.add("D")
    assert memory_draws[bandit.decide().id][1][3] == pytest.approx(1 / ramp if ramp else 0.25)
    assert any("'D'" in sentence for sentence in bandit.notices()) == (ramp > 0)


@pytest.mark.parametrize("options", [{}, {"unit": True}, {"eligible": ["A", "D"]}])
def test_propensities_are_frequencies_while_an_arm_is_ramped_up(memory_draws, seed, options):
    rails = {"control": "B", "control_share": 0.1, "holdout": 0.05, "baseline": "A"}
    bandit = bandit_with(seed, policy="epsilon-greedy-0.1", guard_rails=rails)
    bandit.add("D", ramp=600)
    surprise = variance = 0.0
    for number in range(600):
        given = options | ({"unit": f"u{number}"} if "unit" in options else {})
        decision = bandit.decide(**given)
        bandit.reward(decision.id, float(decision.action == "D"))
        if not decision.holdout:
            chance = memory_draws[decision.id][1][-1]
            assert chance <= (number + 1) / 600 + 1e-12
            surprise += (decision.action == "D") - chance
            variance += chance * (1 - chance)
    assert abs(surprise) < SIGMAS * max(variance, 1.0) ** 0.5


def test_a_unit_keeps_its_arm_while_the_new_one_is_ramped_up(seed):
    bandit = bandit_with(seed, sticky="version")
    bandit.add("D", ramp=300)
    first = {unit: bandit.decide(unit=unit) for unit in "abcdefghij"}
    bandit.decide_many([{}] * 250)
    for unit, decision in first.items():
        again = bandit.decide(unit=unit)
        assert again.action == decision.action
        assert again.propensity == pytest.approx(decision.propensity)


def test_limits_hold_by_slot_and_respect_the_guard_rails(seed):
    """Slots of 2, 3 and 2 choices; two of the second slot and one of the third are new."""
    plain = np.random.default_rng(seed).dirichlet(np.full(12, 0.3), size=4)
    limits = [Limit((1, 1), 0.05, 9), Limit((1, 2), 0.2, 9), Limit((2, 1), 0.1, 9)]
    eligible = ((0, 1), (0, 1, 2), (0, 1))
    found = within_limits(plain, eligible, limits, 0.0, None)
    joint = found.reshape(4, 2, 3, 2)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (joint.sum(axis=(1, 3))[:, 1:] <= np.array([0.05, 0.2]) + 1e-12).all()
    assert (joint.sum(axis=(1, 2))[:, 1] <= 0.1 + 1e-12).all()
    raised = 0.04 + 0.52 * plain
    guarded = within_limits(raised, eligible, limits, 0.04, 0)
    assert guarded.min() >= 0.04 - 1e-12
    np.testing.assert_array_equal(guarded[:, 0], raised[:, 0])
    only_new, some = ((0, 1), (1, 2), (1,)), plain[:, :4]
    np.testing.assert_array_equal(within_limits(some, only_new, limits, 0.0, None), some)


def test_a_ramp_that_cannot_be_is_refused(seed):
    bandit = bandit_with(seed)
    for ramp in (-1, 0.5, True, 10**10, "long"):
        with raises_code("invalid-input", "ramp"):
            bandit.add("D", ramp=ramp)
    with raises_code("invalid-input", "ramp"):
        bandit.change(Change("pause", "A", ramp=5))
    prices = submax.Bandit({"price": (0.0, 1.0), "title": ["A", "B"]}, policy="random")
    with raises_code("invalid-input", "ramp"):
        prices.add("C", slot="title", ramp=10)
    prices.add("C", slot="title")
