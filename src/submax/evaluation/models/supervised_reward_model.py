"""A model of the rewards by a regressor or classifier of another library."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats


class SupervisedRewardModel(NamedTuple):
    """q̂(x, a) of a fitted ``model`` whose inputs are the context and the action.

    An input row has the encoded context, a one-hot code of the choice in each slot (``sizes`` are
    the numbers of choices) and the powers of real-valued parts. For a classifier ``values`` are the
    rewards of its classes, and q̂ is their mean; for a regressor they are None. ``actions [M, S]``
    are all joint actions. Without a model, all rewards were equal to the first of ``values``.
    """

    model: Any
    values: Floats | None
    actions: NDArray[Any]
    sizes: tuple[int, ...]

    def features(self, context: NDArray[np.float32]) -> Floats:
        """Return the encoded contexts, which are the inputs of the model."""
        return context.astype(np.float64)

    def predict(self, features: Floats, action: NDArray[Any], powers: Floats) -> Floats:
        """Return q̂ for one action in each row."""
        if self.model is None or not len(features):
            return np.full(len(features), 0.0 if self.values is None else self.values[0])
        inputs = design(features, action, powers, self.sizes)
        if self.values is None:
            return np.asarray(self.model.predict(inputs), dtype=np.float64).reshape(-1)
        probabilities = np.asarray(self.model.predict_proba(inputs), dtype=np.float64)
        return probabilities @ self.values

    def expected(self, features: Floats, table: Floats, slot_tables: Sequence[Floats]) -> Floats:
        """Return Σ_a π(a | x) q̂(x, a); actions that the policy never takes are not predicted."""
        found = np.zeros(len(features))
        powers = np.zeros((len(features), 0))
        for number, action in enumerate(self.actions):
            probability = table[:, number]
            taken = np.flatnonzero(probability > 0)
            if taken.size:
                repeated = np.broadcast_to(action, (taken.size, len(action)))
                q = self.predict(features[taken], repeated, powers[taken])
                found[taken] += probability[taken] * q
        return found


def design(
    features: Floats, action: NDArray[Any], powers: Floats, sizes: tuple[int, ...]
) -> Floats:
    """Return the inputs of a supervised model: context, one-hot choices, powers."""
    chosen = [
        (action[:, slot].astype(np.int64)[:, None] == np.arange(size)).astype(np.float64)
        for slot, size in enumerate(sizes)
    ]
    return np.concatenate([features, *chosen, powers], axis=1)
