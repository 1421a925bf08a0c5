from dataclasses import dataclass

import numpy as np
import pytest

from submax import TabularBelief
from submax.estimators import Classifier, Counting
from submax.estimators.counting import CountingBelief
from submax.testing import check_estimator


@dataclass(frozen=True)
class Believing(Counting):
    """It learns as Counting does, and its belief is of a broken class."""

    kind: type = CountingBelief

    def belief(self, params, context):
        return self.kind(self, params, context.shape[1])


class Unnormalized(CountingBelief):
    def prob(self, action):
        return 0.9 * super().prob(action)


class TwoTruths(CountingBelief):
    def prob_of_all(self):
        return super().prob_of_all()[..., ::-1]


class SamplesTheWrongLevel(CountingBelief):
    def sample(self, level, count, rng):
        return super().sample(0, count, rng)


class SamplesOneReplica(CountingBelief):
    def sample(self, level, count, rng):
        drawn = super().sample(level, count, rng)
        return np.tile(drawn[:1, :1], (*drawn.shape[:2], 1, 1))


class SmoothPrior(CountingBelief):
    def level_prior(self):
        return 0.98 * super().level_prior() + 0.01


class PriorTooLarge(CountingBelief):
    def level_prior(self):
        return 1.1 * super().level_prior()


class LevelsFall(CountingBelief):
    def levels(self):
        return super().levels()[:, ::-1]


class ValuesAreSums(CountingBelief):
    def values(self):
        return super().values() * self._params.counts.sum(axis=(1, 2))[:, None]


class IgnoresMissingPropensities(CountingBelief):
    def values(self):
        return np.nan_to_num(super().values())


class ChoosesTooOften(CountingBelief):
    def prob_of_choices(self):
        return [1.1 * slot for slot in super().prob_of_choices()]


class TurnsChoicesAround(CountingBelief):
    def prob_of_choices(self):
        return [slot[..., ::-1] for slot in super().prob_of_choices()]


class NegativeWeights(CountingBelief):
    def observation_weights(self):
        return -super().observation_weights()


class WeightsOfOneSlot(CountingBelief):
    def observation_weights_by_slot(self):
        return super().observation_weights_by_slot()[:1]


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (Unnormalized, "must sum to one at every level"),
        (TwoTruths, "prob_of_all must agree with prob"),
        (SamplesTheWrongLevel, "samples must agree with prob"),
        (SamplesOneReplica, "samples must agree with prob"),
        (SmoothPrior, "level_prior must be exactly 0 for a level never observed"),
        (PriorTooLarge, "level_prior must sum to one"),
        (LevelsFall, "levels must rise"),
        (NegativeWeights, "observation weights must be >= 0"),
        (WeightsOfOneSlot, "every slot must have its weights"),
        (ValuesAreSums, "values must be the importance-sampled sums"),
        (IgnoresMissingPropensities, "values must be NaN where"),
        (ChoosesTooOften, "the probabilities of a slot's choices must sum to one"),
        (TurnsChoicesAround, "the choices of one slot must be its actions"),
    ],
)
def test_a_broken_belief_is_found_out(kind, rule, seed):
    with pytest.raises(AssertionError, match=rule):
        check_estimator(Believing(kind=kind), seed)


class ShufflesRowsBelief(TabularBelief):
    def rows(self, row):
        return super().rows(row[:, ::-1])


@dataclass(frozen=True, eq=False)
class ShufflesRows(Classifier):
    classifier: str = "sklearn.linear_model.LogisticRegression"

    def belief(self, params, context):
        right = super().belief(params, context)
        parts = right.space, right.levels(), right.level_prior(), right.prob_of_all()
        return ShufflesRowsBelief(*parts, right.values)


class ValuesWithoutPropensities(Counting):
    def fit(self, params, feedback, rng):
        return Counting.fit(self, params, feedback._replace(log_prob=0 * feedback.weight), rng)


class LastRowCountsDouble(Counting):
    def fit(self, params, feedback, rng):
        weight = feedback.weight.copy()
        weight[:, -1:] *= 2
        return Counting.fit(self, params, feedback._replace(weight=weight), rng)


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


class Forgets(Counting):
    def fit(self, params, feedback, rng):
        if feedback.reward.shape[1]:
            params = self.init(params.problem, len(params.counts), rng)
        return Counting.fit(self, params, feedback, rng)


class MixesReplicas(Counting):
    def smoothed(self, params):
        mean = Counting.smoothed(self, params).mean(axis=0)
        return np.tile(mean, (len(params.counts), 1, 1))


class FitsInPlace(Counting):
    def fit(self, params, feedback, rng):
        after = Counting.fit(self, params, feedback, rng)
        params.counts[:] = after.counts
        return after


class ChangesFeedback(Counting):
    def fit(self, params, feedback, rng):
        after = Counting.fit(self, params, feedback, rng)
        feedback.weight[:] = 0
        return after


class ForgetsWhenNothingComes(Counting):
    def fit(self, params, feedback, rng):
        if feedback.reward.shape[1] == 0:
            return self.init(params.problem, len(params.counts), rng)
        return Counting.fit(self, params, feedback, rng)


class FailsWithContext(Counting):
    def fit(self, params, feedback, rng):
        if feedback.context.shape[-1]:
            raise KeyError("context")
        return Counting.fit(self, params, feedback, rng)


@pytest.mark.parametrize(
    ("estimator", "rule"),
    [
        (ShufflesRows(), "rows must select contexts"),
        (ValuesWithoutPropensities(), "values must be the importance-sampled sums"),
        (LastRowCountsDouble(), "level_prior must count all feedback so far"),
        (ReadsAbsentRows(), "rows of weight 0 must change nothing"),
        # Which of the two rules is asked first depends on the drawn feedback.
        (Forgets(), "level_prior must count all feedback so far|without feedback must stay as it"),
        (MixesReplicas(), "the feedback of one replica must not reach another"),
        (FitsInPlace(), "fit must not change the parameters it was given"),
        (ChangesFeedback(), "fit must not change the feedback"),
        (ForgetsWhenNothingComes(), "feedback without rows must change nothing"),
        (FailsWithContext(), "KeyError.*context_width=2"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_broken_estimator_is_found_out(estimator, rule, seed):
    with pytest.raises(AssertionError, match=rule):
        check_estimator(estimator, seed)
