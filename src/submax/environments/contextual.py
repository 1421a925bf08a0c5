"""Arms and slots with contexts: the paper's random networks, and a logistic model."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from submax.core.arrays import Floats, Integers
from submax.core.checks import Count, Finite, Positive
from submax.core.errors import InputError
from submax.core.numerics import pieces
from submax.core.problem import Problem
from submax.core.spaces import MAX_ENUMERATED_ACTIONS, Arms, Slots, Space
from submax.environments.arms import Successes
from submax.environments.changing import drifted


class TruthNetwork(NamedTuple):
    """The weights of a network with one hidden layer of H ReLU units, without biases.

    The inputs are the one-hot choices and the context. ``choice_weight [R, C, H]`` are the weights
    of the C choices of all slots together, ``context_weight [R, D, H]`` those of the context, and
    ``output_weight [R, H]`` those from the hidden units to the output.
    """

    choice_weight: Floats
    context_weight: Floats
    output_weight: Floats


def draw_network(
    replicas: int, choices: int, dimension: int, hidden: int, rng: np.random.Generator
) -> TruthNetwork:
    """Draw Glorot-uniform weights, between ±√(6 / (fan in + fan out)), for each replica."""
    first = math.sqrt(6 / (choices + dimension + hidden))
    last = math.sqrt(6 / (hidden + 1))
    return TruthNetwork(
        rng.uniform(-first, first, (replicas, choices, hidden)),
        rng.uniform(-first, first, (replicas, dimension, hidden)),
        rng.uniform(-last, last, (replicas, hidden)),
    )


def draw_directions(replicas: int, count: int, dimension: int, rng: np.random.Generator) -> Floats:
    """Draw points uniformly from the unit sphere, ``[R, count, D]``.

    They are normally distributed vectors, divided by their lengths.
    """
    normal = rng.standard_normal((replicas, count, dimension))
    return normal / np.linalg.norm(normal, axis=-1, keepdims=True)


def logits(truth: TruthNetwork, sizes: Sequence[int], context: Floats, action: Integers) -> Floats:
    """Return the network's output: ``context [R, n, D]`` and ``action [R, n, S] -> [R, n]``.

    The environment adds its shift to this output and applies σ. ``sizes`` are the numbers of
    choices of the slots. One-hot choices are not formed: their product with ``choice_weight`` is
    the sum of one row for each slot.
    """
    replicas, choices, hidden = truth.choice_weight.shape
    rows = truth.choice_weight.reshape(-1, hidden)
    # The row of the first choice of a slot in each replica.
    first_row = np.arange(replicas)[:, None] * choices
    layer = context @ truth.context_weight
    for slot, size in enumerate(sizes):
        layer += rows.take(first_row + action[..., slot], axis=0)
        first_row = first_row + size
    np.maximum(layer, 0.0, out=layer)
    return (layer @ truth.output_weight[..., None])[..., 0]


LISTED_ACTIONS = 256
"""Up to this number of joint actions, evaluating all of them is faster than computing bounds."""
MINIMUM_LEAVES = 32
"""The least number of leaves of a branch. If the largest slot has fewer choices, the next largest
slots are joined to it."""
BRANCHES_TRIED_FIRST = 4
"""The number of branches of every context whose leaves are evaluated first: their best leaf
excludes most other branches."""
CHUNK_ENTRIES = 2**18
"""Most entries of an intermediate array, 2 MiB; limits memory for any number of rows."""


class Tree(NamedTuple):
    """The joint actions of one replica as P branches with J leaves each, over H hidden units.

    ``branch [H, P]`` and ``leaf [H, J]`` are the inputs to the hidden units, ``near`` and ``far``,
    ``[H, 1]``, the extremes of the leaves, and ``output [H]`` the output weights v.
    """

    branch: Floats
    leaf: Floats
    near: Floats
    far: Floats
    output: Floats


def highest_logits(truth: TruthNetwork, sizes: Sequence[int], context: Floats) -> Floats:
    """The highest logit of all joint actions in each context: ``[R, n, D] -> [R, n]``."""
    size = math.prod(sizes)
    if size > MAX_ENUMERATED_ACTIONS:
        raise InputError(
            f"the best of {size} joint actions cannot be found, because at most "
            f"{MAX_ENUMERATED_ACTIONS} are allowed: use smaller sizes"
        )
    from_context = context @ truth.context_weight
    slots = np.split(truth.choice_weight, np.cumsum(sizes)[:-1], axis=1)
    if size <= LISTED_ACTIONS:
        return _by_listing(_sums(slots), truth.output_weight, from_context)
    highest = np.empty(from_context.shape[:2])
    for replica, output in enumerate(truth.output_weight):
        tree = _tree([slot[replica] for slot in slots], output)
        highest[replica] = _by_bounds(tree, from_context[replica].T)
    return highest


def _slices(length: int, width: int) -> Iterator[slice]:
    """Split ``length`` rows of ``width`` numbers into parts of at most `CHUNK_ENTRIES`."""
    return pieces(length, max(1, CHUNK_ENTRIES // max(1, width)))


def _sums(slots: Sequence[Floats]) -> Floats:
    """The sum of one row from each slot, for all combinations: ``[..., C, H] -> [..., A, H]``."""
    *before, hidden = slots[0].shape
    total = np.zeros((*before[:-1], 1, hidden))
    for slot in slots:
        pairs = total[..., :, None, :] + slot[..., None, :, :]
        total = pairs.reshape(*before[:-1], -1, hidden)
    return total


def _by_listing(actions: Floats, output: Floats, from_context: Floats) -> Floats:
    """The highest logit by evaluating every action: ``[R, A, H]`` and ``[R, n, H] -> [R, n]``."""
    highest = np.empty(from_context.shape[:2])
    for rows in _slices(from_context.shape[1], actions.size):
        active = np.maximum(from_context[:, rows, None] + actions[:, None], 0.0)
        highest[:, rows] = (active @ output[:, None, :, None])[..., 0].max(axis=-1)
    return highest


def _tree(slots: Sequence[Floats], output: Floats) -> Tree:
    """Split the slots, ``[C, H]`` each, into branches and leaves; the largest are the leaves."""
    ordered = sorted(slots, key=len)
    cut = len(ordered) - 1
    while cut > 0 and math.prod(map(len, ordered[cut:])) < MINIMUM_LEAVES:
        cut -= 1
    branch = _sums(ordered[:cut]) if cut else np.zeros((1, len(output)))
    leaf = _sums(ordered[cut:])
    low, high = leaf.min(axis=0), leaf.max(axis=0)
    near, far = np.where(output > 0, [high, low], [low, high])[:, :, None]
    return Tree(np.ascontiguousarray(branch.T), np.ascontiguousarray(leaf.T), near, far, output)


def _by_bounds(tree: Tree, from_context: Floats) -> Floats:
    """The highest logit for the contexts ``[H, n]`` of one replica: ``[n]``."""
    base, constant = _first_terms(tree)
    highest = np.empty(from_context.shape[1])
    # The bounds ``[n, P]`` of one part have up to 4 times `CHUNK_ENTRIES` entries; the larger
    # arrays ``[H, n, P]`` inside `_first_bound` are split further.
    for rows in _slices(len(highest), len(constant) // 4):
        part = np.ascontiguousarray(from_context[:, rows])
        highest[rows] = _search(tree, part, _first_bound(tree, base, constant, part))
    return highest


def _search(tree: Tree, from_context: Floats, bound: Floats) -> Floats:
    """The highest logit, given the bounds of all branches: ``[n, P] -> [n]``."""
    every, highest = np.arange(len(bound)), np.full(len(bound), -np.inf)
    for _ in range(min(BRANCHES_TRIED_FIRST, bound.shape[1])):
        first = bound.argmax(axis=1)
        np.maximum(highest, _best_leaf(tree, from_context, every, first), out=highest)
        bound[every, first] = -np.inf
    row, branch = np.nonzero(bound >= highest[:, None])
    np.maximum.at(highest, row, _best_leaf(tree, from_context, row, branch))
    return highest


def _first_terms(tree: Tree) -> tuple[Floats, Floats]:
    """The parts of the bound that do not depend on the context: ``[H, P]`` and ``[P]``.

    α is the slope of ReLU's chord from the lowest to the highest leaf, rounded to 0 or 1 if v is
    not above 0. Let y = branch + from_context and base = branch + (1 − α) near + α far. Then

        v max(y + (1 − α) near, −α far) = v (max(base, −from_context) + from_context − α far),

    and max_t Σ_h v_h α_h W_th is the term of the leaves.
    """
    top, width = np.maximum(tree.near, tree.far), np.abs(tree.near - tree.far)
    slope = np.clip((tree.branch + top) / np.maximum(width, 1e-6), 0, 1)
    slope = np.where(tree.output[:, None] > 0, slope, np.rint(slope))
    base = tree.branch + (1 - slope) * tree.near + slope * tree.far
    leaf_term = ((tree.leaf.T * tree.output) @ slope).max(axis=0)
    return base, leaf_term - tree.output @ (slope * tree.far)


def _first_bound(tree: Tree, base: Floats, constant: Floats, from_context: Floats) -> Floats:
    """The bound of every branch, with slopes that do not depend on the context: ``[n, P]``."""
    # max(a + b, 0) = max(a, −b) + b needs one pass over the branches; the left side needs two.
    bound = np.empty((from_context.shape[1], len(constant)))
    negative = -from_context
    for rows in _slices(len(bound), base.size):
        active = np.maximum(base[:, None], negative[:, rows, None])
        bound[rows] = (tree.output @ active.reshape(len(base), -1)).reshape(-1, len(constant))
    bound += constant
    bound += (tree.output @ from_context)[:, None]
    return bound


def _best_leaf(tree: Tree, from_context: Floats, row: Integers, branch: Integers) -> Floats:
    """The highest logit over the leaves for pairs of context and branch: ``[m] -> [m]``."""
    best = np.empty(len(row))
    for pairs in _slices(len(row), tree.leaf.size):
        before = from_context.take(row[pairs], axis=1) + tree.branch.take(branch[pairs], axis=1)
        active = np.maximum(tree.leaf[:, :, None], -before[:, None])
        value = tree.output @ active.reshape(len(before), -1)
        best[pairs] = value.reshape(tree.leaf.shape[1], -1).max(axis=0) + tree.output @ before
    return best


class NetworkEnvironment(Successes[TruthNetwork]):
    """Rewards 0 and 1 with P(1 | a, c) = σ(f(onehot(a) ⊕ c) + s), where f is a random network."""

    dimension: Count
    shift: Finite
    hidden: Count

    @property
    @abstractmethod
    def space(self) -> Space:
        """The space of actions."""

    @property
    def problem(self) -> Problem:
        return Problem(self.space, self.dimension)

    def reset(self, replicas: int, rng: np.random.Generator) -> TruthNetwork:
        choices = sum(self.space.choices)
        return draw_network(replicas, choices, self.dimension, self.hidden, rng)

    def contexts(self, world: TruthNetwork, count: int, rng: np.random.Generator) -> Floats:
        return draw_directions(len(world.output_weight), count, self.dimension, rng)

    def mean_reward(self, world: TruthNetwork, context: Floats, action: Integers) -> Floats:
        output = logits(world, self.space.choices, context, action)
        return scipy.special.expit(output + self.shift)

    def best_reward(self, world: TruthNetwork, context: Floats) -> Floats:
        output = highest_logits(world, self.space.choices, context)
        return scipy.special.expit(output + self.shift)


@dataclass(frozen=True)
class Contextual(NetworkEnvironment):
    """K arms with rewards 0 and 1, P(1 | a, c) = σ(f(onehot(a) ⊕ c) + s).

    K is ``arms``, s is ``shift``: the lower, the rarer are rewards. f is a random network with one
    layer of ``hidden`` ReLU units; every replica has a network of its own. Contexts c are uniform
    on the unit sphere in R^``dimension``.

    Reference: Xu et al. (2024), section 4.2.

    *Departs from the paper:* all arms of a decision share one context, whereas Zhou et al. (2020),
    whom the paper follows, draw one for each arm. The paper does not state the network's width and
    initialization. With 32 units, Glorot-uniform weights and no biases, the average reward E[R̄]
    agrees with the paper: 0.501, 0.123 and 0.0185 for a shift of 0, −2 and −4.
    """

    arms: Count = 4
    dimension: int = 20
    shift: float = 0.0
    hidden: int = 32

    @property
    def space(self) -> Arms:
        return Arms(self.arms)


@dataclass(frozen=True)
class DisjointContextual(Contextual):
    """`Contextual` in which every arm has weights of its own: P(1 | a, c) = σ(vᵀ ReLU(W_a c) + s).

    The random network sees onehot(a) ⊗ c, the encoding of Zhou et al. (2020), so hardly any arm is
    better than the others in most contexts. The parameters are those of `Contextual`.
    """

    def reset(self, replicas: int, rng: np.random.Generator) -> TruthNetwork:
        inputs = self.arms * self.dimension
        return draw_network(replicas, inputs, 0, self.hidden, rng)

    def mean_reward(self, world: TruthNetwork, context: Floats, action: Integers) -> Floats:
        output = np.take_along_axis(self._logits(world, context), action, axis=-1)[..., 0]
        return scipy.special.expit(output + self.shift)

    def best_reward(self, world: TruthNetwork, context: Floats) -> Floats:
        return scipy.special.expit(self._logits(world, context).max(-1) + self.shift)

    def _logits(self, world: TruthNetwork, context: Floats) -> Floats:
        """Return the output for every arm, ``[R, n, K]``."""
        replicas = len(context)
        weight = world.choice_weight.reshape(replicas, self.arms, self.dimension, self.hidden)
        outputs = [
            np.maximum(context @ weight[:, arm], 0.0) @ world.output_weight[..., None]
            for arm in range(self.arms)
        ]
        return np.concatenate(outputs, axis=-1)


@dataclass(frozen=True)
class DriftingContextual(Contextual):
    """`Contextual` with drifting network weights: after n decisions W is ρⁿ W + √(1 − ρ²ⁿ) W′.

    ρ = exp(−1 / ``memory``), and W′ is an independent draw of all weights. The mean and the
    variance of the weights stay the same, but not the shape of their distribution: the weights
    start uniform and become sums of many draws, which are closer to normal. ``memory`` is the
    number of decisions after which the correlation with the past is 1/e; the other parameters are
    those of `Contextual`.
    """

    memory: Positive = 5000.0

    def advance(self, world: TruthNetwork, count: int, rng: np.random.Generator) -> TruthNetwork:
        fresh = self.reset(len(world.output_weight), rng)
        parts = zip(world, fresh, strict=True)
        return TruthNetwork(*(drifted(old, new, count, self.memory) for old, new in parts))


@dataclass(frozen=True)
class Combinatorial(NetworkEnvironment):
    """One choice in each slot, one reward for all: P(1 | a, c) = σ(f(onehot(a₁) ⊕ … ⊕ c) + s).

    ``sizes`` gives the number of choices of each slot and s is ``shift``. The random network f
    with ``hidden`` units and the contexts of width ``dimension`` are those of `Contextual`.
    ``best_reward`` is exact and needs a space of at most `MAX_ENUMERATED_ACTIONS` joint actions;
    everything else works for any number of them.

    Reference: Xu et al. (2024), section 4.3.

    *Departs from the paper:* the paper names 2, 4, 6, 16 and 32 choices and 32768 joint actions;
    this number of joint actions needs 8 instead of 6. The paper does not state the shift; with −3
    the average reward is that of the paper, E[R̄] = 0.0483.
    """

    sizes: tuple[int, ...] = (2, 4, 8, 16, 32)
    dimension: int = 20
    shift: float = -3.0
    hidden: int = 32

    def __post_init__(self) -> None:
        Slots(self.sizes)
        super().__post_init__()

    @property
    def space(self) -> Slots:
        return Slots(self.sizes)


@dataclass(frozen=True)
class LogisticContextual(Successes[Floats]):
    """K arms with rewards 0 and 1, P(1 | a, c) = σ(θ_a · c + s), where σ(x) = 1 / (1 + e^−x).

    K is ``arms``, s is ``shift``. Contexts c in R^D are normal with independent numbers of mean 0
    and variance 1, D is ``dimension``. θ_a is drawn from N(0, I τ² / D), so θ_a · c has the
    standard deviation τ, which is ``spread``. The world is the table of θ, ``[R, K, D]``.

    Reference: the logistic model of Chapelle and Li (2011), section 3.
    """

    arms: Count = 4
    dimension: Count = 5
    shift: Finite = 0.0
    spread: Positive = 1.0

    @property
    def problem(self) -> Problem:
        return Problem(Arms(self.arms), self.dimension)

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        drawn = rng.standard_normal((replicas, self.arms, self.dimension))
        return drawn * (self.spread / math.sqrt(self.dimension))

    def contexts(self, world: Floats, count: int, rng: np.random.Generator) -> Floats:
        return rng.standard_normal((len(world), count, self.dimension))

    def mean_reward(self, world: Floats, context: Floats, action: Integers) -> Floats:
        chosen = np.take_along_axis(world, action, axis=1)
        return scipy.special.expit(np.einsum("rnd,rnd->rn", chosen, context) + self.shift)

    def best_reward(self, world: Floats, context: Floats) -> Floats:
        # The same sum as in mean_reward, arm by arm, so no arm is better by rounding.
        product = np.einsum("rkd,rnd->rkn", world, context).max(axis=1)
        return scipy.special.expit(product + self.shift)
