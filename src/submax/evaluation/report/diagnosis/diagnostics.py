"""How far the numbers of an evaluation can be trusted."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.contracts.counts import error_of_mean, mean, total
from submax.evaluation.report.evidence.policy_evidence import PolicyEvidence

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
    ``effective_rewards`` are the effective rows whose reward is not ``usual``, the reward with the
    largest share of Σ w: the share of the other rewards, times ``effective``.
    """

    rows: int
    effective: float
    largest: float
    largest_share: float
    mean_weight: float
    mean_error: float
    unsupported: float
    effective_rewards: float
    usual: float

    @classmethod
    def of(cls, about_policy: PolicyEvidence) -> "Diagnostics":
        """Return the diagnostics of the evidence about a policy."""
        evidence = about_policy.evidence
        unsupported = mean(about_policy.unsupported, evidence.counts)
        weight, sampling = evidence.weight, about_policy.sampling_weight
        if sampling is not None:
            weight = weight * sampling / mean(sampling, evidence.counts)
        return cls.of_weights(weight, evidence.reward, unsupported, evidence.counts)

    @classmethod
    def of_weights(
        cls,
        weight: Floats,
        reward: Floats,
        unsupported: float = 0.0,
        count: Floats | None = None,
    ) -> "Diagnostics":
        """Return the diagnostics of weights and of the rewards of the same rows.

        Weights that were added up over slots may be negative: all but the mean are then those of
        the absolute values. ``count`` is the number of decisions that each row stands for.
        """
        size = np.abs(weight)
        counted = size if count is None else count * size
        sum_of_weights, square = float(counted.sum()), float(counted @ size)
        largest = float(size.max())
        effective = sum_of_weights**2 / square if square > 0 else 0.0
        usual, share = _usual_reward(reward, counted)
        return cls(
            rows=round(total(weight, count)),
            effective=effective,
            largest=largest,
            largest_share=largest / sum_of_weights if sum_of_weights > 0 else 0.0,
            mean_weight=mean(weight, count),
            mean_error=error_of_mean(weight, count),
            unsupported=unsupported,
            effective_rewards=(1 - share) * effective,
            usual=usual,
        )


def _usual_reward(reward: Floats, weight: Floats) -> tuple[float, float]:
    """Return the reward with the largest share of the weight, and this share.

    If all weights are 0, it is the lowest reward, with a share of 1.
    """
    values, number = np.unique(reward, return_inverse=True)
    shares = np.bincount(number.ravel(), weights=weight)
    largest, total = int(np.argmax(shares)), float(shares.sum())
    return float(values[largest]), float(shares[largest]) / total if total > 0 else 1.0


def errors_from_one(terms: Floats, largest: float, count: Floats | None = None) -> float:
    """Return the signed distance of the mean of terms from 1, in standard errors.

    If the mean is below 1, terms as large as ``largest`` may be so rare that none was observed:
    the standard error is increased by what such terms could have added.
    """
    difference = mean(terms, count) - 1
    unobserved = 0.0
    if difference < 0:
        unobserved = EXPECTED_LARGE_TERMS / SIGNIFICANT_ERRORS * largest / total(terms, count)
    error = error_of_mean(terms, count) + unobserved
    # Terms that are all equal, such as those of a log with one action, have no error.
    return difference / max(error, SMALLEST_ERROR)
