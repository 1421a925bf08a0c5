"""The importance-sampled reward of conditioned policies, from stored rows."""

from collections.abc import Callable

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.contracts.problem import Problem
from submax.core.memory.buffer import Buffer

NUMBERS_PER_PART = 2**22
"""About this many intermediate numbers are held in memory at a time: 34 MB."""


def importance_values(
    buffer: Buffer,
    problem: Problem,
    prob: Callable[[Floats, Actions], Floats],
    levels: int,
    numbers: int,
) -> Floats:
    """Return V_l = (1/N) Σ_i w_i r_i π(a_i | c_i, l) / q_i over the rows, ``[R, L]``.

    N is the sum of the weights w, and q the logged probability; NaN if it was not logged for a
    row whose reward is not 0. ``prob(context, action)`` returns π as `Belief.prob` does, and
    ``numbers`` is how many intermediate numbers it needs for one row of all replicas.
    """
    earned = buffer.weight * buffer.reward
    paid = np.any(earned != 0, axis=0)
    with np.errstate(invalid="ignore"):
        ratio = np.where(earned != 0, earned * np.exp(-buffer.log_prob), 0.0)[:, paid]
    context = buffer.context[:, paid].astype(np.float64)
    action = buffer.action[:, paid, None].astype(problem.space.dtype)
    total = np.zeros((len(ratio), levels))
    rows = max(1, NUMBERS_PER_PART // numbers)
    for begin in range(0, ratio.shape[1], rows):
        part = slice(begin, begin + rows)
        found = prob(context[:, part], action[:, part])[..., 0]
        total += np.einsum("rn,rnl->rl", ratio[:, part], found)
    weight = buffer.weight.sum(axis=1)
    result: Floats = total / np.where(weight > 0, weight, 1.0)[:, None]
    return result
