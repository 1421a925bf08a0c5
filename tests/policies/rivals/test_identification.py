"""Policies that identify the best arm: published numbers, guarantees, and simple regret."""

import math

import numpy as np
import pytest
from refusals import raises_code
from scipy import optimize

from submax import (
    Arms,
    Bernoulli,
    Feedback,
    Problem,
    make_policy,
)
from submax.policies import SuccessiveElimination, TopTwoThompson
from submax.policies.ucb import divergence
from submax.research import identify
from submax.research.beyond.identification import optimal_shares

POLICIES = ("successive-elimination", "track-and-stop", "top-two-thompson")


@pytest.mark.parametrize(
    ("means", "published"),
    [
        ((0.5, 0.45, 0.43, 0.4), (0.42, 0.39, 0.14, 0.06)),
        ((0.3, 0.21, 0.2, 0.19, 0.18), (0.34, 0.25, 0.18, 0.13, 0.10)),
    ],
)
def test_shares_are_those_that_the_paper_prints(means, published):
    """Garivier and Kaufmann (2016), section 6."""
    found = optimal_shares(np.array([means]))[0]
    np.testing.assert_allclose(found, published, atol=0.0051)


def test_shares_maximize_the_smallest_evidence(seed):
    means = np.sort(np.random.default_rng(seed).uniform(0.1, 0.9, 3))[::-1]

    def smallest(shares):
        middle = (shares[0] * means[0] + shares[1:] * means[1:]) / (shares[0] + shares[1:])
        return np.min(
            shares[0] * divergence(means[0], middle) + shares[1:] * divergence(means[1:], middle)
        )

    found = optimal_shares(means[None])[0]
    search = optimize.minimize(
        lambda logits: -smallest(np.exp(logits) / np.exp(logits).sum()),
        np.zeros(3),
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-14, "maxiter": 5000},
    )
    assert smallest(found) >= -search.fun * (1 - 1e-4)


@pytest.mark.parametrize("name", POLICIES)
def test_the_recommended_arm_is_wrong_as_rarely_as_promised(name, seed):
    means, replicas = np.array([0.9, 0.4, 0.3]), 40
    settings = {"observations": 1500, "replicas": replicas, "seed": seed}
    found = identify(Bernoulli.of(means), make_policy(name), **settings)
    assert found.certain.mean() > 0.9
    # The failure probability is 0.05; five standard errors of its estimate are added.
    assert found.wrong <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / replicas)
    np.testing.assert_allclose(found.simple_regret, 0.9 - means[found.recommended])


def test_the_optimal_shares_need_fewer_decisions_than_equal_ones(seed):
    environment = Bernoulli.of([0.9, 0.4, 0.1, 0.1])
    track, eliminate = (
        identify(environment, make_policy(name), observations=2000, replicas=10, seed=seed)
        for name in ("track-and-stop", "successive-elimination")
    )
    assert track.decisions.mean() < eliminate.decisions.mean()


def test_an_arm_is_dropped_when_it_lies_two_radii_below_the_best():
    policy, rng = SuccessiveElimination(0.1), np.random.default_rng(0)
    rows = 120
    arm = np.tile([0, 1, 2], rows // 3)
    reward = np.where(arm == 0, 1.0, np.where(arm == 1, 0.0, np.arange(rows) % 2)).astype(float)
    state = policy.init(Problem(Arms(3)), 1, rng)
    feedback = Feedback(
        np.zeros((1, rows, 0)), arm[None, :, None], reward[None], None, np.ones((1, rows))
    )
    state = policy.update(state, feedback, rng)
    radius = math.sqrt(math.log(5 * 3 * 40**2 / 0.1) / 40)
    means = [reward[arm == one].mean() for one in range(3)]
    assert state.active[0].tolist() == [max(means) - mean < 2 * radius for mean in means]


def test_the_second_arm_is_drawn_until_it_differs(seed):
    """The rule of the paper, played many times, against the probabilities."""
    policy, rng = TopTwoThompson(leader=0.6), np.random.default_rng(seed)
    state = policy.init(Problem(Arms(3)), 1, rng)
    arm, reward = np.array([0, 0, 1, 2, 2]), np.array([1.0, 1.0, 1.0, 0.0, 1.0])
    feedback = Feedback(
        np.zeros((1, 5, 0)), arm[None, :, None], reward[None], None, np.ones((1, 5))
    )
    state = policy.update(state, feedback, rng)
    a, b = np.array([3.0, 2.0, 2.0]), np.array([1.0, 1.0, 2.0])
    plays = 20000
    taken = rng.beta(a, b, (plays, 3)).argmax(axis=1)
    again = rng.random(plays) >= 0.6
    first = taken.copy()
    while (same := again & (taken == first)).any():
        taken[same] = rng.beta(a, b, (int(same.sum()), 3)).argmax(axis=1)
    found = policy.probabilities(state, np.zeros((1, 1, 0)))[0, 0]
    share = np.bincount(taken, minlength=3) / plays
    assert np.all(np.abs(share - found) < 5 * np.sqrt(found * (1 - found) / plays))


def test_a_policy_that_recommends_nothing_is_refused():
    with raises_code("invalid-input"):
        identify(Bernoulli(3), make_policy("ucb1"), observations=10)
