"""The effects of a regression on joint choices, and where each one stands."""

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.contracts.problem import Problem

INTERCEPT_VARIANCE = 4.0
"""Wide enough for Φ⁻¹(0.05) = −1.6 and Φ⁻¹(0.01) = −2.3 to be nothing unusual."""


@dataclass(frozen=True)
class SlotEffects:
    """Positions of the effects of slots with ``sizes`` and ``contexts`` context coordinates.

    In this order: the intercept; one effect for each context coordinate; one for each choice of
    each slot; one for each pair of choices in different slots, as many as the product of the two
    sizes, the later slot counting fastest; one for each choice and context coordinate.

    >>> effects = SlotEffects((2, 3), contexts=0)
    >>> effects.count
    12
    >>> effects.active(np.array([1, 2]))
    array([ 0,  2,  5, 11])
    """

    sizes: tuple[int, ...]
    contexts: int

    @classmethod
    def of(cls, problem: Problem, context_effects: bool) -> Self:
        """The effects of a problem, with those of its context or without."""
        contexts = problem.context_width if context_effects else 0
        return cls(problem.space.choices, contexts)

    @property
    def count(self) -> int:
        """How many effects there are."""
        return self._pairs_end + sum(self.sizes) * self.contexts

    @property
    def constant(self) -> int:
        """How many effects come first that are the same for every action."""
        return 1 + self.contexts

    @cached_property
    def choices(self) -> tuple[slice, ...]:
        """Where the effects of each slot's choices stand."""
        ends = np.cumsum((self.constant, *self.sizes)).tolist()
        return tuple(itertools.starmap(slice, itertools.pairwise(ends)))

    @cached_property
    def pairs(self) -> dict[tuple[int, int], slice]:
        """Where the effects of each pair of slots stand, the earlier slot named first."""
        names = list(itertools.combinations(range(len(self.sizes)), 2))
        products = [self.sizes[first] * self.sizes[second] for first, second in names]
        ends = np.cumsum([self.choices[-1].stop, *products]).tolist()
        return dict(zip(names, itertools.starmap(slice, itertools.pairwise(ends)), strict=True))

    @property
    def interactions(self) -> slice:
        """Where the effects of choices with context coordinates stand."""
        return slice(self._pairs_end, self.count)

    @property
    def _pairs_end(self) -> int:
        """Where the pairwise effects end: all pairs are half of what is not within one slot."""
        choices = sum(self.sizes)
        within = sum(size * size for size in self.sizes)
        return self.constant + choices + (choices * choices - within) // 2

    def active(self, action: Integers) -> Integers:
        """Positions of the effects that play a part in each action: ``[..., S] -> [..., E]``.

        Those of the context stand last: its coordinates, then each choice with each coordinate.
        """
        shape = action.shape[:-1]
        choices = action + np.array([part.start for part in self.choices])
        parts = [np.zeros((*shape, 1), dtype=np.int64), choices]
        if self.pairs:
            first, second = np.array(list(self.pairs)).T
            begin = np.array([part.start for part in self.pairs.values()])
            width = np.array(self.sizes)[second]
            parts.append(begin + action[..., first] * width + action[..., second])
        if self.contexts:
            coordinate = np.arange(self.contexts)
            parts.append(np.broadcast_to(1 + coordinate, (*shape, self.contexts)))
            begin_of = (choices - self.constant) * self.contexts + self.interactions.start
            parts.append(
                (begin_of[..., None] + coordinate).reshape(*shape, len(self.sizes) * self.contexts)
            )
        return np.concatenate(parts, axis=-1)

    def values(self, context: Floats) -> Floats:
        """The factor of each active effect, 1 or a context coordinate: ``[..., D] -> [..., E]``."""
        slots = len(self.sizes)
        shape = context.shape[:-1]
        used = context[..., : self.contexts]
        ones = np.ones((*shape, 1 + slots + len(self.pairs)))
        return np.concatenate([ones, np.tile(used, 1 + slots)], axis=-1)

    def prior_variances(self, total: float) -> Floats:
        """Prior variance of each effect: the choices of one action have ``total`` together.

        Main effects and pairwise ones have half of it each. The effects of a context of length √D
        add the same again: the coordinates once, and their effects on the choices once.
        """
        slots, pairs = len(self.sizes), len(self.pairs)
        variances = np.full(self.count, INTERCEPT_VARIANCE)
        variances[1 : self.constant] = total / max(self.contexts, 1)
        main = total / 2 if pairs else total
        variances[self.choices[0].start : self.choices[-1].stop] = main / slots
        variances[self.choices[-1].stop : self.interactions.start] = total / 2 / max(pairs, 1)
        variances[self.interactions] = total / slots / max(self.contexts, 1)
        return variances
