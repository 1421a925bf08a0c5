"""Differences between each policy and the one that submax recommends, replica by replica.

All policies of an experiment meet the same worlds, so that the difference within each replica has a
smaller standard error than the difference of two means.
"""

import math
from pathlib import Path
from typing import NamedTuple

import published

from submax.core.numerics import standard_error
from submax.research.paper.statements import DECISIVE_ERRORS
from submax.simulation.compare import Finals
from submax.simulation.results import FINAL_TABLE, write_csv

ADAPTIVE = "rcp-adaptive"
RECOMMENDED = {"pricing-rivals": "fourier-thompson"}
"""The recommended policy of an experiment, if it is another one than the default."""
TABLE = "differences"


class Difference(NamedTuple):
    """The regret of a policy minus that of the recommended one, and its standard error."""

    mean: float
    error: float

    def __str__(self) -> str:
        sign = "−" if self.mean < 0 else "+"
        digits = 0 if abs(self.mean) >= 100 else 1
        return f"{sign}{abs(self.mean):.{digits}f} ± {self.error:.1f}"

    @property
    def is_less(self) -> bool:
        """Whether the policy has less regret than the recommended one, beyond the errors."""
        return self.mean < -DECISIVE_ERRORS * self.error

    @property
    def is_more(self) -> bool:
        """Whether the policy has more regret than the recommended one, beyond the errors."""
        return self.mean > DECISIVE_ERRORS * self.error


def recommended(name: str) -> str:
    """Return the policy that an experiment's others are compared with."""
    return RECOMMENDED.get(name, ADAPTIVE)


def publish_differences(results: Path, name: str) -> None:
    """Write the differences of a finished experiment; nothing if its replicas are not known."""
    directory = results / name
    if not any(directory.glob(f"{FINAL_TABLE}.*")):
        return
    finals, rows = Finals.read(directory), []
    for labels in finals.configurations():
        base = finals.final(recommended(name), **labels)
        for policy in finals.policies():
            side = finals.final(policy, **labels)
            if side is None or base is None:
                continue
            values = side.values - base.values
            numbers = {"difference": values.mean(), "standard_error": standard_error(values)}
            rows.append({**labels, "policy": policy, **numbers})
    write_csv(published.folder_of(name) / f"{TABLE}.csv", rows)


def differences_of(name: str) -> dict[tuple[str, ...], Difference]:
    """Return the difference of every row of the summary, by labels and policy.

    Without a published table of differences the means are treated as independent.
    """
    rows, paired = published.rows_of(name), published.rows_of(name, TABLE)
    if paired:
        return {
            published.cell(row): Difference(float(row["difference"]), float(row["standard_error"]))
            for row in paired
        }
    means = {
        published.cell(row): (float(row["final_mean"]), float(row["final_standard_error"]))
        for row in rows
    }
    found = {}
    for cell, (mean, error) in means.items():
        base, base_error = means[*cell[:-1], recommended(name)]
        found[cell] = Difference(mean - base, math.hypot(error, base_error))
    return found


def is_paired(name: str) -> bool:
    """Return whether the differences of an experiment are those of its replicas."""
    return bool(published.rows_of(name, TABLE))
