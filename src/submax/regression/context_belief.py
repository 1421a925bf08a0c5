"""What is believed about the reward of every action in every context, learned row by row."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.core.running.stored import stored
from submax.regression.belief_settings import BeliefSettings
from submax.regression.feature_map import FeatureMap
from submax.regression.fitting import fitted
from submax.regression.map_choice import best_map
from submax.regression.posterior import Posterior
from submax.regression.posterior_covariance import PosteriorCovariance
from submax.regression.prior import Prior, PriorStructure
from submax.regression.sampled_rows import RegressionRows, SampledRows
from submax.regression.sums import Sums

GROWTH = 1.6
"""The map is made anew whenever there are this many times as many rows as when it was made."""
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
CONTRAST_TOLERANCE = 1e-12
"""Coefficients of two actions that differ by less than this share of the largest are equal."""


@stored("uniform-rewards")
class UniformRewards(NamedTuple):
    """Sums over rows that tell what a uniform choice earns: weights, and weighted rewards."""

    weight: float
    reward: float


@stored("draw-noise")
class DrawNoise(NamedTuple):
    """The random numbers of which the kept draws are made, ``[P, K, F]`` each.

    ``prior`` are standard normal numbers, and ``rows`` is Σ √w φ ε over the rows, with a standard
    normal ε for each row and draw; see ``PosteriorCovariance.draw_responses``.
    """

    prior: Floats
    rows: Floats


@stored("kept-draws")
class KeptDraws(NamedTuple):
    """Posterior draws of the coefficients of ``FeatureMap.raw``, for P draws and K actions.

    A draw is ``common [P, F]``, the mean over the actions, plus ``contrasts [P, K, F]``. Which
    action is best depends on the contrasts alone, and they keep small differences of large rewards.
    """

    common: Floats
    contrasts: Floats

    @classmethod
    def of(cls, coefficients: Floats) -> Self:
        """Draws ``[P, K, F]`` in two parts."""
        common = coefficients.mean(axis=1)
        contrasts = coefficients - common[:, None]
        contrasts[
            np.abs(contrasts) <= CONTRAST_TOLERANCE * np.abs(coefficients).max(initial=0.0)
        ] = 0.0
        return cls(common, contrasts)


@stored("context-belief")
class ContextBelief(NamedTuple):
    """One replica's belief: φ(x)·θ_a + ``centre`` is the expected reward of action a in x.

    ``coefficients [K, F]`` are the posterior mean of θ for the features of ``FeatureMap.raw``, and
    ``draws`` posterior draws of it; all are None before anything can be told from the rows. The
    rest is remembered only to learn further: the sums, the sample of rows, the prior, the number of
    rows ``mapped`` when the map was made, the weight of rows when the posterior was last ``solved``
    and the prior last ``fitted``, and the ``noise`` that the draws are made of.
    """

    feature_map: FeatureMap | None
    centre: float
    coefficients: Floats | None
    draws: KeptDraws | None
    sums: Sums | None
    prior: Prior | None
    sample: SampledRows
    uniform: UniformRewards
    mapped: int
    solved: float
    fitted: float
    solution: PosteriorCovariance | None = None
    noise: DrawNoise | None = None

    @classmethod
    def unlearned(cls, width: int) -> Self:
        """Before any row."""
        sample = SampledRows(RegressionRows.empty(width), 0)
        nothing = UniformRewards(0.0, 0.0)
        return cls(None, 0.0, None, None, None, None, sample, nothing, 0, 0.0, 0.0)

    def learned(
        self, new: RegressionRows, settings: BeliefSettings, rng: np.random.Generator
    ) -> Self:
        """The belief after more rows."""
        if self.feature_map is not None and self.sums is None:
            raise InputError(
                "this state was stored to decide, without what it needs to learn further: "
                "fit a new one to all rows"
            )
        sample = self.sample.add(new, settings.rows, settings.discount, rng)
        uniform = self._explored(new, settings)
        belief = self._replace(sample=sample, uniform=uniform)
        count = len(new.reward)
        faded = settings.discount**count
        weighted = new.discounted(settings.discount)
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
        assert self.feature_map is not None, "nothing was learned"
        assert self.draws is not None, "nothing was learned"
        raw = self.feature_map.raw(context)
        drawn = _products(raw, self.draws.contrasts)
        drawn += (raw @ self.draws.common.T)[..., None] + self.centre
        return drawn

    def drawn_contrasts(self, context: Floats) -> Floats:
        """The same, less the mean over the actions: ``[n, D] -> [n, P, K]``."""
        assert self.feature_map is not None, "nothing was learned"
        assert self.draws is not None, "nothing was learned"
        return _products(self.feature_map.raw(context), self.draws.contrasts)

    def drawn_contrasts_alone(self, context: Floats) -> Floats:
        """The same for one context, in few steps: ``[D] -> [P, K]``."""
        assert self.feature_map is not None, "nothing was learned"
        assert self.draws is not None, "nothing was learned"
        draws, actions, features = self.draws.contrasts.shape
        flat = self.draws.contrasts.reshape(draws * actions, features)
        contrasts: Floats = flat.dot(self.feature_map.raw_alone(context))
        return contrasts.reshape(draws, actions)

    def mean(self, raw: Floats) -> Floats:
        """The expected reward of every action, from raw features: ``[n, F] -> [n, K]``."""
        assert self.coefficients is not None, "nothing was learned"
        expected: Floats = raw @ self.coefficients.T + self.centre
        return expected

    def for_deciding(self) -> Self:
        """Without what is remembered only to learn further."""
        return self._replace(
            sums=None, prior=None, sample=self.sample.none(), solution=None, noise=None
        )

    def posterior(self, settings: BeliefSettings) -> Posterior:
        """The posterior under the prior as last fitted, computed again from the sums."""
        assert self.sums is not None, "nothing was learned"
        assert self.prior is not None, "nothing was learned"
        return Posterior.of(self.sums, self._design(settings), self.prior, self.centre)

    def _explored(self, new: RegressionRows, settings: BeliefSettings) -> UniformRewards:
        factor = settings.discount ** len(new.reward)
        known = ~np.isnan(new.log_prob)
        chance = np.exp(np.where(known, new.log_prob, 0.0))
        like = known & (chance * settings.actions <= LIKE_UNIFORM)
        least = 1.0 / (LARGEST_WEIGHT * settings.actions)
        weight = new.weight * np.where(like, 1.0 / np.maximum(chance, least), 0.0)
        return UniformRewards(
            self.uniform.weight * factor + float(weight.sum()),
            self.uniform.reward * factor + float(weight @ new.reward),
        )

    def _design(self, settings: BeliefSettings) -> PriorStructure:
        assert self.feature_map is not None, "a map comes first"
        return settings.design(self.feature_map.groups)

    def _mapped(
        self, rows: RegressionRows, settings: BeliefSettings, rng: np.random.Generator
    ) -> Self:
        """With a map made from rows, or from some of them, and the sums of all of them."""
        offset = float(np.average(rows.reward, weights=rows.weight))
        some = rows
        if len(rows.reward) > settings.rows:
            some = rows.taken(_different_rewards(rows.reward, settings.rows, rng))
        start = self._replace(centre=self._centre(offset), mapped=self.sample.seen)
        found = best_map(some, start.centre, start.prior, settings, rng)
        if found is None:
            # The rewards differ by rounding alone.
            return self
        width = found.feature_map.width
        shape = (settings.draws, settings.actions, width)
        belief = start._replace(
            feature_map=found.feature_map,
            prior=found.prior,
            sums=Sums.empty(settings.actions, width, offset),
            fitted=0.0,
            solution=None,
            noise=DrawNoise(rng.standard_normal(shape), np.zeros(shape)),
        )
        return belief._with_rows(rows, settings, rng)._solved(settings)

    def _faded(self, factor: float) -> Self:
        """With old rows that weigh less."""
        if factor == 1.0:
            return self
        assert self.sums is not None, "a map comes first"
        assert self.noise is not None, "a map comes first"
        noise = self.noise._replace(rows=self.noise.rows * factor**0.5)
        return self._replace(sums=self.sums.faded(factor), noise=noise, solution=None)

    def _with_rows(
        self, rows: RegressionRows, settings: BeliefSettings, rng: np.random.Generator
    ) -> Self:
        """With more rows in everything that is a sum over them."""
        assert self.feature_map is not None, "a map comes first"
        assert self.sums is not None, "a map comes first"
        assert self.noise is not None, "a map comes first"
        sums, noise = self.sums, self.noise.rows.copy()
        few = len(rows.reward) < self.feature_map.width
        solution = self.solution if few else None
        for piece in rows.pieces():
            features = self.feature_map.rows(piece.context)
            sums = sums.add(features, piece.number, piece.reward, piece.weight)
            if solution is not None:
                solution = solution.with_rows(features, piece.number, piece.weight)
            normal = rng.standard_normal((settings.draws, len(features)))
            normal *= np.sqrt(piece.weight)
            for action in np.unique(piece.number):
                mine = piece.number == action
                noise[:, action] += normal[:, mine] @ features[mine]
        noises = self.noise._replace(rows=noise)
        return self._replace(sums=sums, noise=noises, solution=solution)

    def _centre(self, otherwise: float) -> float:
        """What a uniform choice earns, as far as rows tell."""
        if self.uniform.weight <= 0:
            return otherwise
        return self.uniform.reward / self.uniform.weight

    def _solved(self, settings: BeliefSettings) -> Self:
        """With the posterior of the sums, and draws from it."""
        sums, prior, noise = self.sums, self.prior, self.noise
        assert sums is not None, "a map comes first"
        assert prior is not None, "a map comes first"
        assert noise is not None, "a map comes first"
        assert self.feature_map is not None, "a map comes first"
        centre = self._centre(sums.offset + sums.reward / sums.weight)
        design, solution = self._design(settings), self.solution
        # If old rows fade, the weight stays the same while the rows become others.
        grown = abs(sums.weight - self.fitted) >= PRIOR_SHARE * sums.weight
        due = grown or settings.discount < 1
        if due or solution is None:
            known = None if solution is None else solution.inverse
            solution = PosteriorCovariance.of(fitted(sums, design, prior, centre, int(due), known))
        moment, _ = sums.centred(centre)
        response = moment * (solution.unit / solution.prior.noise)
        drawn = solution.draw_responses(design, noise.prior, noise.rows)
        found = solution.applied(design, np.concatenate([response[None], drawn])) * solution.unit
        raw = self.feature_map.for_raw(found)
        return self._replace(
            centre=centre,
            prior=solution.prior,
            coefficients=raw[0],
            draws=KeptDraws.of(raw[0] + settings.width * raw[1:]),
            solved=sums.weight,
            fitted=sums.weight if due else self.fitted,
            solution=solution,
        )


def _products(raw: Floats, coefficients: Floats) -> Floats:
    """Features times coefficients: ``[n, F]`` and ``[P, K, F] -> [n, P, K]``."""
    draws, actions, features = coefficients.shape
    found: Floats = raw @ coefficients.reshape(draws * actions, features).T
    return found.reshape(len(raw), draws, actions)


def _different_rewards(reward: Floats, most: int, rng: np.random.Generator) -> Integers:
    """RegressionRows picked at random; if all their rewards are equal, half of them are others."""
    order = rng.permutation(len(reward))
    chosen = order[:most]
    if np.ptp(reward[chosen]) == 0:
        others = order[reward[order] != reward[chosen[0]]][: most // 2]
        chosen = np.concatenate([others, chosen[: most - len(others)]])
    return np.sort(chosen)
