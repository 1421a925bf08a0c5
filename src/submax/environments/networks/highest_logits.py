"""The highest output of a random network over all joint actions, by branch and bound.

A branch is one choice in every slot except the largest; its leaves t are the choices of the
largest slot. Let y_h be the input to hidden unit h from the branch and the context, and W_th,
between low_h and high_h, the input from leaf t. Then for any slope α_h,

    max_t Σ_h v_h ReLU(y_h + W_th) ≤ Σ_h v_h max(y_h + (1 − α_h) near_h, −α_h far_h)
                                     + max_t Σ_h v_h α_h W_th,

where for v_h > 0 near is high and far is low; for v_h < 0 near is low, far is high, and α is 0 or
1. A first bound uses one slope per branch and costs one maximum and one product. Branches that the
first bound does not exclude get a tighter bound, with slopes for this branch and context. Only
the few branches that are left then need an evaluation of all their leaves.
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

LISTED_ACTIONS = 256
"""Up to this number of joint actions, evaluating all of them is faster than computing bounds."""
MINIMUM_LEAVES = 32
"""The least number of leaves of a branch. If the largest slot has fewer choices, the next largest
slots are joined to it."""
BRANCHES_TRIED_FIRST = 4
"""The number of branches of every context whose leaves are evaluated before the tighter bounds are
computed: their best leaf excludes most other branches."""
CHUNK_ENTRIES = 2**19
"""Most entries of an intermediate array, 2 MiB of float32; limits memory for any number of rows."""

# Bounds need not be exact, only high enough, so they are computed in float32, in half the time.
Reals: TypeAlias = NDArray[np.floating[Any]]


class Tree(NamedTuple):
    """The joint actions of one replica as P branches with J leaves each, over H hidden units.

    ``branch [H, P]`` and ``leaf [H, J]`` are the inputs to the hidden units, ``near`` and ``far``,
    ``[H, 1]``, the extremes of the leaves, and ``output [H]`` the output weights v. The first
    ``rising`` units are those with v above zero.
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
            f"the best joint action cannot be found among {size} joint actions, at most "
            f"{LISTING_LIMIT} are allowed: use smaller sizes"
        )
    layer = context @ truth.context_weight
    slots = np.split(truth.choice_weight, np.cumsum(sizes)[:-1], axis=1)
    if size <= LISTED_ACTIONS:
        return _by_listing(_sums(slots), truth.output_weight, layer)
    highest = np.empty(layer.shape[:2])
    for replica, output in enumerate(truth.output_weight):
        order = np.argsort(output <= 0, kind="stable")
        tree = _tree([slot[replica][:, order] for slot in slots], output[order])
        highest[replica] = _by_bounds(tree, layer[replica].T.take(order, axis=0))
    return highest


def _slices(length: int, width: int) -> list[slice]:
    """Split ``length`` rows of ``width`` numbers into parts of at most `CHUNK_ENTRIES`."""
    step = max(1, CHUNK_ENTRIES // max(1, width))
    return [slice(start, start + step) for start in range(0, length, step)]


def _sums(slots: Sequence[Floats]) -> Floats:
    """The sum of one row from each slot, for all combinations: ``[..., C, H] -> [..., A, H]``."""
    *before, hidden = slots[0].shape
    total = np.zeros((*before[:-1], 1, hidden))
    for slot in slots:
        pairs = total[..., :, None, :] + slot[..., None, :, :]
        total = pairs.reshape(*before[:-1], -1, hidden)
    return total


def _by_listing(actions: Floats, output: Floats, layer: Floats) -> Floats:
    """The highest logit by evaluating every action: ``[R, A, H]`` and ``[R, n, H] -> [R, n]``."""
    highest = np.empty(layer.shape[:2])
    for rows in _slices(layer.shape[1], actions.size):
        active = np.maximum(layer[:, rows, None] + actions[:, None], 0.0)
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
    hidden_first = np.ascontiguousarray(branch.T), np.ascontiguousarray(leaf.T)
    return Tree(*hidden_first, near, far, output, int(np.count_nonzero(output > 0)))


def _narrow(tree: Tree) -> Tree:
    """The same tree in float32."""
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
    """An upper limit of the float32 rounding error of each context's logits and bounds: ``[n]``."""
    size = np.abs(tree.branch).max(axis=1) + np.abs(tree.leaf).max(axis=1)
    largest = np.abs(tree.output) @ (np.abs(layer) + 2 * size[:, None])
    margin = (2 * len(size) + 32) * np.finfo(np.float32).eps * largest
    return np.asarray(margin, dtype=np.float32)


def _search(tree: Tree, narrow: Tree, layer: Floats, bound: Reals, margin: Reals) -> Floats:
    """The highest logit, given the first bounds of all branches: ``[n, P] -> [n]``."""
    short = layer.astype(np.float32)
    floor = _first_floor(narrow, short, bound) - margin
    row, branch = np.nonzero(bound >= floor[:, None])
    bound = _close_bound(narrow, short, row, branch) + margin[row]
    lead = np.full_like(floor, -np.inf)
    np.maximum.at(lead, row, bound)
    # The branch with the highest bound is evaluated first: its best leaf excludes most others.
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
    """A lower limit ``[n]``: the best leaf of the few branches with the highest bounds."""
    row, rest = np.arange(len(bound)), bound.copy()
    floor = np.full(len(bound), -np.inf, dtype=np.float32)
    for _ in range(min(BRANCHES_TRIED_FIRST, bound.shape[1])):
        first = rest.argmax(axis=1)
        np.maximum(floor, _best_leaf(tree, layer, row, first), out=floor)
        rest[row, first] = -np.inf
    return floor


def _slopes(tree: Tree, before: Reals) -> Reals:
    """The slope α of ReLU's chord from low to high, rounded to 0 or 1 if v is not above 0."""
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
    """The parts of the first bound that do not depend on the context: ``[H, P]`` and ``[P]``."""
    slope = _slopes(tree, tree.branch)
    base = tree.branch + (1 - slope) * tree.near + slope * tree.far
    return base, _leaf_term(tree, slope) - tree.output @ (slope * tree.far)


def _first_bound(tree: Tree, base: Reals, constant: Reals, layer: Reals) -> Reals:
    """The first bound, with one slope per branch: ``[H, n] -> [n, P]``."""
    # max(a + b, 0) = max(a, −b) + b needs one pass over the branches; the left side needs two.
    bound = np.empty((layer.shape[1], len(constant)), dtype=np.float32)
    negative = -layer
    for rows in _slices(len(bound), base.size):
        active = np.maximum(base[:, None], negative[:, rows, None])
        bound[rows] = (tree.output @ active.reshape(len(base), -1)).reshape(-1, len(constant))
    bound += constant
    bound += (tree.output @ layer)[:, None]
    return bound


def _close_bound(tree: Tree, layer: Reals, row: Integers, branch: Integers) -> Reals:
    """The tighter bound, with slopes for each pair of context and branch: ``[m] -> [m]``."""
    bound = np.empty(len(row), dtype=np.float32)
    for pairs in _slices(len(row), 2 * len(layer)):
        active = layer.take(row[pairs], axis=1)
        active += tree.branch.take(branch[pairs], axis=1)
        slope = _slopes(tree, active)
        active += tree.near
        active -= slope * tree.near
        np.maximum(active, slope * -tree.far, out=active)
        bound[pairs] = tree.output @ active + _leaf_term(tree, slope)
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
