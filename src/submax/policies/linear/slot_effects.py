"""The effects (coefficients) of a regression on joint choices, and their positions."""

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.contracts.problem import Problem
from submax.core.spaces.space import Choices

INTERCEPT_VARIANCE = 4.0
"""Prior variance of the intercept: with a deviation of 2, mean rewards of 5 % and 1 %, where the
intercept is Φ⁻¹(0.05) = −1.6 and Φ⁻¹(0.01) = −2.3, are well within the prior."""


@dataclass(frozen=True)
class SlotEffects:
    """Positions of the effects for slots with ``sizes`` and ``contexts`` context coordinates.

    The order is: the intercept; one effect for each context coordinate; one for each choice of
    each slot; one for each pair of choices in different slots, where for two slots the choice of
    the later one changes fastest; one for each choice and context coordinate.

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
        """The effects for a problem, with or without effects of its context."""
        contexts = problem.context_width if context_effects else 0
        return cls(problem.space.choices, contexts)

    @property
    def count(self) -> int:
        """The number of effects."""
        return self._pairs_end + sum(self.sizes) * self.contexts

    @property
    def constant(self) -> int:
        """The number of effects, at the first positions, that are the same for every action."""
        return 1 + self.contexts

    @cached_property
    def choices(self) -> tuple[slice, ...]:
        """The positions of the effects of each slot's choices."""
        ends = np.cumsum((self.constant, *self.sizes)).tolist()
        return tuple(itertools.starmap(slice, itertools.pairwise(ends)))

    @cached_property
    def pairs(self) -> dict[tuple[int, int], slice]:
        """The positions of the effects of each pair of slots (earlier slot, later slot)."""
        names = list(itertools.combinations(range(len(self.sizes)), 2))
        products = [self.sizes[first] * self.sizes[second] for first, second in names]
        ends = np.cumsum([self.choices[-1].stop, *products]).tolist()
        return dict(zip(names, itertools.starmap(slice, itertools.pairwise(ends)), strict=True))

    @property
    def interactions(self) -> slice:
        """The positions of the effects of choices with context coordinates."""
        return slice(self._pairs_end, self.count)

    @property
    def _pairs_end(self) -> int:
        """The position after the last pairwise effect."""
        # Pairs of choices in different slots: half of all ordered pairs that are not in one slot.
        choices = sum(self.sizes)
        within = sum(size * size for size in self.sizes)
        return self.constant + choices + (choices * choices - within) // 2

    def restricted(self, choices: Choices) -> tuple["SlotEffects", Integers]:
        """Return the effects of these choices alone, and their positions here.

        >>> smaller, kept = SlotEffects((2, 3), contexts=0).restricted(((1,), (0, 2)))
        >>> smaller.sizes, kept.tolist()
        ((1, 2), [0, 2, 3, 5, 9, 11])
        """
        chosen = [
            part.start + np.array(slot) for part, slot in zip(self.choices, choices, strict=True)
        ]
        kept = [np.arange(self.constant), *chosen]
        for (first, second), part in self.pairs.items():
            rows = np.array(choices[first])[:, None] * self.sizes[second]
            kept.append((part.start + rows + np.array(choices[second])).ravel())
        inside = (np.concatenate(chosen) - self.constant)[:, None] * self.contexts
        kept.append((self.interactions.start + inside + np.arange(self.contexts)).ravel())
        return SlotEffects(tuple(map(len, choices)), self.contexts), np.concatenate(kept)

    def active(self, action: Integers) -> Integers:
        """Positions of the effects that are active in each action: ``[..., S] -> [..., E]``.

        Effects of the context come last: each coordinate, then each choice with each coordinate.
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
        """The prior variance of each effect: those of an action's choices add up to ``total``.

        The main effects and the pairwise effects have half of ``total`` each. For a context of
        length √D the effects of its coordinates add up to ``total`` as well, and so do their
        effects with the choices.
        """
        slots, pairs = len(self.sizes), len(self.pairs)
        variances = np.full(self.count, INTERCEPT_VARIANCE)
        variances[1 : self.constant] = total / max(self.contexts, 1)
        main = total / 2 if pairs else total
        variances[self.choices[0].start : self.choices[-1].stop] = main / slots
        variances[self.choices[-1].stop : self.interactions.start] = total / 2 / max(pairs, 1)
        variances[self.interactions] = total / slots / max(self.contexts, 1)
        return variances
