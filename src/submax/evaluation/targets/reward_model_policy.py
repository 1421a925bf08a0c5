"""The policy that takes the action with the highest predicted reward."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.numerics import sharpened
from submax.evaluation.logs.log import Log
from submax.evaluation.models.fold_model import FoldModel
from submax.evaluation.models.model_choice import chosen_models
from submax.evaluation.targets.target_policy import TargetPolicy
from submax.schema.schema import Schema

REWARD_MODEL = "reward-model"
"""The name of the policy for callers."""


class RewardModelPolicy(TargetPolicy):
    """π(a | x) = 1 for the action with the highest q̂(x, a); ties share the probability.

    q̂ is the mean of the reward models of all folds, fitted to the rows from which policies learn.
    """

    def __init__(
        self, reward_model: Any = None, models: Sequence[FoldModel] = (), name: str = REWARD_MODEL
    ) -> None:
        self._reward_model, self._models, self.name = reward_model, models, name

    @property
    def learns(self) -> bool:
        return not self._models

    def learned_from(self, log: Log, seed: int) -> TargetPolicy:
        choice = chosen_models(log, self._reward_model, seed)
        return RewardModelPolicy(self._reward_model, choice.models, self.name)

    def probabilities(
        self, schema: Schema, context: NDArray[np.float32], numbers: Integers
    ) -> Floats:
        menu = schema.menu.revived
        actions = menu.space(menu.active).listing()
        predicted = np.zeros((len(context), len(actions)))
        powers = np.zeros((len(context), 0))
        for model in self._models:
            features = model.features(context)
            for place, action in enumerate(actions):
                repeated = np.broadcast_to(action, (len(context), len(action)))
                predicted[:, place] += model.predict(features, repeated, powers)
        return sharpened(predicted - predicted.min(axis=1, keepdims=True), 0.0)
