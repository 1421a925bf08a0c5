"""What an operator sees of each choice."""

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from submax.bandit.active_version import ActiveVersion
from submax.core.arrays import Floats
from submax.core.rewards import Binary
from submax.live.log.action_tally import ChoiceTally
from submax.live.log.ledger import Ledger
from submax.schema.actions import ChoiceIndices

QUANTILE = 1.96
"""The standard normal quantile of an interval that is right in 95 of 100 cases."""
AVERAGED_CONTEXTS = 200
"""Probabilities are averaged over so many contexts, the last that were learned from."""


class ArmStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A choice with its numbers.

    ``share`` is its share of all decisions, ``rows`` is the number of decisions that were learned
    from, and ``reward_rate`` is their mean reward, with a 95 % interval for one look from ``low``
    to ``high``. For plain arms, rewards are weighted by 1 / propensity, so that an arm is not
    judged by the contexts or the times in which it was chosen most often. ``probability`` is that
    of the next decision, a mean over recent contexts; None if it cannot be computed.
    """

    slot: str
    choice: str
    status: str
    decisions: int
    share: float | None
    rows: int
    reward_rate: float | None
    low: float | None
    high: float | None
    probability: float | None


def recent_contexts(ledger: Ledger) -> Floats:
    """The encoded contexts over which probabilities are averaged."""
    return ledger.rows.last.context[-AVERAGED_CONTEXTS:].astype(np.float64)


def arm_statuses(
    serving: ActiveVersion, ledger: Ledger, probabilities: Floats | None
) -> list[ArmStatus]:
    """The choices of all slots with their numbers, in the order of the menu.

    ``probabilities`` are those of the active joint actions at the next decision, if known.
    """
    by_slot, scale = _by_slot(probabilities, serving.active), serving.settings.scale
    found = []
    for number, slot in enumerate(serving.menu.slots):
        tallies = ledger.tally.choices[number]
        known = [*tallies, *[ChoiceTally()] * (len(slot.choices) - len(tallies))]
        total = sum(one.decisions for one in known)
        for index, (choice, tally) in enumerate(zip(slot.choices, known, strict=True)):
            rate, low, high = weighted_rate(tally, scale)
            chance = None if by_slot is None else by_slot[number].get(index, 0.0)
            found.append(
                ArmStatus(
                    slot=slot.name,
                    choice=choice.name,
                    status=choice.status,
                    decisions=tally.decisions,
                    share=tally.decisions / total if total else None,
                    rows=tally.rows,
                    reward_rate=rate,
                    low=low,
                    high=high,
                    probability=chance,
                )
            )
    return found


def weighted_rate(
    tally: ChoiceTally, scale: object
) -> tuple[float | None, float | None, float | None]:
    """The mean reward weighted by 1 / propensity, and the ends of its interval.

    The mean is Σ w r / Σ w, with the variance Σ w² (r − mean)² / (Σ w)². For binary rewards the
    interval is Wilson's, for (Σ w)² / Σ w² observations, because it is right for few rows too.
    """
    if not tally.rows:
        return None, None, None
    weight, square, reward, square_reward, square_squares = tally.weights
    mean = reward / weight
    if isinstance(scale, Binary):
        return mean, *wilson_interval(min(max(mean, 0.0), 1.0), weight**2 / square)
    if tally.rows < 2:
        return mean, None, None
    spread = square_squares - 2 * mean * square_reward + mean**2 * square
    half = QUANTILE * math.sqrt(max(spread, 0.0)) / weight
    return mean, mean - half, mean + half


def wilson_interval(mean: float, count: float) -> tuple[float, float]:
    """Wilson's 95 % interval for a probability that was found in ``count`` observations."""
    shrink = 1 + QUANTILE**2 / count
    centre = (mean + QUANTILE**2 / (2 * count)) / shrink
    spread = mean * (1 - mean) / count + QUANTILE**2 / (4 * count**2)
    half = QUANTILE * math.sqrt(spread) / shrink
    return max(centre - half, 0.0), min(centre + half, 1.0)


def _by_slot(
    probabilities: Floats | None, active: ChoiceIndices
) -> Sequence[dict[int, float]] | None:
    """The probabilities of the choices of each slot, by index, from those of joint actions."""
    if probabilities is None:
        return None
    joint = np.reshape(probabilities, [len(indices) for indices in active])
    found = []
    for slot, indices in enumerate(active):
        others = tuple(axis for axis in range(joint.ndim) if axis != slot)
        found.append(dict(zip(indices, joint.sum(axis=others).tolist(), strict=True)))
    return found
