"""Duels: two arms are shown, and one of them wins."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Actions, Booleans, Floats
from submax.core.checks import NonNegative, Positive, whole_number
from submax.core.errors import InputError
from submax.core.numerics import tally
from submax.core.policy import PolicyTraits, TabularPolicy
from submax.core.problem import Feedback, Problem
from submax.core.serialization import serializable
from submax.core.spaces import Slots
from submax.environments.arms import Successes

ROUNDING = 1e-9
"""How far P_ij + P_ji may be from 1, because users write rounded numbers."""


def preferences_of(utilities: Floats) -> Floats:
    """Return Bradley and Terry's P_ij = 1 / (1 + exp(u_j − u_i)): ``[..., K] -> [..., K, K]``."""
    ahead = utilities[..., :, None] - utilities[..., None, :]
    # The tangent does not overflow, and P_ij + P_ji is exactly 1.
    return 0.5 + 0.5 * np.tanh(0.5 * ahead)


def checked_preferences(rows: object) -> Floats:
    """Return the rows as an array ``[K, K]``; refuse what is not a table of preferences."""
    try:
        table = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    square = table.ndim == 2 and table.shape[0] == table.shape[1] > 1
    if not square or not np.all((table >= 0) & (table <= 1)):
        raise InputError(
            "preferences must be a square table of probabilities, a row for each of at least 2 "
            f"arms, such as ((0.5, 0.7), (0.3, 0.5)), not {rows!r:.80}",
            parameter="preferences",
        )
    wrong = np.argwhere(np.abs(table + table.T - 1) > ROUNDING)
    if len(wrong):
        first, second = wrong[0].tolist()
        raise InputError(
            f"preferences say that arm {first} beats arm {second} with probability "
            f"{table[first, second]:g}, and {second} beats {first} with {table[second, first]:g}: "
            "give numbers that add up to 1, and 0.5 for an arm against itself",
            parameter="preferences",
        )
    return table


@dataclass(frozen=True)
class Dueling(Successes[Floats]):
    """An action is a pair of arms (i, j). The reward is 1 if i wins, which has probability P_ij.

    By default, arms have utilities u drawn from Normal(0, σ²), with σ the ``spread``, and
    P_ij = 1 / (1 + exp(u_j − u_i)) (Bradley and Terry). The table of ``preferences`` P, with
    P_ij + P_ji = 1, can be given instead. The world is P, ``[R, K, K]``.

    The result of a duel is what policies learn from, and not what a pair is worth: the best pair is
    the best arm twice, whose duel is a coin flip. So regret is not measured by rewards: it is the
    mean loss P_wi − 1/2 of the two arms i, with w the arm that beats every other one.

    >>> duels = Dueling(preferences=((0.5, 0.7), (0.3, 0.5)))
    >>> world = duels.reset(1, np.random.default_rng(0))
    >>> pairs = duels.problem.space.listing()[None]
    >>> duels.regret(world, np.zeros((1, 4, 0)), pairs).round(2).tolist()
    [[0.0, 0.1, 0.1, 0.2]]

    Reference: Yue et al. (2012), The K-armed dueling bandits problem.
    """

    arms: int = 0
    spread: NonNegative = 1.0
    preferences: tuple[tuple[float, ...], ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.preferences is None:
            whole_number("arms", self.arms, at_least=2)
            return
        table = checked_preferences(self.preferences)
        if self.arms not in (0, len(table)):
            raise InputError(
                f"arms is {self.arms}, and preferences of {len(table)} arms are given: leave out "
                "arms, which follows from them",
                parameter="arms",
            )
        object.__setattr__(self, "arms", len(table))
        beats = table > 0.5
        if beats.sum(axis=1).max() < len(beats) - 1:
            raise InputError(
                f"no arm of {self.preferences} beats every other arm with a probability above 1/2: "
                "change the preferences, so that there is a best arm",
                parameter="preferences",
            )

    @property
    def problem(self) -> Problem:
        return Problem(Slots((self.arms, self.arms)))

    @property
    def shared(self) -> bool:
        return self.preferences is not None

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        if self.shared:
            return np.tile(checked_preferences(self.preferences), (replicas, 1, 1))
        return preferences_of(rng.normal(0.0, self.spread, size=(replicas, self.arms)))

    def contexts(self, world: Floats, count: int, rng: np.random.Generator) -> Floats:
        return np.zeros((len(world), count, 0))

    def mean_reward(self, world: Floats, context: Floats, action: Actions) -> Floats:
        replica = np.arange(len(world))[:, None]
        return world[replica, action[..., 0], action[..., 1]]

    def best_reward(self, world: Floats, context: Floats) -> Floats:
        return np.broadcast_to(world.max(axis=(1, 2))[:, None], context.shape[:2])

    def regret(self, world: Floats, context: Floats, action: Actions) -> Floats:
        replica = np.arange(len(world))
        best = (world > 0.5).sum(axis=2).argmax(axis=1)
        loss = world[replica, best] - 0.5
        return loss[replica[:, None, None], action].mean(axis=-1)


@serializable("relative-ucb-state")
class RelativeUCBState(NamedTuple):
    """How often arm i won against arm j, ``wins [R, K, K]``, and the number of ``duels [R]``.

    ``best [R, K]`` says which arm is believed to be the best, if any.
    """

    problem: Problem
    wins: Floats
    duels: Floats
    best: Booleans

    def upper(self, exploration: float) -> Floats:
        """Return w / n + √(α ln t / n) for the next duel t, ``[R, K, K]``; 2 if n is 0.

        w are the wins of i against j, n their duels, and α is ``exploration``. The bound of an arm
        against itself is 1/2.
        """
        together = self.wins + self.wins.transpose(0, 2, 1)
        number = np.where(together > 0, together, 1.0)
        spread = np.sqrt(exploration * np.log(self.duels + 1)[:, None, None] / number)
        bound = np.where(together > 0, self.wins / number + spread, 2.0)
        return np.where(np.eye(bound.shape[1], dtype=bool), 0.5, bound)


@dataclass(frozen=True)
class RelativeUCB(TabularPolicy[RelativeUCBState]):
    """Duel an arm that may beat all others with the arm that may beat it most often.

    U_ij is the upper confidence bound w_ij / n_ij + √(α ln t / n_ij) of the probability that i
    beats j; w_ij are the wins, n_ij the duels of both arms, t is the number of this duel, and α is
    ``exploration``. The candidates C are the arms with U_ij ≥ 1/2 for all j. If only one is left,
    it is believed to be the best as long as it stays a candidate. The first arm of the pair
    is the one believed to be the best with probability 1/2, else a random other candidate; without
    such an arm, a random candidate; without candidates, any arm. The second arm j has the
    highest U_ji against the first arm i; it is i itself only if no other arm has a bound of
    1/2 or more.

    Reference: Zoghi et al. (2014), Relative upper confidence bound for the K-armed dueling bandit
    problem, algorithm 1, with α = 0.51.
    """

    exploration: Positive = 0.51

    traits = PolicyTraits(uses_context=False, needs_pairs=True)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> RelativeUCBState:
        choices, bounds = problem.space.choices, problem.scale.bounds
        pairs = len(choices) == 2 and choices[0] == choices[1] and not problem.space.reals
        if not pairs or bounds != (0.0, 1.0):
            raise InputError(
                "relative-ucb needs pairs of the same arms, such as Slots((5, 5)), and rewards "
                "from 0 to 1 that say whether the first arm of the pair won, not "
                f"{problem.space} with {problem.scale}: use the environment Dueling, or another "
                "policy"
            )
        wins = np.zeros((replicas, choices[0], choices[0]))
        nobody = np.zeros(wins.shape[:2], dtype=np.bool_)
        return self._believed(RelativeUCBState(problem, wins, np.zeros(replicas), nobody))

    def update(
        self, state: RelativeUCBState, feedback: Feedback, rng: np.random.Generator
    ) -> RelativeUCBState:
        feedback.check(state.problem)
        there, arms = feedback.weight > 0, state.wins.shape[1]
        # A reward between 0 and 1 is a part of a win.
        reward = np.where(there, feedback.reward, 0.0)
        first, second = (np.where(there, feedback.action[..., slot], 0) for slot in range(2))
        won = tally(first * arms + second, feedback.weight * reward, arms**2)
        lost = tally(second * arms + first, feedback.weight * (1 - reward), arms**2)
        wins = state.wins + (won + lost).reshape(state.wins.shape)
        return self._believed(state._replace(wins=wins, duels=state.duels + there.sum(axis=1)))

    def probabilities(self, state: RelativeUCBState, context: Floats) -> Floats:
        upper, best = state.upper(self.exploration), state.best
        candidates = np.all(upper >= 0.5, axis=2)
        allowed = np.where(candidates.any(axis=1, keepdims=True), candidates, True)
        others = allowed & ~best
        number = others.sum(axis=1, keepdims=True)
        share = np.where(best.any(axis=1, keepdims=True), 0.5, 1.0) / np.maximum(number, 1)
        # The best arm is alone if there is no other candidate.
        first = np.where(best, np.where(number > 0, 0.5, 1.0), np.where(others, share, 0.0))
        # Row i has the bounds of all arms against arm i.
        against = upper.transpose(0, 2, 1)
        highest = against == against.max(axis=2, keepdims=True)
        rivals = highest & ~np.eye(upper.shape[1], dtype=bool)
        second = np.where(rivals.any(axis=2, keepdims=True), rivals, highest)
        pairs = first[:, :, None] * (second / second.sum(axis=2, keepdims=True))
        return pairs.reshape(len(pairs), 1, -1)

    def _believed(self, state: RelativeUCBState) -> RelativeUCBState:
        """Return the state in which the best arm is the only candidate, or still a candidate."""
        candidates = np.all(state.upper(self.exploration) >= 0.5, axis=2)
        alone = candidates.sum(axis=1, keepdims=True) == 1
        return state._replace(best=np.where(alone, candidates, state.best & candidates))
