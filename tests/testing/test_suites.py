"""Every rule of a conformance suite is broken once, and the suite names the rule."""

from dataclasses import dataclass
from itertools import count

import numpy as np
import pytest

from submax import BatchedRewards, Bernoulli, ChosenActions, InputError, Policy, PolicyTraits
from submax.core.conditioning import TabularBelief
from submax.core.environment import Outcome
from submax.environments import Contextual
from submax.estimators import Classifier, Counting
from submax.estimators.counting import CountingBelief
from submax.policies import UCB1, EpsilonGreedy, Gradient, LinUCB, Random
from submax.simulation.delays import Step
from submax.strategies import Clipped, SubMax
from submax.testing import (
    check_delay,
    check_environment,
    check_estimator,
    check_policy,
    check_strategy,
)

UNSEEDED = np.random.default_rng(0)
NUMBERS = count()


def broken(right, **methods):
    """An instance like ``right`` of a class with other methods, which can be pickled."""
    name = f"Broken{next(NUMBERS)}"
    globals()[name] = kind = type(name, (type(right),), {"__module__": __name__, **methods})
    return kind(**vars(right))


# Policies

greedy = EpsilonGreedy.act


def acting(**parts):
    """ε-greedy whose decisions have a part changed."""

    def act(self, state, context, rng):
        decision = greedy(self, state, context, rng)
        return decision._replace(**{name: change(decision) for name, change in parts.items()})

    return broken(EpsilonGreedy(), act=act)


def uniform_act(self, state, context, rng):
    index = rng.integers(state.problem.space.size, size=context.shape[:2])
    return ChosenActions(state.problem.space.action(index), None)


def uniform_in_large_batches(self, state, context, rng):
    return (uniform_act if context.shape[1] > 50 else greedy)(self, state, context, rng)


def lower_log_prob(self, state, context, action):
    return EpsilonGreedy.log_prob(self, state, context, action) - 0.1


def refuse_no_rows(self, state, context, rng):
    assert context.shape[1] > 0, "no rows"
    return greedy(self, state, context, rng)


def count_decisions_in_place(self, state, context, rng):
    decision = greedy(self, state, context, rng)
    state.pulls[:] += 1
    return decision


def update_in_place(self, state, feedback, rng):
    after = state.add(feedback)
    state.pulls[:], state.rewards[:] = after.pulls, after.rewards
    return state


def record_in_place(self, state, action=None, *, upcoming=None):
    state.pending[:] += 1
    return state


def need_propensities(self, state, feedback, rng):
    if feedback.log_prob is None:
        raise InputError("this policy learns from propensities, and there are none")
    return EpsilonGreedy.update(self, state, feedback, rng)


def change_feedback(self, state, feedback, rng):
    after = state.add(feedback)
    feedback.reward[:] *= 0.5
    return after


def update_at_random(self, state, feedback, rng):
    after = state.add(feedback)
    return after._replace(rewards=after.rewards + UNSEEDED.random(after.rewards.shape))


def as_present(feedback):
    """Feedback whose rows of weight 0 are read like others."""
    return feedback._replace(
        context=np.nan_to_num(feedback.context),
        reward=np.nan_to_num(feedback.reward, nan=1.0),
        action=np.maximum(feedback.action, 0),
        log_prob=np.maximum(feedback.log_prob, -9.0),
        weight=np.ones(feedback.weight.shape),
    )


def read_absent_rows(self, state, feedback, rng):
    return Gradient.update(self, state, as_present(feedback), rng)


def forget_on_empty_feedback(self, state, feedback, rng):
    if feedback.reward.shape[1] == 0:
        return self.init(state.problem, len(state.preferences), rng)
    return Gradient.update(self, state, feedback, rng)


def mix_replicas(self, state, feedback, rng):
    after = Gradient.update(self, state, feedback, rng)
    mean = after.preferences.mean(axis=0)
    return after._replace(preferences=np.tile(mean, (len(after.preferences), 1)))


def divide_by_zero(self, state, feedback, rng):
    after = state.add(feedback)
    with np.errstate(invalid="ignore"):
        bonus = 0 / np.sum(after.rewards, axis=-1, keepdims=True)
    return after._replace(rewards=after.rewards + bonus)


@Policy.register
@dataclass
class NotFrozen:
    inner: object = None


@Policy.register
class NoDataclass:
    pass


GREEDY, FOLLOWING, ARMS = EpsilonGreedy(), Gradient(), Bernoulli(3)
POLICIES = [
    ("joint actions must sum to one", broken(GREEDY, log_prob=lower_log_prob, act=uniform_act)),
    (
        r"probabilities\(state, context\), unless",
        broken(Random(), probabilities=lambda *_: np.ones((4, 1, 1))),
    ),
    ("choices must agree with log_prob", broken(GREEDY, act=uniform_act)),
    ("choices must agree with log_prob", broken(GREEDY, act=uniform_in_large_batches)),
    ("decision must equal that of the policy", acting(log_prob=lambda one: 0 * one.log_prob)),
    ("chosen must have a probability", broken(EpsilonGreedy(0.0), act=uniform_act)),
    ("seed must give the same decision", broken(GREEDY, act=lambda *of: greedy(*of[:3], UNSEEDED))),
    ("actions must have shape", acting(action=lambda one: one.action[..., 0])),
    ("actions must be of type int64", acting(action=lambda one: one.action.astype(np.int32))),
    ("actions must belong to the space", acting(action=lambda one: one.action + 1)),
    ("no rows", broken(GREEDY, act=refuse_no_rows)),
    ("act and log_prob must not change", broken(GREEDY, act=count_decisions_in_place)),
    ("update must not change the state", broken(GREEDY, update=update_in_place)),
    ("record must not change the state", broken(UCB1(pending=True), record=record_in_place)),
    ("update must not change the feedback", broken(GREEDY, update=change_feedback)),
    ("same seed must give the same state", broken(GREEDY, update=update_at_random)),
    ("rows of weight 0 must change nothing", broken(FOLLOWING, update=read_absent_rows)),
    ("feedback without rows must change", broken(FOLLOWING, update=forget_on_empty_feedback)),
    ("one replica must not reach another", broken(FOLLOWING, update=mix_replicas)),
    ("must not lead to NaN|no log_prob may be NaN", broken(GREEDY, update=divide_by_zero)),
    ("says that it uses the context", broken(GREEDY, traits=PolicyTraits())),
    ("says that it ignores the context", broken(LinUCB(), traits=PolicyTraits(uses_context=False))),
    ("says that it needs no propensities", broken(GREEDY, update=need_propensities)),
    ("its dataclass must be frozen", NotFrozen()),
    ("equal to its pickled copy", broken(Random(), __eq__=object.__eq__, __hash__=object.__hash__)),
    ("it must be a dataclass", NoDataclass()),
    ("the class Random", Random),
    ("instances of Policy", Counting()),
    ("derives from Policy", "random"),
]


# Estimators


def believing(**methods):
    """An estimator that learns as Counting does, and whose belief changes what a method returns."""
    ((name, change),) = methods.items()
    right = getattr(CountingBelief, name)
    wrong = {name: lambda self, *args: change(right(self, *args))}
    kind = type("Belief", (CountingBelief,), wrong)
    return broken(
        Counting(), belief=lambda self, params, context: kind(self, params, context.shape[1])
    )


def first_alone(drawn):
    return np.tile(drawn[:1, :1], (*drawn.shape[:2], 1, 1))


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


def fitting(change):
    """An estimator that is fitted to changed feedback."""

    def fit(self, params, feedback, rng):
        return Counting.fit(self, params, change(feedback), rng)

    return broken(Counting(), fit=fit)


def last_row_doubled(feedback):
    weight = feedback.weight.copy()
    weight[:, -1:] *= 2
    return feedback._replace(weight=weight)


def without_context(feedback):
    if feedback.context.shape[-1]:
        raise KeyError("context")
    return feedback


def fit_in_place(self, params, feedback, rng):
    after = Counting.fit(self, params, feedback, rng)
    params.counts[:] = after.counts
    return after


def fit_and_change_feedback(self, params, feedback, rng):
    after = Counting.fit(self, params, feedback, rng)
    feedback.weight[:] = 0
    return after


def forgetting(when):
    def fit(self, params, feedback, rng):
        if when(feedback.reward.shape[1]):
            params = self.init(params.problem, len(params.counts), rng)
        return Counting.fit(self, params, feedback, rng)

    return fit


def fit_replicas_together(self, params, feedback, rng):
    after = Counting.fit(self, params, feedback, rng)
    return after._replace(counts=0 * after.counts + after.counts.mean(axis=0))


ESTIMATORS = [
    ("must sum to one at every level", believing(prob=lambda one: 0.9 * one)),
    ("prob_of_all must agree with prob", believing(prob_of_all=lambda one: one[..., ::-1])),
    ("samples must agree with prob", believing(sample=first_alone)),
    ("exactly 0 for a level never observed", believing(level_prior=lambda one: 0.98 * one + 0.01)),
    ("level_prior must sum to one", believing(level_prior=lambda one: 1.1 * one)),
    ("levels must rise", believing(levels=lambda one: one[:, ::-1])),
    ("observation weights must be >= 0", believing(observation_weights=lambda one: -one)),
    ("every slot must have its", believing(observation_weights_by_slot=lambda one: one[:1])),
    ("values must be NaN where", believing(values=np.nan_to_num)),
    ("choices must sum to one", believing(prob_of_choices=lambda one: [1.1 * s for s in one])),
    ("one slot must be its", believing(prob_of_choices=lambda one: [s[..., ::-1] for s in one])),
    ("rows must select contexts", ShufflesRows()),
    ("the importance-sampled sums", fitting(lambda one: one._replace(log_prob=0 * one.weight))),
    ("level_prior must count all feedback", fitting(last_row_doubled)),
    ("rows of weight 0 must change nothing", fitting(as_present)),
    # Which of the two rules is asked first depends on the drawn feedback.
    (
        "must count all feedback|without feedback must stay as it",
        broken(Counting(), fit=forgetting(lambda rows: rows > 0)),
    ),
    ("one replica must not reach another", broken(Counting(), fit=fit_replicas_together)),
    ("fit must not change the parameters", broken(Counting(), fit=fit_in_place)),
    ("fit must not change the feedback", broken(Counting(), fit=fit_and_change_feedback)),
    ("feedback without rows", broken(Counting(), fit=forgetting(lambda rows: rows == 0))),
    ("KeyError.*context_width=2", fitting(without_context)),
]


# Environments


def one_network(self, replicas, rng):
    world = Contextual.reset(self, 1, rng)
    return type(world)(*(np.repeat(part, replicas, axis=0) for part in world))


def one_context(self, world, count, rng):
    context = Contextual.contexts(self, world, count, rng)
    return np.repeat(context[:1], len(context), axis=0)


def changing(**methods):
    """Arms of which one method returns something else."""
    ((name, change),) = methods.items()
    right = getattr(Bernoulli, name)
    return broken(ARMS, **{name: lambda self, *args: change(right(self, *args))})


ENVIRONMENTS = [
    (
        "the average of 1000 rewards .*expected at most",
        broken(ARMS, reward=lambda self, w, *of: Bernoulli.reward(self, w + 0.1, *of)),
    ),
    (r"mean_reward must lie within", changing(mean_reward=lambda one: one + 1.0)),
    (r"rewards must be those of Binary\(\)", changing(reward=lambda one: 2 * one)),
    ("outcome must be what reward and", changing(outcome=lambda one: Outcome(one[0], one[1] / 2))),
    ("no action may be better than best_reward", changing(best_reward=lambda one: one / 2)),
    ("some action must earn best_reward", changing(best_reward=np.ones_like)),
    (
        "does not drift, and its mean rewards change.*found 0",
        broken(
            ARMS, drifts=property(lambda self: False), advance=lambda self, world, *_: world / 2
        ),
    ),
    (
        "different replicas must not all meet the same",
        broken(Contextual(), reset=one_network, contexts=one_context),
    ),
    (
        "the same seed must give the same world",
        broken(ARMS, reset=lambda self, n, _: Bernoulli.reset(self, n, UNSEEDED)),
    ),
    ("contexts must have shape", changing(contexts=lambda one: np.zeros((*one.shape[:2], 2)))),
    ("reward must be of type float64", changing(reward=lambda one: one.astype(np.int64))),
]


def test_replicas_may_share_a_truth_when_their_contexts_differ(seed):
    check_environment(broken(Contextual(), reset=one_network), seed)


# Strategies


def positive_part(table):
    return np.maximum(table.probabilities[..., 1, :] - table.probabilities[..., 0, :], 0)


def unfinished(self, table):
    mass = positive_part(table)
    with np.errstate(invalid="ignore"):
        return mass / mass.sum(axis=-1, keepdims=True)


def write_into_the_table(self, table):
    found = SubMax.probabilities(self, table)
    table.probabilities[..., 0, :] = table.probabilities[..., 1, :]
    return found


def random_policy(self, table):
    size = table.probabilities.shape[-1]
    return UNSEEDED.dirichlet(np.ones(size), size=table.prior.shape[:-1])


def like_the_first(self, table):
    found = SubMax.probabilities(self, table) / 2
    found[..., 0] += 0.5
    return found


def mix_leading_axes(self, table):
    found = SubMax.probabilities(self, table)
    return np.broadcast_to(found.mean(axis=tuple(range(found.ndim - 1))), found.shape)


def trust_smoothing(self, table):
    return SubMax.probabilities(self, table._replace(prior=np.full_like(table.prior, 0.5)))


def weighted_sum(self, table):
    return np.einsum("...l,...lm->...m", self.weights(table), table.probabilities)


STRATEGIES = [
    ("they must sum to one", SubMax, lambda self, table: positive_part(table)),
    ("no probability may be negative", Clipped, weighted_sum),
    ("probabilities must be finite", SubMax, unfinished),
    ("the table must not be changed", SubMax, write_into_the_table),
    ("the same table must give the same policy", SubMax, random_policy),
    ("a permutation of the actions must permute", SubMax, like_the_first),
    ("leading axes must be independent", SubMax, mix_leading_axes),
    ("a level that carries weight was never observed", SubMax, trust_smoothing),
    ("probabilities must have shape", SubMax, lambda *of: SubMax.probabilities(*of)[..., :1]),
]


# Delays

SCHEDULES = [
    ("must add up to the observations", lambda n: [Step(1, 0), *[Step(2, 2)] * ((n - 1) // 2)]),
    ("before its decision is taken", lambda n: [Step(1, n), *[Step(n - 1, 0)] * (n > 1)]),
    ("must take at least one decision", lambda n: [Step(n, 0), Step(0, n)]),
    ("give back no fewer than 0 rewards", lambda n: [Step(n, -1)]),
    ("same twice", lambda n: [Step(1, int(UNSEEDED.integers(2))) for _ in range(n)]),
]


CASES = [
    *((check_policy, *case) for case in POLICIES),
    *((check_estimator, *case) for case in ESTIMATORS),
    *((check_environment, *case) for case in ENVIRONMENTS),
    *(
        (check_strategy, rule, broken(base(), probabilities=probabilities))
        for rule, base, probabilities in STRATEGIES
    ),
    *(
        (check_delay, rule, broken(BatchedRewards(30), schedule=lambda self, n, of=of: of(n)))
        for rule, of in SCHEDULES
    ),
]


@pytest.mark.parametrize(("check", "rule", "subject"), CASES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_broken_class_is_found_out(check, rule, subject, seed):
    with pytest.raises(AssertionError, match=rule):
        check(subject, *([] if check is check_delay else [seed]))
