"""The regression behind a model of the rewards."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.regression.feature_map import GROUPS
from submax.regression.posterior import Posterior
from submax.regression.prior import PriorStructure
from submax.regression.sums import Sums


class Coefficients(NamedTuple):
    """Those of every choice in each slot, ``[choices, F]``, of all together, and of the powers."""

    slots: list[Floats]
    shared: Floats
    powers: Floats


class RewardDesign(NamedTuple):
    """Slots with ``sizes`` choices, features in ``groups [F]``, and ``powers`` of real parts.

    Plain arms are regressions of their own, which have something in common. The choices of several
    slots add up in one regression: every feature has a coefficient that all choices share and one
    of each choice, or without ``interactions`` a choice has a constant alone. Each slot has prior
    variances of its own, and the powers have one.
    """

    sizes: tuple[int, ...]
    groups: Integers
    powers: int
    interactions: bool

    @property
    def separate(self) -> bool:
        """Whether every choice has a regression of its own."""
        return len(self.sizes) == 1 and self.powers == 0

    @property
    def prior_groups(self) -> int:
        """How many groups of features have prior variances."""
        return GROUPS if self.separate else GROUPS * (1 + len(self.sizes)) + 1

    @property
    def design(self) -> PriorStructure:
        """How the coefficients are related before any row."""
        if self.separate:
            return PriorStructure.sharing(self.groups, self.sizes[0])
        choice = self.groups[: self._each]
        of_slots = [
            np.tile(choice + GROUPS * (1 + slot), size) for slot, size in enumerate(self.sizes)
        ]
        of_powers = np.full(self.powers, self.prior_groups - 1)
        return PriorStructure.independent(np.concatenate([self.groups, *of_slots, of_powers]), 1)

    def nothing(self, offset: float) -> Sums:
        """The sums over no rows."""
        if self.separate:
            return Sums.empty(self.sizes[0], len(self.groups), offset)
        return Sums.empty(1, self._unknowns, offset)

    def added(
        self, sums: Sums, features: Floats, action: NDArray[Any], powers: Floats, reward: Floats
    ) -> Sums:
        """The sums with more rows, each of weight 1."""
        if self.separate:
            return sums.add(features, action[:, 0].astype(np.int64), reward, np.ones(len(reward)))
        if not len(reward):
            return sums
        gram, moment = sums.gram.copy(), sums.moment.copy()
        relative = reward - sums.offset
        known = np.concatenate([features, powers], axis=1)
        chosen = action[:, : len(self.sizes)].astype(np.int64)
        for choices, rows in _by_choices(chosen):
            # All rows with the same choices fill the same places with the same products.
            place, column = self._places(choices)
            product, earned = known[rows].T @ known[rows], relative[rows] @ known[rows]
            gram[0][np.ix_(place, place)] += product[np.ix_(column, column)]
            moment[0, place] += earned[column]
        return sums._replace(
            gram=gram,
            moment=moment,
            weight=sums.weight + len(reward),
            reward=sums.reward + float(relative.sum()),
            square=sums.square + float(relative @ relative),
        )

    def coefficients(self, posterior: Posterior) -> Coefficients:
        """The posterior mean, by what it belongs to."""
        found, width = posterior.coefficients, len(self.groups)
        if self.separate:
            return Coefficients([found], np.zeros(width), np.zeros(0))
        slots, begin, each = [], width, self._each
        for size in self.sizes:
            block = found[0, begin : begin + size * each].reshape(size, each)
            slots.append(np.pad(block, ((0, 0), (0, width - each))))
            begin += size * each
        return Coefficients(slots, found[0, :width], found[0, begin:])

    def zero(self) -> Coefficients:
        """Those of rewards that are all the same."""
        width = len(self.groups)
        slots = [np.zeros((size, width)) for size in self.sizes]
        return Coefficients(slots, np.zeros(width), np.zeros(self.powers))

    @property
    def _each(self) -> int:
        """How many coefficients every choice has."""
        return len(self.groups) if self.interactions else 1

    @property
    def _unknowns(self) -> int:
        return len(self.groups) + sum(self.sizes) * self._each + self.powers

    def _places(self, choices: Integers) -> tuple[Integers, Integers]:
        """The unknowns that meet rows with these ``choices``, and the number each is times."""
        width, each = len(self.groups), self._each
        first = width + each * np.concatenate([[0], np.cumsum(self.sizes)])
        begin = (first[:-1] + each * choices)[:, None]
        of_slots = (begin + np.arange(each)).ravel()
        of_powers = np.arange(self.powers)
        place = np.concatenate([np.arange(width), of_slots, first[-1] + of_powers])
        column = np.concatenate(
            [np.arange(width), np.tile(np.arange(each), len(choices)), width + of_powers]
        )
        return place.astype(np.int64), column


def _by_choices(chosen: Integers) -> list[tuple[Integers, Integers]]:
    """The different rows of choices, and the numbers of the rows that have them."""
    if not chosen.shape[1]:
        return [(chosen[0], np.arange(len(chosen)))]
    different, which = np.unique(chosen, axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel(), minlength=len(different)))
    return list(zip(different, np.split(order, ends[:-1]), strict=True))
