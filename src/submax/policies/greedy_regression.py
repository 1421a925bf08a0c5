"""The action with the highest reward that a regressor predicts."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import NonNegative
from submax.core.numerics import sharpened
from submax.core.policy import Policy, PolicyTraits, TabularPolicy, WrapperPolicy
from submax.core.problem import Feedback, Problem
from submax.core.rewards import Binary
from submax.core.serialization import serializable
from submax.core.spaces import Choices
from submax.models.classifiers import (
    LARGEST_SEED,
    FitsModels,
    FittedRegressor,
    ModelCache,
    class_by_name,
    fitted_regressor,
    made,
)
from submax.models.memory import Memory, StoredBuffer

FEWEST_ROWS = 20
"""The reward of an action with fewer rows than this is its mean: trees need about 20 rows to
split."""


class ActionModels(NamedTuple):
    """Fitted models of each of M joint actions, none if it has few rows, and ``means [M]`` instead.

    The prediction is the mean of those of the models.
    """

    models: tuple[tuple[FittedRegressor, ...], ...]
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
            columns = context[row], reward[row], weight[row]
            models.append(
                tuple(fitted_regressor(one, *columns, seed, "regressor") for one in chosen)
            )
        return cls(tuple(models), (sums + overall) / (counts + 1))

    def restricted(self, kept: Integers) -> "ActionModels":
        return ActionModels(tuple(self.models[action] for action in kept), self.means[kept])

    def predict(self, context: Floats) -> Floats:
        """Return the predicted reward of every action: ``[n, D] -> [n, M]``."""
        predicted = np.tile(self.means, (len(context), 1))
        for number, models in enumerate(self.models):
            if models and len(context):
                predicted[:, number] = np.mean([one.predict(context) for one in models], axis=0)
        return predicted


BOOSTED = "sklearn.ensemble.HistGradientBoostingRegressor"


@serializable("regression-state")
class RegressionState(NamedTuple):
    """The rows kept, the ``seed [R]`` of each replica's models, and the models, which follow."""

    problem: Problem
    buffer: StoredBuffer
    seed: Integers
    models: ModelCache


@dataclass(frozen=True, eq=False)
class GreedyRegression(FitsModels, TabularPolicy[RegressionState]):
    """Take argmax_a q̂_a(c), with q̂_a a regressor that is fitted to the rows of the action a.

    The ``regressor`` is the dotted name of a class with ``fit`` and ``predict``, as in
    scikit-learn or LightGBM, made with ``parameters``; of several the predictions are averaged. If
    rewards are binary, the classifier of the same name is used instead if there is one
    (…Regressor, …Classifier). An action with few rows is predicted by its mean.
    All models are fitted anew to the rows that ``memory`` keeps whenever there are new rows. A
    state is stored with its rows, and its models are fitted again from them after it was read.

    It does not explore: use it to learn from a log that another policy wrote. Before the first
    feedback it is uniform.

    Not in the paper; the direct method of Dudík, Langford and Li (2011) as a policy.
    """

    regressor: str | Sequence[str] = BOOSTED
    parameters: Mapping[str, Any] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        if not isinstance(self.regressor, str):
            object.__setattr__(self, "regressor", tuple(self.regressor))

    def unfitted(self, binary: bool) -> tuple[Any, ...]:
        """Return the models before they are fitted, for binary rewards or for others."""
        names = [self.regressor] if isinstance(self.regressor, str) else self.regressor
        return tuple(self._made(name, binary) for name in names)

    def _made(self, name: str, binary: bool) -> Any:
        kind = class_by_name(name, "regressor", "predict")
        if binary and name.endswith("Regressor"):
            twin = name.removesuffix("Regressor") + "Classifier"
            kind = getattr(sys.modules[kind.__module__], twin.rpartition(".")[2], kind)
        return made(kind, name, self.parameters)

    @property
    def traits(self) -> PolicyTraits:
        return PolicyTraits(trains_models=True, forgets=self.memory.forgets)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> RegressionState:
        problem.space.check_listable("greedy-regression", "use rcp-adaptive")
        self.unfitted(problem.scale == Binary())
        buffer, seed = StoredBuffer.empty(problem, replicas), np.zeros(replicas, dtype=np.int64)
        return RegressionState(problem, buffer, seed, ModelCache((None,) * replicas))

    def restricted(self, state: RegressionState, choices: Choices) -> RegressionState:
        kept = state.problem.space.indices_of(choices)
        models = tuple(
            None if model is None else model.restricted(kept) for model in self._models(state)
        )
        return state._replace(problem=state.problem.restricted(choices), models=ModelCache(models))

    def update(
        self, state: RegressionState, feedback: Feedback, rng: np.random.Generator
    ) -> RegressionState:
        feedback.check(state.problem)
        news = np.any(feedback.weight > 0, axis=1)
        if not news.any():
            return state
        buffer = state.buffer.add(feedback, self.memory, rng)
        seed = np.where(news, rng.integers(LARGEST_SEED, size=len(news)), state.seed)
        fresh = RegressionState(state.problem, buffer, seed, ModelCache())
        refitted: RegressionState = self._refitted(state, fresh, news)
        return refitted

    def probabilities(self, state: RegressionState, context: Floats) -> Floats:
        state.problem.check_context(context)
        size = state.problem.space.size
        result = np.full((*context.shape[:2], size), 1 / size)
        for replica, model in enumerate(self._models(state)):
            if model is not None:
                result[replica] = sharpened(model.predict(context[replica]), 0.0)
        return result

    def _fitted(self, state: RegressionState, replica: int) -> ActionModels | None:
        buffer, rows = state.buffer, slice(0, int(state.buffer.filled[replica]))
        if not rows.stop:
            return None
        return ActionModels.fitted(
            self.unfitted(state.problem.scale == Binary()),
            buffer.context[replica, rows].astype(np.float64),
            state.problem.space.index(buffer.action[replica, rows].astype(np.int64)),
            buffer.reward[replica, rows],
            buffer.weight[replica, rows],
            state.problem.space.size,
            int(state.seed[replica]),
        )

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.regressor, repr(sorted(self.parameters.items())), self.memory


@dataclass(frozen=True)
class Tempered(TabularPolicy[Any], WrapperPolicy):
    """π'(a | c) ∝ π(a | c)^(1/τ), with π the other ``policy`` and τ the ``temperature``.

    With τ = 0 it takes the most likely action; tied actions share the probability. It learns
    exactly as the other policy does. A greedy variant earns more from what is known and explores
    less, so it suits a policy that was learned from a log and is not learned further.
    """

    policy: Policy[Any]
    temperature: NonNegative = 0.0

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Any:
        problem.space.check_listable("a tempered policy", "use the policy itself")
        return super().init(problem, replicas, rng)

    def probabilities(self, state: Any, context: Floats) -> Floats:
        return sharpened(WrapperPolicy.probabilities(self, state, context), self.temperature)
