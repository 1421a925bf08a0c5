"""The best of all joint actions under a random network.

The highest logit is found by branch and bound. A branch is one choice in all slots but the
largest, its leaves t are the choices there. With y_h what the branch and the context give hidden
unit h, W_th what the leaf adds, between low_h and high_h, and any slope α_h,

    max_t Σ_h v_h ReLU(y_h + W_th) ≤ Σ_h v_h max(y_h + (1 − α_h) near_h, −α_h far_h)
                                     + max_t Σ_h v_h α_h W_th,

where near is high and far is low for v_h > 0, the other way round for v_h < 0, and α is then 0 or
1. Slopes that suit each branch give a first bound that costs one maximum and one product; slopes
that suit branch and context give a closer one for what is left; few branches need their leaves.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.core.spaces.space import LISTING_LIMIT
from submax.environments.networks.truth_network import TruthNetwork

FEW_ACTIONS = 256
"""Up to so many joint actions listing them is cheaper than bounds."""
LEAVES = 32
"""A branch has at least so many leaves; where the largest slot has fewer, the next one joins."""
TRIED_FIRST = 4
"""So many branches of every context are looked into before any closer bound."""
CHUNK = 2**19
"""Entries of the largest array made at once."""

# Bounds need not be exact, only high enough: with half the width they take half the time.
Reals: TypeAlias = NDArray[np.floating[Any]]


class Tree(NamedTuple):
    """The joint actions of one replica, hidden units first: ``branch [H, P]``, ``leaf [H, J]``.

    ``near`` and ``far`` are ``[H, 1]``; the first ``rising`` units are those whose
    ``output [H]`` is above zero.
    """

    branch: Reals
    leaf: Reals
    near: Reals
    far: Reals
    output: Reals
    rising: int


def highest_logits(truth: TruthNetwork, sizes: Sequence[int], context: Floats) -> Floats:
    """The highest logit of all joint actions in each context: ``[R, n, D] -> [R, n]``."""
    size = math.prod(sizes)
    if size > LISTING_LIMIT:
        raise InputError(
            f"the best of all joint actions is found among at most {LISTING_LIMIT}, "
            f"and this space has {size}"
        )
    layer = context @ truth.context_weight
    slots = np.split(truth.choice_weight, np.cumsum(sizes)[:-1], axis=1)
    if size <= FEW_ACTIONS:
        return _by_listing(_sums(slots), truth.output_weight, layer)
    highest = np.empty(layer.shape[:2])
    for replica, output in enumerate(truth.output_weight):
        order = np.argsort(output <= 0, kind="stable")
        tree = _tree([slot[replica][:, order] for slot in slots], output[order])
        highest[replica] = _by_bounds(tree, layer[replica].T.take(order, axis=0))
    return highest


def _slices(length: int, width: int) -> list[slice]:
    """Parts of a list whose entries are ``width`` numbers wide."""
    step = max(1, CHUNK // max(1, width))
    return [slice(start, start + step) for start in range(0, length, step)]


def _sums(slots: Sequence[Floats]) -> Floats:
    """Sum of one row from each slot, ``[..., C, H]``, for all combinations: ``[..., A, H]``."""
    *before, hidden = slots[0].shape
    total = np.zeros((*before[:-1], 1, hidden))
    for slot in slots:
        pairs = total[..., :, None, :] + slot[..., None, :, :]
        total = pairs.reshape(*before[:-1], -1, hidden)
    return total


def _by_listing(actions: Floats, output: Floats, layer: Floats) -> Floats:
    """Every action ``[R, A, H]`` in every context ``[R, n, H]``, for all replicas at once."""
    highest = np.empty(layer.shape[:2])
    for rows in _slices(layer.shape[1], actions.size):
        active = np.maximum(layer[:, rows, None] + actions[:, None], 0.0)
        highest[:, rows] = (active @ output[:, None, :, None])[..., 0].max(axis=-1)
    return highest


def _tree(slots: Sequence[Floats], output: Floats) -> Tree:
    """Part the slots, ``[C, H]`` each, into branch and leaf; the largest is the leaf."""
    ordered = sorted(slots, key=len)
    cut = len(ordered) - 1
    while cut > 0 and math.prod(map(len, ordered[cut:])) < LEAVES:
        cut -= 1
    branch = _sums(ordered[:cut]) if cut else np.zeros((1, len(output)))
    leaf = _sums(ordered[cut:])
    low, high = leaf.min(axis=0), leaf.max(axis=0)
    near, far = np.where(output > 0, [high, low], [low, high])[:, :, None]
    hidden_first = np.ascontiguousarray(branch.T), np.ascontiguousarray(leaf.T)
    return Tree(*hidden_first, near, far, output, int(np.count_nonzero(output > 0)))


def _narrow(tree: Tree) -> Tree:
    """The same tree at half width."""
    branch, leaf, near, far, output = (part.astype(np.float32) for part in tree[:-1])
    return Tree(branch, leaf, near, far, output, tree.rising)


def _by_bounds(tree: Tree, layer: Floats) -> Floats:
    """The highest logit for the contexts ``[H, n]`` of one replica: ``[n]``."""
    narrow = _narrow(tree)
    base, constant = _first_terms(narrow)
    margin = _margin(tree, layer)
    highest = np.empty(layer.shape[1])
    for rows in _slices(len(highest), len(constant) // 4):
        bound = _first_bound(narrow, base, constant, layer[:, rows].astype(np.float32))
        bound += margin[rows, None]
        highest[rows] = _search(tree, narrow, layer[:, rows], bound, margin[rows])
    return highest


def _margin(tree: Tree, layer: Floats) -> Reals:
    """The most by which rounding at half width errs: a few steps a unit, and twice that."""
    size = np.abs(tree.branch).max(axis=1) + np.abs(tree.leaf).max(axis=1)
    largest = np.abs(tree.output) @ (np.abs(layer) + 2 * size[:, None])
    margin = (2 * len(size) + 32) * np.finfo(np.float32).eps * largest
    return np.asarray(margin, dtype=np.float32)


def _search(tree: Tree, narrow: Tree, layer: Floats, bound: Reals, margin: Reals) -> Floats:
    """The highest logit, given the first bound of all branches: ``[n, P] -> [n]``."""
    short = layer.astype(np.float32)
    floor = _first_floor(narrow, short, bound) - margin
    row, branch = np.nonzero(bound >= floor[:, None])
    bound = _close_bound(narrow, short, row, branch) + margin[row]
    lead = np.full_like(floor, -np.inf)
    np.maximum.at(lead, row, bound)
    # The most promising branch of every context comes first: it settles most of the others.
    for wanted in (bound >= lead[row], bound < lead[row]):
        left = np.flatnonzero(wanted & (bound >= floor[row]))
        value = _best_leaf(narrow, short, row[left], branch[left])
        np.maximum.at(floor, row[left], value - margin[row[left]])
        bound[left] = value + margin[row[left]]
    left = np.flatnonzero(bound >= floor[row])
    highest = np.full(len(floor), -np.inf)
    np.maximum.at(highest, row[left], _best_leaf(tree, layer, row[left], branch[left]))
    return highest


def _first_floor(tree: Tree, layer: Reals, bound: Reals) -> Reals:
    """The highest logit in the few branches with the highest bounds: ``[n]``."""
    row, rest = np.arange(len(bound)), bound.copy()
    floor = np.full(len(bound), -np.inf, dtype=np.float32)
    for _ in range(min(TRIED_FIRST, bound.shape[1])):
        first = rest.argmax(axis=1)
        np.maximum(floor, _best_leaf(tree, layer, row, first), out=floor)
        rest[row, first] = -np.inf
    return floor


def _slopes(tree: Tree, before: Reals) -> Reals:
    """The slope of ReLU's chord from low to high, rounded to 0 or 1 where v is not above 0."""
    slope: Reals = before + np.maximum(tree.near, tree.far)
    slope *= 1 / np.maximum(np.abs(tree.near - tree.far), 1e-6)
    np.maximum(slope, 0, out=slope)
    np.minimum(slope, 1, out=slope)
    np.rint(slope[tree.rising :], out=slope[tree.rising :])
    return slope


def _leaf_term(tree: Tree, slope: Reals) -> Reals:
    """max_t Σ_h v_h α_h W_th: ``[H, m] -> [m]``."""
    term: Reals = ((tree.leaf.T * tree.output) @ slope).max(axis=0)
    return term


def _first_terms(tree: Tree) -> tuple[Reals, Reals]:
    """What the first bound takes from each branch: ``[H, P]`` and ``[P]``."""
    slope = _slopes(tree, tree.branch)
    base = tree.branch + (1 - slope) * tree.near + slope * tree.far
    return base, _leaf_term(tree, slope) - tree.output @ (slope * tree.far)


def _first_bound(tree: Tree, base: Reals, constant: Reals, layer: Reals) -> Reals:
    """Bound of every branch with its own slopes: ``[H, n] -> [n, P]``."""
    # max(a + b, 0) = max(a, −b) + b takes one pass over the branches where the sum takes two.
    bound = np.empty((layer.shape[1], len(constant)), dtype=np.float32)
    negative = -layer
    for rows in _slices(len(bound), base.size):
        active = np.maximum(base[:, None], negative[:, rows, None])
        bound[rows] = (tree.output @ active.reshape(len(base), -1)).reshape(-1, len(constant))
    bound += constant
    bound += (tree.output @ layer)[:, None]
    return bound


def _close_bound(tree: Tree, layer: Reals, row: Integers, branch: Integers) -> Reals:
    """Bound of pairs of context and branch with slopes for this pair: ``[m] -> [m]``."""
    bound = np.empty(len(row), dtype=np.float32)
    for pairs in _slices(len(row), 2 * len(layer)):
        reach = layer.take(row[pairs], axis=1)
        reach += tree.branch.take(branch[pairs], axis=1)
        slope = _slopes(tree, reach)
        reach += tree.near
        reach -= slope * tree.near
        np.maximum(reach, slope * -tree.far, out=reach)
        bound[pairs] = tree.output @ reach + _leaf_term(tree, slope)
    return bound


def _best_leaf(tree: Tree, layer: Reals, row: Integers, branch: Integers) -> Reals:
    """The highest logit over the leaves for pairs of context and branch: ``[m] -> [m]``."""
    best = np.empty(len(row), dtype=layer.dtype)
    for pairs in _slices(len(row), tree.leaf.size):
        before = layer.take(row[pairs], axis=1) + tree.branch.take(branch[pairs], axis=1)
        active = np.maximum(tree.leaf[:, :, None], -before[:, None])
        value = tree.output @ active.reshape(len(before), -1)
        best[pairs] = value.reshape(tree.leaf.shape[1], -1).max(axis=0) + tree.output @ before
    return best
