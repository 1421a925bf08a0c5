"""What is believed about the reward of every action in every context, learned row by row."""

from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.errors import InvalidValue
from submax.regression.design import Design, Prior
from submax.regression.feature_map import GROUPS, FeatureMap, new_map
from submax.regression.fitting import fitted
from submax.regression.posterior import Posterior
from submax.regression.sampled_rows import Rows, SampledRows
from submax.regression.solution import Solution
from submax.regression.sums import Sums

LENGTHS = (0.2, 0.35, 0.7, 1.4)
"""Kernel lengths to choose from, in units of the typical distance between two contexts."""
USUAL_LENGTH = 0.7
FEWEST_ROWS = 30
"""With fewer rows there is nothing to choose by: kernels have the usual length."""
GROWTH = 1.6
"""The map is made anew whenever there are this many times as many rows as when it was made."""
FIRST_STEPS = 3
"""Fixed-point steps for the prior of a new map; later there is one step at a time."""
REFIT_SHARE = 0.05
"""The posterior is computed again when the rows have grown by this share."""
REFIT_ROWS = 100
"""The posterior is computed again after this many new rows at the latest."""
PRIOR_SHARE = 0.1
"""The prior is fitted again when the rows have grown by this share."""
LIKE_UNIFORM = 2.0
"""A row tells what a uniform choice earns if its action had at most this many times the uniform
probability. What a policy earns that has learned something says nothing about the other actions."""
LARGEST_WEIGHT = 10.0
"""Such a row counts at most as this many rows that were chosen uniformly, so that none decides."""
RELEVANCE_ROWS = 10.0
"""As if this many rows for each number of the context had shown all numbers equally relevant."""
SENSITIVITY_ROWS = 400
"""The relevance is computed from this many rows."""
CHUNK = 4096
"""Rows are turned into features this many at a time."""


class Uniform(NamedTuple):
    """Sums over rows that tell what a uniform choice earns: weights, and weighted rewards."""

    weight: float
    reward: float


class Chance(NamedTuple):
    """What the kept draws are made of, ``[P, K, F]`` each; see ``Solution.draw_responses``."""

    normal: Floats
    noise: Floats


@dataclass(frozen=True)
class BeliefSettings:
    """How a belief is learned.

    ``features`` is the largest number of features, ``rows`` the number of rows from which the map
    is made and the size of the sample kept, ``draws`` how many posterior draws are kept and
    ``width`` their deviation from the mean as a share of the posterior's, ``discount`` the factor
    by which the weight of a row falls with every later row, ``kernels`` whether there are kernels
    beside the linear part. ``alike [K, q]`` are numbers that describe the actions, if there are
    any: actions with similar numbers are expected to have similar coefficients. If the actions are
    not ``shared``, what is learned of one says nothing about another.
    """

    actions: int
    features: int
    rows: int
    draws: int
    width: float
    discount: float
    kernels: bool = True
    alike: Floats | None = field(default=None, compare=False)
    shared: bool = True

    def design(self, groups: Integers) -> Design:
        """How the regressions of the actions are related, for features in these groups."""
        if self.shared:
            return Design.sharing(groups, self.actions, self.alike)
        return Design.independent(groups, self.actions)


class ContextBelief(NamedTuple):
    """One replica's belief: φ(x)·θ_a + ``centre`` is the expected reward of action a in x.

    ``coefficients [K, F]`` are the posterior mean and ``pool [P, K, F]`` posterior draws of θ, for
    the features of ``FeatureMap.raw``; all are None before anything can be told from the rows.
    The rest is remembered only to learn further: the sums, the sample of rows, the prior, the
    number of rows ``mapped`` when the map was made, the weight of rows when the posterior was last
    ``solved`` and the prior last ``fitted``, and what ``chance`` the draws are made of.
    """

    feature_map: FeatureMap | None
    centre: float
    coefficients: Floats | None
    pool: Floats | None
    sums: Sums | None
    prior: Prior | None
    sample: SampledRows
    uniform: Uniform
    mapped: int
    solved: float
    fitted: float
    solution: Solution | None = None
    chance: Chance | None = None

    @classmethod
    def unlearned(cls, width: int) -> Self:
        """Before any row."""
        sample = SampledRows(Rows.empty(width), 0)
        nothing = Uniform(0.0, 0.0)
        return cls(None, 0.0, None, None, None, None, sample, nothing, 0, 0.0, 0.0)

    def learned(self, new: Rows, settings: BeliefSettings, rng: np.random.Generator) -> Self:
        """The belief after more rows."""
        if self.feature_map is not None and self.sums is None:
            raise InvalidValue(
                "this state was stored to decide, without what it needs to learn further: "
                "fit a new one to all rows"
            )
        sample = self.sample.add(new, settings.rows, settings.discount, rng)
        uniform = self._explored(new, settings)
        belief = self._replace(sample=sample, uniform=uniform)
        count = len(new.reward)
        faded = settings.discount**count
        weighted = new._replace(weight=new.weight * _fading(settings.discount, count))
        due = min(GROWTH * self.mapped, settings.rows)
        if self.mapped < settings.rows and sample.seen >= due:
            # The sample holds every row that came before, unless all their rewards were equal.
            everything = self.sample.standing_for_all().faded(faded).joined(weighted)
            if np.ptp(everything.reward) == 0:
                return belief
            return belief._mapped(everything, settings, rng)
        assert self.sums is not None, "a map comes first"
        assert self.feature_map is not None, "a map comes first"
        belief = belief._faded(faded)._with_rows(weighted, settings, rng)
        assert belief.sums is not None, "rows were added to it"
        weight = belief.sums.weight
        if weight - self.solved < min(REFIT_ROWS, REFIT_SHARE * weight) and settings.discount == 1:
            return belief
        return belief._solved(settings)

    def drawn(self, context: Floats) -> Floats:
        """The expected reward of every action by each kept draw: ``[n, D] -> [n, P, K]``."""
        drawn = self.drawn_from_centre(context)
        drawn += self.centre
        return drawn

    def drawn_from_centre(self, context: Floats) -> Floats:
        """The same, counted from the centre: small differences of large rewards are kept."""
        assert self.feature_map is not None, "nothing was learned"
        assert self.pool is not None, "nothing was learned"
        raw = self.feature_map.raw(context)
        draws, actions, features = self.pool.shape
        drawn: Floats = raw @ self.pool.reshape(draws * actions, features).T
        return drawn.reshape(len(raw), draws, actions)

    def drawn_alone(self, context: Floats) -> Floats:
        """The same for one context, in few steps: ``[D] -> [P, K]``."""
        assert self.feature_map is not None, "nothing was learned"
        assert self.pool is not None, "nothing was learned"
        draws, actions, features = self.pool.shape
        raw = self.feature_map.raw_alone(context)
        drawn: Floats = self.pool.reshape(draws * actions, features).dot(raw)
        return drawn.reshape(draws, actions)

    def mean(self, raw: Floats) -> Floats:
        """The expected reward of every action, from raw features: ``[n, F] -> [n, K]``."""
        assert self.coefficients is not None, "nothing was learned"
        expected: Floats = raw @ self.coefficients.T + self.centre
        return expected

    def for_deciding(self) -> Self:
        """Without what is remembered only to learn further."""
        return self._replace(
            sums=None, prior=None, sample=self.sample.none(), solution=None, chance=None
        )

    def posterior(self, settings: BeliefSettings) -> Posterior:
        """The posterior under the prior as last fitted, computed again from the sums."""
        assert self.sums is not None, "nothing was learned"
        assert self.prior is not None, "nothing was learned"
        return Posterior.of(self.sums, self._design(settings), self.prior, self.centre)

    def _explored(self, new: Rows, settings: BeliefSettings) -> Uniform:
        factor = settings.discount ** len(new.reward)
        known = ~np.isnan(new.log_prob)
        chance = np.exp(np.where(known, new.log_prob, 0.0))
        like = known & (chance * settings.actions <= LIKE_UNIFORM)
        least = 1.0 / (LARGEST_WEIGHT * settings.actions)
        weight = new.weight * np.where(like, 1.0 / np.maximum(chance, least), 0.0)
        return Uniform(
            self.uniform.weight * factor + float(weight.sum()),
            self.uniform.reward * factor + float(weight @ new.reward),
        )

    def _design(self, settings: BeliefSettings) -> Design:
        assert self.feature_map is not None, "a map comes first"
        return settings.design(self.feature_map.groups)

    def _mapped(self, rows: Rows, settings: BeliefSettings, rng: np.random.Generator) -> Self:
        """With a map made from rows, or from some of them, and the sums of all of them."""
        offset = float(np.average(rows.reward, weights=rows.weight))
        some = rows
        if len(rows.reward) > settings.rows:
            some = rows.taken(_different_rewards(rows.reward, settings.rows, rng))
        start = self._replace(centre=self._centre(offset), mapped=self.sample.seen)
        found = _best_map(start, some, offset, settings, rng)
        if found is None:
            # The rewards differ by rounding alone.
            return self
        feature_map, prior = found
        shape = (settings.draws, settings.actions, feature_map.width)
        belief = start._replace(
            feature_map=feature_map,
            prior=prior,
            sums=Sums.empty(settings.actions, feature_map.width, offset),
            fitted=0.0,
            solution=None,
            chance=Chance(rng.standard_normal(shape), np.zeros(shape)),
        )
        return belief._with_rows(rows, settings, rng)._solved(settings)

    def _faded(self, factor: float) -> Self:
        """With old rows that weigh less."""
        if factor == 1.0:
            return self
        assert self.sums is not None, "a map comes first"
        assert self.chance is not None, "a map comes first"
        noise = self.chance.noise * factor**0.5
        chance = self.chance._replace(noise=noise)
        return self._replace(sums=self.sums.faded(factor), chance=chance, solution=None)

    def _with_rows(self, rows: Rows, settings: BeliefSettings, rng: np.random.Generator) -> Self:
        """With more rows in everything that is a sum over them."""
        assert self.feature_map is not None, "a map comes first"
        assert self.sums is not None, "a map comes first"
        assert self.chance is not None, "a map comes first"
        sums, noise = self.sums, self.chance.noise.copy()
        few = len(rows.reward) < self.feature_map.width
        solution = self.solution if few else None
        for begin in range(0, len(rows.reward), CHUNK):
            some = rows.taken(slice(begin, begin + CHUNK))
            features = self.feature_map.rows(some.context)
            sums = sums.add(features, some.number, some.reward, some.weight)
            if solution is not None:
                solution = solution.with_rows(features, some.number, some.weight)
            luck = rng.standard_normal((settings.draws, len(features))) * np.sqrt(some.weight)
            for action in np.unique(some.number):
                mine = some.number == action
                noise[:, action] += luck[:, mine] @ features[mine]
        chance = self.chance._replace(noise=noise)
        return self._replace(sums=sums, chance=chance, solution=solution)

    def _centre(self, otherwise: float) -> float:
        """What a uniform choice earns, as far as rows tell."""
        if self.uniform.weight <= 0:
            return otherwise
        return self.uniform.reward / self.uniform.weight

    def _solved(self, settings: BeliefSettings) -> Self:
        """With the posterior of the sums, and draws from it."""
        sums, prior, chance = self.sums, self.prior, self.chance
        assert sums is not None, "a map comes first"
        assert prior is not None, "a map comes first"
        assert chance is not None, "a map comes first"
        assert self.feature_map is not None, "a map comes first"
        centre = self._centre(sums.offset + sums.reward / sums.weight)
        design, solution = self._design(settings), self.solution
        # If old rows fade, the weight stays the same while the rows become others.
        grown = abs(sums.weight - self.fitted) >= PRIOR_SHARE * sums.weight
        due = grown or settings.discount < 1
        if due or solution is None:
            solution = Solution.of(fitted(sums, design, prior, centre, steps=int(due)))
        moment, _ = sums.centred(centre)
        response = moment * (solution.unit / solution.prior.noise)
        drawn = solution.draw_responses(design, *chance)
        found = solution.applied(design, np.concatenate([response[None], drawn])) * solution.unit
        raw = self.feature_map.for_raw(found)
        return self._replace(
            centre=centre,
            prior=solution.prior,
            coefficients=raw[0],
            pool=raw[0] + settings.width * raw[1:],
            solved=sums.weight,
            fitted=sums.weight if due else self.fitted,
            solution=solution,
        )


def added(sums: Sums, feature_map: FeatureMap, rows: Rows) -> Sums:
    """The sums with more rows, in pieces."""
    for begin in range(0, len(rows.reward), CHUNK):
        some = rows.taken(slice(begin, begin + CHUNK))
        sums = sums.add(feature_map.rows(some.context), some.number, some.reward, some.weight)
    return sums


def _fading(discount: float, count: int) -> Floats:
    return discount ** np.arange(count - 1, -1, -1.0)


def _different_rewards(reward: Floats, most: int, rng: np.random.Generator) -> Integers:
    """Rows picked at random; if all their rewards are equal, half of them are others."""
    order = rng.permutation(len(reward))
    chosen = order[:most]
    if np.ptp(reward[chosen]) == 0:
        others = order[reward[order] != reward[chosen[0]]][: most // 2]
        chosen = np.concatenate([others, chosen[: most - len(others)]])
    return np.sort(chosen)


class _Candidate(NamedTuple):
    feature_map: FeatureMap
    posterior: Posterior


def _best_map(
    belief: ContextBelief,
    rows: Rows,
    offset: float,
    settings: BeliefSettings,
    rng: np.random.Generator,
) -> tuple[FeatureMap, Prior] | None:
    """The map and the prior with the highest evidence; None if all rewards are equal."""
    most, kernels = settings.features, settings.kernels
    first = new_map(rows.context, rows.weight, most, LENGTHS[-1], rng, kernels)

    def candidate(feature_map: FeatureMap, prior: Prior | None) -> _Candidate | None:
        empty = Sums.empty(settings.actions, feature_map.width, offset)
        sums = added(empty, feature_map, rows)
        if sums.variance == 0.0:
            return None
        start = prior or Prior.vague(GROUPS, sums.variance)
        design = settings.design(feature_map.groups)
        return _Candidate(feature_map, fitted(sums, design, start, belief.centre, FIRST_STEPS))

    choosing = len(first.landmarks) > 0 and len(rows.reward) >= FEWEST_ROWS
    lengths = LENGTHS if choosing else (USUAL_LENGTH,)
    found = [candidate(first.of_length(length), belief.prior) for length in lengths]
    tried = [one for one in found if one is not None]
    if not tried:
        return None
    best = max(tried, key=lambda one: one.posterior.log_evidence)
    if choosing:
        relevance = _relevance(best, rows)
        another = candidate(best.feature_map.relearned(relevance), best.posterior.prior)
        if another and another.posterior.log_evidence > best.posterior.log_evidence:
            best = another
    return best.feature_map, best.posterior.prior


def _relevance(best: _Candidate, rows: Rows) -> Floats:
    """How much each number of the context counts for distances, 1 on average.

    Its square is the sensitivity of the regressions to the number, drawn towards equal relevance
    the more, the fewer rows there are for each number.

    Reference: Radhakrishnan et al. (2024), Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models, on average gradient outer products.
    """
    recent = rows.context[-SENSITIVITY_ROWS:]
    squared = best.feature_map.sensitivity(recent, best.posterior.coefficients)
    mean = squared.mean()
    if not mean > 0:
        return np.ones(len(squared))
    shrink = RELEVANCE_ROWS * len(squared) / len(rows.reward)
    relevance: Floats = np.sqrt((squared / mean + shrink) / (1 + shrink))
    return relevance
