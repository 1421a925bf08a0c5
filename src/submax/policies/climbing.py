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
from submax.core.checks import positive, whole_number
from submax.core.errors import InputError
from submax.core.policy import Policy, PolicyTraits
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.rewards import Scale
from submax.core.serialization import stored
from submax.core.spaces import Choices

INTERCEPT_VARIANCE = 4.0
"""Prior variance of the intercept: with a deviation of 2, mean rewards of 5 % and 1 %, where the
intercept is Φ⁻¹(0.05) = −1.6 and Φ⁻¹(0.01) = −2.3, are well within the prior."""


@dataclass(frozen=True)
class SlotEffects:
    """Positions of the effects for slots with ``sizes`` and ``contexts`` context coordinates.

    The order is: the intercept; one effect for each context coordinate; one for each choice of
    each slot; one for each pair of choices in different slots, where for two slots the choice of
    the later one changes fastest; one for each choice and context coordinate.

    >>> effects = SlotEffects((2, 3), contexts=0)
    >>> effects.count
    12
    >>> effects.active(np.array([1, 2]))
    array([ 0,  2,  5, 11])
    """

    sizes: tuple[int, ...]
    contexts: int

    @classmethod
    def of(cls, problem: Problem, context_effects: bool) -> Self:
        """The effects for a problem, with or without effects of its context."""
        contexts = problem.context_width if context_effects else 0
        return cls(problem.space.choices, contexts)

    @property
    def count(self) -> int:
        """The number of effects."""
        return self._pairs_end + sum(self.sizes) * self.contexts

    @property
    def constant(self) -> int:
        """The number of effects, at the first positions, that are the same for every action."""
        return 1 + self.contexts

    @cached_property
    def choices(self) -> tuple[slice, ...]:
        """The positions of the effects of each slot's choices."""
        ends = np.cumsum((self.constant, *self.sizes)).tolist()
        return tuple(itertools.starmap(slice, itertools.pairwise(ends)))

    @cached_property
    def pairs(self) -> dict[tuple[int, int], slice]:
        """The positions of the effects of each pair of slots (earlier slot, later slot)."""
        names = list(itertools.combinations(range(len(self.sizes)), 2))
        products = [self.sizes[first] * self.sizes[second] for first, second in names]
        ends = np.cumsum([self.choices[-1].stop, *products]).tolist()
        return dict(zip(names, itertools.starmap(slice, itertools.pairwise(ends)), strict=True))

    @property
    def interactions(self) -> slice:
        """The positions of the effects of choices with context coordinates."""
        return slice(self._pairs_end, self.count)

    @property
    def _pairs_end(self) -> int:
        """The position after the last pairwise effect."""
        # Pairs of choices in different slots: half of all ordered pairs that are not in one slot.
        choices = sum(self.sizes)
        within = sum(size * size for size in self.sizes)
        return self.constant + choices + (choices * choices - within) // 2

    def restricted(self, choices: Choices) -> tuple["SlotEffects", Integers]:
        """Return the effects of these choices alone, and their positions here.

        >>> smaller, kept = SlotEffects((2, 3), contexts=0).restricted(((1,), (0, 2)))
        >>> smaller.sizes, kept.tolist()
        ((1, 2), [0, 2, 3, 5, 9, 11])
        """
        chosen = [
            part.start + np.array(slot) for part, slot in zip(self.choices, choices, strict=True)
        ]
        kept = [np.arange(self.constant), *chosen]
        for (first, second), part in self.pairs.items():
            rows = np.array(choices[first])[:, None] * self.sizes[second]
            kept.append((part.start + rows + np.array(choices[second])).ravel())
        inside = (np.concatenate(chosen) - self.constant)[:, None] * self.contexts
        kept.append((self.interactions.start + inside + np.arange(self.contexts)).ravel())
        return SlotEffects(tuple(map(len, choices)), self.contexts), np.concatenate(kept)

    def active(self, action: Integers) -> Integers:
        """Positions of the effects that are active in each action: ``[..., S] -> [..., E]``.

        Effects of the context come last: each coordinate, then each choice with each coordinate.
        """
        shape = action.shape[:-1]
        choices = action + np.array([part.start for part in self.choices])
        parts = [np.zeros((*shape, 1), dtype=np.int64), choices]
        if self.pairs:
            first, second = np.array(list(self.pairs)).T
            begin = np.array([part.start for part in self.pairs.values()])
            width = np.array(self.sizes)[second]
            parts.append(begin + action[..., first] * width + action[..., second])
        if self.contexts:
            coordinate = np.arange(self.contexts)
            parts.append(np.broadcast_to(1 + coordinate, (*shape, self.contexts)))
            begin_of = (choices - self.constant) * self.contexts + self.interactions.start
            parts.append(
                (begin_of[..., None] + coordinate).reshape(*shape, len(self.sizes) * self.contexts)
            )
        return np.concatenate(parts, axis=-1)

    def values(self, context: Floats) -> Floats:
        """The factor of each active effect, 1 or a context coordinate: ``[..., D] -> [..., E]``."""
        slots = len(self.sizes)
        shape = context.shape[:-1]
        used = context[..., : self.contexts]
        ones = np.ones((*shape, 1 + slots + len(self.pairs)))
        return np.concatenate([ones, np.tile(used, 1 + slots)], axis=-1)

    def prior_variances(self, total: float) -> Floats:
        """The prior variance of each effect: those of an action's choices add up to ``total``.

        The main effects and the pairwise effects have half of ``total`` each. For a context of
        length √D the effects of its coordinates add up to ``total`` as well, and so do their
        effects with the choices.
        """
        slots, pairs = len(self.sizes), len(self.pairs)
        variances = np.full(self.count, INTERCEPT_VARIANCE)
        variances[1 : self.constant] = total / max(self.contexts, 1)
        main = total / 2 if pairs else total
        variances[self.choices[0].start : self.choices[-1].stop] = main / slots
        variances[self.choices[-1].stop : self.interactions.start] = total / 2 / max(pairs, 1)
        variances[self.interactions] = total / slots / max(self.contexts, 1)
        return variances


EFFECTS_AT_ONCE = 2**21
"""About how many active effects of rows are prepared together, 16 MB of float64."""


class ProbitRows(NamedTuple):
    """Rows of feedback as inputs of the probit regression, in the order they are learned.

    ``position`` and ``value``, both ``[n, R, E]``, are the positions of the active effects and
    their factors x. ``sign [n, R]`` is +1 for a high reward and −1 for a low one, see
    `high_reward_threshold`; ``weight`` is ``[n, R]``.
    """

    position: Integers
    value: Floats
    sign: Floats
    weight: Floats


@stored("slot-regression")
class SlotRegression(NamedTuple):
    """P(highest reward | action, context) = Φ(Σ_i w_i x_i), with w_i ~ N(``mean``, ``variance``).

    Both are ``[R, effects]``; x_i is 1 or a context coordinate for the effects that are active in
    the action, and 0 for all others. After each row the posterior is approximated by independent
    normals with the same means and variances: with y = ±1, Σ² = 1 + Σ_i x_i² s_i²,
    t = y Σ_i x_i m_i / Σ, v = φ(t) / Φ(t) and u = v (v + t)

        m_i ← m_i + y x_i s_i² v / Σ,    s_i² ← s_i² (1 − x_i² s_i² u / Σ²).

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
    gain = old_variance * row.value
    explained = gain * row.value
    total = 1.0 + explained.sum(axis=-1)
    deviation = np.sqrt(total)
    margin = row.sign * (old_mean * row.value).sum(axis=-1) / deviation
    # v = φ(t) / Φ(t) by the scaled complementary error function, which does not underflow.
    slope = math.sqrt(2 / math.pi) / scipy.special.erfcx(-margin / math.sqrt(2))
    curvature = np.clip(slope * (slope + margin), 0.0, 1.0)
    reduction = explained * (curvature / total)[:, None]
    remaining = 1.0 - reduction
    weight = row.weight[:, None]
    scale = remaining + weight * reduction
    step = gain * (row.sign * slope / deviation)[:, None]
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
    slots = len(effects.sizes)
    active = 1 + effects.contexts * (1 + slots) + slots + len(effects.pairs)
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
    context = np.where(present[..., None], feedback.context[chosen], 0.0)
    threshold = high_reward_threshold(problem.scale)
    high = np.where(present, feedback.reward[chosen], -np.inf) > threshold
    position = effects.active(action) + effects.count * replica[:, None, None]
    inputs = (position, effects.values(context), np.where(high, 1.0, -1.0), weight)
    return ProbitRows(*(np.ascontiguousarray(np.swapaxes(part, 0, 1)) for part in inputs))


Weights: TypeAlias = NDArray[np.float32]


class Hills(NamedTuple):
    """The functions that N climbs maximize: f(a) = Σ_s ``choices``[a_s] + Σ_{s<t} pairs[a_s, a_t].

    ``choices [N, Σ sizes]`` has the weights of single choices for each climb. The pairwise weights
    of a climb are in the row ``member [N]`` of ``weights``, whose columns are all effects except
    the constant ones.
    """

    effects: SlotEffects
    choices: Weights
    weights: Weights
    member: Integers

    def choice_scores(self, slot: int, climb: Integers, action: Integers) -> Weights:
        """f, up to a constant, for every choice of a slot with the others as in ``action``."""
        part = self.effects.choices[slot]
        constant = self.effects.constant
        scores = self.choices[climb, part.start - constant : part.stop - constant]
        member = self.member[climb]
        for other in range(len(self.effects.sizes)):
            if other < slot:
                scores += self._pair(other, slot)[member, action[:, other]]
            elif other > slot:
                scores += self._pair(slot, other)[member, :, action[:, other]]
        return scores

    def heights(self, climb: Integers, action: Integers) -> Weights:
        """The height f of each climb's action: ``[n]`` and ``[n, S] -> [n]``."""
        member = self.member[climb]
        height = np.zeros(len(climb), dtype=np.float32)
        for slot, part in enumerate(self.effects.choices):
            height += self.choices[climb, part.start - self.effects.constant + action[:, slot]]
        for first, second in self.effects.pairs:
            height += self._pair(first, second)[member, action[:, first], action[:, second]]
        return height

    def _pair(self, first: int, second: int) -> Weights:
        """The weights of all pairs of choices in two slots, as a table ``[M, size, size]``."""
        part, sizes = self.effects.pairs[first, second], self.effects.sizes
        constant = self.effects.constant
        table = self.weights[:, part.start - constant : part.stop - constant]
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
    chosen: Integers = action.reshape(starts.shape)[np.arange(number), best]
    return chosen


WEIGHTS_AT_ONCE = 2**20
"""About how many drawn weights are processed together, 4 MB of float32."""


@stored("climbing-pool")
class ClimbingPool(NamedTuple):
    """Posterior draws with the random joint actions ``starts [R, draws, restarts, S]`` of each.

    With context effects a climb depends on the context. Then ``weights [R, draws, G]`` are stored,
    without the weights of constant effects, and ``end`` and ``log_share`` are not used. Without
    context effects every climb is done once: ``end [R, draws, S]`` is the action it ends at,
    ``log_share [R, draws]`` the log-share of draws that end there, and ``weights`` has width 0.
    """

    starts: Integers
    weights: Weights
    end: Integers
    log_share: Floats

    @classmethod
    def empty(cls, effects: SlotEffects, replicas: int, draws: int, restarts: int) -> Self:
        """A pool of the right shapes before the first update; all climbs end at choice 0."""
        slots = len(effects.sizes)
        stored_weights = effects.count - effects.constant if effects.contexts else 0
        return cls(
            np.zeros((replicas, draws, restarts, slots), dtype=np.int64),
            np.zeros((replicas, draws, stored_weights), dtype=np.float32),
            np.zeros((replicas, draws, slots), dtype=np.int64),
            np.zeros((replicas, draws)),
        )

    def drawn(
        self,
        effects: SlotEffects,
        regression: SlotRegression,
        sweeps: int,
        rng: np.random.Generator,
    ) -> Self:
        """A pool of the same size with new draws from the posterior."""
        starts = rng.integers(effects.sizes, size=self.starts.shape)
        weights, end = self.weights.copy(), self.end.copy()
        replicas, draws = end.shape[:2]
        for block, drawn in _sampled(effects, regression, draws, rng):
            if effects.contexts:
                weights[:, block] = drawn
                continue
            flat = drawn.reshape(-1, drawn.shape[-1])
            hills = Hills(effects, flat[:, : sum(effects.sizes)], flat, np.arange(len(flat)))
            of_block = starts[:, block].reshape(len(flat), *starts.shape[2:])
            end[:, block] = climbed(hills, of_block, sweeps).reshape(replicas, -1, end.shape[-1])
        pool = self._replace(starts=starts, weights=weights, end=end)
        if effects.contexts:
            return pool
        return pool._replace(log_share=np.log(pool._share_of(effects, end)))

    def replaced(self, replica: Booleans, other: Self) -> Self:
        """The pool with the draws of the chosen replicas taken from another pool."""
        within = replica[:, None, None]
        return self._replace(
            starts=np.where(within[..., None], other.starts, self.starts),
            weights=np.where(within, other.weights, self.weights),
            end=np.where(within, other.end, self.end),
            log_share=np.where(replica[:, None], other.log_share, self.log_share),
        )

    def ends(
        self, effects: SlotEffects, context: Floats, member: Integers, sweeps: int
    ) -> Integers:
        """The action at which the climb of each row's draw ends: ``[R, n] -> [R, n, S]``."""
        replicas, rows = member.shape
        if not effects.contexts:
            return self.end[np.arange(replicas)[:, None], member]
        flat = (member + np.arange(replicas)[:, None] * self.end.shape[1]).ravel()
        contexts = context.reshape(replicas * rows, effects.contexts)
        end = np.empty((replicas * rows, self.end.shape[-1]), dtype=np.int64)
        step = max(1, WEIGHTS_AT_ONCE // self.weights.shape[-1])
        for start in range(0, len(flat), step):
            block = slice(start, start + step)
            end[block] = self._climbed(effects, contexts[block], flat[block], sweeps)
        return end.reshape(replicas, rows, end.shape[-1])

    def log_shares(self, member: Integers) -> Floats:
        """Log-share of draws that end at the same action as these, without context effects."""
        return self.log_share[np.arange(len(member))[:, None], member]

    def share(self, effects: SlotEffects, context: Floats, action: Integers, sweeps: int) -> Floats:
        """The share of draws whose climb ends at the action of each row: ``[R, n]``."""
        if not effects.contexts:
            return self._share_of(effects, action)
        draws = self.end.shape[1]
        found = np.empty(action.shape[:2])
        every = np.arange(draws)
        for row in range(action.shape[1]):
            member = np.broadcast_to(every, (len(action), draws))
            repeated = np.repeat(context[:, row, None], draws, axis=1)
            end = self.ends(effects, repeated, member, sweeps)
            found[:, row] = (end == action[:, row, None]).all(axis=-1).mean(axis=1)
        return found

    def _share_of(self, effects: SlotEffects, action: Integers) -> Floats:
        """The share of the stored ends that equal each action: ``[R, n, S] -> [R, n]``."""
        draws = self.end.shape[1]
        number = _numbered(np.concatenate([self.end, action], axis=1), effects.sizes)
        counts = np.bincount(number[:, :draws].ravel(), minlength=number.size)
        share: Floats = counts[number[:, draws:]] / draws
        return share

    def _climbed(
        self, effects: SlotEffects, context: Floats, member: Integers, sweeps: int
    ) -> Integers:
        """Climb with draw ``member [N]`` in ``context [N, D]``: the actions ``[N, S]``."""
        weights = self.weights.reshape(-1, self.weights.shape[-1])
        choices = sum(effects.sizes)
        begin = effects.interactions.start - effects.constant
        slopes = weights[member, begin:].reshape(len(member), choices, effects.contexts)
        added = np.einsum("ncd,nd->nc", slopes, context.astype(np.float32))
        hills = Hills(effects, weights[member, :choices] + added, weights, member)
        starts = self.starts.reshape(-1, *self.starts.shape[2:])
        return climbed(hills, starts[member], sweeps)


def _sampled(
    effects: SlotEffects, regression: SlotRegression, draws: int, rng: np.random.Generator
) -> Iterator[tuple[slice, Weights]]:
    """Draw weights ``[R, draws, G]``, without those of constant effects, in blocks of draws."""
    mean = regression.mean[:, None, effects.constant :].astype(np.float32)
    deviation = np.sqrt(regression.variance[:, None, effects.constant :]).astype(np.float32)
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
"""The most numbers in the posterior, or in the stored draws, of all replicas: 2 GB of float64."""


@stored("hill-climbing-state")
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
    in slot s. If ``context_effects`` is true, each context coordinate x_d adds
    (w_d + Σ_s w_{sd,a_s}) x_d. The weights have independent normal posteriors. Each update draws
    ``draws`` weight vectors, each with ``restarts`` random joint actions to start from. A decision
    picks one weight vector at random and climbs from its starts: one slot after the other is set
    to its best choice given all others, until nothing changes or after ``sweeps`` rounds. The best
    result of all starts is taken. π(a | x) is the share of weight vectors whose climb ends at a;
    before the first feedback π is uniform. Joint actions are never listed, so that their number is
    not limited.

    ``prior_variance`` is the prior variance of an action's score without its intercept; the noise
    of the probit has variance 1.

    Reference: Hill et al. (2017), An efficient bandit algorithm for realtime multivariate
    optimization; Graepel et al. (2010) for the regression.

    *Departs from the paper:* all decisions between two updates share the same draws, so that their
    probabilities can be computed. Slots are visited in turn instead of in random order. The prior
    variance is divided among the effects instead of 1 for each, and the intercept's is larger.
    """

    prior_variance: float = 1.0
    draws: int = 500
    restarts: int = 3
    sweeps: int = 10
    context_effects: bool = False

    @property
    def traits(self) -> PolicyTraits:
        # Without context effects the scores do not depend on the context.
        return PolicyTraits(uses_context=self.context_effects)

    def __post_init__(self) -> None:
        positive("prior_variance", self.prior_variance)
        whole_number("draws", self.draws, at_least=1)
        whole_number("restarts", self.restarts, at_least=1)
        whole_number("sweeps", self.sweeps, at_least=1)
        if not isinstance(self.context_effects, bool):
            raise InputError(
                f"context_effects must be true or false, without quotes, not "
                f"{self.context_effects!r}"
            )

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> HillClimbingState:
        if problem.space.reals:
            raise InputError(
                f"hill-climbing-thompson needs actions that are choices, and {problem.space} has "
                "real-valued parts: use fourier-thompson, or wrap a policy with gridded"
            )
        effects = self._effects(problem)
        self._check_size(effects, replicas)
        # Called for its check: it refuses scales without a threshold between low and high rewards.
        high_reward_threshold(problem.scale)
        regression = SlotRegression.prior(effects, replicas, self.prior_variance)
        pool = ClimbingPool.empty(effects, replicas, self.draws, self.restarts)
        return HillClimbingState(problem, regression, pool, np.zeros(replicas, dtype=np.bool_))

    def act(
        self, state: HillClimbingState, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        state.problem.check_context(context)
        effects = self._effects(state.problem)
        shape = context.shape[:2]
        member = rng.integers(self.draws, size=shape)
        action = state.pool.ends(effects, context, member, self.sweeps)
        uniform = ~state.learned[:, None]
        if uniform.any():
            random_action = rng.integers(effects.sizes, size=(*shape, len(effects.sizes)))
            action = np.where(uniform[..., None], random_action, action)
        if effects.contexts:
            return ChosenActions(action, None)
        log_prob = np.where(uniform, _uniform_log_prob(effects), state.pool.log_shares(member))
        return ChosenActions(action, log_prob)

    def log_prob(self, state: HillClimbingState, context: Floats, action: Integers) -> Floats:
        state.problem.check_context(context)
        state.problem.check_action(action)
        effects = self._effects(state.problem)
        share = state.pool.share(effects, context, action, self.sweeps)
        with np.errstate(divide="ignore"):
            found = np.log(share)
        return np.where(state.learned[:, None], found, _uniform_log_prob(effects))

    def update(
        self, state: HillClimbingState, feedback: Feedback, rng: np.random.Generator
    ) -> HillClimbingState:
        feedback.check(state.problem)
        has_rows: Booleans = np.any(feedback.weight > 0, axis=1)
        if not has_rows.any():
            return state
        effects = self._effects(state.problem)
        regression = state.regression.add(effects, state.problem, feedback)
        drawn = state.pool.drawn(effects, regression, self.sweeps, rng)
        # Replicas without new rows keep their draws.
        pool = state.pool.replaced(has_rows, drawn)
        return HillClimbingState(state.problem, regression, pool, state.learned | has_rows)

    def restricted(self, state: HillClimbingState, choices: Choices) -> HillClimbingState:
        """Restrict the posterior, and draw and climb again among these choices.

        The random numbers of the new draws follow by a hash from the posterior and the last draws,
        so that the same state gives the same probabilities.
        """
        effects, kept = self._effects(state.problem).restricted(choices)
        mean, variance = state.regression
        regression = SlotRegression(mean[:, kept], variance[:, kept])
        known = state.pool.starts.tobytes() + mean.tobytes()
        seed = int.from_bytes(hashlib.blake2b(known, digest_size=8).digest())
        pool = ClimbingPool.empty(effects, len(mean), self.draws, self.restarts)
        drawn = pool.drawn(effects, regression, self.sweeps, np.random.default_rng(seed))
        return state._replace(
            problem=state.problem.restricted(choices), regression=regression, pool=drawn
        )

    def _effects(self, problem: Problem) -> SlotEffects:
        return SlotEffects.of(problem, self.context_effects)

    def _check_size(self, effects: SlotEffects, replicas: int) -> None:
        """Refuse states that would not fit into memory."""
        stored_draws = self.draws if effects.contexts else 1
        numbers = replicas * stored_draws * effects.count
        if numbers > MOST_NUMBERS:
            times = f" times {stored_draws} draws" if effects.contexts else ""
            raise InputError(
                f"hill climbing stores {effects.count} effects times {replicas} replicas{times}, "
                f"{numbers} numbers in all, and at most {MOST_NUMBERS} are allowed: take fewer "
                "choices, replicas or draws"
            )


def _uniform_log_prob(effects: SlotEffects) -> float:
    """The log-probability of each joint action under uniform choice."""
    return -float(np.log(effects.sizes).sum())
