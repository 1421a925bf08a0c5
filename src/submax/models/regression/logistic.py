"""Bayesian logistic regressions of all actions, linear in the context."""

from typing import NamedTuple, Self

import numpy as np
import scipy
from numpy.random import Generator

from submax.core.arrays import Floats, Integers
from submax.core.serialization import serializable
from submax.models.regression.bayesian import checked, known
from submax.models.regression.blas import in_one_thread
from submax.models.regression.context_belief import RegressionRows, SampledRows
from submax.models.regression.features import standardization, standardized

DRAWS = 16
"""Posterior draws that are stored."""
ACTIVE_ROWS = 2000
"""Rows that are kept as they are. Older ones are kept as sums, see `LogisticRegressions`."""
MOST_NUMBERS = 2_160_000
"""Numbers in the sums of all actions: 17 MB. Without room for them, a sample of rows is kept."""
REFIT_SHARE, REFIT_ROWS = 0.05, 100
"""The regressions are fitted again when the rows have grown by this share, or by so many rows."""
FITS, FITS_SHARE, SCALE_SHARE = 2, 0.2, 0.5
"""If the rows have grown by ``FITS_SHARE``, prior and posterior are fitted ``FITS`` times in turns;
by ``SCALE_SHARE``, contexts are standardized anew."""
FASTER, FARTHEST_STEP = 2.0, 8.0
"""A step of the fixed point multiplies a prior variance by a factor that is squared, which saves
steps, and then is at most 8 and at least 1/8."""
STEPS, HALVINGS, CLOSE = 8, 8, 0.03
"""Most Newton steps of a fit, and most halvings of a step; a fit ends when no score of a row moves
by more than ``CLOSE``. From the last mode, two or three steps are usual."""
PRIOR_SQUARE = 0.05
"""Prior variances are fitted as if one coefficient with this square had been seen."""
MEAN_RESPONSE = np.pi / 8
"""σ(m / √(1 + π v / 8)) is about the mean of σ over a normal distribution with variance v."""


@serializable("logistic-regressions")
class LogisticRegressions(NamedTuple):
    """P(1 | a, x) = σ(θ_a · (1, z)) with the standardized context z; one replica.

    θ_a has a normal prior: the constants have the mean ``centre`` and the variance
    ``variances[0]``, the slopes the mean 0 and the variance ``variances[1]``, the same for all
    actions. The centre is the mean of all actions' constants, and the variances are those of
    greatest evidence in MacKay's fixed point, (Σ θ² + s) / (γ + 1) with γ the number of
    coefficients that the rows determine; s is ``PRIOR_SQUARE``.

    The posterior is Laplace's: ``mean [K, F]`` is the mode, and ``draws [P, K, F]`` are draws of
    the deviation from it. Decisions use ``values [P, K, F]``, the mode and a share of each
    deviation. ``fitted`` and ``scaled`` are the numbers of rows at the last fit and when the
    ``shift`` and ``scale`` of contexts were last computed. The last rows are kept in ``sample``; of
    older ones the ``curvature [K, F, F]`` Σ w p(1 − p) x xᵀ and the ``response [K, F]``
    Σ w (p(1 − p) x·θ + r − p) x remain, computed at the mode when they left. Where these sums would
    be too large, the sample is a uniform sample of all rows instead, and there are no sums. If an
    action has fewer rows than features, its posterior is computed in the dual form, whose matrices
    have a row for each row.

    References: MacKay (1992), The evidence framework applied to classification networks;
    Rasmussen and Williams (2006), algorithm 3.1.
    """

    sample: SampledRows
    fitted: int = 0
    shift: Floats | None = None
    scale: Floats | None = None
    scaled: int = 0
    mean: Floats | None = None
    draws: Floats | None = None
    values: Floats | None = None
    centre: float = 0.0
    variances: tuple[float, float] = (1.0, 1.0)
    curvature: Floats | None = None
    response: Floats | None = None

    @classmethod
    def unlearned(cls, width: int) -> Self:
        return cls(SampledRows(RegressionRows.empty(width), 0), variances=(1.0, 1 / max(width, 1)))

    @in_one_thread
    def learned(
        self, new: RegressionRows, actions: int, discount: float, share: float, rng: Generator
    ) -> Self:
        """Return the regressions after more rows, with rewards between 0 and 1.

        ``share`` is the part of the posterior's deviation that decisions use.
        """
        sums = actions * (1 + new.context.shape[1]) ** 2 <= MOST_NUMBERS
        most = self.sample.seen + len(new.reward) if sums else 2 * ACTIVE_ROWS
        sample = self.sample.add(new, most, discount, rng)
        belief = self._replace(sample=sample)
        if self.curvature is not None and self.response is not None and discount < 1:
            faded = discount ** len(new.reward)
            curvature, response = self.curvature * faded, self.response * faded
            belief = belief._replace(curvature=curvature, response=response)
        grown = sample.seen - self.fitted
        if grown < min(REFIT_ROWS, REFIT_SHARE * sample.seen):
            return belief
        if self.mean is None and np.ptp(sample.rows.reward) == 0:
            return belief
        if belief.curvature is None and sample.seen >= (1 + SCALE_SHARE) * self.scaled:
            shift, scale = standardization(sample.rows.context, sample.rows.weight)
            belief = belief._replace(shift=shift, scale=scale, scaled=sample.seen)
        for _ in range(FITS if grown >= FITS_SHARE * self.fitted else 1):
            belief = belief._fitted(actions, rng)
        belief = belief._replace(values=known(belief.mean) + share * known(belief.draws))
        return belief._with_few_rows() if sums else belief

    def drawn(self, context: Floats) -> Floats:
        """Return the expected reward of every action in each draw: ``[n, D] -> [n, P, K]``."""
        drawn = known(self.values)
        draws, actions, width = drawn.shape
        score = self._features(context) @ drawn.reshape(-1, width).T
        expected: Floats = scipy.special.expit(score, out=score)
        return expected.reshape(-1, draws, actions)

    def expected(self, context: Floats) -> Floats:
        """Return the expected reward of every action: ``[n, D] -> [n, K]``."""
        features, drawn = self._features(context), known(self.draws)
        score = features @ known(self.mean).T
        deviation = features @ drawn.reshape(-1, drawn.shape[2]).T
        variance = np.mean(deviation.reshape(-1, *drawn.shape[:2]) ** 2, axis=1)
        return scipy.special.expit(score / np.sqrt(1.0 + MEAN_RESPONSE * variance))

    def restricted(self, kept: Integers) -> Self:
        """Return the regressions of the actions ``kept [m]`` alone, for deciding."""
        belief = self.for_deciding()
        if belief.mean is None or belief.draws is None or belief.values is None:
            return belief
        draws, values = belief.draws[:, kept], belief.values[:, kept]
        return belief._replace(mean=belief.mean[kept], draws=draws, values=values)

    def for_deciding(self) -> Self:
        return self._replace(sample=self.sample.none(), curvature=None, response=None)

    def _features(self, context: Floats) -> Floats:
        features = np.empty((len(context), 1 + context.shape[1]))
        features[:, 0] = 1.0
        standardized(context, known(self.shift), known(self.scale), out=features[:, 1:])
        return features

    def _fitted(self, actions: int, rng: Generator) -> Self:
        rows, belief = self.sample.rows, self
        features = belief._features(rows.context)
        width = features.shape[1]
        if belief.mean is None:
            chance = (rows.weight @ rows.reward + 0.5) / (rows.weight.sum() + 1.0)
            centre = float(scipy.special.logit(chance))
            mean = np.zeros((actions, width))
            mean[:, 0] = centre
            belief = belief._replace(centre=centre, mean=mean)
        prior_mean, prior_variance = np.zeros(width), np.full(width, belief.variances[1])
        prior_mean[0], prior_variance[0] = belief.centre, belief.variances[0]
        # Actions without rows have the prior.
        means = np.tile(prior_mean, (actions, 1))
        draws = rng.standard_normal((DRAWS, actions, width)) * np.sqrt(prior_variance)
        order = np.argsort(rows.number, kind="stable")
        ends = np.cumsum(np.bincount(rows.number, minlength=actions))
        for action, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if begin == end and belief.curvature is None:
                continue
            mine = order[begin:end]
            regression = _Regression(
                features[mine],
                rows.reward[mine],
                rows.weight[mine],
                prior_mean,
                prior_variance,
                None if belief.curvature is None else belief.curvature[action],
                None if belief.response is None else belief.response[action],
            )
            means[action], draws[:, action] = regression.posterior(known(belief.mean)[action], rng)
        # One step of the fixed point of the prior's parameters.
        away, spread = means.copy(), np.mean(draws**2, axis=0)
        centre = float(away[:, 0].mean())
        away[:, 0] -= centre
        fitted = []
        for part, old in zip((slice(0, 1), slice(1, None)), belief.variances, strict=True):
            square, count = float((away[:, part] ** 2).sum()), away[:, part].size
            determined = min(max(count - float(spread[:, part].sum()) / old, 0.0), float(count))
            step = ((square + PRIOR_SQUARE) / (determined + 1.0) / old) ** FASTER
            fitted.append(old * min(max(step, 1 / FARTHEST_STEP), FARTHEST_STEP))
        return belief._replace(
            mean=means,
            draws=draws,
            fitted=self.sample.seen,
            centre=centre,
            variances=(fitted[0], fitted[1]),
        )

    def _with_few_rows(self) -> Self:
        rows = self.sample.rows
        if len(rows.reward) <= ACTIVE_ROWS:
            return self
        old, mean = rows.taken(slice(0, len(rows.reward) - ACTIVE_ROWS // 2)), known(self.mean)
        features = self._features(old.context)
        actions, width = mean.shape
        curvature, response = np.zeros((actions, width, width)), np.zeros((actions, width))
        if self.curvature is not None and self.response is not None:
            curvature, response = self.curvature.copy(), self.response.copy()
        for action in range(actions):
            mine = old.number == action
            x, score = features[mine], features[mine] @ mean[action]
            chance = scipy.special.expit(score)
            bend = old.weight[mine] * chance * (1 - chance)
            curvature[action] += (x * bend[:, None]).T @ x
            slope = old.weight[mine] * (old.reward[mine] - chance)
            response[action] += (bend * score + slope) @ x
        kept = self.sample._replace(rows=rows.taken(slice(len(old.reward), None)))
        return self._replace(sample=kept, curvature=curvature, response=response)


class _Regression(NamedTuple):
    """Rows ``x [n, F]`` of one action, a prior, and sums that stand for rows no longer here."""

    x: Floats
    success: Floats
    weight: Floats
    prior_mean: Floats
    prior_variance: Floats
    curvature: Floats | None
    response: Floats | None

    def posterior(self, start: Floats, rng: Generator) -> tuple[Floats, Floats]:
        """Return the mode ``[F]``, and draws of the deviation from it ``[P, F]``."""
        normal = rng.standard_normal((DRAWS, len(start)))
        if self.curvature is None and len(self.x) < len(start):
            return self._dual(start, normal, rng)
        return self._primal(start, normal)

    def _primal(self, start: Floats, normal: Floats) -> tuple[Floats, Floats]:
        precision = 1.0 / self.prior_variance
        bend, pull = np.diag(precision), precision * self.prior_mean
        if self.curvature is not None and self.response is not None:
            bend, pull = bend + self.curvature, pull + self.response
        point, height = start, np.inf
        target = start
        for _ in range(STEPS):
            for _ in range(HALVINGS):
                # A step that does not raise the posterior is halved.
                score = self.x @ target
                loss = self._loss(score) + float(target @ (bend @ target) / 2 - pull @ target)
                if loss <= height:
                    break
                target = (point + target) / 2
            point, height = target, loss
            chance = scipy.special.expit(score)
            hessian = bend + (self.x * (self.weight * chance * (1 - chance))[:, None]).T @ self.x
            slope = (self.weight * (self.success - chance)) @ self.x + pull - bend @ point
            root = _root(hessian)
            step = _solved(root, slope)
            target = point + step
            if np.abs(self.x @ step).max(initial=0.0) < CLOSE:
                break
        draws, _ = checked(scipy.linalg.lapack.dtrtrs(root, normal.T, lower=1, trans=1))
        return point + step, draws.T

    def _dual(self, start: Floats, normal: Floats, rng: Generator) -> tuple[Floats, Floats]:
        deviation = np.sqrt(self.prior_variance)
        prior_draws = normal * deviation
        count = len(self.x)
        spread = self.x * deviation
        gram, base = spread @ spread.T, self.x @ self.prior_mean
        height, alpha = np.inf, np.zeros(count)
        # The start as a combination of the rows, as far as it is one.
        score = self.x @ start
        target, root, bend = alpha, np.eye(count), np.ones(count)
        for step in range(STEPS):
            if step:
                for _ in range(HALVINGS):
                    score = base + gram @ target
                    loss = self._loss(score) + float(target @ (gram @ target)) / 2
                    if loss <= height:
                        break
                    target = (alpha + target) / 2
                moved = np.abs(gram @ (target - alpha)).max(initial=0.0)
                alpha, height = target, loss
                if step > 1 and moved < CLOSE:
                    break
            chance = scipy.special.expit(score)
            bend = np.sqrt(np.maximum(self.weight * chance * (1 - chance), 1e-12))
            matrix = bend[:, None] * gram * bend
            matrix.flat[:: count + 1] += 1.0
            root = _root(matrix)
            sought = bend**2 * (score - base) + self.weight * (self.success - chance)
            solved = _solved(root, bend * (gram @ sought))
            target = sought - bend * solved
        mode = self.prior_mean + (target @ spread) * deviation
        seen = (prior_draws @ self.x.T) * bend + rng.standard_normal((DRAWS, count))
        away = _solved(root, seen.T).T * bend
        return mode, prior_draws - (away @ spread) * deviation

    def _loss(self, score: Floats) -> float:
        """−Σ w (r log p + (1 − r) log(1 − p)) of the rows that are here."""
        return float(self.weight @ (np.logaddexp(0.0, score) - self.success * score))


def _root(matrix: Floats) -> Floats:
    """Return the lower Cholesky factor. For few numbers, SciPy's own functions take longer."""
    root: Floats = checked(scipy.linalg.lapack.dpotrf(matrix, lower=1, clean=1))[0]
    return root


def _solved(root: Floats, right: Floats) -> Floats:
    """Return x with (root rootᵀ) x = ``right``."""
    solution: Floats = checked(scipy.linalg.lapack.dpotrs(root, right, lower=1))[0]
    return solution
