"""A check that the simulated environments have the mean reward that the paper gives."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from submax.core.numerics.standard_error import standard_error
from submax.experiments.comparing.paired_comparison import Finals
from submax.experiments.storing.directory import write_csv

PAPER_MEANS: dict[str, dict[str, float]] = {
    "section 4.2": {"shift=0": 0.501, "shift=-2": 0.123, "shift=-4": 0.0185},
    "section 4.3": {"shift=-3": 0.0483},
}
"""The mean reward of random choice, E[R̄], that the paper gives for each environment."""
PAPER_ENVIRONMENTS = {"section 4.2": 50, "section 4.3": 20}
"""The number of environments over which the paper averages."""


class EnvironmentCheck(NamedTuple):
    """The mean reward of random choice, E[R̄], in our environments and in those of the paper.

    ``error`` is the standard error of the difference; both averages are over random environments.
    """

    where: str
    mean: float
    paper: float
    error: float

    @property
    def distance(self) -> float:
        """The difference in standard errors."""
        difference = self.mean - self.paper
        return difference / self.error if self.error > 0 else math.copysign(math.inf, difference)


def environment_checks(
    section: str, finals: Finals, observations: int
) -> Iterator[EnvironmentCheck]:
    """A check for every environment that is in the paper's section and in the results."""
    for where, paper in PAPER_MEANS.get(section, {}).items():
        key, value = where.split("=")
        found = finals.reward("random", **{key: int(value)})
        if found is not None and len(found.values) > 1:
            mean = found.values / observations
            ours = standard_error(mean)
            # The paper gives no error: we assume our spread and its number of environments.
            theirs = ours * math.sqrt(len(mean) / PAPER_ENVIRONMENTS[section])
            yield EnvironmentCheck(where, float(mean.mean()), paper, math.hypot(ours, theirs))


def write_environment_checks(directory: Path, found: list[EnvironmentCheck]) -> None:
    """Write the checks as calibration.csv; no file if there are none."""
    rows = [{**one._asdict(), "distance": one.distance} for one in found]
    if rows:
        write_csv(directory / "calibration.csv", rows)
