"""Thompson sampling with hill climbing over slots."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
from submax.policies.linear.climbing_pool import ClimbingPool
from submax.policies.linear.slot_effects import SlotEffects
from submax.policies.linear.slot_regression import SlotRegression, high_from

LARGEST = 2**28
"""The most numbers that the posterior or the kept draws of all replicas may hold."""


@stored("hill-climbing-state")
class HillClimbingState(NamedTuple):
    """The posterior, draws from it, and which replicas have ``learned [R]`` anything."""

    problem: Problem
    regression: SlotRegression
    pool: ClimbingPool
    learned: Booleans


@dataclass(frozen=True)
class HillClimbingThompson(Policy[HillClimbingState]):
    """Draw the weights of a regression from their posterior and climb to a good joint action.

    P(highest reward | a) = Φ(w_0 + Σ_s w_{s,a_s} + Σ_{s<t} w_{st,a_s a_t}), where a_s is the choice
    in slot s; with ``context_effects`` each context coordinate x_d adds (w_d + Σ_s w_{sd,a_s}) x_d.
    The weights have independent normal posteriors. Each update draws ``draws`` weight vectors; a
    decision takes one of them by chance and climbs from ``restarts`` random joint actions, which
    belong to the draw: it sets one slot after the other to its best choice given all others until
    nothing changes or ``sweeps`` rounds are over, and the best end wins. π(a | x) is the share of
    draws whose climb ends at a. Before the first feedback every joint action has the same
    probability. Joint actions are never listed: any number of them will do.

    ``prior_variance`` is that of the score of an action but for its intercept, in units of the
    probit's noise.

    Reference: Hill et al. (2017), An efficient bandit algorithm for realtime multivariate
    optimization; Graepel et al. (2010) for the regression.

    *Departs from the paper:* all decisions between two updates share the draws, which is what makes
    their probability known. Slots take turns instead of being picked by chance. The prior variance
    is divided among the effects instead of 1 for each, and the intercept has more.
    """

    prior_variance: float = 1.0
    draws: int = 500
    restarts: int = 3
    sweeps: int = 10
    context_effects: bool = False

    @property
    def facts(self) -> Facts:
        # Without effects of choices in context, the context changes all joint actions alike.
        return Facts(uses_context=self.context_effects)

    def __post_init__(self) -> None:
        positive("prior_variance", self.prior_variance)
        whole_number("draws", self.draws, at_least=1)
        whole_number("restarts", self.restarts, at_least=1)
        whole_number("sweeps", self.sweeps, at_least=1)
        if not isinstance(self.context_effects, bool):
            raise InputError(f"context_effects must be a bool, not {self.context_effects!r}")

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> HillClimbingState:
        """The prior."""
        if problem.space.reals:
            raise InputError(f"hill climbing is made for choices, and not {problem.space}")
        effects = self._effects(problem)
        self._check_size(effects, replicas)
        # Refuses rewards of which none is known to be high.
        high_from(problem.scale)
        regression = SlotRegression.prior(effects, replicas, self.prior_variance)
        pool = ClimbingPool.empty(effects, replicas, self.draws, self.restarts)
        return HillClimbingState(problem, regression, pool, np.zeros(replicas, dtype=np.bool_))

    def act(
        self, state: HillClimbingState, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        """Climb with one of the draws each, or look up where that climb ends."""
        state.problem.check_context(context)
        effects = self._effects(state.problem)
        shape = context.shape[:2]
        member = rng.integers(self.draws, size=shape)
        action = state.pool.ends(effects, context, member, self.sweeps)
        uniform = ~state.learned[:, None]
        if uniform.any():
            anything = rng.integers(effects.sizes, size=(*shape, len(effects.sizes)))
            action = np.where(uniform[..., None], anything, action)
        if effects.contexts:
            return ChosenActions(action, None)
        log_prob = np.where(uniform, _uniform(effects), state.pool.log_shares(member))
        return ChosenActions(action, log_prob)

    def log_prob(self, state: HillClimbingState, context: Floats, action: Integers) -> Floats:
        """The share of draws whose climb ends at the action."""
        state.problem.check_context(context)
        state.problem.check_action(action)
        effects = self._effects(state.problem)
        share = state.pool.share(effects, context, action, self.sweeps)
        with np.errstate(divide="ignore"):
            found = np.log(share)
        return np.where(state.learned[:, None], found, _uniform(effects))

    def update(
        self, state: HillClimbingState, feedback: Feedback, rng: np.random.Generator
    ) -> HillClimbingState:
        """Learn row by row, then draw anew for the replicas that learned something."""
        feedback.check(state.problem)
        news: Booleans = np.any(feedback.weight > 0, axis=1)
        if not news.any():
            return state
        effects = self._effects(state.problem)
        regression = state.regression.add(effects, state.problem, feedback)
        drawn = state.pool.drawn(effects, regression, self.sweeps, rng)
        pool = state.pool.replaced(news, drawn)
        return HillClimbingState(state.problem, regression, pool, state.learned | news)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Few draws, with the context and without."""
        yield cls(draws=20, restarts=2)
        yield cls(draws=10, restarts=1, sweeps=2, context_effects=True)

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """The default."""
        return {"hill-climbing-thompson": cls()}

    def _effects(self, problem: Problem) -> SlotEffects:
        return SlotEffects.of(problem, self.context_effects)

    def _check_size(self, effects: SlotEffects, replicas: int) -> None:
        """Refuse what would not fit into memory."""
        kept = self.draws if effects.contexts else 1
        numbers = replicas * kept * effects.count
        if numbers > LARGEST:
            times = f" times {kept} draws" if effects.contexts else ""
            raise InputError(
                f"hill climbing keeps {effects.count} effects times {replicas} replicas{times}, "
                f"at most {LARGEST} numbers, and these are {numbers}"
            )


def _uniform(effects: SlotEffects) -> float:
    """Log-probability of one joint action among all."""
    return -float(np.log(effects.sizes).sum())
