import numpy as np
import pytest

from submax.core.arms import Arms
from submax.core.errors import InvalidValue
from submax.core.feedback import Feedback
from submax.core.problem import Problem
from submax.policies import linear_thompson, make_policy
from submax.policies.linear_thompson import LinearThompson
from submax.testing.examples import some_contexts, some_feedback
from submax.testing.goodness_of_fit import SMALLEST_P_VALUE, goodness_of_fit

PROBLEM = Problem(Arms(3), context_width=2)
ALWAYS, NEVER = 1, 10**9


def taught(policy, problem, seed):
    rng = np.random.default_rng(seed)
    return policy.update(policy.init(problem, 1, rng), some_feedback(problem, 1, 30, seed), rng)


def table(policy, state, context):
    """Probability of every arm in every row, ``[n, K]``."""
    arms = range(state.problem.space.size)
    shape = (*context.shape[:2], 1)
    rows = [policy.log_prob(state, context, np.full(shape, arm))[0] for arm in arms]
    return np.exp(np.stack(rows, axis=-1))


def test_the_probability_is_that_of_drawn_coefficients(seed):
    # The whole posterior is drawn here, coefficients and all, from the rows themselves.
    policy, rng = LinearThompson(scale=0.8, ridge=0.5), np.random.default_rng(seed)
    feedback = some_feedback(PROBLEM, 1, 30, seed)
    state = taught(policy, PROBLEM, seed)
    context = some_contexts(PROBLEM, 1, 1, seed)
    x = np.append(1.0, context[0, 0])
    scores = []
    for arm in range(3):
        rows = feedback.action[0, :, 0] == arm
        design = np.hstack([np.ones((rows.sum(), 1)), feedback.context[0][rows]])
        precision = 0.5 * np.eye(3) + design.T @ design
        centre = np.linalg.solve(precision, design.T @ feedback.reward[0][rows])
        covariance = 0.8**2 * np.linalg.inv(precision)
        scores.append(rng.multivariate_normal(centre, covariance, size=5000) @ x)
    drawn = np.argmax(scores, axis=0)
    assert goodness_of_fit(drawn, table(policy, state, context)[0]) > SMALLEST_P_VALUE


@pytest.mark.parametrize("path", [ALWAYS, NEVER])
@pytest.mark.parametrize("problem", [PROBLEM, Problem(Arms(5))], ids=["context", "no context"])
def test_choices_follow_their_probabilities(problem, path, seed, monkeypatch):
    monkeypatch.setattr(linear_thompson, "QUADRATURE_FROM", path)
    policy = LinearThompson()
    state = taught(policy, problem, seed)
    context = np.repeat(some_contexts(problem, 1, 1, seed), 2000, axis=1)
    decision = policy.act(state, context, np.random.default_rng(seed))
    probabilities = table(policy, state, context[:, :1])[0]
    assert goodness_of_fit(decision.action.ravel(), probabilities) > SMALLEST_P_VALUE
    assert (decision.log_prob is None) == (path == NEVER or problem.context_width > 0)


def test_it_learns_which_arm_suits_which_context(seed):
    policy, rng = make_policy("linear-thompson"), np.random.default_rng(seed)
    state = policy.init(PROBLEM, 4, rng)
    for _ in range(20):
        context = rng.choice([-1.0, 1.0], size=(4, 50, 2))
        decision = policy.act(state, context, rng)
        reward = (decision.action[..., 0] == (context[..., 0] > 0)).astype(np.float64)
        feedback = Feedback(context, decision.action, reward, None, np.ones(reward.shape))
        state = policy.update(state, feedback, rng)
    assert reward.mean() > 0.85


@pytest.mark.parametrize("name", ["scale", "ridge"])
@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), True, "1", None])
def test_bad_parameters_are_refused(name, value):
    with pytest.raises(InvalidValue, match=f"{name} must be a finite number above 0, not"):
        LinearThompson(**{name: value})
