from dataclasses import dataclass

import numpy as np
import pytest

from submax import ChosenActions, InputError, Policy, PolicyTraits
from submax.estimators import Counting
from submax.policies import UCB1, EpsilonGreedy, Gradient, LinUCB, Random
from submax.testing import check_policy

UNSEEDED = np.random.default_rng(0)


class Unnormalized(EpsilonGreedy):
    def log_prob(self, state, context, action):
        return EpsilonGreedy.log_prob(self, state, context, action) - 0.1

    def act(self, state, context, rng):
        return EpsilonGreedy.act(self, state, context, rng)._replace(log_prob=None)


class UnnormalizedInLargeBatches(Unnormalized):
    def log_prob(self, state, context, action):
        kind = Unnormalized if context.shape[1] > 50 else EpsilonGreedy
        return kind.log_prob(self, state, context, action)


class TableOfOneRow(Random):
    def probabilities(self, state, context):
        return Random.probabilities(self, state, context)[:, :1, :-1]


class Uniform(EpsilonGreedy):
    def act(self, state, context, rng):
        index = rng.integers(state.problem.space.size, size=context.shape[:2])
        return ChosenActions(state.problem.space.action(index), None)


class UniformInLargeBatches(EpsilonGreedy):
    def act(self, state, context, rng):
        kind = Uniform if context.shape[1] > 50 else EpsilonGreedy
        return kind.act(self, state, context, rng)


class LiesAboutItsDecision(EpsilonGreedy):
    def act(self, state, context, rng):
        decision = EpsilonGreedy.act(self, state, context, rng)
        return decision._replace(log_prob=np.zeros(context.shape[:2]))


@dataclass(frozen=True)
class ChoosesTheImpossible(EpsilonGreedy):
    epsilon: float = 0.0

    def act(self, state, context, rng):
        return Uniform.act(self, state, context, rng)


class WithoutSeed(EpsilonGreedy):
    def act(self, state, context, rng):
        return EpsilonGreedy.act(self, state, context, UNSEEDED)


class WithoutSlots(EpsilonGreedy):
    def act(self, state, context, rng):
        decision = EpsilonGreedy.act(self, state, context, rng)
        return decision._replace(action=decision.action[..., 0])


class SmallIntegers(EpsilonGreedy):
    def act(self, state, context, rng):
        decision = EpsilonGreedy.act(self, state, context, rng)
        return decision._replace(action=decision.action.astype(np.int32))


class Outside(EpsilonGreedy):
    def act(self, state, context, rng):
        decision = EpsilonGreedy.act(self, state, context, rng)
        return decision._replace(action=decision.action + 1)


class RefusesNoRows(EpsilonGreedy):
    def act(self, state, context, rng):
        assert context.shape[1] > 0, "no rows"
        return EpsilonGreedy.act(self, state, context, rng)


class CountsDecisionsInPlace(EpsilonGreedy):
    def act(self, state, context, rng):
        decision = EpsilonGreedy.act(self, state, context, rng)
        state.pulls[:] += 1
        return decision


class UpdatesInPlace(EpsilonGreedy):
    def update(self, state, feedback, rng):
        after = state.add(feedback)
        state.pulls[:], state.rewards[:] = after.pulls, after.rewards
        return state


class SaysItUsesTheContext(EpsilonGreedy):
    @property
    def traits(self):
        return PolicyTraits()


class SaysItIgnoresTheContext(LinUCB):
    @property
    def traits(self):
        return PolicyTraits(uses_context=False)


class NeedsPropensitiesInSecret(EpsilonGreedy):
    def update(self, state, feedback, rng):
        if feedback.log_prob is None:
            raise InputError("this policy learns from propensities, and there are none")
        return EpsilonGreedy.update(self, state, feedback, rng)


@dataclass(frozen=True)
class RecordsInPlace(UCB1):
    pending: bool = True

    def record(self, state, action=None, *, upcoming=None):
        state.pending[:] += 1
        return state


class ChangesFeedback(EpsilonGreedy):
    def update(self, state, feedback, rng):
        after = state.add(feedback)
        feedback.reward[:] *= 0.5
        return after


class UpdatesAtRandom(EpsilonGreedy):
    def update(self, state, feedback, rng):
        after = state.add(feedback)
        return after._replace(rewards=after.rewards + UNSEEDED.random(after.rewards.shape))


class ReadsAbsentRows(Gradient):
    def update(self, state, feedback, rng):
        feedback.check(state.problem)
        absent = feedback.weight == 0
        reward = np.where(absent, 1.0, feedback.reward)
        action = np.where(absent[..., None], 0, feedback.action)
        there = feedback._replace(
            context=np.nan_to_num(feedback.context),
            reward=reward,
            action=action,
            log_prob=None,
            weight=np.where(absent, 1.0, feedback.weight),
        )
        return Gradient.update(self, state, there, rng)


class ForgetsOnEmptyFeedback(Gradient):
    def update(self, state, feedback, rng):
        if feedback.reward.shape[1] == 0:
            return self.init(state.problem, len(state.preferences), rng)
        return Gradient.update(self, state, feedback, rng)


class MixesReplicas(Gradient):
    def update(self, state, feedback, rng):
        after = Gradient.update(self, state, feedback, rng)
        mean = after.preferences.mean(axis=0)
        return after._replace(preferences=np.tile(mean, (len(after.preferences), 1)))


class DividesByZero(EpsilonGreedy):
    def update(self, state, feedback, rng):
        after = state.add(feedback)
        with np.errstate(invalid="ignore"):
            bonus = 0 / np.sum(after.rewards, axis=-1, keepdims=True)
        return after._replace(rewards=after.rewards + bonus)


@Policy.register
@dataclass
class NotFrozen:
    def __init__(self):
        self.inner = Random()


class NotEqual(Random):
    __eq__ = object.__eq__
    __hash__ = object.__hash__


@Policy.register
class NoDataclass:
    pass


@pytest.mark.parametrize(
    ("policy", "rule"),
    [
        (Unnormalized(), "the probabilities of all joint actions must sum to one in every row"),
        (UnnormalizedInLargeBatches(), "probabilities must be those of log_prob"),
        (TableOfOneRow(), r"probabilities\(state, context\), unless it is \[R, 1, M\], must have"),
        (Uniform(), "choices must agree with log_prob"),
        (UniformInLargeBatches(), "choices must agree with log_prob"),
        (LiesAboutItsDecision(), "the log_prob of a decision must equal that of the policy"),
        (ChoosesTheImpossible(), "what was chosen must have a probability"),
        (WithoutSeed(), "the same seed must give the same decisions"),
        (WithoutSlots(), "actions must have shape"),
        (SmallIntegers(), "actions must be of type int64"),
        (Outside(), "actions must belong to the space"),
        (RefusesNoRows(), "no rows"),
        (CountsDecisionsInPlace(), "act and log_prob must not change the state"),
        (UpdatesInPlace(), "update must not change the state it was given"),
        (RecordsInPlace(), "record must not change the state it was given"),
        (ChangesFeedback(), "update must not change the feedback"),
        (UpdatesAtRandom(), "the same seed must give the same state"),
        (ReadsAbsentRows(), "rows of weight 0 must change nothing"),
        (ForgetsOnEmptyFeedback(), "feedback without rows must change nothing"),
        (MixesReplicas(), "the feedback of one replica must not reach another"),
        (DividesByZero(), "clear feedback must not lead to NaN|no log_prob may be NaN"),
        (SaysItUsesTheContext(), "says that it uses the context, and decides the same"),
        (SaysItIgnoresTheContext(), "says that it ignores the context, and decides differently"),
        (NeedsPropensitiesInSecret(), "says that it needs no propensities, and refuses"),
        (NotFrozen(), "its dataclass must be frozen"),
        (NotEqual(), "it must be equal to its pickled copy"),
        (NoDataclass(), "it must be a dataclass"),
        (Random, "the class Random"),
        (Counting(), "instances of Policy"),
        ("random", "derives from Policy"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_broken_policy_is_found_out(policy, rule, seed):
    with pytest.raises(AssertionError, match=rule):
        check_policy(policy, seed)
