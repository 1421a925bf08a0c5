"""Differences between policies in the same worlds, with intervals and corrected p-values."""

import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy

from submax.core.arrays import Floats
from submax.core.checks import one_of, probability
from submax.core.errors import InputError
from submax.core.numerics.standard_error import standard_error
from submax.experiments.comparing.paired_comparison import Finals, Side
from submax.experiments.storing.directory import read_specification

POWER = 0.8
"""The chance of deciding a difference of the observed size, for the number of replicas needed."""
MANY_REPLICAS = 10_000
"""From here on the normal distribution gives the number of replicas needed: it errs by about 2."""
MOST_REPLICAS = 10**9
"""A difference that would need more replicas than this is practically zero."""


class PairedDifference(NamedTuple):
    """The mean of left − right over replicas that met the same worlds, in one configuration.

    ``error`` is its standard error, ``low`` and ``high`` the ends of its confidence interval.
    ``p_value`` is that of the paired t-test, ``corrected`` after Holm's correction for all
    comparisons made together. ``replicas_needed`` is how many replicas would decide a difference of
    this size, at the same confidence, with a probability of 80 %; None if there is no difference.
    """

    configuration: dict[str, Any]
    left: str
    right: str
    difference: float
    error: float
    low: float
    high: float
    p_value: float
    corrected: float
    replicas: int
    replicas_needed: int | None


def compare(
    directory: Path | str,
    policies: Sequence[str] = (),
    *,
    measure: str = "regret",
    confidence: float = 0.95,
) -> list[PairedDifference]:
    """Compare the policies of a finished sweep, pair by pair, in every configuration.

    ``policies`` are names of the results, at least two; without any, all are compared. ``measure``
    is "regret", "reward", or "late_slope", the regret per decision in the last tenth of a run.
    """
    directory = Path(directory)
    read_specification(directory)
    finals = Finals.read(directory)
    for name in policies:
        one_of(f"policy in {directory}:", name, finals.policies())
    return differences(finals, policies, measure=measure, confidence=confidence)


def differences(
    finals: Finals,
    policies: Sequence[str] = (),
    *,
    measure: str = "regret",
    confidence: float = 0.95,
) -> list[PairedDifference]:
    """Compare policies by their final values, pair by pair, in every configuration.

    ``finals`` may be those of the finished cells of a sweep under way.
    """
    probability("confidence", confidence)
    chosen = list(policies) or finals.policies()
    for name in chosen:
        one_of("policy", name, finals.policies())
    if len(set(chosen)) < 2:
        raise InputError(
            f"a comparison needs two policies or more, not {', '.join(chosen)}: name others of "
            f"{', '.join(finals.policies())}"
        )
    find = look_up(finals, measure)
    found = []
    for labels in finals.configurations():
        sides = {name: find(name, **labels) for name in dict.fromkeys(chosen)}
        for left, right in itertools.combinations(sides, 2):
            one, other = sides[left], sides[right]
            if one is not None and other is not None:
                values = one.values - other.values
                found.append(paired_difference(labels, left, right, values, confidence))
    return corrected(found)


def look_up(finals: Finals, measure: str) -> Callable[..., Side | None]:
    """Return the function that finds the final values of a policy by a measure."""
    found = {"regret": finals.final, "reward": finals.reward, "late_slope": finals.late}
    one_of("measure", measure, found)
    return found[measure]


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values after Holm's step-down correction for many comparisons.

    >>> [round(one, 3) for one in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]

    Reference: Holm (1979), A simple sequentially rejective multiple test procedure.
    """
    order = np.argsort(p_values)
    count, highest = len(p_values), 0.0
    result = [1.0] * count
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (count - rank) * p_values[place]))
        result[place] = highest
    return result


def replicas_needed(
    difference: float, deviation: float, confidence: float = 0.95, power: float = POWER
) -> int | None:
    """Return how many replicas decide a difference between policies with the given ``power``.

    It is the least n ≥ 2 for which the two-sided paired t-test at level α = 1 − ``confidence``
    decides with this probability, if d is the true ``difference`` and σ the standard ``deviation``
    of the paired differences of single replicas. The search begins at ((z_{1−α/2} + z_power) σ /
    d)², which is too small because σ is estimated. None if d is zero.

    >>> replicas_needed(1.0, 5.0)
    199
    """
    if difference == 0:
        return None
    quantiles = scipy.stats.norm.ppf((1 + confidence) / 2) + scipy.stats.norm.ppf(power)
    least = (float(quantiles) * deviation / abs(difference)) ** 2
    if least > MOST_REPLICAS:
        return None
    count = max(2, math.ceil(least))
    while count < MANY_REPLICAS and _power(difference, deviation, count, confidence) < power:
        count += 1
    return count


def _power(difference: float, deviation: float, count: int, confidence: float) -> float:
    """Return the chance that a t-test with ``count`` replicas decides this difference."""
    if deviation == 0:
        return 1.0
    threshold = scipy.stats.t.ppf((1 + confidence) / 2, count - 1)
    return float(
        scipy.stats.nct.sf(threshold, count - 1, abs(difference) * math.sqrt(count) / deviation)
    )


def paired_difference(
    labels: dict[str, Any], left: str, right: str, values: Floats, confidence: float
) -> PairedDifference:
    """Return the mean of differences of single replicas, ``values [R]``, with its interval."""
    count, mean, error = len(values), float(values.mean()), standard_error(values)
    deviation = error * math.sqrt(count)
    if count < 2:
        return PairedDifference(
            labels, left, right, mean, error, -math.inf, math.inf, 1.0, 1.0, count, None
        )
    reach = float(scipy.stats.t.ppf((1 + confidence) / 2, count - 1)) * error
    if error > 0:
        p_value = float(2 * scipy.stats.t.sf(abs(mean) / error, count - 1))
    else:
        p_value = 1.0 if mean == 0 else 0.0
    needed = replicas_needed(mean, deviation, confidence)
    return PairedDifference(
        labels, left, right, mean, error, mean - reach, mean + reach, p_value, 1.0, count, needed
    )


def corrected(found: list[PairedDifference]) -> list[PairedDifference]:
    """Return the differences with p-values that are corrected for all of them."""
    p_values = holm([one.p_value for one in found])
    return [one._replace(corrected=p) for one, p in zip(found, p_values, strict=True)]
