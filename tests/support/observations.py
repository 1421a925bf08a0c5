"""Feedback from plain arrays, and states that have learned from it."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import betaln

from submax.core.problem import Feedback


def observed(action, reward, context=None, log_prob=None, weight=None):
    """Feedback of rewards ``[R, n]`` for actions ``[R, n]`` of one slot, or ``[R, n, S]``.

    ``log_prob`` may be one number for all rows.
    """
    action, reward = np.asarray(action), np.asarray(reward, dtype=np.float64)
    shape = reward.shape
    return Feedback(
        np.zeros((*shape, 0)) if context is None else context,
        action[..., None] if action.ndim == reward.ndim else action,
        reward,
        None if log_prob is None else np.broadcast_to(log_prob, shape),
        np.ones(shape) if weight is None else np.asarray(weight, dtype=np.float64),
    )


def bernoulli_rows(arms, rows, seed, replicas=1):
    """Arms pulled at random, which pay rarely: but for the first row, which fails, and the next."""
    rng = np.random.default_rng((seed, arms, rows))
    chance = rng.beta(1, 9, size=(replicas, arms))
    arm = rng.integers(arms, size=(replicas, rows))
    paid = rng.random((replicas, rows)) < np.take_along_axis(chance, arm, axis=1)
    paid[:, :2] = [0, 1]
    return observed(arm, paid, log_prob=-np.log(arms))


def taught(policy, problem, feedback, seed=0):
    """The state of a policy after feedback."""
    rng = np.random.default_rng(seed)
    return policy.update(policy.init(problem, len(feedback.reward), rng), feedback, rng)


def listed(policy, state, replicas=1):
    """The probabilities of all actions without a context, or in the context 0: ``[R, M]``."""
    return policy.probabilities(state, np.zeros((replicas, 1, state.problem.context_width)))[:, 0]


def tallied(action, reward, size):
    """Successes and failures of each arm of one replica, counted in a loop: ``[2, K]``."""
    counts = np.zeros((2, size))
    for arm, part in zip(action, reward, strict=True):
        counts[:, arm] += part, 1 - part
    return counts


def fitted_prior(good, bad):
    """What to add to successes and failures: 1 to the rarer, what is likeliest to the others."""
    pulls = good + bad
    tried = pulls > 0
    rare = np.sum(good[tried] / pulls[tried]) <= np.sum(bad[tried] / pulls[tried])
    one, other = (bad, good) if rare else (good, bad)

    def loss(place):
        likelihood = betaln(one + np.exp(place), other + 1) - betaln(np.exp(place), 1)
        return place**2 / 18 - float(likelihood.sum())

    best = minimize_scalar(loss, bounds=(-12, 12), method="bounded", options={"xatol": 1e-9})
    fitted = np.exp(best.x)
    return np.array([1.0, fitted] if rare else [fitted, 1.0])
