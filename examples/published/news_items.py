"""The changing set of news items of Chapelle and Li (2011), section 3, as an environment."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax import Arms, Environment, InputError, Problem
from submax.core.environment import Outcome

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Items(NamedTuple):
    """All items of a run, and the time.

    ``values [R, K, N]`` are the success probabilities: the first item at each place, the one that
    replaces it, and so on. Replacement e happens before decision ``times[e]``, counted from 0, in
    the replica and at the place that ``replicas[e]`` and ``places[e]`` say. ``clock`` decisions
    have been taken, ``replaced`` replacements have happened, and the items ``numbers [R, K]`` are
    there.
    """

    values: Floats
    times: Integers
    replicas: Integers
    places: Integers
    clock: int
    replaced: int
    numbers: Floats


@dataclass(frozen=True)
class NewsItems(Environment[Items]):
    """``items`` items; after each decision one of them retires with probability ``retirement``.

    A new item takes its place. The reward is 0 or 1; the success probabilities of items come from
    Beta(``alpha``, ``beta``). The context has the number of the item at each place, so a
    policy sees that an item is new, as a newspaper would. A run has at most ``decisions``
    decisions.
    """

    items: int = 10
    retirement: float = 1e-3
    alpha: float = 4.0
    beta: float = 4.0
    decisions: int = 1_000_000

    @property
    def problem(self) -> Problem:
        return Problem(Arms(self.items), context_width=self.items)

    @property
    def most_decisions(self) -> int:
        return self.decisions

    @property
    def drifts(self) -> bool:
        """False, because the whole course of a run is drawn at its start.

        So it is the same for every delay, although many decisions are simulated in one call.
        """
        return False

    def reset(self, replicas: int, rng: np.random.Generator) -> Items:
        counts = rng.binomial(self.decisions - 1, self.retirement, size=replicas)
        times = [
            1 + rng.choice(self.decisions - 1, size=count, replace=False, shuffle=False)
            for count in counts
        ]
        owners = np.repeat(np.arange(replicas), counts)
        order = np.argsort(np.concatenate(times), kind="stable")
        places = rng.integers(self.items, size=len(owners))
        taken = np.bincount(owners * self.items + places, minlength=replicas * self.items)
        shape = (replicas, self.items)
        values = rng.beta(self.alpha, self.beta, size=(*shape, taken.max(initial=0) + 1))
        happened = np.concatenate(times)[order]
        return Items(values, happened, owners[order], places[order], 0, 0, np.zeros(shape))

    def contexts(self, world: Items, count: int, rng: np.random.Generator) -> Floats:
        self._check_time(world, count)
        numbers = np.repeat(world.numbers[:, None], count, axis=1)
        for event in _events(world, count - 1):
            begin = world.times[event] - world.clock
            numbers[world.replicas[event], begin:, world.places[event]] += 1
        return numbers

    def advance(self, world: Items, count: int, rng: np.random.Generator) -> Items:
        events = _events(world, count)
        numbers = world.numbers
        if events:
            numbers = numbers.copy()
            np.add.at(numbers, (world.replicas[list(events)], world.places[list(events)]), 1)
        return world._replace(clock=world.clock + count, replaced=events.stop, numbers=numbers)

    def mean_reward(self, world: Items, context: Floats, action: Integers) -> Floats:
        means = self._means(world, context)
        chosen = np.arange(0, means.size, self.items).reshape(action.shape[:2]) + action[..., 0]
        return means.ravel().take(chosen)

    def reward(
        self, world: Items, context: Floats, action: Integers, rng: np.random.Generator
    ) -> Floats:
        return self.outcome(world, context, action, rng).reward

    def outcome(
        self, world: Items, context: Floats, action: Integers, rng: np.random.Generator
    ) -> Outcome:
        mean = self.mean_reward(world, context, action)
        return Outcome((rng.random(mean.shape) < mean).astype(np.float64), mean)

    def best_reward(self, world: Items, context: Floats) -> Floats:
        best: Floats = self._means(world, context).max(axis=-1)
        return best

    def _means(self, world: Items, context: Floats) -> Floats:
        """Return the success probabilities of the items of each context, ``[R, n, K]``."""
        replicas, items, numbers = world.values.shape
        first = np.arange(0, world.values.size, numbers).reshape(replicas, 1, items)
        return world.values.ravel().take(first + context.astype(np.int64))

    def _check_time(self, world: Items, count: int) -> None:
        if world.clock + count > self.decisions:
            raise InputError(
                f"{world.clock + count} decisions were asked for, and this environment allows "
                f"{self.decisions}: give a larger number as decisions"
            )


def _events(world: Items, count: int) -> range:
    """Return the replacements that happen before the next decision but ``count``."""
    last = world.replaced
    while last < len(world.times) and world.times[last] <= world.clock + count:
        last += 1
    return range(world.replaced, last)
