"""Compares what several ranking policies would have earned on a log of slates."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.intervals import INTERVALS
from submax.evaluation.intervals.clustered import clustered
from submax.evaluation.intervals.confidence_interval import ConfidenceInterval
from submax.evaluation.overview.overlap import Overlap
from submax.evaluation.ranking.estimators import RANKING_ESTIMATORS
from submax.evaluation.ranking.ranking_estimator import RankingEstimator
from submax.evaluation.ranking.ranking_evidence import RankingEvidence
from submax.evaluation.ranking.ranking_policy import RankingPolicy
from submax.evaluation.ranking.slate_evidence import SlateEvidence
from submax.evaluation.ranking.slate_overview import slate_overview
from submax.evaluation.ranking.slates import Slates
from submax.evaluation.report.comparisons.comparison import Comparison
from submax.evaluation.report.comparisons.difference import Difference, intervals_of_differences
from submax.evaluation.report.diagnosis.diagnostics import (
    SIGNIFICANT_ERRORS,
    Diagnostics,
    errors_from_one,
)
from submax.evaluation.report.estimate import LOGGING_POLICY, SLATE, Estimate

FEWEST_EFFECTIVE = 100.0
"""Effective slates below which an estimate has a caution: intervals need about this many."""
LARGEST_WEIGHT_SHARE = 0.05
"""One slate with more than this share of all weight makes intervals unreliable."""


def compare_rankings(
    slates: Slates,
    policies: Mapping[str, RankingPolicy] | None = None,
    *,
    logging: RankingPolicy | None = None,
    estimators: Sequence[str | RankingEstimator] = (),
    interval: str = "gamma",
    level: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Return the expected reward per slate of ranking policies, with that of the logging policy.

    ``policies`` are objects such as ``PlackettLuce``; those that the log has as columns are
    evaluated, too. ``logging`` is the policy that wrote the log, if it is known as an object: then
    ``iips`` and ``pbm`` know where else an item could have been. An estimator that needs what is
    not known is left out, and a note says so. Intervals are by slate, or by cluster.

    The estimators are ``cascade-dr``, ``rips``, ``sips``, ``pbm`` and ``iips``; ``seed`` draws
    the folds of the cross-fitting.

    >>> from submax.evaluation.ranking import PlackettLuce
    >>> table = {"slate": [1, 1, 2, 2], "position": [1, 2, 1, 2],
    ...          "action": ["A", "B", "B", "A"], "reward": [1, 0, 0, 1],
    ...          "propensity": [0.5, 1.0, 0.5, 1.0]}
    >>> found = compare_rankings(Slates.read(table), {"A first": PlackettLuce(np.array([2.0, 0]))},
    ...                          estimators=["sips"])
    >>> round(found.find("A first", "sips").value, 3)
    1.0
    """
    one_of("interval", interval, INTERVALS)
    chosen = _estimators(estimators)
    logged = SlateEvidence(slates, logging, seed)
    targets = _targets(slates, policies or {})
    evaluation = _Evaluation(slates, interval, level, seed, [])
    based = evaluation.logging_policy(logged.about_logging_policy())
    estimates, differences = [based.estimate], list[Difference]()
    overlap = dict[str, Overlap]()
    for name, target in targets.items():
        evidence = logged.about(target)
        found = evaluation.estimates(name, evidence, chosen, bool(estimators))
        estimates += [one.estimate for one in found]
        differences += [evaluation.difference(one, based) for one in found]
        best = next(one.estimate.estimator for one in found if one.estimate.recommended)
        overlap[name] = Overlap.of(_slate_weight(chosen[best], evidence))
    settings = {
        "policies": ", ".join(targets),
        "estimators": ", ".join(chosen),
        "interval": interval,
        "level": level,
        "seed": seed,
    }
    overview = slate_overview(slates, settings, overlap)
    return Comparison(estimates, evaluation.notes, level, differences, overview, SLATE)


def _targets(
    slates: Slates, policies: Mapping[str, RankingPolicy]
) -> dict[str, RankingPolicy | str]:
    """Return the policies to evaluate: those of columns, and those that are objects."""
    targets: dict[str, RankingPolicy | str] = {name: name for name in slates.given}
    for name, policy in policies.items():
        if name in targets or name == LOGGING_POLICY:
            raise InputError(
                f"two policies are called {name!r}, and each needs its own name: rename one",
                parameter="policies",
            )
        targets[name] = policy
    if not targets:
        raise InputError(
            "no policy is given; columns (Slates.read(..., policies={'new': 'new_probability'})) "
            "and objects (PlackettLuce) are allowed: give at least one",
            parameter="policies",
        )
    return targets


def _estimators(given: Sequence[str | RankingEstimator]) -> dict[str, RankingEstimator]:
    for one in given:
        if isinstance(one, str):
            one_of("ranking estimator", one, RANKING_ESTIMATORS)
    made = [RANKING_ESTIMATORS[one]() if isinstance(one, str) else one for one in given]
    found = {one.short: one for one in made or (kind() for kind in RANKING_ESTIMATORS.values())}
    if len(found) < len(given):
        raise InputError(
            "an estimator is given twice, and each kind may be given once: leave one out",
            parameter="estimators",
        )
    return found


class _Found(NamedTuple):
    """An estimate, and the terms from which it was computed."""

    estimate: Estimate
    terms: Terms

    def marked(self, best: bool) -> "_Found":
        """Return the estimate, recommended if it is the best of its policy."""
        return self._replace(estimate=self.estimate._replace(recommended=best))


class _Evaluation(NamedTuple):
    """The log, and how intervals are computed; ``notes`` are added as they arise."""

    slates: Slates
    interval: str
    level: float
    seed: int
    notes: list[str]

    def logging_policy(self, evidence: RankingEvidence) -> _Found:
        """Return the mean reward per slate of the log."""
        kind = RANKING_ESTIMATORS["sips"]()
        self.notes.append(f"{len(self.slates)} slates of up to {self.slates.positions} positions")
        return self._estimated(LOGGING_POLICY, "mean", kind, evidence, []).marked(True)

    def estimates(
        self,
        name: str,
        evidence: RankingEvidence,
        estimators: Mapping[str, RankingEstimator],
        asked: bool,
    ) -> list[_Found]:
        """Return the estimates of one policy; one of them is recommended."""
        found = []
        for label, estimator in estimators.items():
            lacking = estimator.missing(evidence)
            if lacking is not None and asked:
                raise InputError(
                    f"the estimator {label} needs {lacking}, which are not known for {name!r}: "
                    "give policies and logging as objects, or leave the estimator out",
                    parameter="estimators",
                )
            if lacking is not None:
                note = f"{label} is left out: it needs {lacking}"
                self.notes.extend([] if note in self.notes else [note])
                continue
            cautions = list(_cautions(estimator, evidence))
            found.append(self._estimated(name, label, estimator, evidence, cautions))
        best = min(found, key=lambda one: len(one.estimate.cautions))
        return [one.marked(one is best) for one in found]

    def difference(self, found: _Found, based: _Found) -> Difference:
        """Return the difference of a policy from the logging policy."""
        pair = (self._units(found.terms), self._units(based.terms))
        ((value, ends, error),) = intervals_of_differences(
            [pair], self.interval, self.level, self.seed
        )
        one, rows = found.estimate, len(self.slates)
        return Difference(
            one.policy,
            LOGGING_POLICY,
            one.estimator,
            value,
            ends,
            error,
            rows,
            self.level,
            one.recommended,
        )

    def _estimated(
        self,
        name: str,
        label: str,
        estimator: RankingEstimator,
        evidence: RankingEvidence,
        cautions: list[str],
    ) -> _Found:
        terms = estimator.terms(evidence)
        rng = np.random.default_rng(self.seed)
        [ends] = INTERVALS[self.interval]([self._units(terms)], self.level, rng)
        around = ends.joined(ConfidenceInterval(terms.value, terms.value))
        if evidence.bounds is not None:
            low, high = (end * evidence.reward.shape[1] for end in evidence.bounds)
            around = ConfidenceInterval(*np.clip(around, low, high).tolist())
        diagnostics = Diagnostics.of_weights(
            _slate_weight(estimator, evidence), evidence.reward.sum(axis=1)
        )
        value = float(np.clip(terms.value, around.low, around.high))
        estimate = Estimate(name, label, value, around, None, diagnostics, tuple(cautions))
        return _Found(estimate, terms)

    def _units(self, terms: Terms) -> Terms:
        cluster = self.slates.cluster
        return terms if cluster is None else clustered(terms, cluster)


def _slate_weight(estimator: RankingEstimator, evidence: RankingEvidence) -> Floats:
    """Return one weight for each slate: the mean of the weights of its positions."""
    filled = evidence.filled
    sums = np.where(filled, estimator.weights(evidence), 0.0).sum(axis=1)
    found: Floats = sums / filled.sum(axis=1)
    return found


def _cautions(estimator: RankingEstimator, evidence: RankingEvidence) -> Iterator[str]:
    """Yield sentences about reasons not to trust an estimate."""
    weight = _slate_weight(estimator, evidence)
    found = Diagnostics.of_weights(weight, evidence.reward.sum(axis=1))
    if found.effective < FEWEST_EFFECTIVE:
        yield (
            f"by their weights the {found.rows} slates are worth {found.effective:.0f} slates of "
            "the policy itself, which is too few"
        )
    if found.largest_share > LARGEST_WEIGHT_SHARE:
        yield (
            f"one slate has {found.largest_share:.0%} of the sum of all weights (its weight is "
            f"{found.largest:.3g}): intervals are too short"
        )
    if estimator.short != "pbm":
        z = errors_from_one(weight, found.largest)
        if abs(z) > SIGNIFICANT_ERRORS:
            yield (
                f"the weights average {found.mean_weight:.2f} and should average 1, and chance "
                "does not explain the difference: the propensities are wrong, or the log could not "
                "make some of the slates"
            )
    if estimator.short in ("pbm", "iips"):
        yield f"{estimator.short} assumes that {estimator.assumes}, which is not tested"
