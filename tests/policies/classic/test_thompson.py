import numpy as np
import pytest
from refusals import raises_code
from scipy import stats

from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.rewards.continuous import Continuous
from submax.core.spaces.arms import Arms
from submax.policies.classic import thompson
from submax.policies.classic.largest_beta import largest_beta
from submax.policies.classic.thompson import Thompson
from submax.testing.rules.goodness_of_fit import SMALLEST_P_VALUE, goodness_of_fit

ALWAYS, NEVER = 1, 10**9


def taught(policy, arms, rows, seed):
    rng = np.random.default_rng((seed, arms))
    chance = rng.beta(1, 9, size=arms)
    arm = rng.integers(arms, size=(1, rows))
    reward = (rng.random((1, rows)) < chance[arm]).astype(np.float64)
    feedback = Feedback(np.zeros((1, rows, 0)), arm[..., None], reward, None, np.ones((1, rows)))
    state = policy.init(Problem(Arms(arms)), 1, rng)
    return policy.update(state, feedback, rng), feedback


def decisions(policy, state, count, path, seed, monkeypatch):
    monkeypatch.setattr(thompson, "QUADRATURE_FROM", path)
    return policy.act(state, np.zeros((1, count, 0)), np.random.default_rng((seed, path)))


@pytest.mark.parametrize(
    ("arms", "rows", "count"), [(2, 10, 4000), (10, 100, 4000), (500, 2000, 4000)]
)
@pytest.mark.parametrize("policy", [Thompson(), Thompson(1.0, 9.0), Thompson(0.5, 0.5)], ids=repr)
def test_quadrature_and_plain_sampling_decide_alike(policy, arms, rows, count, seed, monkeypatch):
    state, _ = taught(policy, arms, rows, seed)
    by_table = decisions(policy, state, count, ALWAYS, seed, monkeypatch)
    by_sample = decisions(policy, state, count, NEVER, seed, monkeypatch)
    assert by_table.log_prob is not None
    assert by_sample.log_prob is None
    probabilities = listed(policy, state)[0, 0]
    counts = []
    for decision in (by_table, by_sample):
        index = decision.action[0, :, 0]
        assert goodness_of_fit(index, probabilities) > SMALLEST_P_VALUE
        counts.append(np.bincount(index, minlength=arms))
    often = np.sum(counts, axis=0) >= 20
    pooled = np.array([np.append(row[often], row[~often].sum()) for row in counts])
    pooled = pooled[:, pooled.sum(axis=0) > 0]
    assert stats.chi2_contingency(pooled).pvalue > SMALLEST_P_VALUE


def listed(policy, state):
    return policy.probabilities(state, np.zeros((len(state.pulls), 1, 0)))


def test_the_posterior_is_the_prior_plus_successes_and_failures(seed):
    policy = Thompson(2.0, 5.0)
    state, feedback = taught(policy, 4, 60, seed)
    arm, reward = feedback.action[0, :, 0], feedback.reward[0]
    a = np.array([2.0 + np.sum(reward[arm == k]) for k in range(4)])
    b = np.array([5.0 + np.sum(1 - reward[arm == k]) for k in range(4)])
    expected = largest_beta(a[None], b[None])
    assert np.allclose(listed(policy, state)[:, 0], expected)


def test_a_reward_between_the_levels_is_part_of_a_success(seed):
    problem = Problem(Arms(2), scale=Continuous(-1.0, 3.0))
    policy, rng = Thompson(), np.random.default_rng(seed)
    action = np.array([[[0], [0], [1], [1]]])
    reward = np.array([[-1.0, 1.0, 3.0, 0.0]])
    feedback = Feedback(np.zeros((1, 4, 0)), action, reward, None, np.ones((1, 4)))
    state = policy.update(policy.init(problem, 1, rng), feedback, rng)
    # Parts of a success: 0 and 1/2 for the first arm, 1 and 1/4 for the second.
    expected = largest_beta(np.array([[1.5, 2.25]]), np.array([[2.5, 1.75]]))
    assert np.allclose(listed(policy, state)[:, 0], expected)


def test_many_decisions_carry_their_probability_and_few_do_not(seed):
    policy = Thompson()
    state, _ = taught(policy, 3, 10, seed)
    rng = np.random.default_rng(seed)
    few = policy.act(state, np.zeros((1, thompson.QUADRATURE_FROM - 1, 0)), rng)
    many = policy.act(state, np.zeros((1, thompson.QUADRATURE_FROM, 0)), rng)
    assert few.log_prob is None
    assert np.allclose(many.log_prob, policy.log_prob(state, np.zeros((1, 64, 0)), many.action))


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize("value", [0, 0.04, -1.0, float("nan"), float("inf"), True, "1", None])
def test_a_bad_prior_is_refused(name, value):
    with raises_code("invalid-input"):
        Thompson(**{name: value})
