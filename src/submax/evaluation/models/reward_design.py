"""The design of the regression on which a model of the rewards is based."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.models.regression.bayesian import Posterior, PriorStructure, Sums
from submax.models.regression.features import GROUPS


class Coefficients(NamedTuple):
    """Regression coefficients of the F features of a context, and of powers of real-valued parts.

    ``slots`` has the coefficients of every choice of each slot, ``[choices, F]``; ``shared [F]``
    are common to all choices; ``powers`` belong to the powers of real-valued parts.
    """

    slots: list[Floats]
    shared: Floats
    powers: Floats


class RewardDesign(NamedTuple):
    """The design of a regression of rewards on contexts and actions.

    ``sizes`` are the numbers of choices of the slots, ``groups [F]`` is the group of each feature
    of the context (features of a group share a prior variance), and ``powers`` is the number of
    powers of real-valued parts.

    Every plain arm has its own regression, with coefficients that are correlated between arms. The
    effects of several slots add up in one regression: every feature has a coefficient shared by
    all choices and one for each choice. Without ``interactions`` a choice has only a constant.
    Each slot has its own prior variances, and the powers have one.
    """

    sizes: tuple[int, ...]
    groups: Integers
    powers: int
    interactions: bool

    @property
    def separate(self) -> bool:
        """Whether every choice has its own regression: plain arms without real-valued parts."""
        return len(self.sizes) == 1 and self.powers == 0

    @property
    def prior_groups(self) -> int:
        """The number of groups of coefficients that have their own prior variance."""
        return GROUPS if self.separate else GROUPS * (1 + len(self.sizes)) + 1

    @property
    def design(self) -> PriorStructure:
        """The prior correlations of the coefficients, and the group of each."""
        if self.separate:
            return PriorStructure.sharing(self.groups, self.sizes[0])
        choice = self.groups[: self._each]
        of_slots = [
            np.tile(choice + GROUPS * (1 + slot), size) for slot, size in enumerate(self.sizes)
        ]
        of_powers = np.full(self.powers, self.prior_groups - 1)
        return PriorStructure.independent(np.concatenate([self.groups, *of_slots, of_powers]), 1)

    def nothing(self, offset: float) -> Sums:
        """Return the sums of the regression over no rows; rewards are measured from ``offset``."""
        if self.separate:
            return Sums.empty(self.sizes[0], len(self.groups), offset)
        return Sums.empty(1, self._unknowns, offset)

    def added(
        self,
        sums: Sums,
        features: Floats,
        action: NDArray[Any],
        powers: Floats,
        reward: Floats,
        count: Floats | None = None,
    ) -> Sums:
        """Return the sums with more rows added, each as often as its ``count``, or once."""
        weight = np.ones(len(reward)) if count is None else count
        if self.separate:
            return sums.add(features, action[:, 0].astype(np.int64), reward, weight)
        if not len(reward):
            return sums
        gram, moment = sums.gram.copy(), sums.moment.copy()
        relative = reward - sums.offset
        known = np.concatenate([features, powers], axis=1)
        chosen = action[:, : len(self.sizes)].astype(np.int64)
        for choices, rows in _by_choices(chosen):
            # Rows with the same choices add to the same coefficients, so they are added together.
            place, column = self._places(choices)
            weighted = weight[rows, None] * known[rows]
            product, earned = weighted.T @ known[rows], relative[rows] @ weighted
            gram[0][np.ix_(place, place)] += product[np.ix_(column, column)]
            moment[0, place] += earned[column]
        return sums._replace(
            gram=gram,
            moment=moment,
            weight=sums.weight + float(weight.sum()),
            reward=sums.reward + float(weight @ relative),
            square=sums.square + float(weight @ relative**2),
        )

    def coefficients(self, posterior: Posterior) -> Coefficients:
        """Return the posterior mean, divided into slots, shared coefficients and powers."""
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
        """Return coefficients of 0, the result if all rewards are equal."""
        width = len(self.groups)
        slots = [np.zeros((size, width)) for size in self.sizes]
        return Coefficients(slots, np.zeros(width), np.zeros(self.powers))

    @property
    def _each(self) -> int:
        """The number of coefficients of every choice."""
        return len(self.groups) if self.interactions else 1

    @property
    def _unknowns(self) -> int:
        return len(self.groups) + sum(self.sizes) * self._each + self.powers

    def _places(self, choices: Integers) -> tuple[Integers, Integers]:
        """Return the coefficients that act in rows with these ``choices``.

        For each also the column, among features and powers, by which it is multiplied.
        """
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
    """Return the distinct combinations of choices, each with the numbers of its rows."""
    if not chosen.shape[1]:
        return [(chosen[0], np.arange(len(chosen)))]
    different, which = np.unique(chosen, axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel(), minlength=len(different)))
    return list(zip(different, np.split(order, ends[:-1]), strict=True))
