"""Conversion of scikit-learn's rows to the feedback of a policy."""

import numpy as np
from numpy.typing import ArrayLike

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.core.problem import Feedback


def labels_as_feedback(context: Floats, label: Integers, actions: int) -> Feedback:
    """Return feedback on every action in every row: reward 1 for the label and 0 for the others.

    ``[n, D]`` and ``[n]`` give ``[1, n · A, ...]``, each action as if it had been chosen with the
    uniform probability 1 / A.

    >>> labels_as_feedback(np.zeros((2, 1)), np.array([0, 1]), 2).reward.tolist()
    [[1.0, 0.0, 0.0, 1.0]]
    """
    action = np.tile(np.arange(actions), len(label))
    reward = (action == np.repeat(label, actions)).astype(np.float64)
    log_prob = np.full(len(action), -np.log(actions))
    return _feedback(np.repeat(context, actions, axis=0), action, reward, log_prob)


def decisions_as_feedback(
    context: Floats, action: Integers, rewards: ArrayLike, propensities: ArrayLike | None
) -> Feedback:
    """Return feedback on the chosen action of each row: ``[n, ...] -> [1, n, ...]``."""
    reward = checked_column("rewards", rewards, len(action))
    if propensities is None:
        return _feedback(context, action, reward, None)
    return _feedback(
        context, action, reward, np.log(checked_propensities(propensities, len(action)))
    )


def checked_propensities(given: ArrayLike, rows: int) -> Floats:
    """Return the propensities as an array, or raise unless all are above 0 and at most 1."""
    column = checked_column("propensities", given, rows)
    wrong = (column <= 0) | (column > 1)
    if wrong.any():
        raise InputError(
            f"propensities has {column[wrong][0]:g} in row {int(wrong.argmax())}; numbers above 0 "
            "and at most 1 are allowed: give the probability with which the action was chosen",
            parameter="propensities",
        )
    return column


def checked_column(name: str, given: ArrayLike, rows: int) -> Floats:
    """Return a column as an array, or raise unless it has one finite number for each row."""
    try:
        column = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name} is {given!r:.60}, which holds no numbers; one number for each of {rows} rows "
            "is allowed: convert it first",
            parameter=name,
        ) from error
    if column.shape != (rows,):
        raise InputError(
            f"{name} has shape {column.shape}; one number for each row of X is allowed: give it "
            f"the shape ({rows},)",
            parameter=name,
        )
    finite = np.isfinite(column)
    if not finite.all():
        raise InputError(
            f"{name} has {column[~finite][0]} in row {int(finite.argmin())}; finite numbers are "
            "allowed: leave such rows out",
            parameter=name,
        )
    return column


def _feedback(
    context: Floats, action: Integers, reward: Floats, log_prob: Floats | None
) -> Feedback:
    logged = None if log_prob is None else log_prob[None]
    return Feedback(
        context[None], action[None, :, None], reward[None], logged, np.ones((1, len(reward)))
    )
