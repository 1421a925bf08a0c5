"""Counts that forget at several rates, weighted by how well they predict the rewards that arrive.

How fast a world changes is not known beforehand, so several answers are kept side by side. Each
supposes that the success probability of an arm is a random walk. If q is the variance of a step,
divided by the variance of one reward, N observations of an arm are worth N / (1 + q N) after one
more decision. Much that is known about an arm is forgotten fast, and little is forgotten slowly. A
discount forgets both at the same rate, and bad arms are tried again and again.

With q = 0 nothing is forgotten. An arm that is always chosen remembers about 1 / √q rows, so the
rates below remember all rows, 1000, 316, 100 and 32.

Every rate predicts each row before it is counted. With n the counts of a level, N those of the arm
and c the smoothing constants, the prediction is (n + c) / (N + Σ c). A rate's weight is multiplied
by what it predicted. A small share of all weights is then dealt out anew, so the best rate may
change (fixed share).

Reference: West and Harrison (1997), Bayesian forecasting and dynamic models, for the random walk;
Herbster and Warmuth (1998), Tracking the best expert, for the fixed share.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.numerics.tally import tally
from submax.core.running.stored import stored

RATES = np.array([0.0, 1e-6, 1e-5, 1e-4, 1e-3])
"""The rates q of forgetting; chosen on tuning seeds, see docs/research."""
FIRST_WEIGHTS = np.array([0.9, 0.025, 0.025, 0.025, 0.025])
"""Weights of the rates before the first reward: most worlds are constant."""
SWITCH_RATE = 1e-6
"""Share of the weights that is dealt out anew with every row, in proportion to the first ones."""
TOGETHER = 64
"""Rows that are predicted and forgotten in one step; longer feedback is learned in such parts."""


class MemoryRows(NamedTuple):
    """New rows, ``[R, n]``: the index of the reward level, the arm, the weight, and r / q."""

    level: Integers
    arm: Integers
    weight: Floats
    importance: Floats

    def parts(self) -> list[Self]:
        """Return the rows of positive weight in parts of at most ``TOGETHER`` rows."""
        rows, there = self, self.weight > 0
        if not there.all():
            # Absent rows go to the end, so they do not change which rows are learned together.
            order = np.argsort(~there, axis=1, kind="stable")[:, : there.sum(axis=1).max()]
            there = np.take_along_axis(there, order, axis=1)
            rows = self._mapped(
                lambda part: np.where(there, np.take_along_axis(part, order, axis=1), 0)
            )
        firsts = range(0, rows.arm.shape[1], TOGETHER)
        return [rows._part(first) for first in firsts]

    def _part(self, first: int) -> Self:
        return self._mapped(lambda part: part[:, first : first + TOGETHER])

    def _mapped(self, change: Callable[[Any], Any]) -> Self:
        return type(self)(*map(change, self))


@stored("memory-counts")
class MemoryCounts(NamedTuple):
    """What each of M rates remembers, and the ``weights [R, M]`` of the rates.

    ``sums [R, M, L + 1, A]`` are the counts of each level and arm, and below them the sums of r / q
    of each arm.
    """

    sums: Floats
    weights: Floats

    @classmethod
    def empty(cls, replicas: int, levels: int, arms: int) -> Self:
        """Return the counts before any feedback."""
        sums = np.zeros((replicas, len(RATES), levels + 1, arms))
        return cls(sums, np.tile(FIRST_WEIGHTS, (replicas, 1)))

    def after(self, rows: MemoryRows, smoothing: Floats) -> Self:
        """Return the counts after more rows, predicted with the constants ``smoothing [R, L]``."""
        memories = self
        for part in rows.parts():
            memories = memories._after_part(part, smoothing)
        return memories

    def mixed(self) -> tuple[Floats, Floats]:
        """Return the weighted means of counts ``[R, L, A]``, and of sums of r / q ``[R, A]``."""
        replicas, rates, rows, arms = self.sums.shape
        means = self.weights[:, None] @ self.sums.reshape(replicas, rates, -1)
        means = means.reshape(replicas, rows, arms)
        return means[:, :-1], means[:, -1]

    def _after_part(self, rows: MemoryRows, smoothing: Floats) -> Self:
        replicas, _, width, arms = self.sums.shape
        new = np.count_nonzero(rows.weight, axis=1)[:, None]
        pulls = self.sums[:, :, :-1].sum(axis=2, keepdims=True)
        sums = self.sums / (1 + (new * RATES)[:, :, None, None] * pulls)
        likelihood = _log_likelihood(sums[:, :, :-1], rows, smoothing)
        counts = tally(rows.level * arms + rows.arm, rows.weight, (width - 1) * arms)
        sums[:, :, :-1] += counts.reshape(replicas, 1, width - 1, arms)
        sums[:, :, -1] += tally(rows.arm, rows.importance, arms)[:, None]
        weights = self.weights * np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        kept = (1 - SWITCH_RATE) ** new
        weights = kept * weights + (1 - kept) * FIRST_WEIGHTS
        return type(self)(sums, np.where(new > 0, weights, self.weights))


def _log_likelihood(counts: Floats, rows: MemoryRows, smoothing: Floats) -> Floats:
    """Return the log-likelihood of the rows for counts of each rate: ``[R, M, L, A] -> [R, M]``.

    A row also knows the rows before it, so the likelihood is that of a Dirichlet-multinomial
    distribution and does not depend on their order.
    """
    level, arm, weight, _ = rows
    replica = np.arange(len(arm))[:, None]
    of_level = counts.transpose(0, 2, 3, 1)[replica, level, arm]
    of_arm = counts.sum(axis=2).swapaxes(1, 2)[replica, arm]
    hits = of_level + np.take_along_axis(smoothing, level, axis=1)[..., None]
    pulls = of_arm + smoothing.sum(axis=1)[:, None, None]
    if arm.shape[1] > 1:
        before = np.tril(arm[:, :, None] == arm[:, None], -1) * weight[:, None]
        pulls += before.sum(axis=2)[..., None]
        hits += (before * (level[:, :, None] == level[:, None])).sum(axis=2)[..., None]
    likelihood: Floats = (weight[:, None] @ np.log(hits / pulls))[:, 0]
    return likelihood
