"""How the values of one context field are divided into few cells."""

from typing import Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers

MOST_VALUES = 30
"""Categories of a field that have a cell of their own, in the order in which they first occur; all
others share one more cell."""
QUANTILES = (0.2, 0.4, 0.6, 0.8)
"""The quantiles of the first numbers of a field that become the edges of its bins."""


class FieldCells(msgspec.Struct, frozen=True, array_like=True):
    """The columns of a field in encoded contexts, and the cells of its values.

    A number belongs to the bin between two ``edges``; they are None until they are known. Of a
    category, ``values`` are those that have a cell, in its order.
    """

    name: str
    first: int
    width: int
    is_number: bool
    edges: list[float] | None = None
    values: list[int] = []

    @property
    def cells(self) -> int:
        """The number of cells: bins, or categories and one for all others."""
        if self.is_number:
            return len(self.edges or ()) + 1
        return min(self.width, MOST_VALUES) + 1

    @property
    def is_ready(self) -> bool:
        """Whether values can be divided into cells."""
        return not self.is_number or self.edges is not None

    def raw(self, context: NDArray[np.float32]) -> NDArray[np.float32]:
        """The numbers, or the indices of the categories, in encoded contexts: ``[n, D] -> [n]``."""
        if self.is_number:
            return context[:, self.first]
        columns = context[:, self.first : self.first + self.width]
        indices: NDArray[np.float32] = columns.argmax(axis=1).astype(np.float32)
        return indices

    def with_edges(self, numbers: NDArray[np.float32]) -> Self:
        """The field with edges at quantiles of these numbers; categories need none."""
        if not self.is_number:
            return self
        edges: Floats = np.unique(np.quantile(numbers, QUANTILES)) if len(numbers) else np.empty(0)
        return msgspec.structs.replace(self, edges=edges.tolist())

    def with_values(self, raw: NDArray[np.float32]) -> Self:
        """The field with cells for categories that occur now for the first time."""
        if self.is_number or len(self.values) == min(self.width, MOST_VALUES):
            return self
        found, place = np.unique(raw.astype(np.int64), return_index=True)
        in_order = found[np.argsort(place)].tolist()
        new = [one for one in in_order if one not in self.values]
        if not new:
            return self
        return msgspec.structs.replace(self, values=[*self.values, *new][:MOST_VALUES])

    def cell_of(self, raw: NDArray[np.float32]) -> Integers:
        """The cell of each number or category."""
        if self.is_number:
            edges = np.array(self.edges or (), np.float64)
            # A number of 32 bits is below an edge if it is below the next such number.
            above = edges.astype(np.float32)
            above = np.where(above < edges, np.nextafter(above, np.float32(np.inf)), above)
            # There are few edges, so that comparisons with all are faster than a search.
            found = np.full(len(raw), len(edges), np.int8)
            for edge in above:
                found -= raw < edge
            return found.astype(np.int64)
        cell = np.full(self.width, self.cells - 1)
        cell[self.values] = np.arange(len(self.values))
        cells: Integers = cell[raw.astype(np.int64)]
        return cells
