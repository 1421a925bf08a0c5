"""Conditioned probabilities by any classifier."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import Count, Positive
from submax.core.conditioning import Estimator, TabularBelief, normalized
from submax.core.policy import PolicyTraits
from submax.core.problem import Feedback, Problem
from submax.core.rewards import RewardEncoding
from submax.core.serialization import serializable
from submax.estimators.counting import counted
from submax.models.classifiers import (
    LARGEST_SEED,
    FitsModels,
    FittedClassifier,
    ModelCache,
    described,
    fitted_classifier,
    reward_features,
    unfitted_classifier,
)
from submax.models.memory import Memory, StoredBuffer, importance_values


@serializable("classifier-params")
class ClassifierParams(NamedTuple):
    """The rows kept, what they were counted as, and a fitted classifier for each replica.

    ``counts [R, L, A]`` is the weight of the rows at each reward level with each joint action;
    ``seed [R]`` is what the classifier of each replica was fitted with. The ``models`` follow from
    the other fields.
    """

    problem: Problem
    buffer: StoredBuffer
    reward_encoding: RewardEncoding
    counts: Floats
    seed: Integers
    models: ModelCache


INSTEAD = "use the CVAE, such as rcp-cvae-submax"


@dataclass(frozen=True, eq=False)
class Classifier(FitsModels, Estimator[ClassifierParams]):
    """π(a | c, r_l) = (N_l p̂(a | c, r_l) + s) / (N_l + s A), with p̂ by any classifier.

    The ``classifier`` is an object with ``fit(X, y)`` and ``predict_proba``, as in scikit-learn,
    LightGBM or XGBoost, or the dotted name of its class, made with ``parameters``. It learns to
    predict the action from context and reward, see `reward_features`.

    N_l is the weight of the rows at level l, A the number of joint actions and s the ``smoothing``,
    so that actions that were never seen have a positive probability. A classifier that repeats the
    share of each action at each level makes this the counting estimator. Until there are
    ``minimum_rows`` rows and two different actions, p̂ is that share.

    Every replica has a model of its own, fitted anew to all rows that ``memory`` keeps whenever
    there are new ones. The object is copied and never changed. A parameter ``random_state`` that
    is None is set from the generator of the run. Rows have weights; if ``fit`` does not take
    ``sample_weight``, rows are drawn in proportion to them. A state is stored with its rows, and
    its models are fitted again from them after it was read.

    Not in the paper, which trains networks.
    """

    classifier: Any
    parameters: Mapping[str, Any] = field(default_factory=dict)
    smoothing: Positive = 1.0
    minimum_rows: Count = 1
    memory: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.classifier, str):
            # A copy, so later changes of the caller's object have no effect.
            object.__setattr__(self, "classifier", self.unfitted)
        _ = self.unfitted

    @cached_property
    def unfitted(self) -> Any:
        """The classifier, which is copied for every fit and never fitted itself."""
        return unfitted_classifier(self.classifier, self.parameters)

    @property
    def traits(self) -> PolicyTraits:
        return PolicyTraits(trains_models=True, forgets=self.memory.forgets)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ClassifierParams:
        problem.space.check_listable("the classifier estimator", INSTEAD)
        nothing = np.zeros((replicas, 0))
        return ClassifierParams(
            problem,
            StoredBuffer.empty(problem, replicas),
            problem.scale.reward_encoding(nothing, nothing),
            np.zeros((replicas, problem.scale.levels, problem.space.size)),
            np.zeros(replicas, dtype=np.int64),
            ModelCache((None,) * replicas),
        )

    def fit(
        self, params: ClassifierParams, feedback: Feedback, rng: np.random.Generator
    ) -> ClassifierParams:
        problem = params.problem
        feedback.check(problem)
        news = np.any(feedback.weight > 0, axis=1)
        if not news.any():
            return params
        buffer = params.buffer.add(feedback, self.memory, rng)
        encoding = problem.scale.reward_encoding(buffer.reward, buffer.weight)
        seed = np.where(news, rng.integers(LARGEST_SEED, size=len(news)), params.seed)
        counts, _ = counted(problem, encoding, buffer)
        fresh = ClassifierParams(problem, buffer, encoding, counts, seed, ModelCache())
        refitted: ClassifierParams = self._refitted(params, fresh, news)
        return refitted

    def belief(self, params: ClassifierParams, context: Floats) -> TabularBelief:
        share = normalized(params.counts.sum(axis=-1))[:, None]
        return TabularBelief(
            params.problem.space,
            params.reward_encoding.levels,
            np.broadcast_to(share, (*context.shape[:2], share.shape[-1])),
            lambda: self.prob_of_all(params, context),
            lambda: importance_values(self, params, params.counts.size),
            # In every context, because a classifier generalizes between contexts.
            lambda: (params.counts + self.smoothing).sum(axis=-1)[:, None],
        )

    def prob_of_all(self, params: ClassifierParams, context: Floats) -> Floats:
        """Return π(a | c, l) of every joint action, ``[R, n, L, A]``, from the fitted models."""
        replicas, rows = context.shape[:2]
        levels = params.counts.shape[1]
        asked = np.broadcast_to(params.reward_encoding.levels[:, None], (replicas, rows, levels))
        repeated = np.repeat(context, levels, axis=1)
        reward = asked.reshape(replicas, rows * levels)
        features = reward_features(repeated, reward, params.reward_encoding)
        mass = np.repeat(params.counts[:, None], rows, axis=1)
        for replica, model in enumerate(self._models(params)):
            if model is not None:
                mass[replica] = model.expected_counts(features[replica], params.counts[replica])
        return normalized(mass + self.smoothing)

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return (described(self.unfitted), self.smoothing, self.minimum_rows, self.memory)

    def _fitted(self, params: ClassifierParams, replica: int) -> FittedClassifier | None:
        buffer, rows = params.buffer, int(params.buffer.filled[replica])
        if rows < self.minimum_rows:
            return None
        one, there = slice(replica, replica + 1), slice(0, rows)
        encoding = RewardEncoding._make(part[one] for part in params.reward_encoding)
        context = buffer.context[one, there].astype(np.float64, copy=False)
        features = reward_features(context, buffer.reward[one, there], encoding)
        action = params.problem.space.index(buffer.action[replica, there].astype(np.int64))
        weight = buffer.weight[replica, there]
        seed = int(params.seed[replica])
        return fitted_classifier(self.unfitted, features[0], action, weight, seed)
