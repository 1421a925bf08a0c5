"""What a regression sees of a choice in each of several slots, and of the context."""

import itertools
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from submax.core.arrays import Floats, Integers
from submax.core.running.stored import stored
from submax.regression.feature_map import FARTHEST
from submax.regression.standardization import standardization

CONSTANT, CONTEXT, CHOICE, CHOICE_IN_CONTEXT, PAIR = range(5)
"""The groups of effects, each with a prior variance of its own."""
GROUPS = 5


@stored("slot-map")
class SlotMap(NamedTuple):
    """Effects whose sum is the expected reward of a joint action in a context.

    In this order: a constant; each number of the standardized context z; each choice of each slot;
    each choice with each number of z; each pair of choices of two slots, the later slot counting
    fastest, if there are ``pairs``. z is (context − ``shift``) · ``scale``, cut off at ±10.
    """

    sizes: tuple[int, ...]
    shift: Floats
    scale: Floats
    pairs: bool

    @classmethod
    def of(
        cls, sizes: tuple[int, ...], context: Floats, weight: Floats, most: int, pairs: bool
    ) -> Self:
        """The map for contexts like these, ``[n, D]``; with pairs if ``most`` effects allow it."""
        shift, scale = standardization(context, weight)
        made = cls(sizes, shift, scale, pairs and len(sizes) > 1)
        return made if made.width <= most else made._replace(pairs=False)

    @property
    def width(self) -> int:
        """How many effects there are (F)."""
        return self.first_pair + (sum(self.pair_sizes) if self.pairs else 0)

    @property
    def first_choice(self) -> int:
        """Where the effects of choices begin."""
        return 1 + len(self.shift)

    @property
    def first_in_context(self) -> int:
        """Where the effects of choices with numbers of the context begin."""
        return self.first_choice + sum(self.sizes)

    @property
    def first_pair(self) -> int:
        """Where the effects of pairs begin, or would begin."""
        return self.first_in_context + sum(self.sizes) * len(self.shift)

    @property
    def pair_names(self) -> list[tuple[int, int]]:
        """The pairs of slots, the earlier one first."""
        return list(itertools.combinations(range(len(self.sizes)), 2))

    @property
    def pair_sizes(self) -> list[int]:
        """How many effects each pair of slots has."""
        return [self.sizes[one] * self.sizes[other] for one, other in self.pair_names]

    @property
    def groups(self) -> Integers:
        """The group of each effect, ``[F]``."""
        numbers, choices = len(self.shift), sum(self.sizes)
        pairs = self.width - self.first_pair
        return np.repeat(np.arange(GROUPS), (1, numbers, choices, choices * numbers, pairs))

    def standardized(self, context: Floats) -> Floats:
        """The standardized numbers of contexts: ``[n, D] -> [n, D]``."""
        z: Floats = np.clip((context - self.shift) * self.scale, -FARTHEST, FARTHEST)
        return z

    def rows(self, context: Floats, action: Integers) -> Any:
        """The effects of joint actions, ``[n, D]`` and ``[n, S] -> [n, F]``, as a sparse matrix."""
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
        return sparse.csr_array((data.ravel(), column.ravel(), pointer), shape=(count, self.width))

    def choice_effects(self, coefficients: Floats, context: Floats) -> list[Floats]:
        """What each choice of a slot adds in each context: ``[P, F] -> [n, P, choices]`` each."""
        draws, numbers = len(coefficients), len(self.shift)
        plain = coefficients[:, self.first_choice : self.first_in_context]
        effects = np.broadcast_to(plain, (len(context), *plain.shape))
        if numbers:
            inside = coefficients[:, self.first_in_context : self.first_pair]
            slopes = inside.reshape(draws * plain.shape[1], numbers)
            bent = self.standardized(context) @ slopes.T
            effects = plain + bent.reshape(len(context), *plain.shape)
        return np.split(effects, np.cumsum(self.sizes[:-1]), axis=-1)

    def pair_effects(self, coefficients: Floats) -> dict[tuple[int, int], Floats]:
        """What each pair of choices adds: ``[P, F] -> [P, choices, choices]`` for each pair."""
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
