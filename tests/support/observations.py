"""Feedback from plain arrays, and states that have learned from it."""

import numpy as np

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


def taught(policy, problem, feedback, seed=0):
    """The state of a policy after feedback."""
    rng = np.random.default_rng(seed)
    return policy.update(policy.init(problem, len(feedback.reward), rng), feedback, rng)


def listed(policy, state, replicas=1):
    """The probabilities of all actions without a context, or in the context 0: ``[R, M]``."""
    return policy.probabilities(state, np.zeros((replicas, 1, state.problem.context_width)))[:, 0]
