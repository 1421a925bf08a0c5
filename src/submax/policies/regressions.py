"""Policies that decide by a Bayesian regression of the reward for every action."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import Allowed, NonNegative, Positive, whole_number
from submax.core.errors import InputError
from submax.core.numerics import highest
from submax.core.policy import PolicyTraits, TabularPolicy
from submax.core.problem import Feedback, Problem
from submax.core.serialization import serializable
from submax.core.spaces import Choices
from submax.models.memory import Memory
from submax.models.regression.bayesian import described_actions, known
from submax.models.regression.context_belief import BeliefSettings, ContextBelief, RegressionRows
from submax.models.regression.logistic import DRAWS, LogisticRegressions
from submax.strategies.iterated import mean_submax_of

NUMBERS_AT_ONCE = 2**21
"""About this many numbers are held in memory at a time: 16 MB."""
Depth = Annotated[int, Allowed(whole_number, at_least=1, at_most=100)]
Draws = Annotated[int, Allowed(whole_number, at_least=1, at_most=4096)]


@serializable("regression-beliefs")
class RegressionBeliefs(NamedTuple):
    """The belief about all joint actions in each replica.

    ``roots`` has a matrix root ``[K, F, F]`` of the posterior covariances for each replica, see
    ``PosteriorCovariance.roots``, if the policy decides by them; None before the first posterior.
    """

    problem: Problem
    beliefs: tuple[Any, ...]
    roots: tuple[Floats | None, ...] = ()

    def restricted(self, choices: Choices) -> Self:
        kept = self.problem.space.indices_of(choices)
        return self._replace(
            problem=self.problem.restricted(choices),
            beliefs=tuple(belief.restricted(kept) for belief in self.beliefs),
            roots=tuple(None if root is None else root[kept] for root in self.roots),
        )


class RegressionPolicy(TabularPolicy[RegressionBeliefs]):
    """Decide by the posterior of regressions; uniform until two rewards differ."""

    instead = ""
    """What to take if the joint actions cannot be listed."""
    memory = Memory()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.memory.drops_rows:
            raise InputError(
                f"the {type(self).__name__} policy stores sums, from which single rows cannot be "
                "removed: use memory = { discount = 0.999 } instead of a window or reservoir"
            )

    @property
    def traits(self) -> PolicyTraits:
        return PolicyTraits(forgets=self.memory.forgets)

    @abstractmethod
    def unlearned(self, problem: Problem) -> Any:
        """Return the belief before any row."""

    @abstractmethod
    def learned(
        self, belief: Any, rows: RegressionRows, problem: Problem, rng: np.random.Generator
    ) -> Any:
        """Return the belief of one replica after more rows."""

    @abstractmethod
    def decide(self, state: RegressionBeliefs, replica: int, context: Floats) -> Floats:
        """Return the probability of every action: ``[n, D] -> [n, K]``."""

    @abstractmethod
    def numbers(self, problem: Problem) -> int:
        """Return how many numbers a decision computes."""

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> RegressionBeliefs:
        problem.space.check_listable(f"the {type(self).__name__} policy", self.instead)
        return RegressionBeliefs(problem, (self.unlearned(problem),) * replicas)

    def probabilities(self, state: RegressionBeliefs, context: Floats) -> Floats:
        problem = state.problem
        problem.check_context(context)
        if problem.context_width == 0:
            # Without context all decisions of a replica have the same probabilities.
            context = context[:, :1]
        if context.shape[:2] == (1, 1):
            return self.alone(state, context[0, 0])[None, None]
        result = np.full((*context.shape[:2], problem.space.size), 1 / problem.space.size)
        rows = max(1, NUMBERS_AT_ONCE // self.numbers(problem))
        for replica, belief in enumerate(state.beliefs):
            for begin in range(0, 0 if belief.draws is None else context.shape[1], rows):
                part = slice(begin, begin + rows)
                result[replica, part] = self.decide(state, replica, context[replica, part])
        return result

    def alone(self, state: RegressionBeliefs, context: Floats) -> Floats:
        """Return the probabilities in one context of a single replica, checked: ``[D] -> [K]``."""
        if state.beliefs[0].draws is None:
            size = state.problem.space.size
            return np.full(size, 1 / size)
        return self.decide(state, 0, context[None])[0]

    def update(
        self, state: RegressionBeliefs, feedback: Feedback, rng: np.random.Generator
    ) -> RegressionBeliefs:
        feedback.check(state.problem)
        # Each replica has a stream of its own, so none depends on the rows of another.
        beliefs, streams = list(state.beliefs), rng.spawn(len(state.beliefs))
        index = state.problem.space.index(feedback.action)
        for replica, stream in enumerate(streams):
            rows = RegressionRows.of(feedback, replica, index)
            if len(rows.reward):
                beliefs[replica] = self.learned(beliefs[replica], rows, state.problem, stream)
        return state._replace(beliefs=tuple(beliefs))


def expected_by(
    state: RegressionBeliefs, context: Floats, mean: Callable[[Any, Floats], Floats]
) -> Floats:
    """Return the expected reward of every action, ``[R, n, K]``; NaN before the first fit."""
    state.problem.check_context(context)
    found = np.full((*context.shape[:2], state.problem.space.size), np.nan)
    for replica, belief in enumerate(state.beliefs):
        if belief.draws is not None:
            found[replica] = mean(belief, context[replica])
    return found


class ContextPolicy(RegressionPolicy):
    """A regression policy whose belief is a `ContextBelief`."""

    @abstractmethod
    def settings(self, problem: Problem) -> BeliefSettings:
        """Return how the belief learns, or raise an InputError if the problem is too large."""

    def unlearned(self, problem: Problem) -> ContextBelief:
        self.settings(problem)
        return ContextBelief.unlearned(problem.context_width)

    def learned(
        self, belief: Any, rows: RegressionRows, problem: Problem, rng: np.random.Generator
    ) -> Any:
        return belief.learned(rows, self.settings(problem), rng)


MOST_NUMBERS = 2_160_000
"""Numbers in the sums of all regressions: 17 MB. With more than 26 actions, each has fewer than 288
features. Learning takes several times this memory, and draws take more for very many actions."""
MOST_SHARED = 800
"""Coefficients that actions with features of their own share: the number of directions between the
actions times the number of features of the context. A fit inverts a matrix of this size; with 800,
learning about 30 actions with five features each took less time than without any."""
FEWEST_FEATURES = 4
"""With fewer features for each action there would be nothing to learn from the context."""


@dataclass(frozen=True)
class PosteriorSubMax(ContextPolicy):
    """Apply SubMax to posterior draws of the expected rewards, and average the policies.

    The reward of every action is a Bayesian linear regression, r = φ(x)·θ_a + noise. The features φ
    are a constant, the context and kernels around some of its rows (see `FeatureMap`). How far
    kernels reach is chosen by marginal likelihood from the first ``rows`` rows; context variables
    to which the regressions are sensitive count more, if that raises the marginal likelihood. The
    prior variances of θ and of the noise are fitted by marginal likelihood as long as rows come.
    What actions have in common is part of the prior: their coefficients may be positively
    correlated (contexts in which everything earns more) or negatively (only one action is right).
    If the problem has ``action_features``, coefficients are also expected to be similar for actions
    with similar features, as far as the rows bear this out; an action without any row starts from
    what is known of the others. Rows are remembered as sums, so cost and memory do not depend on
    how many there were.

    There are at most ``features`` of them, fewer if there are many actions. ``draws`` posterior
    draws are kept after each update, with the share ``width`` of the posterior's deviation. Of the
    ``memory`` only its discount can be used. Without ``kernels`` the regressions are linear.

    Each draw v of the expected reward of every action gives a policy: from the uniform one,
    π_{k+1}(a) ∝ π_k(a) max(v(a) − Σ_b π_k(b) v(b), 0), ``depth`` times. A decision uses one of the
    draws at random, so its probability is the mean of these policies, which is exact. Between two
    updates all decisions share the draws.

    Not in the paper, whose SubMax it applies to draws; see docs/research.
    """

    features: Annotated[int, Allowed(whole_number, at_least=FEWEST_FEATURES, at_most=4096)] = 288
    rows: Annotated[int, Allowed(whole_number, at_least=10, at_most=100_000)] = 2000
    draws: Draws = 8
    width: NonNegative = 0.1
    kernels: bool = True
    memory: Memory = field(default_factory=Memory)
    depth: Depth = 2

    instead = "use posterior-slots"

    def settings(self, problem: Problem) -> BeliefSettings:
        actions = problem.space.size
        features = min(self.features, math.isqrt(MOST_NUMBERS // actions))
        if features < FEWEST_FEATURES:
            raise InputError(
                "the posterior-submax policy has a regression for every action, for at most "
                f"{MOST_NUMBERS // FEWEST_FEATURES**2} actions, but this problem has {actions}: "
                "declare slots and use posterior-slots"
            )
        described = described_actions(problem)
        if described is not None:
            features = min(features, MOST_SHARED // (1 + described.shape[1]))
        discount = self.memory.discount
        return BeliefSettings(
            actions, features, self.rows, self.draws, self.width, discount, self.kernels, described
        )

    def numbers(self, problem: Problem) -> int:
        return self.draws * problem.space.size

    def decide(self, state: RegressionBeliefs, replica: int, context: Floats) -> Floats:
        return mean_submax_of(state.beliefs[replica].contrasts(context), self.depth)

    def alone(self, state: RegressionBeliefs, context: Floats) -> Floats:
        belief = state.beliefs[0]
        if belief.draws is None:
            return super().alone(state, context)
        return mean_submax_of(belief.contrasts(context[None])[0], self.depth)

    def expected_rewards(self, state: RegressionBeliefs, context: Floats) -> Floats:
        return expected_by(state, context, lambda belief, x: belief.mean(belief.feature_map.raw(x)))


WIDEST = 0.5
"""The largest share of the posterior's deviation that draws have."""


@dataclass(frozen=True)
class LogisticSubMax(RegressionPolicy):
    """Apply SubMax to posterior draws of logistic regressions, and average the policies.

    P(1 | a, x) = σ(θ_a · (1, z)), see `LogisticRegressions`; a reward between the lowest and the
    highest possible one counts as part of a success. Each draw has the share min(½, ``width`` / F)
    of the posterior's deviation, with F coefficients, and gives the expected reward of every
    action and so a policy, as in `PosteriorSubMax`. All F − 1 numbers of a context are used,
    however many there are. Draws of full width explore too much where coefficients are many
    (Agrawal and Goyal, 2013), while few coefficients need some width: contexts that repeat do not
    explore by themselves.

    Not in the paper, whose SubMax it applies to draws; see docs/research.
    """

    depth: Depth = 4
    width: NonNegative = 4.0
    memory: Memory = field(default_factory=Memory)

    instead = "use posterior-slots"

    def unlearned(self, problem: Problem) -> LogisticRegressions:
        problem.scale.known_bounds("the logistic-submax policy")
        return LogisticRegressions.unlearned(problem.context_width)

    def learned(
        self, belief: Any, rows: RegressionRows, problem: Problem, rng: np.random.Generator
    ) -> Any:
        low, high = problem.scale.known_bounds("the logistic-submax policy")
        rows = rows._replace(reward=(rows.reward - low) / (high - low))
        share = min(self.width / (1 + problem.context_width), WIDEST)
        return belief.learned(rows, problem.space.size, self.memory.discount, share, rng)

    def numbers(self, problem: Problem) -> int:
        return DRAWS * problem.space.size

    def decide(self, state: RegressionBeliefs, replica: int, context: Floats) -> Floats:
        value = state.beliefs[replica].drawn(context)
        value -= np.add.reduce(value, axis=-1, keepdims=True) * (1 / value.shape[-1])
        return mean_submax_of(value, self.depth)

    def expected_rewards(self, state: RegressionBeliefs, context: Floats) -> Floats:
        low, high = state.problem.scale.known_bounds("the logistic-submax policy")
        return low + (high - low) * expected_by(state, context, LogisticRegressions.expected)


MOST_LINEAR_NUMBERS = 2**28
"""The most numbers in the sums and draws of all replicas and joint actions: 2 GB of float64."""
SCALING_ROWS = 500
"""The number of first rows from which the means and deviations that standardize contexts come."""
SCORE_TOLERANCE = 1e-10
"""Scores that differ by less than this share of the largest score are equal up to rounding."""


class LinearPolicy(ContextPolicy):
    """Decide by linear regressions that share nothing but prior variances and noise.

    r = θ_a · (1, z) + noise, where z is the standardized context. Every action has coefficients
    θ_a of its own. All actions share the prior variance of the intercepts, the prior variance of
    the slopes and the variance of the noise, which are fitted by marginal likelihood.
    """

    draws: int
    width: float

    def settings(self, problem: Problem) -> BeliefSettings:
        return BeliefSettings(
            actions=problem.space.size,
            features=1 + problem.context_width,
            rows=SCALING_ROWS,
            draws=self.draws,
            width=self.width,
            discount=1.0,
            kernels=False,
            shared=False,
        )

    def numbers(self, problem: Problem) -> int:
        # A root ``[F, F]`` takes as much memory as F posterior draws ``[F]``.
        return problem.space.size * (self.draws or 1 + problem.context_width)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> RegressionBeliefs:
        state = super().init(problem, replicas, rng)
        features = 1 + problem.context_width
        numbers = self.numbers(problem) + problem.space.size * features
        numbers *= replicas * features
        if numbers > MOST_LINEAR_NUMBERS:
            raise InputError(
                "a linear policy stores (1 + context_width)² numbers and its draws for every "
                f"replica and joint action, {numbers} numbers in all, and at most "
                f"{MOST_LINEAR_NUMBERS} are allowed: use fewer replicas"
            )
        return state


@dataclass(frozen=True)
class LinUCB(LinearPolicy):
    """Take the action with the highest upper confidence bound, x·θ̂_a + α √(xᵀ Σ_a x).

    x = (1, z) with the standardized context z. Every joint action a has a Bayesian regression of
    its own on the rows in which it was taken; N(θ̂_a, Σ_a) is the posterior of its coefficients. α
    is ``alpha``, a multiple of the posterior's deviation: the larger, the more is explored. The
    variance of the noise and the prior variances of intercepts and slopes are fitted by marginal
    likelihood, so the units of rewards and contexts do not matter.

    Reference: Li et al. (2010), algorithm 1 (disjoint linear models).

    *Departs from the paper:* Σ_a = σ² (σ² Λ + Σ x xᵀ)⁻¹ with the noise variance σ² and the prior
    precisions Λ instead of (I + Σ x xᵀ)⁻¹, and the prior mean of every action is the mean reward of
    a uniform choice. Actions with equal scores share the probability, so decisions taken
    together before any feedback are spread over all actions. The intercept is part of x. The
    posterior is computed again when the number of rows has grown by 5 % or by 500. Until two
    rewards differ, the policy is uniform.
    """

    alpha: NonNegative = 1.0

    draws = 0
    width = 1.0

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> RegressionBeliefs:
        return super().init(problem, replicas, rng)._replace(roots=(None,) * replicas)

    def update(
        self, state: RegressionBeliefs, feedback: Feedback, rng: np.random.Generator
    ) -> RegressionBeliefs:
        after, settings = super().update(state, feedback, rng), self.settings(state.problem)
        roots = list(state.roots)
        for replica, (old, new) in enumerate(zip(state.beliefs, after.beliefs, strict=True)):
            if old.solved != new.solved:
                roots[replica] = new.feature_map.for_raw(new.posterior_covariance(settings).roots())
        return after._replace(roots=tuple(roots))

    def decide(self, state: RegressionBeliefs, replica: int, context: Floats) -> Floats:
        belief, root = state.beliefs[replica], known(state.roots[replica])
        features, (size, width, _) = belief.feature_map.raw(context), root.shape
        products = (features @ root.reshape(-1, width).T).reshape(-1, size, width)
        deviation = np.sqrt(np.einsum("nkf,nkf->nk", products, products))
        score = features @ belief.coefficients.T + self.alpha * deviation
        return highest(score, SCORE_TOLERANCE * np.abs(score).max(axis=-1, keepdims=True))


@dataclass(frozen=True)
class LinearThompson(LinearPolicy):
    """Draw each action's coefficients from their posterior and take the action with the best x·θ_a.

    θ_a ~ N(θ̂_a, width² Σ_a), where N(θ̂_a, Σ_a) is the posterior of the coefficients of a Bayesian
    regression of the reward on x = (1, z) over the rows of action a, and z is the standardized
    context. ``width`` is a multiple of the posterior's deviation: 1 is Thompson sampling, less
    explores less. The variance of the noise and the prior variances of intercepts and slopes are
    fitted by marginal likelihood, so the units of rewards and contexts do not matter.

    Each update draws ``draws`` sets of coefficients. A decision picks one of them at random, so
    that π(a | x) is exactly the share of draws in which x·θ_a is the largest.

    Reference: Agrawal and Goyal (2013).

    *Departs from the paper:* every joint action has coefficients of its own instead of features of
    its own. The noise and the prior are fitted instead of given, and the prior mean of every action
    is the mean reward of a uniform choice. All decisions between two updates share the draws. The
    posterior is computed again when the number of rows has grown by 5 % or by 500. Until two
    rewards differ, the policy is uniform.
    """

    width: Positive = 1.0
    draws: Draws = 64

    def decide(self, state: RegressionBeliefs, replica: int, context: Floats) -> Floats:
        drawn = state.beliefs[replica].contrasts(context)
        rows, draws, size = drawn.shape
        cell = drawn.argmax(axis=-1) + size * np.arange(rows)[:, None]
        shares: Floats = np.bincount(cell.ravel(), minlength=rows * size) / draws
        return shares.reshape(rows, size)
