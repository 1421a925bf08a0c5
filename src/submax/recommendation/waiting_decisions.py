"""How many decisions of a bandit wait for their rewards at the same time."""

import math

from submax.live.log.ledger import Ledger
from submax.live.monitoring.rollups.decision_sums import DecisionSums
from submax.live.monitoring.rollups.delay_bins import median_delays


def waiting_decisions(ledger: Ledger) -> int:
    """Return how many decisions are made before the reward of the first one is learned from.

    With a ``reward_wait`` these are the decisions that had not matured at the last event. Without
    one a decision matures with its reward, and one whose reward never comes would wait for ever:
    then it is the median delay of the rewards times the decisions per second (Little's law).
    """
    decided = ledger.counts["decisions"]
    if ledger.settings.reward_wait > 0:
        return decided - ledger.counts["matured"]
    timed = ledger.rollups.delays.sums.bins.sum(axis=0, keepdims=True)
    delay = float(median_delays(timed)[0]) if timed.sum() else 0.0
    return min(decided, math.ceil(delay * _decisions_per_second(ledger)))


def _decisions_per_second(ledger: Ledger) -> float:
    """The mean rate from the first to the last of the minutes that are kept."""
    minutes = ledger.rollups.tiers[0]
    if not len(minutes.groups.keys):
        return 0.0
    interval = minutes.groups.leading
    seconds = float(interval.max() - interval.min() + 1) * minutes.resolution.seconds
    return float(DecisionSums.of_table(minutes.groups.rows).decisions.sum()) / seconds
