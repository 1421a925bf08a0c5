"""An unfitted regressor or classifier that is copied for every fit of a reward model."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import one_of
from submax.core.errors import InputError, one_line
from submax.models.classifiers import class_by_name, copied, seeded

MOST_CLASSES = 20
"""A classifier models rewards only if at most this many different ones occur."""
EXAMPLE = "sklearn.ensemble.HistGradientBoostingRegressor"


@dataclass(frozen=True, eq=False)
class RewardTemplate:
    """A supervised model of any library, and the ``name`` by which tables know it."""

    name: str
    unfitted: Any

    @classmethod
    def of(cls, given: Any) -> Self:
        """Return the template for an object, a dotted name, or a table of ``kind`` and parameters.

        >>> RewardTemplate.of("sklearn.linear_model.Ridge").name
        'Ridge'
        """
        if isinstance(given, str):
            given = {"kind": given}
        if isinstance(given, Mapping):
            parameters = {key: value for key, value in given.items() if key != "kind"}
            kind = class_by_name(str(given.get("kind")), "reward model", "predict")
            for key in parameters:
                one_of(f"parameter of {kind.__name__}:", key, inspect.signature(kind).parameters)
            given = kind(**parameters)
        if inspect.isclass(given) or not callable(getattr(given, "fit", None)):
            raise InputError(
                f"the reward model is {given!r:.60}; an object with the methods fit and predict "
                f"(or predict_proba) is allowed, or a dotted name: give {EXAMPLE!r}",
                parameter="reward_model",
            )
        return cls(type(given).__name__, copied(given))

    def fitted(
        self, inputs: Floats, reward: Floats, seed: int, count: Floats | None = None
    ) -> tuple[Any, Floats | None]:
        """Return a fitted copy, and for a classifier the rewards of its classes.

        The copy is None if all rewards are equal. ``count [n]`` is given to the model as the
        weights of its rows.
        """
        values, label = np.unique(reward, return_inverse=True)
        if len(values) < 2:
            return None, values if len(values) else np.zeros(1)
        model = seeded(copied(self.unfitted), seed)
        classifies = hasattr(model, "predict_proba")
        if classifies and len(values) > MOST_CLASSES:
            raise InputError(
                f"the reward model {self.name} is a classifier, and the log has {len(values)} "
                f"different rewards; up to {MOST_CLASSES} are allowed: give a regressor, such as "
                f"{EXAMPLE!r}",
                parameter="reward_model",
            )
        try:
            weights = {} if count is None else {"sample_weight": count}
            model.fit(inputs, label.ravel() if classifies else reward, **weights)
        except Exception as error:
            raise InputError(
                f"the reward model {self.name} cannot be fitted to {len(reward)} rows "
                f"({one_line(error)}); any that can be is allowed: change its parameters",
                parameter="reward_model",
            ) from error
        return model, values if classifies else None
