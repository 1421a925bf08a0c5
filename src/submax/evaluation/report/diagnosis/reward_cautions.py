"""Cautions about rewards that are rare, or of which one is much larger than the others."""

from collections.abc import Iterator

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.contracts.counts import mean
from submax.evaluation.report.diagnosis.caution import Caution
from submax.evaluation.report.diagnosis.diagnostics import Diagnostics

FEWEST_REWARDS = 10.0
"""Effective rows with a reward other than the most frequent one below which there is a caution:
with 10 of them the standard error is a third of the value."""
LARGEST_REWARD_SHARE = 0.25
"""One row with more than this share of the variance of all rewards makes intervals unreliable."""


def rare_reward_cautions(found: Diagnostics) -> Iterator[Caution]:
    """Yield a caution if too few rows that count for the policy were rewarded.

    Rows are counted by their weights. A reward counts if it differs from the usual one.
    """
    if found.effective_rewards >= FEWEST_REWARDS:
        return
    if found.effective_rewards == 0:
        sentence = (
            f"no row that counts for the policy has another reward than {found.usual:g}: the log "
            "says only how far from it the value could be"
        )
    else:
        sentence = (
            f"by their weights, rows with another reward than {found.usual:g} are worth only "
            f"{found.effective_rewards:.1f} rows of the policy itself: the value is hardly known "
            f"before there are {FEWEST_REWARDS:g}"
        )
    yield Caution("all", sentence)


def large_reward_cautions(reward: Floats, count: Floats | None = None) -> Iterator[Caution]:
    """Yield a caution if one reward decides, although rewards have more than two values."""
    squares = (reward - mean(reward, count)) ** 2
    total = float(squares.sum() if count is None else count @ squares)
    row = int(np.argmax(squares))
    if not total > 0 or squares[row] <= LARGEST_REWARD_SHARE * total:
        return
    alone = count is None or count[row] == 1
    others = np.delete(reward, row) if alone else reward
    if np.unique(reward).size <= 2:
        # The rarer one of two values is no outlier, and there is a caution about rare rewards.
        return
    yield Caution(
        "all",
        f"one row has the reward {reward[row]:g} and causes {squares[row] / total:.0%} of the "
        f"variance of all rewards (the others are from {others.min():g} to {others.max():g}): "
        "check this row, because one row decides every number",
    )
