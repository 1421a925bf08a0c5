"""The evidence about one policy as sums over rows."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.evaluation.contracts.evidence import Evidence
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.overview.overlap import Overlap
from submax.evaluation.parts.moments import Moments, two_points
from submax.evaluation.parts.term_sums import TermSums
from submax.evaluation.report.diagnosis.diagnostics import Diagnostics, errors_from_one
from submax.evaluation.report.evidence.policy_evidence import PolicyEvidence


class Blocks(NamedTuple):
    """The block of the bootstrap of each row, ``number [n]``, of ``total`` blocks."""

    number: Integers | None
    total: int


class PolicySums(NamedTuple):
    """Sums about a policy, and for each estimator those of its terms.

    Sums of two parts of a log are added up, so that a log that does not fit into memory is
    evaluated part by part. ``moments`` are those of the importance weights w minus 1, and of
    w (r − q̂) with the reward r and the predicted reward q̂. ``by_reward`` is the sum of the
    weights of rows with each of the usual rewards. ``plain`` are the sums of the terms without a
    threshold, for estimators that have one.
    """

    moments: Moments
    largest: float
    unsupported: float
    by_reward: Floats
    overlap: Overlap
    estimates: dict[str, TermSums]
    plain: dict[str, TermSums]

    @classmethod
    def of(
        cls,
        about: PolicyEvidence,
        terms: Mapping[str, Terms],
        baseline: Mapping[str, Terms],
        centre: float,
        blocks: Blocks,
        usual: Floats,
    ) -> "PolicySums":
        """Return the sums over the rows of a part.

        ``baseline`` has the terms that are subtracted from those of each estimator, ``centre`` is
        a number near the rewards, and ``usual`` are the rewards that occur often, sorted.
        """
        evidence = about.evidence
        plain = {
            label: _sums(one.without_threshold, _plain(baseline[label]), centre, blocks)
            for label, one in terms.items()
            if one.without_threshold is not None
        }
        return cls(
            Moments.of([evidence.weight - 1, _residual(evidence)], len(evidence.weight)),
            float(evidence.weight.max()),
            float(about.unsupported.sum()),
            _by_reward(evidence, usual),
            Overlap.of(evidence.weight),
            {label: _sums(one, baseline[label], centre, blocks) for label, one in terms.items()},
            plain,
        )

    def __add__(self, other: "PolicySums") -> "PolicySums":  # type: ignore[override]  # no tuple
        return PolicySums(
            self.moments + other.moments,
            max(self.largest, other.largest),
            self.unsupported + other.unsupported,
            self.by_reward + other.by_reward,
            self.overlap.joined(other.overlap),
            {label: one + other.estimates[label] for label, one in self.estimates.items()},
            {label: one + other.plain[label] for label, one in self.plain.items()},
        )

    def diagnostics(self, usual: Floats) -> Diagnostics:
        """Return the diagnostics of the weights over all rows."""
        count = self.moments.rows
        mean, variance, _ = self.moments.central(np.array([1.0, 0.0]))
        total = count * (1 + mean)
        square = count * (variance + (1 + mean) ** 2)
        most = int(np.argmax(self.by_reward))
        share = float(self.by_reward[most]) / total if total > 0 else 1.0
        effective = total**2 / square if square > 0 else 0.0
        return Diagnostics(
            rows=count,
            effective=effective,
            largest=self.largest,
            largest_share=self.largest / total if total > 0 else 0.0,
            mean_weight=1 + mean,
            mean_error=float(np.sqrt(variance / count)),
            unsupported=self.unsupported / count,
            effective_rewards=(1 - share) * effective,
            usual=float(usual[most]),
        )

    def distance_from_one(self, largest: float) -> float:
        """Return how many standard errors the mean weight is from 1."""
        mean, variance, third = self.moments.central(np.array([1.0, 0.0]))
        values, chance = two_points(1 + mean, variance, third)
        return errors_from_one(values, largest, self.moments.rows * chance)

    def residual(self) -> tuple[float, float]:
        """Return the mean of w (r − q̂) and its standard error."""
        mean, variance, _ = self.moments.central(np.array([0.0, 1.0]))
        return mean, float(np.sqrt(variance / self.moments.rows))


def _sums(terms: Terms, baseline: Terms, centre: float, blocks: Blocks) -> TermSums:
    return TermSums.of(terms, baseline, centre, blocks.number, blocks.total)


def _plain(terms: Terms) -> Terms:
    return terms if terms.without_threshold is None else terms.without_threshold


def _residual(evidence: Evidence) -> Floats:
    found: Floats = evidence.weight * (evidence.reward - evidence.predicted)
    return found


def _by_reward(evidence: Evidence, usual: Floats) -> Floats:
    """Return the sum of the weights of the rows with each usual reward."""
    place = np.minimum(np.searchsorted(usual, evidence.reward), len(usual) - 1)
    same = usual[place] == evidence.reward
    sums = np.bincount(place[same], evidence.weight[same], minlength=len(usual))
    return sums.astype(np.float64)
