"""Many single decisions computed together, although each one depends on those before it."""

from abc import abstractmethod

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.contracts.stepper import Stepper
from submax.core.contracts.success_draws import SuccessDraws

LONGEST = 512
"""Most decisions of a replica that are computed together; more no longer cost less for each."""
WIDEST = 2**11
"""Bound of how many decisions of all replicas are computed together, so that arrays stay in the
caches of a processor."""
MOST_REPLICAS = 50
"""With more replicas, looking ahead is not faster than single steps: computing the numbers then
takes longer than calling numpy."""
SHORTEST_REST, LONGEST_REST = 32, 1024
"""Bounds of how many single steps are taken if looking ahead does not pay, before it is tried
again; every further failure doubles the number."""


class LookAheadStepper(Stepper):
    """Guesses the next decisions, and repeats those that differ from what the policy decides.

    All random numbers of the next n decisions are drawn first. The decisions of the present policy
    are the first guess. If all earlier guesses of a replica are right, then so is the decision that
    follows from them; thus guesses that lead to themselves are the decisions of single steps. A
    policy that has learned for a while changes so little in n decisions that most guesses are right
    at once, and only the replicas with a wrong one are computed again.

    ``replay_cost`` says how many single steps take about as long as one replay, and ``shortest`` is
    the least number of decisions that are worth one.
    """

    replay_cost: int = 1
    shortest: int = 8

    def __init__(self, replicas: int) -> None:
        self.replicas = replicas
        self._ahead, self._longest = self.shortest, min(LONGEST, WIDEST // replicas)
        self._rest = self._next_rest = SHORTEST_REST

    def act(self, rng: np.random.Generator) -> Integers:
        index: Integers = self.decide(rng.random((1, self.replicas)))[0]
        return index

    def take(self, draws: SuccessDraws, rng: np.random.Generator) -> tuple[Integers, Floats]:
        index, reward = np.empty(draws.shape, dtype=np.int64), np.empty(draws.shape)
        uniform, done = rng.random(draws.shape), 0
        while done < len(index):
            ahead = min(self._ahead, len(index) - done)
            end = done + ahead
            found = self._found(draws, done, uniform[done:end]) if self._looks_ahead() else None
            if found is None:
                end = done + 1
                index[done] = self.decide(uniform[done:end])[0]
                draws.single(draws.uniform[done], index[done], reward[done])
                self.learn(index[done], reward[done], rng)
            else:
                index[done:end], reward[done:end] = found
            done = end
        return index, reward

    def _looks_ahead(self) -> bool:
        self._rest = max(self._rest - 1, 0)
        return not self._rest and self.replicas <= MOST_REPLICAS and self.settled

    def _found(
        self, draws: SuccessDraws, begin: int, uniform: Floats
    ) -> tuple[Integers, Floats] | None:
        """Take the next decisions together; return None, and learn nothing, if that fails."""
        index, which = self.decide(uniform), np.arange(self.replicas)
        replays = 0
        while len(which):
            guess = index[:, which]
            reward = draws.several(begin, guess, which)
            decided = self.replay(guess, reward, uniform[:, which], which)
            replays += 1
            # Guesses of an exact stepper are right after n replays. One that searches may decide
            # differently each time, if a random number lies within the tolerance of its search.
            if decided is None or replays > len(index) + 1:
                self._shorten()
                return None
            index[:, which] = decided
            which = which[(decided != guess).any(axis=0)]
        reward = draws.several(begin, index, np.arange(self.replicas))
        self.learn_all(index, reward)
        self._adjust(len(index), replays)
        return index, reward

    def _adjust(self, decisions: int, replays: int) -> None:
        """Look further ahead if few replays were needed, and less far if many were."""
        cost = replays * self.replay_cost
        if 4 * cost <= decisions:
            self._ahead = min(2 * self._ahead, self._longest)
            self._next_rest = SHORTEST_REST
        elif 2 * cost > decisions:
            self._shorten()

    def _shorten(self) -> None:
        if self._ahead == self.shortest:
            self._rest = self._next_rest
            self._next_rest = min(2 * self._next_rest, LONGEST_REST)
        self._ahead = max(self._ahead // 2, self.shortest)

    @property
    @abstractmethod
    def settled(self) -> bool:
        """Whether several decisions can be computed together now."""

    @abstractmethod
    def decide(self, uniform: Floats) -> Integers:
        """Return the decisions of the present policy for uniform numbers, both ``[n, R]``."""

    @abstractmethod
    def replay(
        self, index: Integers, reward: Floats, uniform: Floats, replicas: Integers
    ) -> Integers | None:
        """Return each of n decisions ``[n, W]`` if the ones before it were ``index``.

        Only the W ``replicas`` are computed. None if these decisions change what the computation
        takes for granted. What was learned stays as it is.
        """

    @abstractmethod
    def learn_all(self, index: Integers, reward: Floats) -> None:
        """Learn n decisions of all replicas, ``[n, R]``, the last ones that were replayed."""
