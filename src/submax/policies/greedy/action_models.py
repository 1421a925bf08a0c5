"""A model of the reward of each action."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError, one_line
from submax.models.classifiers.classifier_template import copied, seeded, weight_argument

FEWEST_ROWS = 20
"""The reward of an action with fewer rows than this is its mean: trees need about 20 rows to
split."""


class ActionModels(NamedTuple):
    """Fitted models of each of M joint actions, none if it has few rows, and ``means [M]`` instead.

    The prediction is the mean of those of the models. A classifier distinguishes two rewards.
    """

    models: tuple[tuple[Any, ...], ...]
    means: Floats

    @classmethod
    def fitted(
        cls,
        unfitted: Sequence[Any],
        context: Floats,
        action: Integers,
        reward: Floats,
        weight: Floats,
        size: int,
        seed: int,
    ) -> "ActionModels":
        """Fit a copy of each model to the rows ``[n]`` of each action.

        Means are shrunk to that of all rows by one additional row.
        """
        overall = float(weight @ reward / weight.sum()) if weight.sum() > 0 else 0.0
        counts = np.bincount(action, weights=weight, minlength=size)
        sums = np.bincount(action, weights=weight * reward, minlength=size)
        models = []
        for number in range(size):
            row = np.flatnonzero(action == number)
            learns = len(row) >= FEWEST_ROWS and context.shape[1] > 0 and np.ptp(reward[row]) > 0
            chosen = unfitted if learns else ()
            models.append(
                tuple(_fitted(one, context[row], reward[row], weight[row], seed) for one in chosen)
            )
        return cls(tuple(models), (sums + overall) / (counts + 1))

    def restricted(self, kept: Integers) -> "ActionModels":
        """Return the models of the actions ``kept [m]`` alone."""
        return ActionModels(tuple(self.models[action] for action in kept), self.means[kept])

    def predict(self, context: Floats) -> Floats:
        """Return the predicted reward of every action: ``[n, D] -> [n, M]``."""
        predicted = np.tile(self.means, (len(context), 1))
        for number, models in enumerate(self.models):
            if models and len(context):
                predicted[:, number] = np.mean([_predicted(one, context) for one in models], axis=0)
        return predicted


def _predicted(model: Any, context: Floats) -> Floats:
    if not hasattr(model, "predict_proba"):
        return np.asarray(model.predict(context), dtype=np.float64).reshape(-1)
    values = np.asarray(model.classes_, dtype=np.float64)
    predicted: Floats = np.asarray(model.predict_proba(context), dtype=np.float64) @ values
    return predicted


def _fitted(unfitted: Any, context: Floats, reward: Floats, weight: Floats, seed: int) -> Any:
    model = seeded(copied(unfitted), seed)
    argument = None if np.all(weight == 1) else weight_argument(model)
    try:
        model.fit(context, reward, **({} if argument is None else {argument: weight}))
    except Exception as error:
        raise InputError(
            f"the model {type(model).__name__} cannot be fitted to {len(reward)} rows "
            f"({one_line(error)}); any that can be is allowed: change its parameters"
        ) from error
    return model
