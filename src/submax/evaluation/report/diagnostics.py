"""How far the numbers of an evaluation can be trusted."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.report.policy_evidence import PolicyEvidence

SIGNIFICANT_ERRORS = 4.0
"""A difference of more standard errors than this is not explained by chance: for a normal mean
this happens once in 16,000 times."""
EXPECTED_LARGE_TERMS = 10.0
"""If 10 terms as large as the largest one are expected, the chance of observing none is e⁻¹⁰,
about 1 in 22,000."""
SMALLEST_ERROR = 1e-9
"""Standard errors are at least this, so that rounding in a constant column is not significant."""


class Diagnostics(NamedTuple):
    """Diagnostics of the weights w = π / p of one policy over n ``rows``.

    ``effective`` is the effective sample size (Σ w)² / Σ w², ``largest`` the largest weight and
    ``largest_share`` its share of Σ w. ``mean_weight`` should be 1, up to ``mean_error``, its
    standard error; it is less if the logging policy could not take some actions of the policy.
    ``unsupported`` is the policy's probability of choices that none of the evaluated rows took.
    """

    rows: int
    effective: float
    largest: float
    largest_share: float
    mean_weight: float
    mean_error: float
    unsupported: float

    @classmethod
    def of(cls, about_policy: PolicyEvidence) -> "Diagnostics":
        """Return the diagnostics of the evidence about a policy."""
        return cls.of_weights(about_policy.evidence.weight, float(about_policy.unsupported.mean()))

    @classmethod
    def of_weights(cls, weight: Floats, unsupported: float = 0.0) -> "Diagnostics":
        """Return the diagnostics of weights.

        Weights that were added up over slots may be negative: all but the mean are then those of
        the absolute values.
        """
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


def errors_from_one(terms: Floats, largest: float) -> float:
    """Return the signed distance of the mean of terms from 1, in standard errors.

    If the mean is below 1, terms as large as ``largest`` may be so rare that none was observed:
    the standard error is increased by what such terms could have added.
    """
    difference = float(terms.mean()) - 1
    unobserved = 0.0
    if difference < 0:
        unobserved = EXPECTED_LARGE_TERMS / SIGNIFICANT_ERRORS * largest / len(terms)
    error = float(terms.std() / np.sqrt(len(terms))) + unobserved
    # Terms that are all equal, such as those of a log with one action, have no error.
    return difference / max(error, SMALLEST_ERROR)
