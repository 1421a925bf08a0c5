"""Confidence intervals of off-policy estimates, one kind in each file."""

from submax.evaluation.intervals.bernstein import bernstein
from submax.evaluation.intervals.bootstrap import bootstrap
from submax.evaluation.intervals.gamma import gamma
from submax.evaluation.intervals.interval_method import IntervalMethod
from submax.evaluation.intervals.normal import normal
from submax.evaluation.intervals.sequential import sequential

INTERVALS: dict[str, IntervalMethod] = {
    "gamma": gamma,
    "normal": normal,
    "bootstrap": bootstrap,
    "bernstein": bernstein,
    "sequential": sequential,
}
"""The kinds of confidence intervals by name, the default first."""
