"""Actions that cannot be listed, because they are too many or have real-valued parts."""

import math
from typing import Any

import numpy as np

from submax.core.spaces import Space
from submax.live.serving.action_sampler import DrawnAction
from submax.schema.menu import ChoiceIndices, EncodedAction


def uniform_action(space: Space, eligible: ChoiceIndices, rng: np.random.Generator) -> DrawnAction:
    """Draw an action uniformly; the propensity is its density."""
    action = space.uniform((1, 1), rng)
    return DrawnAction(encoded_action(action[0, 0], eligible), math.exp(-space.log_measure), None)


def encoded_action(action: Any, eligible: ChoiceIndices) -> EncodedAction:
    """Return an action of a policy with the indices that its choices have in the menu."""
    parts = action.tolist()
    return [
        *(indices[int(part)] for indices, part in zip(eligible, parts, strict=False)),
        *parts[len(eligible) :],
    ]
