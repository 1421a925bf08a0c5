"""Action features as orthogonal columns for a prior."""

from functools import lru_cache

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.contracts.problem import ActionFeatures, Problem
from submax.core.spaces.space import Space

MOST_COLUMNS = 16
"""Largest number of columns; more are reduced to this many principal components, since the cost of
a fit grows with the third power of their number."""
FEWEST_ACTIONS = 3
"""With fewer actions, features cannot tell which of them are similar."""
SMALLEST = 1e-8
"""Relative tolerance: shorter components, and smaller differences, are rounding errors."""


def described_actions(problem: Problem) -> Floats | None:
    """Return the features of every joint action as orthogonal columns, ``[K, q]``, or None.

    The features of a joint action are those of its choices in all slots. Each feature is
    standardized over the actions, so that its unit does not matter. A feature in which only one
    action differs from the others is left out, since it does not relate actions to each other. The
    result has at most 16 columns; it is None if there are no usable features.
    """
    if not any(problem.action_features) or problem.space.size < FEWEST_ACTIONS:
        return None
    return _components(problem.space, problem.action_features)


@lru_cache(maxsize=16)
def _components(space: Space, features: ActionFeatures) -> Floats | None:
    joint = space.listing()
    parts = [np.array(rows)[joint[:, slot]] for slot, rows in enumerate(features) if rows]
    numbers = np.concatenate(parts, axis=1, dtype=np.float64)
    numbers = numbers[:, _relates_actions(numbers)]
    centred = numbers - numbers.mean(axis=0)
    standardized = centred / np.sqrt(np.mean(centred**2, axis=0))
    left, length, _ = np.linalg.svd(standardized, full_matrices=False)
    # If there were as many columns as actions, no two actions would be similar.
    most = min(MOST_COLUMNS, max(1, len(joint) // 2))
    kept = length[:most] > SMALLEST * length.max(initial=0.0)
    if not kept.any():
        return None
    components: Floats = (left * length)[:, : int(kept.sum())]
    components.flags.writeable = False
    return components


def _relates_actions(numbers: Floats) -> Booleans:
    """Return which columns still differ between actions if any single action is left out."""
    ordered = np.sort(numbers, axis=0)
    without_one = np.minimum(ordered[-1] - ordered[1:2], ordered[-2:-1] - ordered[0])
    largest = np.abs(numbers).max(axis=0, initial=0.0)
    relates: Booleans = without_one.ravel() > SMALLEST * largest
    return relates
