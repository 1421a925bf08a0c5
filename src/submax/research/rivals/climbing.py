"""Policies for joint choices that climb to the best one instead of listing them."""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import scipy

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import BelowOne, Count, Positive, Probability
from submax.core.errors import InputError
from submax.core.policy import Policy, PolicyTraits
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.rewards import Scale
from submax.core.serialization import serializable
from submax.core.spaces import Choices
from submax.models.networks.choices import first_choices
from submax.models.regression.slot_belief import SlotMap
from submax.policies.slots import check_choices
from submax.research.rivals.neural import dropout_masks, picked_masks
from submax.research.rivals.value_networks import (
    Numbers,
    ValueBelief,
    ValueNetwork,
    ValueNetworkPolicy,
    Weights,
)

INTERCEPT_VARIANCE = 4.0
"""Prior variance of the intercept: with a deviation of 2, mean rewards of 5 % and 1 %, where the
intercept is Φ⁻¹(0.05) = −1.6 and Φ⁻¹(0.01) = −2.3, are well within the prior."""


def effects_of(sizes: tuple[int, ...]) -> SlotMap:
    """The effects of choices and of pairs of choices, without any context.

    >>> effects_of((2, 3)).width
    12
    >>> active_effects(effects_of((2, 3)), np.array([[1, 2]])).tolist()
    [[0, 2, 5, 11]]
    """
    return SlotMap(sizes, np.zeros(0), np.ones(0), len(sizes) > 1)


def active_effects(effects: SlotMap, action: Integers) -> Integers:
    """Indices of the effects of each action: ``[n, S] -> [n, E]``."""
    rows = effects.rows(np.zeros((len(action), 0)), action)
    return np.asarray(rows.indices, dtype=np.int64).reshape(len(action), -1)


@serializable("slot-regression")
class SlotRegression(NamedTuple):
    """P(highest reward | action) = Φ(Σ_i w_i), with w_i ~ N(``mean``, ``variance``).

    Both are ``[R, effects]``; i runs over the effects that are active in the action. After each
    row the posterior is approximated by independent normals with the same means and variances:
    with y = ±1, Σ² = 1 + Σ_i s_i², t = y Σ_i m_i / Σ, v = φ(t) / Φ(t) and u = v (v + t)

        m_i ← m_i + y s_i² v / Σ,    s_i² ← s_i² (1 − s_i² u / Σ²).

    The weight of a row multiplies what the row adds to the precision 1 / s² and to m / s².

    Reference: Graepel et al. (2010), Web-scale Bayesian click-through rate prediction.
    """

    mean: Floats
    variance: Floats

    @classmethod
    def prior(cls, effects: SlotMap, replicas: int, total: float) -> Self:
        """The regression before any feedback: an action's choices have the variance ``total``.

        The main effects and the pairwise effects have half of it each.
        """
        slots, pairs = len(effects.sizes), len(effects.pair_names)
        main = total / 2 if pairs else total
        by_group = (INTERCEPT_VARIANCE, 0.0, main / slots, 0.0, total / 2 / max(pairs, 1))
        variance = np.tile(np.array(by_group)[effects.groups], (replicas, 1))
        return cls(np.zeros(variance.shape), variance)

    def add(self, effects: SlotMap, problem: Problem, feedback: Feedback) -> Self:
        """The posterior after the rows of feedback, learned in their order."""
        mean, variance = self.mean.copy(), self.variance.copy()
        replica = np.arange(len(mean))[:, None]
        # A row of weight 0 may hold any values, and changes nothing.
        present = feedback.weight > 0
        action = np.where(present[..., None], feedback.action, 0)
        reward = np.where(present, feedback.reward, -np.inf)
        sign = np.where(reward > high_reward_threshold(problem.scale), 1.0, -1.0)
        active = active_effects(effects, action.reshape(-1, action.shape[-1]))
        active = active.reshape(*action.shape[:2], -1)
        for row in np.flatnonzero(present.any(axis=0)):
            at = (replica, active[:, row])
            learned = _learned(mean[at], variance[at], sign[:, row], feedback.weight[:, row])
            mean[at], variance[at] = learned
        return self._replace(mean=mean, variance=variance)


def _learned(mean: Floats, variance: Floats, sign: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the mean m and the variance s² of the active effects, ``[R, E]``, after a row."""
    total = 1.0 + variance.sum(axis=-1)
    deviation = np.sqrt(total)
    margin = sign * mean.sum(axis=-1) / deviation
    # v = φ(t) / Φ(t) by the scaled complementary error function, which does not underflow.
    slope = math.sqrt(2 / math.pi) / scipy.special.erfcx(-margin / math.sqrt(2))
    curvature = np.clip(slope * (slope + margin), 0.0, 1.0)
    reduction = variance * (curvature / total)[:, None]
    remaining = 1.0 - reduction
    scale = remaining + weight[:, None] * reduction
    step = variance * (sign * slope / deviation)[:, None]
    return mean + weight[:, None] * step / scale, variance * (remaining / scale)


def high_reward_threshold(scale: Scale) -> float:
    """The threshold above which a reward is high.

    It lies between the two highest levels, or in the middle of the known bounds if the levels of
    the scale depend on the observed rewards.
    """
    if scale.moves:
        return sum(scale.known_bounds("a regression on high rewards")) / 2
    nothing = np.zeros((1, 0))
    second, highest = scale.reward_encoding(nothing, nothing).levels[0, -2:]
    return float(second + highest) / 2


def climbed(
    scores: Callable[[int, Integers, Integers], Numbers],
    heights: Callable[[Integers, Integers], Numbers],
    starts: Integers,
    sweeps: int,
) -> Integers:
    """The best action that a climb from any start finds: ``[N, restarts, S] -> [N, S]``.

    A sweep sets one slot after the other to its best choice, given all others. The climb ends
    after a sweep that changes nothing, or after ``sweeps`` sweeps. There are N functions to climb:
    ``heights(n, actions)`` returns the values ``[m]`` of ``actions [m, S]`` by the functions ``n
    [m]``, and ``scores(slot, n, actions)`` those of every choice of a slot, up to a constant.
    """
    number, restarts, slots = starts.shape
    action = starts.reshape(-1, slots).copy()
    climb = np.repeat(np.arange(number, dtype=np.int64), restarts)
    moving = np.arange(len(action), dtype=np.int64)
    for _ in range(sweeps):
        before = action[moving]
        after = before.copy()
        for slot in range(slots):
            after[:, slot] = scores(slot, climb[moving], after).argmax(axis=-1)
        action[moving] = after
        moving = moving[(after != before).any(axis=-1)]
        if not len(moving):
            break
    best = heights(climb, action).reshape(number, restarts).argmax(axis=-1)
    return action.reshape(starts.shape)[np.arange(number), best]


# Hill climbing on a linear model ----------------------------------------------------------


class Hills(NamedTuple):
    """The functions that N climbs maximize: f(a) = Σ_s w[a_s] + Σ_{s<t} w[a_s, a_t].

    ``choices`` has w of each slot's choices, ``[N, K_s]``, and ``pairs`` those of pairs of slots.
    """

    choices: list[Weights]
    pairs: dict[tuple[int, int], Weights]

    @classmethod
    def of(cls, effects: SlotMap, weights: Any) -> Self:
        """The functions with these weights of all effects, ``[N, F]``; the constant is left out."""
        choices: Any = effects.choice_effects(weights, np.zeros((1, 0)))
        pairs: Any = effects.pair_effects(weights)
        return cls([one[0] for one in choices], pairs)

    def scores(self, slot: int, climb: Integers, action: Integers) -> Weights:
        """f, up to a constant, for every choice of a slot with the others as in ``action``."""
        scores = self.choices[slot][climb]
        for (first, second), table in self.pairs.items():
            if slot == second:
                scores += table[climb, action[:, first]]
            elif slot == first:
                scores += table[climb, :, action[:, second]]
        return scores

    def heights(self, climb: Integers, action: Integers) -> Weights:
        """The height f of each climb's action: ``[n]`` and ``[n, S] -> [n]``."""
        of_slots = [table[climb, action[:, slot]] for slot, table in enumerate(self.choices)]
        of_pairs = [
            table[climb, action[:, a], action[:, b]] for (a, b), table in self.pairs.items()
        ]
        return np.sum(of_slots + of_pairs, axis=0)


def shares(end: Integers, action: Integers, sizes: tuple[int, ...]) -> Floats:
    """The share of the draws ``end [R, draws, S]`` that equal each action: ``[R, n, S] -> [R, n]``.

    The distinct actions of all replicas are numbered, slot by slot: the product of all sizes may
    exceed an integer.
    """
    both = np.concatenate([end, action], axis=1)
    number = np.repeat(np.arange(len(both)), both.shape[1])
    for slot, size in enumerate(sizes):
        key = number * size + both[..., slot].ravel()
        number = np.unique(key, return_inverse=True)[1].ravel()
    table, draws = number.reshape(both.shape[:2]), end.shape[1]
    counts = np.bincount(table[:, :draws].ravel(), minlength=table.size)
    return counts[table[:, draws:]] / draws


WEIGHTS_AT_ONCE = 2**20
"""About how many drawn weights are processed together, 4 MB of float32."""
MOST_NUMBERS = 2**28
"""The most numbers in the posterior of all replicas: 2 GB of float64."""


@serializable("hill-climbing-state")
class HillClimbingState(NamedTuple):
    """The posterior, where the climbs of draws from it ended, and which replicas have learned.

    ``end [R, draws, S]`` are the actions, ``log_share [R, draws]`` the log-share of draws that
    ended at the same action, and ``learned [R]`` is false before the first feedback.
    """

    problem: Problem
    regression: SlotRegression
    end: Integers
    log_share: Floats
    learned: Booleans


@dataclass(frozen=True)
class HillClimbingThompson(Policy[HillClimbingState]):
    """Draw the weights of a probit regression and take the joint action that hill climbing finds.

    P(highest reward | a) = Φ(w_0 + Σ_s w_{s,a_s} + Σ_{s<t} w_{st,a_s a_t}), where a_s is the choice
    in slot s. The weights have independent normal posteriors. Each update draws ``draws`` weight
    vectors and climbs with each of them from ``restarts`` random joint actions: one slot after the
    other is set to its best choice given all others, until nothing changes or after ``sweeps``
    rounds. The best result of all starts counts. A decision takes the result of one weight vector
    at random, so π(a) is the share of weight vectors whose climb ends at a; before the first
    feedback π is uniform. Joint actions are never listed, so their number is not limited.

    ``prior_variance`` is the prior variance of an action's score without its intercept; the noise
    of the probit has variance 1.

    Reference: Hill et al. (2017), An efficient bandit algorithm for realtime multivariate
    optimization; Graepel et al. (2010) for the regression.

    *Departs from the paper:* the context has no effects. All decisions between two updates share
    the same draws, so their probabilities can be computed. Slots are visited in turn instead
    of in random order. The prior variance is divided among the effects instead of 1 for each, and
    the intercept's is larger.
    """

    prior_variance: Positive = 1.0
    draws: Count = 500
    restarts: Count = 3
    sweeps: Count = 10

    traits = PolicyTraits(uses_context=False)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> HillClimbingState:
        check_choices("hill-climbing-thompson", problem.space)
        effects = effects_of(problem.space.choices)
        numbers = replicas * effects.width
        if numbers > MOST_NUMBERS:
            raise InputError(
                f"hill climbing stores {effects.width} effects times {replicas} replicas, "
                f"{numbers} numbers in all, and at most {MOST_NUMBERS} are allowed: use fewer "
                "choices or replicas"
            )
        # Called for its check: it refuses scales without a threshold between low and high rewards.
        high_reward_threshold(problem.scale)
        regression = SlotRegression.prior(effects, replicas, self.prior_variance)
        end = np.zeros((replicas, self.draws, problem.space.slots), dtype=np.int64)
        learned = np.zeros(replicas, dtype=np.bool_)
        return HillClimbingState(problem, regression, end, np.zeros(end.shape[:2]), learned)

    def act(
        self, state: HillClimbingState, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        state.problem.check_context(context)
        shape, space = context.shape[:2], state.problem.space
        member = rng.integers(self.draws, size=shape)
        chosen = np.arange(shape[0])[:, None], member
        action, log_prob = state.end[chosen], state.log_share[chosen]
        uniform = ~state.learned[:, None]
        if uniform.any():
            random_action = rng.integers(space.choices, size=(*shape, space.slots))
            action = np.where(uniform[..., None], random_action, action)
        return ChosenActions(action, np.where(uniform, -space.log_measure, log_prob))

    def log_prob(self, state: HillClimbingState, context: Floats, action: Integers) -> Floats:
        state.problem.check_context(context)
        state.problem.check_action(action)
        space = state.problem.space
        with np.errstate(divide="ignore"):
            log_share = np.log(shares(state.end, action, space.choices))
        return np.where(state.learned[:, None], log_share, -space.log_measure)

    def update(
        self, state: HillClimbingState, feedback: Feedback, rng: np.random.Generator
    ) -> HillClimbingState:
        feedback.check(state.problem)
        has_rows: Booleans = np.any(feedback.weight > 0, axis=1)
        if not has_rows.any():
            return state
        effects = effects_of(state.problem.space.choices)
        regression = state.regression.add(effects, state.problem, feedback)
        end, log_share = self._drawn(effects, regression, rng)
        # Replicas without new rows keep their draws.
        return state._replace(
            regression=regression,
            end=np.where(has_rows[:, None, None], end, state.end),
            log_share=np.where(has_rows[:, None], log_share, state.log_share),
            learned=state.learned | has_rows,
        )

    def restricted(self, state: HillClimbingState, choices: Choices) -> HillClimbingState:
        """Restrict the posterior, and draw and climb again among these choices.

        The seed of the new draws is a hash of the posterior and the last draws, so the same
        state gives the same probabilities.
        """
        effects, kept = effects_of(state.problem.space.choices).restricted(choices)
        mean, variance = state.regression
        regression = SlotRegression(mean[:, kept], variance[:, kept])
        digest = hashlib.blake2b(state.end.tobytes() + mean.tobytes(), digest_size=8)
        rng = np.random.default_rng(int.from_bytes(digest.digest()))
        end, log_share = self._drawn(effects, regression, rng)
        problem = state.problem.restricted(choices)
        return HillClimbingState(problem, regression, end, log_share, state.learned)

    def _drawn(
        self, effects: SlotMap, regression: SlotRegression, rng: np.random.Generator
    ) -> tuple[Integers, Floats]:
        """Draw weights and climb; return the ends and their log-shares."""
        mean = regression.mean[:, None, 1:].astype(np.float32)
        deviation = np.sqrt(regression.variance[:, None, 1:]).astype(np.float32)
        replicas, slots = len(mean), len(effects.sizes)
        shape = (replicas, self.draws, self.restarts, slots)
        starts = rng.integers(effects.sizes, size=shape)
        end = np.empty((replicas, self.draws, slots), dtype=np.int64)
        step = max(1, WEIGHTS_AT_ONCE // mean.size)
        for begin in range(0, self.draws, step):
            block = starts[:, begin : begin + step]
            drawn = np.zeros((*block.shape[:2], effects.width), dtype=np.float32)
            normal = rng.standard_normal((*block.shape[:2], mean.shape[-1]), dtype=np.float32)
            drawn[..., 1:] = normal * deviation + mean
            hills = Hills.of(effects, drawn.reshape(-1, effects.width))
            block = block.reshape(-1, self.restarts, slots)
            found = climbed(hills.scores, hills.heights, block, self.sweeps)
            end[:, begin : begin + step] = found.reshape(replicas, -1, slots)
        return end, np.log(shares(end, end, effects.sizes))


# Climbing on a value network --------------------------------------------------------------

CANDIDATE_ACTIVATIONS = 2**18
"""About how many activations one step of a climb holds: 1 MB of float32, so they stay in the
cache of one core."""


class NetworkHills:
    """Logits of a network of one replica in n contexts, whose part of layer 1 is ``given``."""

    def __init__(
        self, network: ValueNetwork, sizes: tuple[int, ...], given: Weights, *masks: Weights
    ) -> None:
        self.network, self.given, self.masks = network, given, masks
        self.rows_of_slot = np.split(network.choice_weight, first_choices(sizes)[1:])

    def scores(self, slot: int, context: Integers, action: Integers) -> Numbers:
        """The logit of every choice of a slot: ``[m]`` and ``[m, S] -> [m, K]``."""
        rows = self.rows_of_slot[slot]
        others = self._first(context, action) - rows[action[:, slot]]
        return self._logits(others[:, None] + rows, context)

    def heights(self, context: Integers, action: Integers) -> Numbers:
        """The logits of actions: ``[m]`` and ``[m, S] -> [m]``."""
        return self._logits(self._first(context, action)[:, None], context)[:, 0]

    def _first(self, context: Integers, action: Integers) -> Weights:
        """The inputs of the first layer, ``[m, H]``."""
        first = self.given[context]
        for slot, rows in enumerate(self.rows_of_slot):
            first += rows[action[:, slot]]
        return first

    def _logits(self, first: Weights, context: Integers) -> Numbers:
        """Logits, less the head's bias, from the first layer's inputs: ``[m, K, H] -> [m, K]``."""
        np.maximum(first, 0, out=first)
        head = self.network.head_weight[None]
        if self.masks:
            first *= self.masks[0][context][:, None]
            head = head * self.masks[1][context]
        second = first.reshape(-1, first.shape[-1]) @ self.network.second_weight
        second += self.network.second_bias
        np.maximum(second, 0, out=second)
        return (second.reshape(first.shape) @ head[:, :, None])[:, :, 0]


@serializable("climbs")
class Climbs(NamedTuple):
    """The actions ``starts [R, T, S]`` at which climbs begin, and masks of both layers, if any."""

    starts: Integers
    masks: tuple[Weights, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ClimbingPolicy(ValueNetworkPolicy):
    """A policy on a value network that climbs from ``climbs`` random joint actions.

    They are drawn at every update. From each of them coordinate ascent sets one slot after the
    other to its best choice, at most ``sweeps`` times. No joint action is listed. Before the first
    feedback the policy is uniform.
    """

    dropout: BelowOne = 0.1
    climbs: Count = 4
    sweeps: Count = 4

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ValueBelief:
        check_choices(f"the {type(self).__name__} policy", problem.space)
        belief = ValueBelief.empty(problem, replicas, self.hidden, listed=False)
        return belief._replace(extra=self.first_extra(belief, rng))

    def first_extra(self, belief: ValueBelief, rng: np.random.Generator) -> Climbs:
        shape = (len(belief.buffer.filled), self.climbs)
        return Climbs(belief.problem.space.uniform(shape, rng))

    def restricted_extra(self, state: ValueBelief, choices: Choices) -> Climbs:
        """Let climbs begin at choices among these."""
        climbs: Climbs = state.extra
        sizes = np.array([len(slot) for slot in choices])
        return climbs._replace(starts=climbs.starts % sizes)

    def climbed(self, state: ValueBelief, context: Floats, *masks: Weights) -> Integers:
        """Return the best action that climbing finds in each context: ``[R, n, S]``.

        ``masks`` are dropout masks of the two layers, ``[R, n, H]``.
        """
        state.problem.check_context(context)
        network, sizes, starts = state.network, state.problem.space.choices, state.extra.starts
        replicas, climbs, slots = starts.shape
        given = network.from_context(state.inputs(context))
        step = max(1, CANDIDATE_ACTIVATIONS // (climbs * max(sizes) * given.shape[-1]))
        found = np.empty((replicas, context.shape[1], slots), dtype=np.int64)
        for replica in range(replicas):
            own = ValueNetwork(*(array[replica] for array in network))
            for begin in range(0, context.shape[1], step):
                part = (replica, slice(begin, begin + step))
                hills = NetworkHills(own, sizes, given[part], *(mask[part] for mask in masks))
                begins = np.broadcast_to(starts[replica], (len(given[part]), climbs, slots))
                found[part] = climbed(hills.scores, hills.heights, begins, self.sweeps)
        return found

    def mixed(self, state: ValueBelief, share: Floats) -> Floats:
        """Return the log-probability; that of uniform choice in replicas without any rows."""
        uniform = np.exp(-state.problem.space.log_measure)
        with np.errstate(divide="ignore"):
            log_prob: Floats = np.log(np.where(learned_replicas(state), share, uniform))
        return log_prob


def learned_replicas(state: ValueBelief) -> Booleans:
    """Which replicas have rows to learn from, ``[R, 1]``."""
    return (state.buffer.filled > 0)[:, None]


@dataclass(frozen=True)
class ClimbingDropoutThompson(ClimbingPolicy):
    """Apply a random dropout mask to a value network and take the best action that climbing finds.

    π(a | c) = Σ_m 1[a = climb(c; mask m)] / P. P = ``masks`` masks are drawn at each update, and a
    decision uses one of them, picked at random, for all its actions. From each of ``climbs`` random
    joint actions, coordinate ascent sets one slot after the other to its best choice, at most
    ``sweeps`` times. No joint action is listed. Before the first feedback the policy is uniform.
    The network has two layers of ``hidden`` units, and ``dropout`` is the probability of leaving
    out a unit.

    Reference: Gal and Ghahramani (2016); Hill et al. (2017) on climbing over slots.
    """

    dropout: BelowOne = 0.1
    masks: Count = 20

    def first_extra(self, belief: ValueBelief, rng: np.random.Generator) -> Climbs:
        shape = (len(belief.buffer.filled), self.masks, self.hidden)
        masks = dropout_masks(shape, self.dropout, rng)
        return super().first_extra(belief, rng)._replace(masks=masks)

    def act(self, state: ValueBelief, context: Floats, rng: np.random.Generator) -> ChosenActions:
        picked = rng.integers(self.masks, size=context.shape[:2])
        action = self.climbed(state, context, *picked_masks(state.extra.masks, picked))
        uniform = state.problem.space.uniform(context.shape[:2], rng)
        return ChosenActions(np.where(learned_replicas(state)[..., None], action, uniform), None)

    def log_prob(self, state: ValueBelief, context: Floats, action: Integers) -> Floats:
        state.problem.check_action(action)
        share = np.zeros(context.shape[:2])
        for mask in range(self.masks):
            masks = picked_masks(state.extra.masks, np.full(context.shape[:2], mask))
            share += (self.climbed(state, context, *masks) == action).all(axis=-1) / self.masks
        return self.mixed(state, share)


@dataclass(frozen=True)
class ClimbingEpsilonGreedy(ClimbingPolicy):
    """Explore uniformly with probability ε, else take the best action that climbing finds.

    π(a | c) = ε / M + (1 − ε) 1[a = climb(c)], with M joint actions. Network and climbs are those
    of `ClimbingDropoutThompson`, with ``dropout`` only in training.

    Reference: Sutton and Barto (2018), section 2.2; Hill et al. (2017) on climbing over slots.
    """

    epsilon: Probability = 0.1

    def act(self, state: ValueBelief, context: Floats, rng: np.random.Generator) -> ChosenActions:
        greedy = self.climbed(state, context)
        explores = (rng.random(greedy.shape[:2]) < self.epsilon) | ~learned_replicas(state)
        uniform = state.problem.space.uniform(greedy.shape[:2], rng)
        action = np.where(explores[..., None], uniform, greedy)
        return ChosenActions(action, self._log_prob(state, greedy, action))

    def log_prob(self, state: ValueBelief, context: Floats, action: Integers) -> Floats:
        state.problem.check_action(action)
        return self._log_prob(state, self.climbed(state, context), action)

    def _log_prob(self, state: ValueBelief, greedy: Integers, action: Integers) -> Floats:
        same = (greedy == action).all(axis=-1)
        uniform = np.exp(-state.problem.space.log_measure)
        return self.mixed(state, self.epsilon * uniform + (1 - self.epsilon) * same)
