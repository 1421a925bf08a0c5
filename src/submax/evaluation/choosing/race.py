"""Compares candidates on more and more rows, until the best one is clear."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from submax.evaluation.contracts.terms import Terms
from submax.evaluation.intervals.clustered import clustered
from submax.evaluation.intervals.interval_method import standard_error_of_mean
from submax.evaluation.report.comparisons.difference import difference_of
from submax.evaluation.report.evidence.policy_evidence import PolicyEvidence

CLEAR_ERRORS = 2.0
"""A difference is clear if it is more than this many standard errors: about 95 of 100 times the
difference of two equal policies is not."""


class Lead(NamedTuple):
    """How much more one candidate earns than another, ``value``, with its standard ``error``."""

    value: float
    error: float

    @property
    def is_clear(self) -> bool:
        """Whether the difference is larger than its error explains."""
        return abs(self.value) > CLEAR_ERRORS * self.error

    @property
    def is_open(self) -> bool:
        """Whether more rows could show a difference: not if both decide the same in all rows."""
        return self.error != 0 and not self.is_clear


class FoldOfRace(NamedTuple):
    """The terms of the candidates that were evaluated on the same rows, by name."""

    terms: Mapping[str, Terms]
    decisions: float

    @classmethod
    def of(cls, evidence: Mapping[str, PolicyEvidence], terms: Mapping[str, Terms]) -> "FoldOfRace":
        """Return the terms of a fold, those of a cluster added up if the log has clusters."""
        decisions = next(iter(terms.values())).decisions
        clusters = {name: one.cluster for name, one in evidence.items()}
        found = {
            name: one if (cluster := clusters[name]) is None else clustered(one, cluster)
            for name, one in terms.items()
        }
        return cls(found, decisions)


class Race(NamedTuple):
    """The ``folds`` of a log on which candidates were compared so far.

    Candidates that are clearly worse than the best one are left out of later folds. A value is
    V = Σ_f n_f V_f / Σ_f n_f over the folds f of a candidate, of n_f decisions each. A difference
    is that of the folds in which both took part, d = Σ_f n_f d_f / Σ_f n_f, with the standard error
    √(Σ_f n_f² e_f²) / Σ_f n_f, where d_f is paired, from the same rows.

    Reference: Maron and Moore (1994), Hoeffding races: accelerating model selection search.
    *Departs from the paper:* the bound is that of a normal mean, and folds are those of a
    cross-validation.
    """

    names: Sequence[str]
    folds: tuple[FoldOfRace, ...] = ()

    def value(self, name: str) -> float:
        """Return the mean value of a candidate over the rows on which it was evaluated."""
        mine = [fold for fold in self.folds if name in fold.terms]
        return sum(one.decisions * one.terms[name].value for one in mine) / self.rows(name)

    def rows(self, name: str) -> float:
        """Return the number of decisions on which a candidate was evaluated."""
        return sum(fold.decisions for fold in self.folds if name in fold.terms)

    def lead(self, first: str, second: str) -> Lead:
        """Return how much more the first candidate earns than the second one, on the same rows."""
        both = [fold for fold in self.folds if first in fold.terms and second in fold.terms]
        total = sum(fold.decisions for fold in both)
        value = variance = 0.0
        for fold in both:
            terms = difference_of(fold.terms[first], fold.terms[second])
            value += fold.decisions * terms.value
            error = standard_error_of_mean(terms.numerator, terms.counts)
            variance += (fold.decisions * error) ** 2
        return Lead(value / total, float(np.sqrt(variance)) / total)

    def best(self) -> str:
        """Return the candidate with the highest value among those that were not left out."""
        last = self.folds[-1].terms
        values = {name: self.value(name) for name in self.names if name in last}
        return max(values, key=lambda name: np.nan_to_num(values[name], nan=-np.inf))

    def contenders(self) -> list[str]:
        """Return the best candidate, and those that more rows could show to be better.

        Candidates that are clearly worse are left out, and those that decide as the best one does.
        """
        best, last = self.best(), self.folds[-1].terms
        return [
            name
            for name in self.names
            if name in last and (name == best or self.lead(best, name).is_open)
        ]
