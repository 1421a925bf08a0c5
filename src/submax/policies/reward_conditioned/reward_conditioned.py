"""The reward-conditioned policy: one estimator and one strategy."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from submax.core.arrays import Actions, Booleans, Floats
from submax.core.checks import whole_number
from submax.core.conditioning.estimated_density import EstimatedDensity
from submax.core.conditioning.estimator import Estimator
from submax.core.conditioning.marginalization import mixture_of_one, unseen
from submax.core.conditioning.strategy import Strategy
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.numerics.categorical import draw, draw_lots, log_prob_of
from submax.core.running.fallback import standing_for
from submax.core.spaces.space import LISTING_LIMIT, Space
from submax.estimators.counting import Counting
from submax.estimators.cvae import CVAE
from submax.estimators.softmax import Softmax
from submax.policies.listed import drawn_listed, drawn_one, joined, split
from submax.policies.reward_conditioned.conditioning import Conditioning, check_levels
from submax.policies.reward_conditioned.reward_conditioned_state import RewardConditionedState
from submax.policies.reward_conditioned.unlisted import density, drawn
from submax.strategies.clipped import Clipped
from submax.strategies.filling import Filling
from submax.strategies.iterated import Iterated
from submax.strategies.optimistic import Optimistic
from submax.strategies.optimized import Optimized
from submax.strategies.submax import SubMax
from submax.strategies.target import Target

AT_ONCE = 2**21
"""About so many probabilities are written out at a time."""
REJECTED_ROWS = 2560
"""So many rows of all replicas are drawn by rejection at a time: what they need stays small."""
ESTIMATED_ROWS = 64
"""The same where the normalizing constant of each row is estimated."""


@dataclass(frozen=True)
class RewardConditioned(Conditioning):
    """Learn π(a | c, r), then marginalize over r with weights that may be negative.

    π‡(a | c) = Σ_l w_l π(a | c, r_l): the ``estimator`` gives π, the ``strategy`` gives w. Before
    the first data every strategy is uniform. Up to ``listing_limit`` joint actions are written out
    one by one; beyond it decisions are drawn by rejection, at a cost that does not depend on
    their number. A strategy that must see every action always lists them. ``levels`` is how many
    rewards are conditioned on, where it is not what the scale of the problem says. Slots can also
    be chosen one by one: see `SlotBySlot`.

    Reference: Xu et al. (2024), equation gm-inference.
    """

    estimator: Estimator[Any] = field(default_factory=Counting)
    strategy: Strategy = field(default_factory=SubMax)
    listing_limit: int = 4096
    levels: int | None = None

    def __post_init__(self) -> None:
        whole_number("listing_limit", self.listing_limit, at_least=1, at_most=LISTING_LIMIT)
        check_levels(self.levels)

    def check_space(self, space: Space) -> None:
        """A strategy that must see every action needs a list of them."""
        if not self.strategy.needs_table:
            return
        who = f"the {type(self.strategy).__name__} strategy"
        if space.reals:
            raise InputError(
                f"{who} must see every action, and {space} has no list of them: take the strategy "
                "submax, advantage, clipped or target with the CVAE, such as rcp-cvae-submax"
            )
        space.check_listable(who, "take rcp-cvae-submax or rcp-cvae-submax-by-slot")

    def act(
        self, state: RewardConditionedState, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        """Draw from the list of all actions, with its probability, or by rejection."""
        self.check_rows(state, context)
        space = state.problem.space
        if not self._lists(state.problem):
            rows = max(1, REJECTED_ROWS // len(context))
            parts = [self._rejected(state, part, rng) for part in split(context, rows)]
            return ChosenActions(joined(parts), None)
        if context.shape[:2] == (1, 1):
            return drawn_one(space, self.probabilities(state, context)[0, 0], rng)
        if state.problem.context_width == 0 or self.gives_lots:
            with standing_for(context.shape[1]):
                shared = self.probabilities(state, context[:, :1])
            how = draw_lots if self.gives_lots else draw
            return drawn_listed(space, shared, context.shape[1], rng, how)
        listed = [
            drawn_listed(space, self.probabilities(state, part), part.shape[1], rng)
            for part in split(context, self._at_once(state, context))
        ]
        return ChosenActions(*map(joined, zip(*listed, strict=True)))

    def log_prob(self, state: RewardConditionedState, context: Floats, action: Actions) -> Floats:
        """Look the actions up in the list of all; where there is none, see ``density``."""
        self.check_rows(state, context)
        state.problem.check_action(action)
        if state.problem.space.reals or state.problem.space.size > LISTING_LIMIT:
            return self.density(state, context, action).log_prob
        index = state.problem.space.index(action)
        if state.problem.context_width == 0:
            return log_prob_of(self.probabilities(state, context[:, :1]), index)
        rows = self._at_once(state, context)
        pairs = zip(split(context, rows), split(index, rows), strict=True)
        found: Floats = joined(
            [log_prob_of(self.probabilities(state, part), indices) for part, indices in pairs]
        )
        return found

    def density(
        self, state: RewardConditionedState, context: Floats, action: Actions
    ) -> EstimatedDensity:
        """The log-probability, or log-density, without a list of actions, and its standard error.

        The normalizing constant is estimated from proposals; the error is that of the logarithm.
        """
        if state.problem.context_width == 0:
            # All rows have one constant.
            found = self._estimated(state, np.zeros((len(context), 1, 0)), action[:, None])
            log_prob = found.log_prob[:, 0]
            error = np.broadcast_to(found.error, log_prob.shape)
            return EstimatedDensity(log_prob, error, np.broadcast_to(found.known, log_prob.shape))
        rows = max(1, ESTIMATED_ROWS // len(context))
        pairs = zip(split(context, rows), split(action[:, :, None], rows), strict=True)
        parts = [self._estimated(state, *pair) for pair in pairs]
        log_prob, error, known = map(joined, zip(*parts, strict=True))
        return EstimatedDensity(log_prob[..., 0], error, known)

    def probabilities(self, state: RewardConditionedState, context: Floats) -> Floats:
        """Probability of every joint action in each context: ``[R, n, D] -> [R, n, M]``.

        Without context all rows share one policy, ``[R, 1, M]``.
        """
        shared = state.problem.context_width == 0
        return self.chances(state, context[:, :1] if shared else context)

    def find_chances(self, state: RewardConditionedState, context: Floats) -> Floats:
        """Those of all joint actions."""
        if context.shape[:2] == (1, 1) and not self.strategy.needs_table:
            return self._one(state, context)[None, None]
        listed = self.estimator.prob_of_all(state.params, context, state.problem.space)
        return self.strategy.probabilities(
            self.table(state, context)._replace(probabilities=listed)
        )

    def _lists(self, problem: Problem) -> bool:
        if problem.space.reals:
            return False
        return self.strategy.needs_table or problem.space.size <= self.listing_limit

    def _at_once(self, state: RewardConditionedState, context: Floats) -> int:
        """So many rows have probabilities that can be written out at a time."""
        size = len(context) * state.problem.scale.levels * state.problem.space.size
        return max(1, AT_ONCE // size)

    def _one(self, state: RewardConditionedState, context: Floats) -> Floats:
        """The probabilities of one decision, in few steps."""
        table = self.table(state, context)
        weights = self.strategy.weights(table)
        forget = not table.prior.all() and bool(unseen(table, weights).any())
        listed = self.estimator.prob_of_all(state.params, context, state.problem.space)
        return mixture_of_one(listed[0, 0], weights[0, 0], forget)

    def _rejected(
        self, state: RewardConditionedState, context: Floats, rng: np.random.Generator
    ) -> Actions:
        """Draw from the mixture by rejection, and uniformly where nothing is known."""
        weights, forget = self._weights(state, context)
        belief = self.estimator.conditioned(state.params, context)
        return drawn(state.problem.space, weights, forget, belief, rng)

    def _estimated(
        self, state: RewardConditionedState, context: Floats, action: Actions
    ) -> EstimatedDensity:
        weights, forget = self._weights(state, context)
        belief = self.estimator.conditioned(state.params, context)
        return density(state.problem.space, weights, forget, belief, action)

    def _weights(self, state: RewardConditionedState, context: Floats) -> tuple[Floats, Booleans]:
        """The weights of the levels, ``[R, n, L]``, and where they mean nothing yet, ``[R, n]``."""
        table = self.table(state, context)
        weights = self.strategy.weights(table)
        return weights, ~state.informed[:, None] | unseen(table, weights)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """The strategies on counts; small networks, by listing and by rejection."""
        yield from (policy for policy in cls.presets().values() if not policy.facts.trains_models)
        yield cls(Counting(0.1), Clipped(4.0))
        yield cls(Counting(1.0), Target((0.3, 0.7)))
        yield cls(Counting("fitted"), Filling())
        yield cls(Counting(1.0), Clipped(4.0), listing_limit=1)
        yield cls(Counting(1.0), Target((0.3, 0.7)), listing_limit=1)
        # The other examples of networks are run as estimators.
        yield cls(next(Softmax.examples()), Optimized())
        yield cls(next(CVAE.examples()), Optimized())
        yield cls(next(CVAE.examples()), Clipped(4.0), listing_limit=1)

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """Counting and networks with the strategies of the paper, and two iterations of SubMax."""
        strategies: dict[str, Strategy] = {
            "optimistic": Optimistic(),
            "optimized": Optimized(),
            "submax": SubMax(),
        }
        return {
            **{f"rcp-{name}": cls(Counting(), strategy) for name, strategy in strategies.items()},
            "rcp-iterated-2": cls(Counting(), Iterated(2)),
            **{f"rcp-cvae-{name}": cls(CVAE(), strategy) for name, strategy in strategies.items()},
            "rcp-softmax-submax": cls(Softmax(), SubMax()),
        }
