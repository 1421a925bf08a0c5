"""Comparisons of policies that were simulated in the same worlds."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy

from submax.core.arrays import Floats
from submax.core.checks import one_of, probability
from submax.core.errors import InputError
from submax.core.numerics import standard_error
from submax.simulation.experiment import Labels
from submax.simulation.results import FINAL_TABLE, ResultTable, read_specification


class Side(NamedTuple):
    """One side of a comparison: the name of a policy, and its value in every replica."""

    name: str
    values: Floats


MEASURES = ("regret", "reward", "late_slope")
"""What is known of every replica at the end; ``late_slope`` is the mean regret per decision in the
last tenth of a run."""


class Finals:
    """The final values of every replica by measure, by configuration and policy."""

    def __init__(self, cells: Iterable[tuple[Labels, str, Mapping[str, Floats]]]) -> None:
        self._of_policy: dict[str, list[tuple[Labels, Mapping[str, Floats]]]] = {}
        for labels, policy, rows in cells:
            self._of_policy.setdefault(policy, []).append((labels, rows))

    @classmethod
    def read(cls, directory: Path) -> "Finals":
        table = ResultTable.read(directory, FINAL_TABLE)
        groups = table.groups(*table.labels, "policy").items()
        return cls(
            (dict(zip(table.labels, values, strict=True)), policy, rows)
            for (*values, policy), rows in groups
        )

    def configurations(self) -> list[Labels]:
        """All configurations with at least one finished cell, in order."""
        cells = itertools.chain(*self._of_policy.values())
        return list({tuple(labels.items()): labels for labels, _ in cells}.values())

    def policies(self) -> list[str]:
        return list(self._of_policy)

    def side(self, measure: str, policy: str, labels: Labels) -> Side | None:
        """The values of a policy in the first configuration with these labels; None if not run."""
        for cell, rows in self._of_policy.get(policy, []):
            if labels.items() <= cell.items():
                return Side(policy, rows[measure])
        return None


POWER = 0.8
"""The chance of deciding a difference of the observed size, for the number of replicas needed."""
MOST_REPLICAS = 10**9
"""A difference that would need more replicas than this is practically zero."""


class PairedDifference(NamedTuple):
    """The mean of left − right over replicas that met the same worlds, in one configuration.

    ``error`` is its standard error, ``low`` and ``high`` the ends of its confidence interval.
    ``p_value`` is that of the paired t-test, ``corrected`` after Holm's correction for all
    comparisons made together. ``replicas_needed`` is how many replicas would decide a difference of
    this size, at the same confidence, with a probability of 80 %; None if there is no difference.
    """

    configuration: Labels
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
    one_of("measure", measure, MEASURES)
    probability("confidence", confidence)
    directory = Path(directory)
    read_specification(directory)
    finals = Finals.read(directory)
    for name in policies:
        one_of(f"policy in {directory}:", name, finals.policies())
    chosen = list(dict.fromkeys(policies)) or finals.policies()
    if len(chosen) < 2:
        raise InputError(
            f"a comparison needs at least two policies, not {', '.join(chosen)}: name others of "
            f"{', '.join(finals.policies())}"
        )
    found = []
    for labels in finals.configurations():
        sides = [finals.side(measure, name, labels) for name in chosen]
        for left, right in itertools.combinations(filter(None, sides), 2):
            differences = left.values - right.values
            test, count, needed = t_test(differences, confidence), len(differences), None
            if count > 1:
                needed = replicas_needed(test.mean, test.error * math.sqrt(count), confidence)
            found.append(PairedDifference(labels, left.name, right.name, *test, 1.0, count, needed))
    p_values = holm([one.p_value for one in found])
    return [one._replace(corrected=p) for one, p in zip(found, p_values, strict=True)]


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values after Holm's step-down correction for many comparisons.

    >>> [round(one, 3) for one in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]

    Reference: Holm (1979), A simple sequentially rejective multiple test procedure.
    """
    order = np.argsort(p_values)
    corrected = np.sort(p_values) * np.arange(len(p_values), 0, -1)
    result = np.empty(len(p_values))
    result[order] = np.maximum.accumulate(np.minimum(corrected, 1.0))
    return result.tolist()


def replicas_needed(difference: float, deviation: float, confidence: float = 0.95) -> int | None:
    """Return how many replicas decide a difference between policies with a probability of 80 %.

    n = ((z_{1−α/2} + z_0.8) σ / d)² + z²_{1−α/2} / 2 for the two-sided paired t-test at level
    α = 1 − ``confidence``, if d is the true ``difference`` and σ the standard ``deviation`` of the
    paired differences of single replicas. The last term allows for σ being estimated (Guenther,
    1981, Sample size formulas for normal theory t tests). None if d is practically zero.

    >>> replicas_needed(1.0, 5.0)
    199
    """
    if difference == 0:
        return None
    level, power = map(float, scipy.stats.norm.ppf(np.array([(1 + confidence) / 2, POWER])))
    count = ((level + power) * deviation / difference) ** 2 + level**2 / 2
    return max(2, math.ceil(count)) if count < MOST_REPLICAS else None


class TTest(NamedTuple):
    """A mean, its standard error, the ends of its interval, and the p-value of its being 0."""

    mean: float
    error: float
    low: float
    high: float
    p_value: float


def t_test(values: Floats, confidence: float = 0.95) -> TTest:
    """Test whether the mean of independent values is 0; a single value decides nothing.

    >>> round(t_test(np.array([1.0, 2.0, 3.0])).low, 2)
    -0.48
    """
    count, mean, error = len(values), float(values.mean()), standard_error(values)
    if count < 2:
        return TTest(mean, error, -math.inf, math.inf, 1.0)
    if error == 0:
        return TTest(mean, error, mean, mean, 1.0 if mean == 0 else 0.0)
    # Not by scipy's function, which warns if values are nearly equal, as paired ones may be.
    reach = float(scipy.stats.t.ppf((1 + confidence) / 2, count - 1)) * error
    p_value = float(2 * scipy.stats.t.sf(abs(mean) / error, count - 1))
    return TTest(mean, error, mean - reach, mean + reach, p_value)
