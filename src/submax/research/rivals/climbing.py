"""Thompson sampling for joint choices, with hill climbing instead of listing them."""

import hashlib
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import Count, Positive
from submax.core.errors import InputError
from submax.core.policy import Policy, PolicyTraits
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.rewards import Scale
from submax.core.serialization import serializable
from submax.core.spaces import Choices
from submax.models.regression.slot_belief import SlotMap

INTERCEPT_VARIANCE = 4.0
"""Prior variance of the intercept: with a deviation of 2, mean rewards of 5 % and 1 %, where the
intercept is Φ⁻¹(0.05) = −1.6 and Φ⁻¹(0.01) = −2.3, are well within the prior."""


@dataclass(frozen=True)
class SlotEffects:
    """Positions of the effects for slots with these ``sizes``.

    The order is: the intercept; one effect for each choice of each slot; one for each pair of
    choices in different slots, where the choice of the later slot changes fastest.

    >>> effects = SlotEffects((2, 3))
    >>> effects.count
    12
    >>> effects.active(np.array([1, 2]))
    array([ 0,  2,  5, 11])
    """

    sizes: tuple[int, ...]

    @cached_property
    def _map(self) -> SlotMap:
        nothing = np.zeros(0)
        return SlotMap(self.sizes, nothing, nothing, pairs=len(self.sizes) > 1)

    @property
    def count(self) -> int:
        """The number of effects."""
        return self._map.width

    @cached_property
    def choices(self) -> tuple[slice, ...]:
        """The positions of the effects of each slot's choices."""
        ends = np.cumsum((1, *self.sizes)).tolist()
        return tuple(itertools.starmap(slice, itertools.pairwise(ends)))

    @cached_property
    def pairs(self) -> dict[tuple[int, int], slice]:
        """The positions of the effects of each pair of slots (earlier slot, later slot)."""
        names, sizes = self._map.pair_names, self._map.pair_sizes
        ends = np.cumsum([self._map.first_pair, *sizes]).tolist()
        return dict(zip(names, itertools.starmap(slice, itertools.pairwise(ends)), strict=True))

    def restricted(self, choices: Choices) -> tuple["SlotEffects", Integers]:
        """Return the effects of these choices alone, and their positions here.

        >>> smaller, kept = SlotEffects((2, 3)).restricted(((1,), (0, 2)))
        >>> smaller.sizes, kept.tolist()
        ((1, 2), [0, 2, 3, 5, 9, 11])
        """
        smaller, kept = self._map.restricted(choices)
        return SlotEffects(smaller.sizes), kept

    def active(self, action: Integers) -> Integers:
        """Positions of the effects that are active in each action: ``[..., S] -> [..., E]``."""
        choices = action + np.array([part.start for part in self.choices])
        parts = [np.zeros((*action.shape[:-1], 1), dtype=np.int64), choices]
        if self.pairs:
            first, second = np.array(list(self.pairs)).T
            begin = np.array([part.start for part in self.pairs.values()])
            width = np.array(self.sizes)[second]
            parts.append(begin + action[..., first] * width + action[..., second])
        return np.concatenate(parts, axis=-1)

    def prior_variances(self, total: float) -> Floats:
        """The prior variance of each effect: those of an action's choices add up to ``total``.

        The main effects and the pairwise effects have half of ``total`` each.
        """
        pairs = len(self.pairs)
        variances = np.full(self.count, total / 2 / max(pairs, 1))
        main = total / 2 if pairs else total
        variances[1 : self.choices[-1].stop] = main / len(self.sizes)
        variances[0] = INTERCEPT_VARIANCE
        return variances


EFFECTS_AT_ONCE = 2**21
"""About how many active effects of rows are prepared together, 16 MB of float64."""


class ProbitRows(NamedTuple):
    """Rows of feedback as inputs of the probit regression, in the order they are learned.

    ``position [n, R, E]`` are the positions of the active effects. ``sign [n, R]`` is +1 for a high
    reward and −1 for a low one, see `high_reward_threshold`; ``weight`` is ``[n, R]``.
    """

    position: Integers
    sign: Floats
    weight: Floats


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
    def prior(cls, effects: SlotEffects, replicas: int, total_variance: float) -> Self:
        """The regression before any feedback."""
        variance = np.tile(effects.prior_variances(total_variance), (replicas, 1))
        return cls(np.zeros(variance.shape), variance)

    def add(self, effects: SlotEffects, problem: Problem, feedback: Feedback) -> Self:
        """The posterior after the rows of feedback, learned in their order."""
        mean, variance = self.mean.ravel().copy(), self.variance.ravel().copy()
        for rows in _blocks(effects, problem, feedback):
            for row in map(ProbitRows._make, zip(*rows, strict=True)):
                _learn(mean, variance, row)
        return self._replace(
            mean=mean.reshape(self.mean.shape), variance=variance.reshape(self.mean.shape)
        )


def _learn(mean: Floats, variance: Floats, row: ProbitRows) -> None:
    """Update the mean m and the variance s² with one row of every replica, in place."""
    old_mean, old_variance = mean[row.position], variance[row.position]
    total = 1.0 + old_variance.sum(axis=-1)
    deviation = np.sqrt(total)
    margin = row.sign * old_mean.sum(axis=-1) / deviation
    # v = φ(t) / Φ(t) by the scaled complementary error function, which does not underflow.
    slope = math.sqrt(2 / math.pi) / scipy.special.erfcx(-margin / math.sqrt(2))
    curvature = np.clip(slope * (slope + margin), 0.0, 1.0)
    reduction = old_variance * (curvature / total)[:, None]
    remaining = 1.0 - reduction
    weight = row.weight[:, None]
    scale = remaining + weight * reduction
    step = old_variance * (row.sign * slope / deviation)[:, None]
    mean[row.position] = old_mean + weight * step / scale
    variance[row.position] = old_variance * (remaining / scale)


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


def _blocks(effects: SlotEffects, problem: Problem, feedback: Feedback) -> Iterator[ProbitRows]:
    """Rows with weight, in order and in blocks; shorter replicas end with rows of weight 0."""
    present = feedback.weight > 0
    replicas = len(present)
    order = np.argsort(~present, axis=1, kind="stable")[:, : present.sum(axis=1).max(initial=0)]
    active = 1 + len(effects.sizes) + len(effects.pairs)
    step = max(1, EFFECTS_AT_ONCE // (replicas * active))
    for start in range(0, order.shape[1], step):
        yield _prepared(effects, problem, feedback, order[:, start : start + step])


def _prepared(
    effects: SlotEffects, problem: Problem, feedback: Feedback, order: Integers
) -> ProbitRows:
    """The rows of each replica at the indices ``order [R, n]``, as inputs of the regression."""
    replica = np.arange(len(order), dtype=np.int64)
    chosen = replica[:, None], order
    weight = feedback.weight[chosen]
    present = weight > 0
    # A row of weight 0 may hold any values.
    action = np.where(present[..., None], feedback.action[chosen], 0)
    threshold = high_reward_threshold(problem.scale)
    high = np.where(present, feedback.reward[chosen], -np.inf) > threshold
    position = effects.active(action) + effects.count * replica[:, None, None]
    inputs = (position, np.where(high, 1.0, -1.0), weight)
    return ProbitRows(*(np.ascontiguousarray(np.swapaxes(part, 0, 1)) for part in inputs))


Weights: TypeAlias = NDArray[np.float32]


class Hills(NamedTuple):
    """The functions that N climbs maximize: f(a) = Σ_s w[a_s] + Σ_{s<t} w[a_s, a_t].

    ``weights [N, count - 1]`` has a row for each climb: all effects except the intercept.
    """

    effects: SlotEffects
    weights: Weights

    def choice_scores(self, slot: int, climb: Integers, action: Integers) -> Weights:
        """f, up to a constant, for every choice of a slot with the others as in ``action``."""
        part = self.effects.choices[slot]
        scores = self.weights[climb, part.start - 1 : part.stop - 1]
        for other in range(len(self.effects.sizes)):
            if other < slot:
                scores += self._pair(other, slot)[climb, action[:, other]]
            elif other > slot:
                scores += self._pair(slot, other)[climb, :, action[:, other]]
        return scores

    def heights(self, climb: Integers, action: Integers) -> Weights:
        """The height f of each climb's action: ``[n]`` and ``[n, S] -> [n]``."""
        active = self.effects.active(action)[:, 1:] - 1
        return self.weights[climb[:, None], active].sum(axis=1)

    def _pair(self, first: int, second: int) -> Weights:
        """The weights of all pairs of choices in two slots, as a table ``[N, size, size]``."""
        part, sizes = self.effects.pairs[first, second], self.effects.sizes
        table = self.weights[:, part.start - 1 : part.stop - 1]
        return table.reshape(len(table), sizes[first], sizes[second])


def climbed(hills: Hills, starts: Integers, sweeps: int) -> Integers:
    """The best action that a climb from any start finds: ``[N, restarts, S] -> [N, S]``.

    A sweep sets one slot after the other to its best choice, given all others. The climb ends
    after a sweep that changes nothing, or after ``sweeps`` sweeps.
    """
    number, restarts, slots = starts.shape
    action = starts.reshape(-1, slots).copy()
    climb = np.repeat(np.arange(number, dtype=np.int64), restarts)
    moving = np.arange(len(action), dtype=np.int64)
    for _ in range(sweeps):
        before = action[moving]
        after = before.copy()
        for slot in range(slots):
            after[:, slot] = hills.choice_scores(slot, climb[moving], after).argmax(axis=-1)
        action[moving] = after
        moving = moving[(after != before).any(axis=-1)]
        if not len(moving):
            break
    best = hills.heights(climb, action).reshape(number, restarts).argmax(axis=-1)
    return action.reshape(starts.shape)[np.arange(number), best]


WEIGHTS_AT_ONCE = 2**20
"""About how many drawn weights are processed together, 4 MB of float32."""


@serializable("climbing-pool")
class ClimbingPool(NamedTuple):
    """The actions ``end [R, draws, S]`` at which the climbs of posterior draws ended.

    ``log_share [R, draws]`` is the log-share of draws that ended at the same action.
    """

    end: Integers
    log_share: Floats

    @classmethod
    def empty(cls, effects: SlotEffects, replicas: int, draws: int) -> Self:
        """A pool of the right shapes before the first update; all climbs end at choice 0."""
        end = np.zeros((replicas, draws, len(effects.sizes)), dtype=np.int64)
        return cls(end, np.zeros((replicas, draws)))

    def drawn(
        self,
        effects: SlotEffects,
        regression: SlotRegression,
        restarts: int,
        sweeps: int,
        rng: np.random.Generator,
    ) -> Self:
        """A pool of the same size with new draws from the posterior."""
        replicas, draws, slots = self.end.shape
        starts = rng.integers(effects.sizes, size=(replicas, draws, restarts, slots))
        end = self.end.copy()
        for block, weights in _sampled(regression, draws, rng):
            hills = Hills(effects, weights.reshape(-1, weights.shape[-1]))
            of_block = starts[:, block].reshape(-1, restarts, slots)
            end[:, block] = climbed(hills, of_block, sweeps).reshape(replicas, -1, slots)
        pool = self._replace(end=end)
        return pool._replace(log_share=np.log(pool.share(effects, end)))

    def replaced(self, replica: Booleans, other: Self) -> Self:
        """The pool with the draws of the chosen replicas taken from another pool."""
        return self._replace(
            end=np.where(replica[:, None, None], other.end, self.end),
            log_share=np.where(replica[:, None], other.log_share, self.log_share),
        )

    def share(self, effects: SlotEffects, action: Integers) -> Floats:
        """The share of the draws that ended at each action: ``[R, n, S] -> [R, n]``."""
        draws = self.end.shape[1]
        number = _numbered(np.concatenate([self.end, action], axis=1), effects.sizes)
        counts = np.bincount(number[:, :draws].ravel(), minlength=number.size)
        return counts[number[:, draws:]] / draws


def _sampled(
    regression: SlotRegression, draws: int, rng: np.random.Generator
) -> Iterator[tuple[slice, Weights]]:
    """Draw weights ``[R, draws, count - 1]``, without the intercept, in blocks of draws."""
    mean = regression.mean[:, None, 1:].astype(np.float32)
    deviation = np.sqrt(regression.variance[:, None, 1:]).astype(np.float32)
    step = max(1, WEIGHTS_AT_ONCE // mean.size)
    for start in range(0, draws, step):
        block = slice(start, min(start + step, draws))
        shape = (len(mean), block.stop - start, mean.shape[-1])
        drawn = rng.standard_normal(shape, dtype=np.float32)
        drawn *= deviation
        drawn += mean
        yield block, drawn


def _numbered(action: Integers, sizes: tuple[int, ...]) -> Integers:
    """Number the distinct actions of each replica consecutively: ``[R, n, S] -> [R, n]``."""
    shape = action.shape[:2]
    number = np.repeat(np.arange(shape[0]), shape[1])
    for slot, size in enumerate(sizes):
        # The product of all sizes may exceed an integer, so actions are renumbered after each slot.
        key = number * size + action[..., slot].ravel()
        number = np.unique(key, return_inverse=True)[1].ravel()
    return number.reshape(shape)


MOST_NUMBERS = 2**28
"""The most numbers in the posterior of all replicas: 2 GB of float64."""


@serializable("hill-climbing-state")
class HillClimbingState(NamedTuple):
    """The posterior, a pool of draws from it, and whether each replica has ``learned [R]`` yet."""

    problem: Problem
    regression: SlotRegression
    pool: ClimbingPool
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
    the same draws, so that their probabilities can be computed. Slots are visited in turn instead
    of in random order. The prior variance is divided among the effects instead of 1 for each, and
    the intercept's is larger.
    """

    prior_variance: Positive = 1.0
    draws: Count = 500
    restarts: Count = 3
    sweeps: Count = 10

    traits = PolicyTraits(uses_context=False)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> HillClimbingState:
        if problem.space.reals:
            raise InputError(
                f"hill-climbing-thompson needs actions that are choices, and {problem.space} has "
                "real-valued parts: use fourier-thompson, or wrap a policy with gridded"
            )
        effects = SlotEffects(problem.space.choices)
        numbers = replicas * effects.count
        if numbers > MOST_NUMBERS:
            raise InputError(
                f"hill climbing stores {effects.count} effects times {replicas} replicas, "
                f"{numbers} numbers in all, and at most {MOST_NUMBERS} are allowed: take fewer "
                "choices or replicas"
            )
        # Called for its check: it refuses scales without a threshold between low and high rewards.
        high_reward_threshold(problem.scale)
        regression = SlotRegression.prior(effects, replicas, self.prior_variance)
        pool = ClimbingPool.empty(effects, replicas, self.draws)
        return HillClimbingState(problem, regression, pool, np.zeros(replicas, dtype=np.bool_))

    def act(
        self, state: HillClimbingState, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        state.problem.check_context(context)
        shape, space = context.shape[:2], state.problem.space
        member = rng.integers(self.draws, size=shape)
        chosen = np.arange(shape[0])[:, None], member
        action, log_prob = state.pool.end[chosen], state.pool.log_share[chosen]
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
            log_share = np.log(state.pool.share(SlotEffects(space.choices), action))
        return np.where(state.learned[:, None], log_share, -space.log_measure)

    def update(
        self, state: HillClimbingState, feedback: Feedback, rng: np.random.Generator
    ) -> HillClimbingState:
        feedback.check(state.problem)
        has_rows: Booleans = np.any(feedback.weight > 0, axis=1)
        if not has_rows.any():
            return state
        effects = SlotEffects(state.problem.space.choices)
        regression = state.regression.add(effects, state.problem, feedback)
        drawn = state.pool.drawn(effects, regression, self.restarts, self.sweeps, rng)
        # Replicas without new rows keep their draws.
        pool = state.pool.replaced(has_rows, drawn)
        return HillClimbingState(state.problem, regression, pool, state.learned | has_rows)

    def restricted(self, state: HillClimbingState, choices: Choices) -> HillClimbingState:
        """Restrict the posterior, and draw and climb again among these choices.

        The seed of the new draws is a hash of the posterior and the last draws, so that the same
        state gives the same probabilities.
        """
        effects, kept = SlotEffects(state.problem.space.choices).restricted(choices)
        mean, variance = state.regression
        regression = SlotRegression(mean[:, kept], variance[:, kept])
        known = state.pool.end.tobytes() + mean.tobytes()
        seed = int.from_bytes(hashlib.blake2b(known, digest_size=8).digest())
        pool = ClimbingPool.empty(effects, len(mean), self.draws)
        drawn = pool.drawn(
            effects, regression, self.restarts, self.sweeps, np.random.default_rng(seed)
        )
        return state._replace(
            problem=state.problem.restricted(choices), regression=regression, pool=drawn
        )
