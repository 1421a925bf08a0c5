"""Features of a joint action in a context for Bayesian regression: effects that add up."""

import itertools
from typing import Any, NamedTuple, Self

import numpy as np
import scipy

from submax.core.arrays import Floats, Integers
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices
from submax.models.regression.standardization import standardization, standardized

CONSTANT, CONTEXT, CHOICE, CHOICE_IN_CONTEXT, PAIR = range(5)
"""The groups of effects; each group has its own prior variance."""
GROUPS = 5
"""Number of groups."""


@stored("slot-map")
class SlotMap(NamedTuple):
    """Effects whose sum is the expected reward of a joint action in a context.

    The effects are, in this order: a constant; each number of the standardized context z; each
    choice of each slot; each choice times each number of z; and, if ``pairs`` is true, each pair of
    choices in two slots, with the later slot fastest. z = (context − ``shift``) · ``scale`` is
    clipped at ±10.
    """

    sizes: tuple[int, ...]
    shift: Floats
    scale: Floats
    pairs: bool

    @classmethod
    def of(
        cls, sizes: tuple[int, ...], context: Floats, weight: Floats, most: int, pairs: bool
    ) -> Self:
        """Return the map for contexts ``[n, D]``; pairs are left out beyond ``most`` effects."""
        shift, scale = standardization(context, weight)
        made = cls(sizes, shift, scale, pairs and len(sizes) > 1)
        return made if made.width <= most else made._replace(pairs=False)

    @property
    def width(self) -> int:
        """Number of effects (F)."""
        return self.first_pair + (sum(self.pair_sizes) if self.pairs else 0)

    @property
    def first_choice(self) -> int:
        """Index of the first effect of a choice."""
        return 1 + len(self.shift)

    @property
    def first_in_context(self) -> int:
        """Index of the first effect of a choice times a context variable."""
        return self.first_choice + sum(self.sizes)

    @property
    def first_pair(self) -> int:
        """Index of the first effect of a pair, also if there are no pairs."""
        return self.first_in_context + sum(self.sizes) * len(self.shift)

    @property
    def pair_names(self) -> list[tuple[int, int]]:
        """All pairs of slots, the earlier slot first."""
        return list(itertools.combinations(range(len(self.sizes)), 2))

    @property
    def pair_sizes(self) -> list[int]:
        """Number of effects of each pair of slots."""
        return [self.sizes[one] * self.sizes[other] for one, other in self.pair_names]

    @property
    def groups(self) -> Integers:
        """The group of each effect, ``[F]``."""
        numbers, choices = len(self.shift), sum(self.sizes)
        pairs = self.width - self.first_pair
        return np.repeat(np.arange(GROUPS), (1, numbers, choices, choices * numbers, pairs))

    def restricted(self, choices: Choices) -> tuple[Self, Integers]:
        """Return the map with these choices alone, and which effects it keeps, ``[F']``."""
        numbers, starts = len(self.shift), np.cumsum([0, *self.sizes[:-1]])
        places = [start + np.array(slot) for start, slot in zip(starts, choices, strict=True)]
        chosen = np.concatenate(places)
        inside = self.first_in_context + chosen[:, None] * numbers + np.arange(numbers)
        kept = [np.arange(self.first_choice), self.first_choice + chosen, inside.ravel()]
        if self.pairs:
            begins = self.first_pair + np.cumsum([0, *self.pair_sizes[:-1]])
            for begin, (one, other) in zip(begins, self.pair_names, strict=True):
                rows, columns = np.array(choices[one]), np.array(choices[other])
                pair = rows[:, None] * self.sizes[other] + columns
                kept.append(begin + pair.ravel())
        return self._replace(sizes=tuple(map(len, choices))), np.concatenate(kept)

    def standardized(self, context: Floats) -> Floats:
        """Return the standardized numbers z of contexts: ``[n, D] -> [n, D]``."""
        return standardized(context, self.shift, self.scale)

    def rows(self, context: Floats, action: Integers) -> Any:
        """Return the features of joint actions ``[n, S]`` as a sparse matrix ``[n, F]``."""
        z, count = self.standardized(context), len(action)
        numbers = z.shape[1]
        starts = np.cumsum([0, *self.sizes[:-1]])
        choice = action + starts
        columns = [
            np.zeros((count, 1), dtype=np.int64),
            np.tile(1 + np.arange(numbers), (count, 1)),
        ]
        columns.append(self.first_choice + choice)
        within = self.first_in_context + choice[:, :, None] * numbers + np.arange(numbers)
        columns.append(within.reshape(count, -1))
        ones = 1 + action.shape[1]
        values = [np.ones((count, 1)), z, np.ones((count, ones - 1)), np.tile(z, action.shape[1])]
        if self.pairs:
            begin = self.first_pair + np.cumsum([0, *self.pair_sizes[:-1]])
            one, other = np.array(self.pair_names).T
            place = begin + action[:, one] * np.array(self.sizes)[other] + action[:, other]
            columns.append(place)
            values.append(np.ones(place.shape))
        column = np.concatenate(columns, axis=1)
        pointer = np.arange(0, column.size + 1, column.shape[1])
        data = np.concatenate(values, axis=1)
        return scipy.sparse.csr_array(
            (data.ravel(), column.ravel(), pointer), shape=(count, self.width)
        )

    def choice_effects(self, coefficients: Floats, context: Floats) -> list[Floats]:
        """Return what each choice adds in each context, for every slot: ``[n, P, choices]``.

        ``coefficients`` are ``[P, F]`` and ``context`` is ``[n, D]``.
        """
        draws, numbers = len(coefficients), len(self.shift)
        plain = coefficients[:, self.first_choice : self.first_in_context]
        effects = np.broadcast_to(plain, (len(context), *plain.shape))
        if numbers:
            inside = coefficients[:, self.first_in_context : self.first_pair]
            slopes = inside.reshape(draws * plain.shape[1], numbers)
            in_context = self.standardized(context) @ slopes.T
            effects = plain + in_context.reshape(len(context), *plain.shape)
        return np.split(effects, np.cumsum(self.sizes[:-1]), axis=-1)

    def pair_effects(self, coefficients: Floats) -> dict[tuple[int, int], Floats]:
        """Return what each pair of choices adds, ``[P, choices, choices]`` per pair of slots."""
        if not self.pairs:
            return {}
        ends = np.cumsum(self.pair_sizes)[:-1]
        parts = np.split(coefficients[:, self.first_pair :], ends, axis=1)
        shapes = [
            (len(coefficients), self.sizes[one], self.sizes[two]) for one, two in self.pair_names
        ]
        return {
            name: part.reshape(shape)
            for name, part, shape in zip(self.pair_names, parts, shapes, strict=True)
        }
