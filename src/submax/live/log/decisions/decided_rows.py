"""What a ledger holds of decisions until they mature."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.live.log.decisions.decision_columns import DecisionColumns
from submax.schema.context import ContextSchema


class DecidedRows(NamedTuple):
    """``n`` decisions: encoded ``context [n, D]``, ``action [n, S]`` and other values of each.

    ``group`` has records of ``GROUP_RECORD``.
    """

    position: NDArray[np.int64]
    context: NDArray[np.float32]
    action: Floats
    propensity: Floats
    activated: NDArray[np.bool_]
    holdout: NDArray[np.bool_]
    paused: NDArray[np.bool_]
    unit: NDArray[np.object_]
    group: NDArray[np.void]
    version: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        position: NDArray[np.int64],
        made: DecisionColumns,
        schema: ContextSchema | None,
        slots: int,
    ) -> "DecidedRows":
        """Return the rows of some decisions; without a ``schema``, contexts are left out."""
        context = np.zeros((len(made), 0), np.float32)
        if schema is not None:
            context = made.encoded_contexts(schema)
        action = made.action if len(made) else np.zeros((0, slots))
        flags = made.activated, made.holdout, made.paused
        return cls(
            position, context, action, made.propensity, *flags, made.unit, made.group, made.version
        )

    @classmethod
    def joined(cls, parts: "Sequence[DecidedRows]") -> "DecidedRows":
        """Return the decisions of all parts, one part after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls._make(np.concatenate(column) for column in zip(*parts, strict=True))

    def take(self, which: NDArray[np.int64] | slice) -> "DecidedRows":
        """Return some of the decisions."""
        return DecidedRows._make(column[which] for column in self)

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(column.nbytes for column in self)
