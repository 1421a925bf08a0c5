from dataclasses import dataclass

import numpy as np
import pytest

from submax.core.numerics.categorical import draw
from submax.estimators.classifier import Classifier, ClassifierBelief
from submax.estimators.counting import Counting, CountingBelief
from submax.testing import check_estimator


class UnnormalizedBelief(CountingBelief):
    def prob(self, action):
        return 0.9 * super().prob(action)


@dataclass(frozen=True)
class Unnormalized(Counting):
    def belief(self, params, context):
        return UnnormalizedBelief(self, params, context.shape[1])


class TwoTruthsBelief(CountingBelief):
    def prob_of_all(self):
        return super().prob_of_all()[..., ::-1]


@dataclass(frozen=True)
class TwoTruths(Counting):
    def belief(self, params, context):
        return TwoTruthsBelief(self, params, context.shape[1])


class SamplesUniformlyBelief(CountingBelief):
    def sample(self, level, count, rng):
        shape = (*self.level_prior().shape[:2], count)
        return self.space.action(rng.integers(self.space.size, size=shape))


@dataclass(frozen=True)
class SamplesUniformly(Counting):
    def belief(self, params, context):
        return SamplesUniformlyBelief(self, params, context.shape[1])


class SamplesTheWrongLevelBelief(CountingBelief):
    def sample(self, level, count, rng):
        return super().sample(0, count, rng)


@dataclass(frozen=True)
class SamplesTheWrongLevel(Counting):
    def belief(self, params, context):
        return SamplesTheWrongLevelBelief(self, params, context.shape[1])


class SamplesOneReplicaBelief(CountingBelief):
    def sample(self, level, count, rng):
        table = self.prob_of_all()[:, :, level]
        replicas, rows = table.shape[:2]
        index = draw(np.tile(table[:1, :1], (replicas, 1, 1)), rows * count, rng)
        return self.space.action(index.reshape(replicas, rows, count))


@dataclass(frozen=True)
class SamplesOneReplica(Counting):
    def belief(self, params, context):
        return SamplesOneReplicaBelief(self, params, context.shape[1])


class SmoothPriorBelief(CountingBelief):
    def level_prior(self):
        return 0.98 * super().level_prior() + 0.01


@dataclass(frozen=True)
class SmoothPrior(Counting):
    def belief(self, params, context):
        return SmoothPriorBelief(self, params, context.shape[1])


class PriorTooLargeBelief(CountingBelief):
    def level_prior(self):
        return 1.1 * super().level_prior()


@dataclass(frozen=True)
class PriorTooLarge(Counting):
    def belief(self, params, context):
        return PriorTooLargeBelief(self, params, context.shape[1])


class LevelsFallBelief(CountingBelief):
    def levels(self):
        return super().levels()[:, ::-1]


@dataclass(frozen=True)
class LevelsFall(Counting):
    def belief(self, params, context):
        return LevelsFallBelief(self, params, context.shape[1])


class ValuesAreSumsBelief(CountingBelief):
    def values(self):
        return super().values() * self._params.counts.sum(axis=(1, 2))[:, None]


@dataclass(frozen=True)
class ValuesAreSums(Counting):
    def belief(self, params, context):
        return ValuesAreSumsBelief(self, params, context.shape[1])


class IgnoresMissingPropensitiesBelief(CountingBelief):
    def values(self):
        return np.nan_to_num(super().values())


@dataclass(frozen=True)
class IgnoresMissingPropensities(Counting):
    def belief(self, params, context):
        return IgnoresMissingPropensitiesBelief(self, params, context.shape[1])


class ChoosesTooOftenBelief(CountingBelief):
    def prob_of_choices(self):
        return [1.1 * slot for slot in super().prob_of_choices()]


@dataclass(frozen=True)
class ChoosesTooOften(Counting):
    def belief(self, params, context):
        return ChoosesTooOftenBelief(self, params, context.shape[1])


class TurnsChoicesAroundBelief(CountingBelief):
    def prob_of_choices(self):
        return [slot[..., ::-1] for slot in super().prob_of_choices()]


@dataclass(frozen=True)
class TurnsChoicesAround(Counting):
    def belief(self, params, context):
        return TurnsChoicesAroundBelief(self, params, context.shape[1])


class NegativeWeightsBelief(CountingBelief):
    def observation_weights(self):
        return -super().observation_weights()


@dataclass(frozen=True)
class NegativeWeights(Counting):
    def belief(self, params, context):
        return NegativeWeightsBelief(self, params, context.shape[1])


class WeightsOfOneSlotBelief(CountingBelief):
    def observation_weights_by_slot(self):
        return super().observation_weights_by_slot()[:1]


@dataclass(frozen=True)
class WeightsOfOneSlot(Counting):
    def belief(self, params, context):
        return WeightsOfOneSlotBelief(self, params, context.shape[1])


class ShufflesRowsBelief(ClassifierBelief):
    def rows(self, row):
        return super().rows(row[:, ::-1])


@dataclass(frozen=True, eq=False)
class ShufflesRows(Classifier):
    classifier: str = "sklearn.linear_model.LogisticRegression"

    def belief(self, params, context):
        return ShufflesRowsBelief(self, params, context)


@dataclass(frozen=True)
class ValuesWithoutPropensities(Counting):
    def fit(self, params, feedback, rng):
        return Counting.fit(self, params, feedback._replace(log_prob=0 * feedback.weight), rng)


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
    def smoothed(self, params):
        mean = Counting.smoothed(self, params).mean(axis=0)
        return np.tile(mean, (len(params.counts), 1, 1))


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
        (TwoTruths(), "prob_of_all must agree with prob"),
        (SamplesUniformly(), "samples must agree with prob"),
        (SamplesTheWrongLevel(), "samples must agree with prob"),
        (SamplesOneReplica(), "samples must agree with prob"),
        (SmoothPrior(), "level_prior must be exactly 0 for a level never observed"),
        (PriorTooLarge(), "level_prior must sum to one"),
        (LevelsFall(), "levels must rise"),
        (NegativeWeights(), "observation weights must be >= 0"),
        (WeightsOfOneSlot(), "every slot must have its weights"),
        (ShufflesRows(), "rows must select contexts"),
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


@dataclass(frozen=True)
class FailsWithContext(Counting):
    def fit(self, params, feedback, rng):
        if feedback.context.shape[-1]:
            raise KeyError("context")
        return Counting.fit(self, params, feedback, rng)


def test_another_exception_is_reported_with_its_problem(seed):
    with pytest.raises(AssertionError, match=r"FailsWithContext .* KeyError.*context_width=2"):
        check_estimator(FailsWithContext(), seed)


def test_a_class_in_the_place_of_an_instance_is_explained():
    with pytest.raises(AssertionError, match=r"give Counting\(\.\.\.\)"):
        check_estimator(Counting)
