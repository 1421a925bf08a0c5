"""The features of actions as numbers that a prior can use."""

from functools import lru_cache

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.contracts.problem import ActionFeatures, Problem
from submax.core.spaces.space import Space

MOST_COLUMNS = 16
"""More columns are reduced to this many principal components, since the cost of a fit grows with
the third power of their number."""
FEWEST_ACTIONS = 3
"""With one or two actions no feature can tell which of them are alike."""
SMALLEST = 1e-8
"""Components whose length is below this share of the longest one are rounding errors."""


def described_actions(problem: Problem) -> Floats | None:
    """The features of every joint action as orthogonal columns, ``[K, q]``; None without features.

    The rows of the choices in all slots stand side by side, and each number is standardized over
    the actions, so that its unit does not matter. A number in which one action differs from all
    others, which are equal, is left out: it tells nothing about what actions have in common. At
    most 16 columns are left.
    """
    if not any(problem.action_features) or problem.space.size < FEWEST_ACTIONS:
        return None
    return _components(problem.space, problem.action_features)


@lru_cache(maxsize=16)
def _components(space: Space, features: ActionFeatures) -> Floats | None:
    joint = space.listing()
    parts = [np.array(rows)[joint[:, slot]] for slot, rows in enumerate(features) if rows]
    numbers = np.concatenate(parts, axis=1, dtype=np.float64)
    numbers = numbers[:, _relates(numbers)]
    centred = numbers - numbers.mean(axis=0)
    standardized = centred / np.sqrt(np.mean(centred**2, axis=0))
    left, length, _ = np.linalg.svd(standardized, full_matrices=False)
    # If the columns could tell all actions apart, being alike would mean nothing.
    most = min(MOST_COLUMNS, max(1, len(joint) // 2))
    kept = length[:most] > SMALLEST * length.max(initial=0.0)
    if not kept.any():
        return None
    components: Floats = (left * length)[:, : int(kept.sum())]
    components.flags.writeable = False
    return components


def _relates(numbers: Floats) -> Booleans:
    """Which columns differ between actions, also if any one of the actions is left out."""
    ordered = np.sort(numbers, axis=0)
    without_one = np.minimum(ordered[-1] - ordered[1:2], ordered[-2:-1] - ordered[0])
    largest = np.abs(numbers).max(axis=0, initial=0.0)
    relates: Booleans = without_one.ravel() > SMALLEST * largest
    return relates
