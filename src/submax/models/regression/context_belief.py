"""The belief about actions in a context: regressions on features, and the rows they learn."""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.random import Generator

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.problem import Feedback
from submax.core.serialization import serializable
from submax.models.regression.bayesian import (
    Posterior,
    PosteriorCovariance,
    Prior,
    PriorStructure,
    Sums,
    check_can_learn,
    fitted,
    improved,
    known,
)
from submax.models.regression.blas import in_one_thread
from submax.models.regression.features import GROUPS, FeatureMap, new_map

PIECE = 4096
"""Rows whose features are computed together, which bounds the memory for features."""


@serializable("regression-rows")
class RegressionRows(NamedTuple):
    """Rows with a context ``[n, D]``, the ``number`` of their regression, and a reward.

    The number is the index of the action, ``[n]``; of slots, which share a regression, it is the
    joint action ``[n, S]``. ``log_prob [n]`` is NaN if it was not logged.
    """

    context: Floats
    number: Integers
    reward: Floats
    log_prob: Floats
    weight: Floats

    @classmethod
    def empty(cls, width: int, slots: tuple[int, ...] = ()) -> Self:
        nothing = np.zeros(0)
        number = np.zeros((0, *slots), dtype=np.int64)
        return cls(np.zeros((0, width)), number, nothing, nothing, nothing)

    @classmethod
    def of(cls, feedback: Feedback, replica: int, number: Integers) -> Self:
        """Return the rows of one replica with positive weight."""
        present = feedback.weight[replica] > 0
        # A slice is faster than a selection.
        there: Any = slice(None) if present.all() else present
        log_prob = feedback.log_prob
        if log_prob is None:
            log_prob = np.full(feedback.weight.shape, np.nan)
        columns = (feedback.context, feedback.reward, log_prob, feedback.weight)
        context, *rest = (column[replica, there].astype(np.float64) for column in columns)
        return cls(context, number[replica, there], *rest)

    def joined(self, other: Self) -> Self:
        return type(self)._make(np.concatenate(pair) for pair in zip(self, other, strict=True))

    def taken(self, which: Integers | Booleans | slice) -> Self:
        return type(self)._make(column[which] for column in self)

    def faded(self, factor: float) -> Self:
        return self._replace(weight=self.weight * factor)

    def discounted(self, discount: float) -> Self:
        """Return the rows with weights times ``discount`` for every later row."""
        later = np.arange(len(self.reward) - 1, -1, -1)
        return self._replace(weight=self.weight * discount**later)


@serializable("sampled-rows")
class SampledRows(NamedTuple):
    """A uniform random sample of all rows so far; ``seen`` counts all of them."""

    rows: RegressionRows
    seen: int

    def standing_for_all(self) -> RegressionRows:
        """Return the sample, scaled to weigh as much as all rows."""
        size = len(self.rows.reward)
        if size in (0, self.seen):
            return self.rows
        return self.rows.faded(self.seen / size)

    def add(self, new: RegressionRows, most: int, discount: float, rng: Generator) -> Self:
        """Return the sample after new rows, with at most ``most`` rows.

        Reference: Vitter (1985), Random sampling with a reservoir.
        """
        count = len(new.reward)
        old = self.rows.faded(discount**count)
        new = new.discounted(discount)
        seen = self.seen + count
        room = min(max(most - len(old.reward), 0), count)
        kept, rest = old.joined(new.taken(slice(0, room))), new.taken(slice(room, None))
        if not len(rest.reward):
            return self._replace(rows=kept, seen=seen)
        place = rng.integers(np.arange(self.seen + room + 1, seen + 1))
        enters = place < most
        columns: list[Any] = [column.copy() for column in kept]
        for column, coming in zip(columns, rest, strict=True):
            # If two new rows get the same index, the later one is kept.
            column[place[enters]] = coming[enters]
        return self._replace(rows=RegressionRows._make(columns), seen=seen)

    def none(self) -> Self:
        """Return the sample without its rows; ``seen`` stays."""
        return self._replace(rows=self.rows.taken(slice(0, 0)))


CHOOSING_ROWS = 1000
"""Kernel length and relevance are chosen from about this many rows at most, evenly spaced ones."""
LENGTHS = (0.35, 0.7, 1.4)
"""Kernel lengths to choose from, in units of the typical distance between two contexts."""
USUAL_LENGTH, FEWEST_ROWS = 0.7, 30
"""Kernel length with fewer rows than this, which are too few to choose."""
FIRST_STEPS, STEPS = 3, 1
"""Fixed-point steps of fitting the prior for each map, without and with a prior to start from."""
RELEVANCE_ROWS = 10.0
"""Shrinkage towards equal relevance: it counts as 10 rows for each context variable."""
SENSITIVITY_ROWS = 400
"""The relevance is computed from this many of the latest rows, which bounds its cost."""


@dataclass(frozen=True)
class BeliefSettings:
    """Settings of a belief about K ``actions``.

    There are at most ``features`` features, chosen from ``rows`` rows, and with ``kernels`` not
    only linear ones. The deviation of ``draws`` posterior draws is scaled by ``width``. Actions
    with similar ``action_features [K, q]`` are expected to have similar coefficients; unless these
    are ``shared``, no action says anything about another.
    """

    actions: int
    features: int
    rows: int
    draws: int
    width: float
    discount: float
    kernels: bool = True
    action_features: Floats | None = field(default=None, compare=False)
    shared: bool = True

    def prior_structure(self, groups: Integers) -> PriorStructure:
        if self.shared:
            return PriorStructure.sharing(groups, self.actions, self.action_features)
        return PriorStructure.independent(groups, self.actions)


def best_map(
    rows: RegressionRows,
    centre: float,
    prior: Prior | None,
    settings: BeliefSettings,
    rng: Generator,
    least_noise: float = 0.0,
) -> tuple[FeatureMap, Posterior] | None:
    """Return the map with the highest marginal likelihood, and the posterior of regressions on it.

    Return None if all rewards are equal but for rounding. ``centre`` is subtracted from rewards.
    All kernel lengths are tried; then, for the best one, a relevance of each context variable.
    """
    first = new_map(rows.context, rows.weight, settings.features, rng, settings.kernels)
    rows = rows.taken(slice(None, None, math.ceil(len(rows.reward) / CHOOSING_ROWS)))
    choosing = len(first.landmarks) > 0 and len(rows.reward) >= FEWEST_ROWS
    offset = float(np.average(rows.reward, weights=rows.weight))
    best: tuple[FeatureMap, Posterior] | None = None

    def tried(feature_map: FeatureMap, prior: Prior | None) -> None:
        nonlocal best
        empty = Sums.empty(settings.actions, feature_map.width, offset)
        features = feature_map.rows(rows.context)
        sums = empty.keep(features, rows.number, rows.reward, rows.weight).settled()
        if sums.variance == 0.0:
            return
        vague = Prior.vague(GROUPS, sums.variance, settings.action_features is not None)
        structure = settings.prior_structure(feature_map.groups)
        steps = FIRST_STEPS if prior is None else STEPS
        found = fitted(sums, structure, prior or vague, centre, steps, least_noise)
        if best is None or found.log_evidence > best[1].log_evidence:
            best = feature_map, found

    for length in LENGTHS if choosing else (USUAL_LENGTH,):
        tried(first.of_length(length), prior)
    if choosing and best is not None:
        feature_map, posterior = best
        relevance = _relevance(feature_map, posterior.coefficients, rows)
        tried(feature_map.with_relevance(relevance), posterior.prior)
    return best


def _relevance(feature_map: FeatureMap, coefficients: Floats, rows: RegressionRows) -> Floats:
    """Return the root of the sensitivity to each context variable, shrunk towards a mean square 1.

    Reference: Radhakrishnan et al. (2024), Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models, on average gradient outer products.
    """
    squared = feature_map.sensitivity(rows.context[-SENSITIVITY_ROWS:], coefficients)
    mean = squared.mean()
    if not mean > 0:
        return np.ones(len(squared))
    shrink = RELEVANCE_ROWS * len(squared) / len(rows.reward)
    return np.sqrt((squared / mean + shrink) / (1 + shrink))


MAP_GROWTH = 2.0
"""A new map is chosen when the rows have grown by this factor since the last choice, so all choices
together cost a small multiple of the last one."""
PRIOR_GROWTH, REFIT_SHARE = 0.5, 0.05
"""The prior is fitted, and the posterior solved, again when the weight of the rows has grown by
these shares of itself."""
REFIT_ROWS = 500
"""The posterior is solved again after this much additional weight at the latest."""
LIKE_UNIFORM = 2.0
"""A row is used to estimate the mean reward of a uniform choice if its action had at most this many
times the uniform probability: actions that a trained policy prefers say little about the others."""
LARGEST_WEIGHT = 10.0
"""Such a row counts as at most this many uniformly chosen rows, so no single row dominates."""
CONTRAST_TOLERANCE = 1e-12
"""Contrasts below this share of the largest coefficient are rounding errors and count as 0."""
NOISE_SHARE = 0.3
"""The noise variance is at least this share of the variance of a uniform choice's rewards. As a
policy becomes good, the variance of its rewards vanishes; without this limit, sure rewards would
make the belief so certain that its first mistakes are never corrected. Values from 0.2 to 0.5 are
equally good; see docs/research/contexts.md."""


@serializable("uniform-rewards")
class UniformRewards(NamedTuple):
    """Σ w, Σ w (r − o) and Σ w (r − o)² of a uniform choice, with ``offset`` o near the rewards."""

    weight: float = 0.0
    reward: float = 0.0
    square: float = 0.0
    offset: float = 0.0

    @property
    def variance(self) -> float:
        """The variance of the reward of a uniform choice; 0 if it is unknown."""
        if self.weight <= 0:
            return 0.0
        return max(self.square / self.weight - (self.reward / self.weight) ** 2, 0.0)

    def added(self, new: RegressionRows, actions: int, discount: float) -> Self:
        factor = discount ** len(new.reward)
        logged = ~np.isnan(new.log_prob)
        probability = np.exp(np.where(logged, new.log_prob, 0.0))
        used = logged & (probability * actions <= LIKE_UNIFORM)
        least = 1.0 / (LARGEST_WEIGHT * actions)
        weight = new.weight * np.where(used, 1.0 / np.maximum(probability, least), 0.0)
        sums = self
        if sums.weight <= 0 and len(new.reward):
            sums = type(self)(offset=float(new.reward.mean()))
        relative = new.reward - sums.offset
        return sums._replace(
            weight=sums.weight * factor + float(weight.sum()),
            reward=sums.reward * factor + float(weight @ relative),
            square=sums.square * factor + float(weight @ relative**2),
        )

    def centre(self, otherwise: float) -> float:
        """The mean reward of a uniform choice, or ``otherwise`` if it is unknown."""
        return self.offset + self.reward / self.weight if self.weight > 0 else otherwise


@serializable("context-belief")
class ContextBelief(NamedTuple):
    """The belief of one replica: φ(x)·θ_a + ``centre`` is the expected reward of action a in x.

    ``coefficients [K, F]`` are the posterior mean of θ for the features of ``FeatureMap.raw``, and
    ``draws [P, K, F]`` are posterior draws of θ minus their mean over the actions, which does not
    change which action is best. Both are None as long as all rewards are equal.

    The other fields are needed only to learn further: ``sums``, ``prior``, the ``sample`` of rows,
    the sums for a ``uniform`` choice, the number of rows ``mapped`` when the map was last chosen,
    the weight of the rows when the posterior was last ``solved`` and the prior last ``fitted``, the
    posterior ``covariance``, ``start`` and ``noise [P, K, F]``, from which
    `PosteriorCovariance.draw_responses` makes the draws, and the rows that are ``waiting`` and not
    yet part of all this.
    """

    feature_map: FeatureMap | None
    centre: float
    coefficients: Floats | None
    draws: Floats | None
    sums: Sums | None
    prior: Prior | None
    sample: SampledRows
    uniform: UniformRewards
    mapped: int
    solved: float
    fitted: float
    covariance: PosteriorCovariance | None = None
    start: Floats | None = None
    noise: Floats | None = None
    waiting: RegressionRows | None = None

    @classmethod
    def unlearned(cls, width: int) -> Self:
        sample = SampledRows(RegressionRows.empty(width), 0)
        nothing = UniformRewards()
        return cls(None, 0.0, None, None, None, None, sample, nothing, 0, 0.0, 0.0)

    def learned(self, new: RegressionRows, settings: BeliefSettings, rng: Generator) -> Self:
        """Return the belief after more rows, which wait until it is worth solving again.

        With a discount no row waits.
        """
        check_can_learn(self.feature_map, self.sums)
        rows = new if self.waiting is None else self.waiting.joined(new)
        maps = MAP_GROWTH * self.mapped <= min(self.sample.seen + len(rows.reward), settings.rows)
        if not maps and settings.discount == 1:
            added = float(rows.weight.sum())
            if added < min(REFIT_ROWS, REFIT_SHARE * (known(self.sums).weight + added)):
                return self._replace(waiting=rows)
        return self._replace(waiting=None)._learned(rows, maps, settings, rng)

    @in_one_thread
    def _learned(
        self, rows: RegressionRows, maps: bool, settings: BeliefSettings, rng: Generator
    ) -> Self:
        discount = settings.discount
        belief = self._replace(
            sample=self.sample.add(rows, settings.rows, discount, rng),
            uniform=self.uniform.added(rows, settings.actions, discount),
        )
        faded, weighted = discount ** len(rows.reward), rows.discounted(discount)
        if not maps:
            return belief._faded(faded)._with_rows(weighted, settings, rng)._solved(settings)
        # The sample holds all earlier rows, unless all their rewards were equal.
        everything = self.sample.standing_for_all().faded(faded).joined(weighted)
        if np.ptp(everything.reward) == 0:
            return belief
        return belief._mapped(everything, settings, rng)

    def contrasts(self, context: Floats) -> Floats:
        """Return expected rewards under each draw, minus their mean over the actions.

        ``[n, D] -> [n, P, K]``; a single context takes few numpy calls.
        """
        feature_map, coefficients = known(self.feature_map), known(self.draws)
        draws, actions, features = coefficients.shape
        flat = coefficients.reshape(draws * actions, features)
        if len(context) == 1:
            return flat.dot(feature_map.raw_alone(context[0])).reshape(1, draws, actions)
        return (feature_map.raw(context) @ flat.T).reshape(len(context), draws, actions)

    def mean(self, raw: Floats) -> Floats:
        """Return the expected reward of every action, given raw features: ``[n, F] -> [n, K]``."""
        return raw @ known(self.coefficients).T + self.centre

    def restricted(self, kept: Integers) -> Self:
        """Return the belief about the actions ``kept [m]`` alone, for deciding."""
        belief = self.for_deciding()
        if belief.coefficients is None or belief.draws is None:
            return belief
        return belief._replace(coefficients=belief.coefficients[kept], draws=belief.draws[:, kept])

    def for_deciding(self) -> Self:
        feature_map = self.feature_map and self.feature_map._replace(whitening=np.zeros((0, 0)))
        nothing: Any = dict.fromkeys(("sums", "prior", "covariance", "start", "noise", "waiting"))
        return self._replace(feature_map=feature_map, sample=self.sample.none(), **nothing)

    def posterior_covariance(self, settings: BeliefSettings) -> PosteriorCovariance:
        """Return the covariance under the last fitted prior, computed from the sums."""
        structure = settings.prior_structure(known(self.feature_map).groups)
        return PosteriorCovariance.of(known(self.sums), structure, known(self.prior))

    def _mapped(self, rows: RegressionRows, settings: BeliefSettings, rng: Generator) -> Self:
        offset = float(np.average(rows.reward, weights=rows.weight))
        some = rows
        if len(rows.reward) > settings.rows:
            some = rows.taken(_different_rewards(rows.reward, settings.rows, rng))
        start = self._replace(centre=self.uniform.centre(offset), mapped=self.sample.seen)
        found = best_map(some, start.centre, start.prior, settings, rng, self._least_noise)
        if found is None:
            # The rewards are equal except for rounding.
            return self
        feature_map, posterior = found
        shape = (settings.draws, settings.actions, feature_map.width)
        belief = start._replace(
            feature_map=feature_map,
            prior=posterior.prior,
            sums=Sums.empty(settings.actions, feature_map.width, offset),
            fitted=0.0,
            covariance=None,
            start=rng.standard_normal(shape),
            noise=np.zeros(shape),
        )._with_rows(rows, settings, rng)
        return belief._solved(settings, posterior if len(rows.reward) <= CHOOSING_ROWS else None)

    def _faded(self, factor: float) -> Self:
        if factor == 1.0:
            return self
        sums, noise = known(self.sums).faded(factor), known(self.noise) * factor**0.5
        return self._replace(sums=sums, noise=noise, covariance=None)

    def _with_rows(self, rows: RegressionRows, settings: BeliefSettings, rng: Generator) -> Self:
        feature_map, sums = known(self.feature_map), known(self.sums)
        noise = known(self.noise).copy()
        covariance = self.covariance if len(rows.reward) < feature_map.width else None
        for begin in range(0, len(rows.reward), PIECE):
            piece = rows.taken(slice(begin, begin + PIECE))
            features = feature_map.rows(piece.context)
            sums = sums.keep(features, piece.number, piece.reward, piece.weight)
            if covariance is not None:
                covariance = covariance.with_rows(features, piece.number, piece.weight)
            normal = rng.standard_normal((settings.draws, len(features)))
            normal *= np.sqrt(piece.weight)
            for action in np.unique(piece.number):
                mine = piece.number == action
                noise[:, action] += normal[:, mine] @ features[mine]
        return self._replace(sums=sums, noise=noise, covariance=covariance)

    @property
    def _least_noise(self) -> float:
        return NOISE_SHARE * self.uniform.variance

    def _solved(self, settings: BeliefSettings, posterior: Posterior | None = None) -> Self:
        sums, prior = known(self.sums), known(self.prior)
        centre = self.uniform.centre(sums.offset + sums.reward / sums.weight)
        structure = settings.prior_structure(known(self.feature_map).groups)
        covariance = self.covariance
        # With a discount the weight hardly changes, although the rows do.
        due = sums.weight - self.fitted >= PRIOR_GROWTH * self.fitted or settings.discount < 1
        if due or covariance is None:
            sums = sums.settled()
            if due:
                posterior = posterior or Posterior.of(sums, structure, prior, centre, covariance)
                prior = improved(posterior, self._least_noise)
            covariance = PosteriorCovariance.of(sums, structure, prior)
        moment, _ = sums.centred(centre)
        response = moment * (covariance.unit / covariance.prior.noise)
        drawn = covariance.draw_responses(structure, known(self.start), known(self.noise))
        found = covariance.applied(structure, np.concatenate([response[None], drawn]))
        raw = known(self.feature_map).for_raw(found * covariance.unit)
        draws = raw[0] + settings.width * raw[1:]
        contrasts = draws - draws.mean(axis=1)[:, None]
        contrasts[np.abs(contrasts) <= CONTRAST_TOLERANCE * np.abs(draws).max(initial=0.0)] = 0.0
        return self._replace(
            sums=sums,
            centre=centre,
            prior=covariance.prior,
            coefficients=raw[0],
            draws=contrasts,
            solved=sums.weight,
            fitted=sums.weight if due else self.fitted,
            covariance=covariance,
        )


def _different_rewards(reward: Floats, most: int, rng: Generator) -> Integers:
    # If the rewards of random rows are all equal, half of them are replaced by others.
    order = rng.permutation(len(reward))
    chosen = order[:most]
    if np.ptp(reward[chosen]) == 0:
        others = order[reward[order] != reward[chosen[0]]][: most // 2]
        chosen = np.concatenate([others, chosen[: most - len(others)]])
    return np.sort(chosen)
