"""A log of ranked lists (slates), with a reward at every position."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers

EMPTY = -1
"""The item at a position that a slate does not have."""


@dataclass(frozen=True, eq=False)
class Slates:
    """n slates with up to K positions; arrays are ``[n, K]``.

    ``item`` is the index, in ``items``, of the item at each position (``EMPTY`` if a slate is
    shorter), and ``reward`` its reward, such as a click. ``propensity`` is the logging policy's
    probability of the item at its position, given the items above it. ``marginal`` is the
    probability of the item at its position whatever is above, if it is known. ``given`` are the
    probabilities of other policies by name, given the items above; ``given_marginal`` without
    them. ``cluster [n]`` is the number of the cluster (such as a user) of each slate.
    """

    items: tuple[str, ...]
    item: Integers
    reward: Floats
    propensity: Floats
    marginal: Floats | None = None
    given: Mapping[str, Floats] = field(default_factory=dict)
    given_marginal: Mapping[str, Floats] = field(default_factory=dict)
    cluster: Integers | None = None

    def __len__(self) -> int:
        return len(self.item)

    @property
    def positions(self) -> int:
        """The number of positions, K."""
        return int(self.item.shape[1])

    @property
    def filled(self) -> Booleans:
        """Which positions the slates have, ``[n, K]``."""
        present: Booleans = self.item != EMPTY
        return present

    @property
    def fingerprint(self) -> str:
        """A hash of the items and rewards of all slates, without propensities."""
        digest = hashlib.sha256(repr(self.items).encode())
        for column in (self.item, self.reward):
            digest.update(repr((column.shape, column.dtype.str)).encode())
            digest.update(np.ascontiguousarray(column).data)
        return digest.hexdigest()

    @classmethod
    def read(
        cls,
        source: Any,
        *,
        columns: Mapping[str, str] | None = None,
        policies: Mapping[str, str] | None = None,
    ) -> Self:
        """Read slates from a file, a data frame or a table, with a row for each position.

        ``columns`` maps roles to names of columns, which by default have the names of their roles:
        slate (the id of a list), position (a whole number, from the top), action (the item),
        reward, propensity (given the items above), marginal (the propensity whatever is above)
        and cluster; the last two may be absent.

        ``policies`` maps names of other policies to the column that has their probability of the
        item, given the items above. The probability whatever is above is in a column with the same
        name and the ending ``_marginal``, if there is one.

        >>> table = {"slate": [1, 1, 2, 2], "position": [1, 2, 1, 2],
        ...          "action": ["A", "B", "B", "A"], "reward": [1, 0, 0, 1],
        ...          "propensity": [0.5, 1.0, 0.5, 1.0]}
        >>> Slates.read(table).item.tolist()
        [[0, 1], [1, 0]]
        """
        from submax.evaluation.ranking.slate_reader import read_slates

        return cls(**read_slates(source, columns or {}, policies or {}))
