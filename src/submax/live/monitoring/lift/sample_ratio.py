"""Tests whether a group is as large as it was drawn to be, at every look."""

from typing import NamedTuple

import numpy as np
import scipy

from submax.core.arrays import Floats, Integers

CONCENTRATION = 200.0
"""How strongly the alternatives of the test gather around the expected share: those that differ
from it by some hundredths are found soonest."""
SAMPLE_RATIO_ERROR = 0.01
"""The probability of a false alarm, at all looks together."""


class SampleRatio(NamedTuple):
    """The ``expected`` and the ``observed`` share of a group, and whether they contradict.

    ``p_value`` is valid at every look: if the group is drawn as it should be, the chance that it is
    ever below ε is at most ε. ``alarm`` means that it is below ``SAMPLE_RATIO_ERROR``.
    """

    expected: float
    observed: float
    p_value: float
    alarm: bool

    @classmethod
    def of(cls, expected: float, chosen: int, count: int) -> "SampleRatio":
        """Test the ``chosen`` of ``count`` independent draws with the chance ``expected``."""
        evidence = float(log_evidence(expected, np.array(chosen), np.array(count)))
        p_value = float(np.exp(-max(evidence, 0.0)))
        observed = chosen / count if count else expected
        return cls(expected, observed, p_value, p_value < SAMPLE_RATIO_ERROR)


def log_evidence(expected: float, chosen: Integers, count: Integers) -> Floats:
    """Return the logarithm of the evidence against the expected share.

    It is the likelihood of the counts under shares with a beta distribution around the expected
    share, divided by that under the expected share: a martingale of mean 1 if the draws have the
    expected share. By Ville's inequality it ever reaches 1 / ε with a chance of at most ε.

    Reference: Lindon and Malek (2022), anytime-valid inference for multinomial count data.
    """
    first, second = CONCENTRATION * expected, CONCENTRATION * (1 - expected)
    others = count - chosen
    betaln = scipy.special.betaln
    mixed = betaln(first + chosen, second + others) - betaln(first, second)
    evidence: Floats = mixed - chosen * np.log(expected) - others * np.log1p(-expected)
    return evidence
