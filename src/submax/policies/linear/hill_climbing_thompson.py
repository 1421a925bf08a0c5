"""Thompson sampling for joint choices, with hill climbing instead of listing them."""

import hashlib
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import positive, whole_number
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices
from submax.policies.linear.climbing_pool import ClimbingPool
from submax.policies.linear.slot_effects import SlotEffects
from submax.policies.linear.slot_regression import SlotRegression, high_reward_threshold

MOST_NUMBERS = 2**28
"""The most numbers in the posterior, or in the stored draws, of all replicas: 2 GB of float64."""


@stored("hill-climbing-state")
class HillClimbingState(NamedTuple):
    """The posterior, a pool of draws from it, and whether each replica has ``learned [R]`` yet."""

    problem: Problem
    regression: SlotRegression
    pool: ClimbingPool
    learned: Booleans


@dataclass(frozen=True)
class HillClimbingThompson(Policy[HillClimbingState]):
    """Draw the weights of a probit regression and take the joint action that hill climbing finds.

    P(highest reward | a) = Φ(w_0 + Σ_s w_{s,a_s} + Σ_{s<t} w_{st,a_s a_t}), where a_s is the choice
    in slot s. If ``context_effects`` is true, each context coordinate x_d adds
    (w_d + Σ_s w_{sd,a_s}) x_d. The weights have independent normal posteriors. Each update draws
    ``draws`` weight vectors, each with ``restarts`` random joint actions to start from. A decision
    picks one weight vector at random and climbs from its starts: one slot after the other is set
    to its best choice given all others, until nothing changes or after ``sweeps`` rounds. The best
    result of all starts is taken. π(a | x) is the share of weight vectors whose climb ends at a;
    before the first feedback π is uniform. Joint actions are never listed, so that their number is
    not limited.

    ``prior_variance`` is the prior variance of an action's score without its intercept; the noise
    of the probit has variance 1.

    Reference: Hill et al. (2017), An efficient bandit algorithm for realtime multivariate
    optimization; Graepel et al. (2010) for the regression.

    *Departs from the paper:* all decisions between two updates share the same draws, so that their
    probabilities can be computed. Slots are visited in turn instead of in random order. The prior
    variance is divided among the effects instead of 1 for each, and the intercept's is larger.
    """

    prior_variance: float = 1.0
    draws: int = 500
    restarts: int = 3
    sweeps: int = 10
    context_effects: bool = False

    @property
    def facts(self) -> Facts:
        # Without context effects the scores do not depend on the context.
        return Facts(uses_context=self.context_effects)

    def __post_init__(self) -> None:
        positive("prior_variance", self.prior_variance)
        whole_number("draws", self.draws, at_least=1)
        whole_number("restarts", self.restarts, at_least=1)
        whole_number("sweeps", self.sweeps, at_least=1)
        if not isinstance(self.context_effects, bool):
            raise InputError(
                f"context_effects must be true or false, without quotes, not "
                f"{self.context_effects!r}"
            )

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> HillClimbingState:
        if problem.space.reals:
            raise InputError(
                f"hill-climbing-thompson needs actions that are choices, and {problem.space} has "
                "real-valued parts: use fourier-thompson, or wrap a policy with gridded"
            )
        effects = self._effects(problem)
        self._check_size(effects, replicas)
        # Called for its check: it refuses scales without a threshold between low and high rewards.
        high_reward_threshold(problem.scale)
        regression = SlotRegression.prior(effects, replicas, self.prior_variance)
        pool = ClimbingPool.empty(effects, replicas, self.draws, self.restarts)
        return HillClimbingState(problem, regression, pool, np.zeros(replicas, dtype=np.bool_))

    def act(
        self, state: HillClimbingState, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        state.problem.check_context(context)
        effects = self._effects(state.problem)
        shape = context.shape[:2]
        member = rng.integers(self.draws, size=shape)
        action = state.pool.ends(effects, context, member, self.sweeps)
        uniform = ~state.learned[:, None]
        if uniform.any():
            random_action = rng.integers(effects.sizes, size=(*shape, len(effects.sizes)))
            action = np.where(uniform[..., None], random_action, action)
        if effects.contexts:
            return ChosenActions(action, None)
        log_prob = np.where(uniform, _uniform_log_prob(effects), state.pool.log_shares(member))
        return ChosenActions(action, log_prob)

    def log_prob(self, state: HillClimbingState, context: Floats, action: Integers) -> Floats:
        state.problem.check_context(context)
        state.problem.check_action(action)
        effects = self._effects(state.problem)
        share = state.pool.share(effects, context, action, self.sweeps)
        with np.errstate(divide="ignore"):
            found = np.log(share)
        return np.where(state.learned[:, None], found, _uniform_log_prob(effects))

    def update(
        self, state: HillClimbingState, feedback: Feedback, rng: np.random.Generator
    ) -> HillClimbingState:
        feedback.check(state.problem)
        has_rows: Booleans = np.any(feedback.weight > 0, axis=1)
        if not has_rows.any():
            return state
        effects = self._effects(state.problem)
        regression = state.regression.add(effects, state.problem, feedback)
        drawn = state.pool.drawn(effects, regression, self.sweeps, rng)
        # Replicas without new rows keep their draws.
        pool = state.pool.replaced(has_rows, drawn)
        return HillClimbingState(state.problem, regression, pool, state.learned | has_rows)

    def restricted(self, state: HillClimbingState, choices: Choices) -> HillClimbingState:
        """Restrict the posterior, and draw and climb again among these choices.

        The random numbers of the new draws follow by a hash from the posterior and the last draws,
        so that the same state gives the same probabilities.
        """
        effects, kept = self._effects(state.problem).restricted(choices)
        mean, variance = state.regression
        regression = SlotRegression(mean[:, kept], variance[:, kept])
        known = state.pool.starts.tobytes() + mean.tobytes()
        seed = int.from_bytes(hashlib.blake2b(known, digest_size=8).digest())
        pool = ClimbingPool.empty(effects, len(mean), self.draws, self.restarts)
        drawn = pool.drawn(effects, regression, self.sweeps, np.random.default_rng(seed))
        return state._replace(
            problem=state.problem.restricted(choices), regression=regression, pool=drawn
        )

    def for_single_decisions(self) -> Self:
        """Return the policy with one draw at each update: a single decision uses no other."""
        return replace(self, draws=1)

    def _effects(self, problem: Problem) -> SlotEffects:
        return SlotEffects.of(problem, self.context_effects)

    def _check_size(self, effects: SlotEffects, replicas: int) -> None:
        """Refuse states that would not fit into memory."""
        stored_draws = self.draws if effects.contexts else 1
        numbers = replicas * stored_draws * effects.count
        if numbers > MOST_NUMBERS:
            times = f" times {stored_draws} draws" if effects.contexts else ""
            raise InputError(
                f"hill climbing stores {effects.count} effects times {replicas} replicas{times}, "
                f"{numbers} numbers in all, and at most {MOST_NUMBERS} are allowed: take fewer "
                "choices, replicas or draws"
            )


def _uniform_log_prob(effects: SlotEffects) -> float:
    """The log-probability of each joint action under uniform choice."""
    return -float(np.log(effects.sizes).sum())
