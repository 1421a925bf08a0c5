"""Thompson sampling with a fitted prior, and information-directed sampling."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import Allowed, at_least, whole_number
from submax.core.numerics import highest
from submax.core.policy import PolicyTraits, TabularPolicy
from submax.core.problem import Feedback, Problem
from submax.core.serialization import serializable
from submax.core.spaces import Choices
from submax.estimators.counting import fitted_smoothing
from submax.policies.arm_statistics import ArmStatistics, kept_columns
from submax.policies.thompson import SMALLEST_PARAMETER, BetaParameter, largest_beta


@serializable("fitted-thompson-state")
class FittedThompsonState(NamedTuple):
    """The counts of all arms, and the posterior of every arm: Beta(``a [R, A]``, ``b [R, A]``)."""

    problem: Problem
    arms: ArmStatistics
    a: Floats
    b: Floats

    def restricted(self, choices: Choices) -> Self:
        return kept_columns(self, choices, "a", "b")._replace(arms=self.arms.restricted(choices))


@dataclass(frozen=True)
class FittedThompson(TabularPolicy[FittedThompsonState]):
    """Thompson sampling with an empirical-Bayes Beta prior and an optionally sharper posterior.

    π(a) is the probability that a's draw from Beta(s (α + successes), s (β + failures)) is the
    largest. The prior Beta(α, β) is the one with the highest marginal likelihood of the counts of
    all arms, see ``fitted_smoothing``. s is ``sharpness``: 1 is Thompson sampling, and a larger
    value explores less. In comparisons this policy is a baseline of ``rcp-adaptive``, which fits
    the same prior.

    Reference: Robbins (1956) for empirical Bayes; Chapelle and Li (2011) for a reshaped posterior.
    """

    sharpness: Annotated[float, Allowed(at_least, 0.1)] = 1.0

    traits = PolicyTraits(uses_context=False)

    def init(
        self, problem: Problem, replicas: int, rng: np.random.Generator
    ) -> FittedThompsonState:
        problem.scale.known_bounds("Thompson sampling with Beta posteriors")
        arms = ArmStatistics.empty(problem, replicas)
        one = np.ones_like(arms.pulls)
        return FittedThompsonState(problem, arms, one, one)

    def probabilities(self, state: FittedThompsonState, context: Floats) -> Floats:
        posterior = (state.a, state.b)
        sharpened = (np.maximum(self.sharpness * one, SMALLEST_PARAMETER) for one in posterior)
        return largest_beta(*sharpened)[:, None, :]

    def update(
        self, state: FittedThompsonState, feedback: Feedback, rng: np.random.Generator
    ) -> FittedThompsonState:
        arms = state.arms.add(feedback)
        successes = arms.successes("Thompson sampling")
        counts = np.stack([arms.pulls - successes, successes], axis=1)
        a, b = (counts + fitted_smoothing(counts)[..., None])[:, ::-1].swapaxes(0, 1)
        return FittedThompsonState(state.problem, arms, a, b)


@serializable("information-directed-state")
class InformationDirectedState(NamedTuple):
    """The observed rewards, and the probability of every arm, ``listed [R, 1, A]``."""

    problem: Problem
    arms: ArmStatistics
    listed: Floats


@dataclass(frozen=True)
class InformationDirected(TabularPolicy[InformationDirectedState]):
    """Minimize the information ratio Δ(π)² / v(π) over distributions π of the next decision.

    Δ(a) = E[max_b θ_b − θ_a] is the expected regret of arm a, and v(a) = Var(E[θ_a | a*]) is how
    much knowing the best arm a* would tell about the reward of arm a. Both are estimated from
    ``draws`` draws of the posterior, Beta(α + successes, β + failures) for every arm. The minimum
    is reached by a distribution over at most two arms. All decisions of a batch share it.

    Reference: Russo and Van Roy (2018), the variance-based variant of section 6.
    """

    alpha: BetaParameter = 1.0
    beta: BetaParameter = 1.0
    draws: Annotated[int, Allowed(whole_number, at_least=2)] = 200

    traits = PolicyTraits(uses_context=False)

    def init(
        self, problem: Problem, replicas: int, rng: np.random.Generator
    ) -> InformationDirectedState:
        # Raises an error if the bounds of rewards are unknown.
        problem.scale.known_bounds("information-directed sampling")
        arms = ArmStatistics.empty(problem, replicas)
        size = problem.space.size
        return InformationDirectedState(problem, arms, np.full((replicas, 1, size), 1 / size))

    def probabilities(self, state: InformationDirectedState, context: Floats) -> Floats:
        return state.listed

    def restricted(
        self, state: InformationDirectedState, choices: Choices
    ) -> InformationDirectedState:
        """Apply the rule to draws for these choices alone, the same ones each time."""
        arms = state.arms.restricted(choices)
        rng = np.random.default_rng(0)
        listed = np.stack([self._listed(arms, replica, rng) for replica in range(len(arms.pulls))])
        return InformationDirectedState(arms.problem, arms, listed[:, None])

    def update(
        self, state: InformationDirectedState, feedback: Feedback, rng: np.random.Generator
    ) -> InformationDirectedState:
        arms = state.arms.add(feedback)
        listed = state.listed.copy()
        # Each replica has a generator of its own, so none depends on the rows of another.
        streams = rng.spawn(len(listed))
        for replica in np.flatnonzero((feedback.weight > 0).any(axis=1)):
            listed[replica, 0] = self._listed(arms, replica, streams[replica])
        return InformationDirectedState(state.problem, arms, listed)

    def _listed(
        self, arms: ArmStatistics, replica: int | np.intp, rng: np.random.Generator
    ) -> Floats:
        """Return the probability of every arm in one replica, from new draws: ``[A]``."""
        successes = arms.successes("information-directed sampling")[replica]
        drawn = rng.beta(
            self.alpha + successes,
            self.beta + arms.pulls[replica] - successes,
            size=(self.draws, len(successes)),
        )
        return least_information_ratio(*regret_and_information(drawn))


def regret_and_information(drawn: Floats) -> tuple[Floats, Floats]:
    """Return Δ and v of every arm, ``[A]`` each, from posterior draws ``[draws, A]``."""
    mean = drawn.mean(axis=0)
    best = drawn.argmax(axis=1)
    order = np.argsort(best, kind="stable")
    _, first, times = np.unique(best[order], return_index=True, return_counts=True)
    given_best = np.add.reduceat(drawn[order], first, axis=0) / times[:, None]
    information = (times / len(drawn)) @ (given_best - mean) ** 2
    # If the same arm is best in all draws, its regret is 0 only up to rounding.
    return np.maximum(drawn.max(axis=1).mean() - mean, 0.0), information


def least_information_ratio(regret: Floats, information: Floats) -> Floats:
    """Return the distribution π over arms, ``[A]``, with the least (π·regret)² / (π·information).

    Two arms are enough. With a share s of the second one the ratio is (Δ + s Δ')² / (v + s v'),
    where Δ' and v' are the differences of both arms. It is convex, and its derivative is zero at
    s = Δ / Δ' − 2 v / v'. An arm with no less regret than another one, and no more information, has
    no part in it. Without any information the arm with the least regret is taken.
    """
    if not information.any():
        return highest(-regret)
    order = np.lexsort((-information, regret))
    most = np.maximum.accumulate(information[order])
    order = order[np.diff(most, prepend=-1.0) > 0]
    delta, gain = regret[order][:, None], information[order][:, None]
    rise, more = delta.T - delta, gain.T - gain
    with np.errstate(divide="ignore", invalid="ignore"):
        share = delta / rise - 2 * gain / more
    share = np.clip(np.nan_to_num(share, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    ratio = (delta + share * rise) ** 2 / np.maximum(gain + share * more, 1e-300)
    first, second = np.unravel_index(ratio.argmin(), ratio.shape)
    listed = np.zeros(len(regret))
    listed[order[first]] += 1 - share[first, second]
    listed[order[second]] += share[first, second]
    return listed
