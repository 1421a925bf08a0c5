from dataclasses import dataclass

import numpy as np
import pytest

from submax.core.numerics.categorical import draw
from submax.estimators.counting import Counting
from submax.testing import check_estimator


@dataclass(frozen=True)
class Unnormalized(Counting):
    def prob(self, params, context, action):
        return 0.9 * Counting.prob(self, params, context, action)


@dataclass(frozen=True)
class TwoTruths(Counting):
    def prob(self, params, context, action):
        return 0.9 * Counting.prob(self, params, context, action)

    def log_prob(self, params, context, action):
        with np.errstate(divide="ignore"):
            return np.log(Counting.prob(self, params, context, action))


@dataclass(frozen=True)
class SamplesUniformly(Counting):
    def sample(self, params, context, level, count, rng):
        size = params.problem.space.size
        shape = (*context.shape[:2], count)
        return params.problem.space.action(rng.integers(size, size=shape))


@dataclass(frozen=True)
class SamplesTheWrongLevel(Counting):
    def sample(self, params, context, level, count, rng):
        return Counting.sample(self, params, context, 0, count, rng)


@dataclass(frozen=True)
class SamplesOneReplica(Counting):
    def sample(self, params, context, level, count, rng):
        replicas, rows = context.shape[:2]
        table = np.repeat(self._table(params)[:1, level, None, :], replicas, axis=0)
        index = draw(table, rows * count, rng)
        return params.problem.space.action(index.reshape(replicas, rows, count))


@dataclass(frozen=True)
class SmoothPrior(Counting):
    def level_prior(self, params, context):
        return 0.98 * Counting.level_prior(self, params, context) + 0.01


@dataclass(frozen=True)
class PriorTooLarge(Counting):
    def level_prior(self, params, context):
        return 1.1 * Counting.level_prior(self, params, context)


@dataclass(frozen=True)
class ValuesAreSums(Counting):
    def values(self, params):
        return Counting.values(self, params) * params.counts.sum(axis=(1, 2))[:, None]


@dataclass(frozen=True)
class ValuesWithoutPropensities(Counting):
    def fit(self, params, feedback, rng):
        return Counting.fit(self, params, feedback._replace(log_prob=0 * feedback.weight), rng)


@dataclass(frozen=True)
class IgnoresMissingPropensities(Counting):
    def values(self, params):
        return np.nan_to_num(Counting.values(self, params))


@dataclass(frozen=True)
class LastRowCountsDouble(Counting):
    def fit(self, params, feedback, rng):
        weight = feedback.weight.copy()
        weight[:, -1:] *= 2
        return Counting.fit(self, params, feedback._replace(weight=weight), rng)


@dataclass(frozen=True)
class ReadsAbsentRows(Counting):
    def fit(self, params, feedback, rng):
        there = feedback._replace(
            weight=np.ones(feedback.weight.shape),
            action=np.maximum(feedback.action, 0),
            reward=np.nan_to_num(feedback.reward),
            log_prob=np.nan_to_num(feedback.log_prob),
            context=np.nan_to_num(feedback.context),
        )
        return Counting.fit(self, params, there, rng)


@dataclass(frozen=True)
class Forgets(Counting):
    def fit(self, params, feedback, rng):
        if feedback.reward.shape[1]:
            params = self.init(params.problem, len(params.counts), rng)
        return Counting.fit(self, params, feedback, rng)


@dataclass(frozen=True)
class MixesReplicas(Counting):
    def _smoothed(self, params):
        mean = Counting._smoothed(self, params).mean(axis=0)
        return np.tile(mean, (len(params.counts), 1, 1))


@dataclass(frozen=True)
class ChoosesTooOften(Counting):
    def prob_of_choices(self, params, context, space):
        return [1.1 * slot for slot in Counting.prob_of_choices(self, params, context, space)]


@dataclass(frozen=True)
class TurnsChoicesAround(Counting):
    def prob_of_choices(self, params, context, space):
        found = Counting.prob_of_choices(self, params, context, space)
        return [slot[..., ::-1] for slot in found]


@dataclass(frozen=True)
class FitsInPlace(Counting):
    def fit(self, params, feedback, rng):
        after = Counting.fit(self, params, feedback, rng)
        params.counts[:] = after.counts
        return after


@dataclass(frozen=True)
class ChangesFeedback(Counting):
    def fit(self, params, feedback, rng):
        after = Counting.fit(self, params, feedback, rng)
        feedback.weight[:] = 0
        return after


@dataclass(frozen=True)
class ForgetsWhenNothingComes(Counting):
    def fit(self, params, feedback, rng):
        if feedback.reward.shape[1] == 0:
            return self.init(params.problem, len(params.counts), rng)
        return Counting.fit(self, params, feedback, rng)


@pytest.mark.parametrize(
    ("estimator", "rule"),
    [
        (Unnormalized(), "must sum to one at every level"),
        (TwoTruths(), "prob must be the exponential of log_prob"),
        (SamplesUniformly(), "samples must agree with log_prob"),
        (SamplesTheWrongLevel(), "samples must agree with log_prob"),
        (SamplesOneReplica(), "samples must agree with log_prob"),
        (SmoothPrior(), "level_prior must be exactly 0 for a level never observed"),
        (PriorTooLarge(), "level_prior must sum to one"),
        (ValuesAreSums(), "values must be the importance-sampled sums"),
        (ValuesWithoutPropensities(), "values must be the importance-sampled sums"),
        (IgnoresMissingPropensities(), "values must be NaN where"),
        (LastRowCountsDouble(), "level_prior must count all feedback so far"),
        (ReadsAbsentRows(), "rows of weight 0 must change nothing"),
        (Forgets(), "level_prior must count all feedback so far"),
        (ChoosesTooOften(), "the probabilities of a slot's choices must sum to one"),
        (TurnsChoicesAround(), "the choices of one slot must be its actions"),
        (MixesReplicas(), "the feedback of one replica must not reach another"),
        (FitsInPlace(), "fit must not change the parameters it was given"),
        (ChangesFeedback(), "fit must not change the feedback"),
        (ForgetsWhenNothingComes(), "feedback without rows must change nothing"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_broken_estimator_is_found_out(estimator, rule, seed):
    with pytest.raises(AssertionError, match=rule):
        check_estimator(estimator, seed)
