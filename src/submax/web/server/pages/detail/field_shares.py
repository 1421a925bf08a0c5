"""How the decisions at each value of a context field differ from those on average."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats, Integers


class FieldShares(NamedTuple):
    """Shares of choices at each value of a field.

    ``decisions [cells]`` counts decisions, ``share [cells, choices]`` are the shares of the choices
    at each value, and ``average [choices]`` those of all decisions. ``distance [cells]`` is half of
    the sum of all differences of shares, and ``most [cells]`` the choice that differs most.
    """

    decisions: Floats
    share: Floats
    average: Floats
    distance: Floats
    most: Integers

    @classmethod
    def of(cls, counts: Floats) -> Self:
        """The shares of decisions that were counted by value and choice."""
        decisions = counts.sum(axis=1)
        share = counts / np.maximum(decisions, 1.0)[:, None]
        average = counts.sum(axis=0) / max(float(counts.sum()), 1.0)
        difference = np.abs(share - average)
        return cls(decisions, share, average, difference.sum(axis=1) / 2, difference.argmax(axis=1))
