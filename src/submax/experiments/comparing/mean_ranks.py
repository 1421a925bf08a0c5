"""Mean ranks of policies over the configurations of a sweep, and which differ."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy

from submax.core.checks import one_of, probability
from submax.core.errors import InputError
from submax.experiments.comparing.paired_comparison import Finals
from submax.experiments.storing.directory import read_specification


class MeanRanks(NamedTuple):
    """The mean rank of each policy over configurations; rank 1 is the best.

    Two policies differ if their mean ranks are further apart than ``critical_difference``.
    ``p_value`` is that of Friedman's test of whether any of them differ.
    """

    ranks: dict[str, float]
    configurations: int
    critical_difference: float
    p_value: float

    def groups(self) -> list[list[str]]:
        """Return the largest groups of policies that do not differ, the best first."""
        names = sorted(self.ranks, key=self.ranks.__getitem__)
        found: list[list[str]] = []
        for first, name in enumerate(names):
            limit = self.ranks[name] + self.critical_difference
            group = [other for other in names[first:] if self.ranks[other] <= limit]
            if len(group) > 1 and not (found and set(group) <= set(found[-1])):
                found.append(group)
        return found


def mean_ranks(
    directory: Path | str,
    policies: Sequence[str] = (),
    *,
    measure: str = "regret",
    confidence: float = 0.95,
) -> MeanRanks:
    """Rank the policies of a finished sweep in each configuration, by their mean final value.

    The critical difference is q √(k (k + 1) / 6N) for k policies in N configurations, where q is
    the quantile of the studentized range divided by √2 (Nemenyi's test).

    Reference: Demšar (2006), Statistical comparisons of classifiers over multiple data sets.
    """
    directory = Path(directory)
    read_specification(directory)
    finals = Finals.read(directory)
    one_of("measure", measure, ["regret", "reward"])
    probability("confidence", confidence)
    names = list(dict.fromkeys(policies)) or finals.policies()
    for name in names:
        one_of(f"policy in {directory}:", name, finals.policies())
    look_up = finals.final if measure == "regret" else finals.reward
    rows = []
    for labels in finals.configurations():
        sides = [look_up(name, **labels) for name in names]
        means = [math.nan if side is None else float(side.values.mean()) for side in sides]
        if not any(map(math.isnan, means)):
            rows.append(means)
    if len(names) < 2 or len(rows) < 2:
        raise InputError(
            f"ranks need two policies and two configurations or more, and {directory} has "
            f"{len(names)} and {len(rows)} in which all of them were run: take submax compare"
        )
    table = np.array(rows) if measure == "regret" else -np.array(rows)
    ranks = scipy.stats.rankdata(table, axis=1)
    count, size = ranks.shape
    quantile = float(scipy.stats.studentized_range.ppf(confidence, size, np.inf)) / math.sqrt(2)
    p_value = (
        float(scipy.stats.friedmanchisquare(*table.T).pvalue) if size > 2 else _sign_test(table)
    )
    return MeanRanks(
        dict(zip(names, ranks.mean(axis=0).tolist(), strict=True)),
        count,
        quantile * math.sqrt(size * (size + 1) / (6 * count)),
        p_value,
    )


def _sign_test(table: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    """Return the p-value of a sign test, which replaces Friedman's test for two policies."""
    less, more = int((table[:, 0] < table[:, 1]).sum()), int((table[:, 0] > table[:, 1]).sum())
    return float(scipy.stats.binomtest(less, less + more).pvalue) if less + more else 1.0
