"""How far the numbers of an evaluation can be trusted."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.logs.log import Log
from submax.evaluation.report.witness import Seen

STRANGE = 4.0
"""Standard errors beyond which chance is no explanation."""
UNSEEN = 10.0
"""Of terms as large as the largest so many may be expected and none come, once in 22 000 times."""
ROUNDING = 1e-9
"""An error below this is none."""
FEWEST_TAKEN = 30
"""Rows for which a mean is about normal."""


class Diagnostics(NamedTuple):
    """Of the weights w = π / p of one policy over n ``rows``.

    ``effective`` is the effective sample size (Σ w)² / Σ w², ``largest`` the largest weight and
    ``largest_share`` its share of Σ w. ``mean_weight`` should be 1, up to ``mean_error``, its
    standard error; it is less where actions of the policy had no chance. ``unsupported`` is the
    policy's probability of choices that the evaluated rows never have.
    """

    rows: int
    effective: float
    largest: float
    largest_share: float
    mean_weight: float
    mean_error: float
    unsupported: float

    @classmethod
    def of(cls, seen: Seen) -> "Diagnostics":
        """From the evidence about a policy."""
        return cls.of_weights(seen.evidence.weight, float(seen.unsupported.mean()))

    @classmethod
    def of_weights(cls, weight: Floats, unsupported: float = 0.0) -> "Diagnostics":
        """From weights, which for slots may be negative: then their sizes count."""
        size = np.abs(weight)
        total, square = float(size.sum()), float((size**2).sum())
        largest = float(size.max())
        return cls(
            rows=len(weight),
            effective=total**2 / square if square > 0 else 0.0,
            largest=largest,
            largest_share=largest / total if total > 0 else 0.0,
            mean_weight=float(weight.mean()),
            mean_error=float(weight.std() / np.sqrt(len(weight))),
            unsupported=unsupported,
        )


class Calibration(NamedTuple):
    """The choice whose logged propensities fit worst to how often it was taken.

    Over the rows with a choice, Σ 1 / p is on average the number of rows in which it was eligible
    times that of joint actions it is part of; ``ratio`` is what it is instead, over this, and ``z``
    how many standard errors that is from 1, allowing for rare rows that did not come.
    """

    choice: str
    ratio: float
    z: float

    @property
    def good(self) -> bool:
        """Whether chance explains the difference."""
        return not abs(self.z) > STRANGE


def calibration(log: Log) -> Calibration | None:
    """The worst choice of all slots; None where nothing can be compared."""
    found: list[Calibration] = []
    inverse, menu = 1.0 / log.propensity, log.schema.menu
    volume = float(np.prod([one.high - one.low for one in menu.ranges]))
    sizes = np.array([[len(numbers) for numbers in shown] for shown in log.menus], dtype=float)
    joint = sizes.prod(axis=1) * volume
    for slot, one in enumerate(menu.slots):
        # In a row where the choice is eligible, so many joint actions hold it.
        score = inverse / (joint / sizes[:, slot])[log.shown]
        shown = log.eligible_choices(slot)
        for number, choice in enumerate(one.choices):
            may = shown[:, number][log.shown]
            taken = may & (log.action[:, slot] == number)
            # Few, or none: that is a matter of support.
            if np.count_nonzero(taken) >= FEWEST_TAKEN:
                terms = np.where(taken, score, 0.0)[may]
                z = distance(terms, float(score[may].max()))
                found.append(Calibration(choice.name, float(terms.mean()), z))
    return max(found, key=lambda one: abs(one.z), default=None)


def distance(terms: Floats, largest: float) -> float:
    """How many standard errors the mean of terms is from 1.

    Where it is below, terms as large as the ``largest`` may be rare and not have come.
    """
    off = float(terms.mean()) - 1
    missing = UNSEEN / STRANGE * largest / len(terms) if off < 0 else 0.0
    error = float(terms.std() / np.sqrt(len(terms))) + missing
    # Terms that are all the same, such as in a log of one action, have no error.
    return off / max(error, ROUNDING)
