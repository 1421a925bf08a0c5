"""Decisions by columns, from a segment of the archive."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.bandit.assignment import GROUP_NUMBERS, GROUP_RECORD
from submax.core.arrays import Floats
from submax.core.decoding import known_type
from submax.core.errors import InputError
from submax.live.archive.segments.segment_schema import ACTION, CONTEXT
from submax.live.log.decisions.decision_columns import DecisionColumns, Eligible
from submax.schema.actions import ChoiceIndices
from submax.schema.context import Category, ContextSchema

ELIGIBLE = msgspec.msgpack.Decoder(known_type(ChoiceIndices))


class ArchivedDecisions(DecisionColumns):
    """Decisions from a table with the columns of a segment, one row for each decision.

    All of them are described by columns: none has a ``body``.
    """

    def __init__(self, table: Any) -> None:
        self._table = table
        self._actions = [one for one in table.column_names if one.startswith(ACTION)]
        self._contexts = [one for one in table.column_names if one.startswith(CONTEXT)]

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @cached_property
    def action(self) -> Floats:
        columns = [self._numbers(name) for name in self._actions]
        return np.array(columns, np.float64).T.reshape(len(self), len(columns))

    @cached_property
    def propensity(self) -> Floats:
        stored = self._numbers("propensity")
        missing = np.flatnonzero(self._table["propensity"].is_null().to_numpy())
        return self._with_listed(stored, missing) if len(missing) else stored

    def _with_listed(self, stored: Floats, missing: NDArray[np.int64]) -> Floats:
        """Return propensities after the missing ones were looked up among the probabilities."""
        numbers, eligible = self.eligible()
        lists = self.probabilities()
        offsets, flat = lists.offsets.to_numpy(), lists.values.to_numpy()
        index = np.zeros(len(self), np.int64)
        for number, slots in enumerate(eligible):
            here = np.flatnonzero(numbers == number)
            for slot, indices in enumerate(slots):
                place = np.full(max(indices, default=0) + 1, -1)
                place[[*indices]] = np.arange(len(indices))
                chosen = self.action[here, slot].astype(np.int64)
                index[here] = index[here] * len(indices) + place[chosen]
        found = stored.copy()
        found[missing] = flat[offsets[missing] + index[missing]]
        return found

    @cached_property
    def version(self) -> NDArray[np.int64]:
        version: NDArray[np.int64] = self._table["version"].to_numpy()
        return version

    @cached_property
    def activated(self) -> NDArray[np.bool_]:
        return self._flags("activated")

    @cached_property
    def holdout(self) -> NDArray[np.bool_]:
        return self._flags("holdout")

    @cached_property
    def paused(self) -> NDArray[np.bool_]:
        return self._flags("paused")

    @cached_property
    def unit(self) -> NDArray[np.object_]:
        units = np.full(len(self), None, np.object_)
        if self._table["unit"].null_count < len(self):
            units[:] = self._table["unit"].to_pylist()
        return units

    @cached_property
    def group(self) -> NDArray[np.void]:
        records = np.zeros(len(self), GROUP_RECORD)
        if self._table["group"].null_count < len(self):
            names = self._table["group"].to_pylist()
            records["group"] = [GROUP_NUMBERS[name] for name in names]
            records["since"] = self._table["group_since"].fill_null(0).to_numpy()
            for field in ("holdout_share", "control_share"):
                records[field] = self._table[field].fill_null(0.0).to_numpy()
        return records

    def encoded_contexts(self, schema: ContextSchema) -> NDArray[np.float32]:
        self._check_width(schema)
        values = np.empty((len(self), len(schema.fields)), np.float32)
        for place, field in enumerate(schema.fields):
            if isinstance(field, Category):
                values[:, place] = self._category(place, field)
            else:
                values[:, place] = self._numbers(self._contexts[place])
        return schema.encode_rows(values) if any(not one for one in schema.numeric) else values

    def context_arrays(self, schema: ContextSchema) -> list[Any]:
        self._check_width(schema)
        return [self._table[name].combine_chunks() for name in self._contexts]

    def eligible(self) -> Eligible:
        encoded = self._table["eligible"].combine_chunks().dictionary_encode()
        choices = [ELIGIBLE.decode(one) for one in encoded.dictionary.to_pylist()]
        return encoded.indices.to_numpy().astype(np.int64), choices

    def probabilities(self) -> Any:
        return self._table["probabilities"].combine_chunks()

    def _numbers(self, name: str) -> NDArray[Any]:
        """Return a column of numbers; NaN if a value is missing."""
        numbers: NDArray[Any] = self._table[name].to_numpy()
        return numbers

    def _flags(self, name: str) -> NDArray[np.bool_]:
        flags: NDArray[np.bool_] = self._table[name].to_numpy().astype(np.bool_)
        return flags

    def _category(self, place: int, field: Category) -> NDArray[np.int64]:
        import pyarrow as pa
        import pyarrow.compute as pc

        values: Sequence[str] = field.values
        found = pc.index_in(self._table[self._contexts[place]], pa.array(values, pa.string()))
        if found.null_count:
            raise InputError(
                "the context of an archived decision has a category that is not declared, so that "
                "the archive is damaged: run submax doctor, or restore a backup"
            )
        numbers: NDArray[np.int64] = found.to_numpy()
        return numbers

    def _check_width(self, schema: ContextSchema) -> None:
        if len(self._contexts) != len(schema.fields):
            raise InputError(
                f"archived decisions have {len(self._contexts)} values in a context, and "
                f"{len(schema.fields)} are declared, so that the archive is damaged: run submax "
                "doctor, or restore a backup"
            )
