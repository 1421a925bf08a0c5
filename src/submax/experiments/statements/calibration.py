"""Whether the environments are as rewarding as those of the paper."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from submax.core.numerics.standard_error import standard_error
from submax.experiments.comparison import Finals
from submax.experiments.directory import write_csv

PAPER: dict[str, dict[str, float]] = {
    "section 4.2": {"shift=0": 0.501, "shift=-2": 0.123, "shift=-4": 0.0185},
    "section 4.3": {"shift=-3": 0.0483},
}
ENVIRONMENTS = {"section 4.2": 50, "section 4.3": 20}
"""Over so many environments the paper averages."""


class Calibration(NamedTuple):
    """E[R̄], the mean reward of random choice, here and in the paper.

    ``error`` is that of the difference: the spread between environments is in both averages.
    """

    where: str
    mean: float
    paper: float
    error: float

    @property
    def distance(self) -> float:
        """How many standard errors lie between the two."""
        apart = self.mean - self.paper
        return apart / self.error if self.error > 0 else math.copysign(math.inf, apart)


def calibrations(section: str, finals: Finals, observations: int) -> Iterator[Calibration]:
    """Every average that the paper gives and the results have."""
    for where, paper in PAPER.get(section, {}).items():
        key, value = where.split("=")
        found = finals.reward("random", **{key: int(value)})
        if found is not None and len(found.values) > 1:
            mean = found.values / observations
            ours = standard_error(mean)
            theirs = ours * math.sqrt(len(mean) / ENVIRONMENTS[section])
            yield Calibration(where, float(mean.mean()), paper, math.hypot(ours, theirs))


def write_calibrations(directory: Path, found: list[Calibration]) -> None:
    """Write each with its distance; nothing where there is none."""
    rows = [{**one._asdict(), "distance": one.distance} for one in found]
    if rows:
        write_csv(directory / "calibration.csv", rows)
