"""Duels: two arms are shown, and one of them wins."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import finite, non_negative, one_of, whole_number
from submax.core.contracts.environment import Environment, Outcome
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.spaces.slots import Slots
from submax.environments.slates.preferences import (
    LOSSES,
    checked_preferences,
    has_condorcet_winner,
    preferences_of,
)


@dataclass(frozen=True)
class Dueling(Environment[Floats]):
    """An action is a pair of arms (i, j). The reward is 1 if i wins, which has probability P_ij.

    By default, arms have utilities u drawn from Normal(0, σ²), with σ the ``spread``, and
    P_ij = 1 / (1 + exp(u_j − u_i)) (Bradley and Terry). ``utilities`` or the whole table of
    ``preferences`` P, with P_ij + P_ji = 1, can be given instead. The world is P, ``[R, K, K]``.

    The result of a duel is what policies learn from, and not what a pair is worth: the best pair is
    the best arm twice, whose duel is a coin flip. So regret is not measured by rewards. It is the
    mean loss of the two arms, or the smaller loss if ``weak`` is true. ``winner`` says which arm
    is the best, and the loss of arm i:

    - ``"condorcet"``: the arm w that beats every other arm; the loss is P_wi − 1/2.
    - ``"copeland"``: the arm that beats the largest share of other arms; the loss is the difference
      of shares.
    - ``"borda"``: the arm that wins most often against a random other arm; the loss is the
      difference of these probabilities.

    >>> duels = Dueling(preferences=((0.5, 0.7), (0.3, 0.5)))
    >>> world = duels.reset(1, np.random.default_rng(0))
    >>> pairs = duels.problem.space.listing()[None]
    >>> duels.regret(world, np.zeros((1, 4, 0)), pairs).round(2).tolist()
    [[0.0, 0.1, 0.1, 0.2]]

    Reference: Yue et al. (2012), The K-armed dueling bandits problem; Zoghi et al. (2015), Copeland
    dueling bandits.
    """

    arms: int = 0
    spread: float = 1.0
    utilities: tuple[float, ...] | None = None
    preferences: tuple[tuple[float, ...], ...] | None = None
    winner: str = "condorcet"
    weak: bool = False

    def __post_init__(self) -> None:
        non_negative("spread", self.spread)
        one_of("winner", self.winner, LOSSES)
        if not isinstance(self.weak, bool):
            raise InputError(
                f"weak must be true or false, without quotes, not {self.weak!r}", parameter="weak"
            )
        object.__setattr__(self, "arms", self._counted_arms())
        given = self._given()
        if given is not None and self.winner == "condorcet" and not has_condorcet_winner(given):
            raise InputError(
                f"no arm of {self.preferences or self.utilities} beats every other arm with a "
                'probability above 1/2, which winner = "condorcet" needs: give winner = "copeland" '
                'or "borda"',
                parameter="winner",
            )

    def _counted_arms(self) -> int:
        """Return the number of arms, which follows from what is given."""
        given = [one for one in (self.utilities, self.preferences) if one is not None]
        if len(given) > 1:
            raise InputError(
                "utilities and preferences were both given, and preferences follow from "
                "utilities: give one of them",
                parameter="preferences",
            )
        if not given:
            whole_number("arms", self.arms, at_least=2)
            return self.arms
        if not isinstance(given[0], tuple) or len(given[0]) < 2:
            raise InputError(
                f"utilities and preferences are tuples with an entry for each of at least 2 arms, "
                f"not {given[0]!r:.80}: give for example utilities = (1.0, 0.5, 0.0)",
                parameter="utilities" if self.utilities is not None else "preferences",
            )
        if self.arms not in (0, len(given[0])):
            raise InputError(
                f"arms is {self.arms}, and {len(given[0])} arms are given: leave out arms, which "
                "follows from them",
                parameter="arms",
            )
        return len(given[0])

    def _given(self) -> Floats | None:
        """Return the preferences if nothing is drawn, ``[K, K]``."""
        if self.preferences is not None:
            return checked_preferences(self.preferences)
        if self.utilities is None:
            return None
        for utility in self.utilities:
            finite("each of utilities", utility)
        return preferences_of(np.array(self.utilities, dtype=np.float64))

    @property
    def problem(self) -> Problem:
        return Problem(Slots((self.arms, self.arms)))

    @property
    def shared(self) -> bool:
        return self.utilities is not None or self.preferences is not None

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        given = self._given()
        if given is not None:
            return np.tile(given, (replicas, 1, 1))
        return preferences_of(rng.normal(0.0, self.spread, size=(replicas, self.arms)))

    def contexts(self, world: Floats, count: int, rng: np.random.Generator) -> Floats:
        return np.zeros((len(world), count, 0))

    def mean_reward(self, world: Floats, context: Floats, action: Actions) -> Floats:
        replica = np.arange(len(world))[:, None]
        found: Floats = world[replica, action[..., 0], action[..., 1]]
        return found

    def reward(
        self, world: Floats, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Floats:
        return self.outcome(world, context, action, rng).reward

    def outcome(
        self, world: Floats, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        mean = self.mean_reward(world, context, action)
        return Outcome((rng.random(mean.shape) < mean).astype(np.float64), mean)

    def best_reward(self, world: Floats, context: Floats) -> Floats:
        return np.broadcast_to(world.max(axis=(1, 2))[:, None], context.shape[:2])

    def regret(self, world: Floats, context: Floats, action: Actions) -> Floats:
        loss = LOSSES[self.winner](world)
        of_arms = loss[np.arange(len(world))[:, None, None], action]
        found: Floats = of_arms.min(axis=-1) if self.weak else of_arms.mean(axis=-1)
        return found
