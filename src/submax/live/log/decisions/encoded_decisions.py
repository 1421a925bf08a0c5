"""Decisions by columns, from their bodies in a store."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.bandit.assignment import GROUP_RECORD, group_record
from submax.core.arrays import Floats
from submax.core.decoding import known_type
from submax.core.errors import InputError
from submax.live.log.decisions.body_layout import (
    BodyLayout,
    UnknownLayoutError,
    floats_at,
    values_at,
)
from submax.live.log.decisions.decision_columns import DecisionColumns, Eligible
from submax.live.log.decisions.layout_group import (
    LayoutGroup,
    context_of,
    groups_of,
    units_of,
)
from submax.live.log.records import DecisionMade, decoded_bodies
from submax.live.store.columns.byte_column import ByteColumn
from submax.schema.actions import ChoiceIndices
from submax.schema.context import Category, ContextSchema, Number

FEWEST = 32
"""Bodies of one layout that are worth decoding together; fewer are faster one by one."""
ELIGIBLE = msgspec.msgpack.Decoder(known_type(ChoiceIndices))
ENCODER = msgspec.msgpack.Encoder()


class EncodedDecisions(DecisionColumns):
    """Decisions from their bodies, those of the same layout decoded at once by numpy.

    ``positions`` name the events in errors. An ``InputError`` is raised if a body is damaged.
    """

    def __init__(self, bodies: ByteColumn, positions: NDArray[np.int64]) -> None:
        self._count = len(bodies)
        self._groups: list[LayoutGroup] = []
        single = self._grouped(bodies)
        self._single = np.array(single, np.int64)
        self._made: list[DecisionMade] = decoded_bodies(
            [*bodies.take(self._single)],
            positions[single].tolist() if single else [],
            DecisionMade,
        )

    def __len__(self) -> int:
        return self._count

    @property
    def groups(self) -> Sequence[LayoutGroup] | None:
        """The decisions by layout; None if some have a layout that few others have."""
        return None if self._made else self._groups

    def _grouped(self, bodies: ByteColumn) -> list[int]:
        """Find bodies of the same layout; return the places of those that have too few peers."""
        if len(bodies) < FEWEST:
            return [*range(len(bodies))]
        single: list[int] = []
        for size in np.unique(bodies.size).tolist():
            places = np.flatnonzero(bodies.size == size)
            rows = bodies.take(places).rows()
            while len(places) >= FEWEST:
                try:
                    layout = BodyLayout(rows[0].tobytes())
                except UnknownLayoutError:
                    break
                same = layout.matches(rows)
                if same.all():
                    self._groups.append(LayoutGroup(places, layout, rows))
                    places = places[:0]
                elif same.sum() >= FEWEST:
                    self._groups.append(LayoutGroup(places[same], layout, rows[same]))
                    places, rows = places[~same], rows[~same]
                else:
                    single += places[same].tolist()
                    places, rows = places[~same], rows[~same]
            single += places.tolist()
        return sorted(single)

    def _filled(
        self,
        shape: tuple[int, ...],
        kind: Any,
        of_group: Callable[[LayoutGroup], NDArray[Any]],
        of_single: Callable[[DecisionMade], object],
    ) -> NDArray[Any]:
        """Return a column, ``[n, *shape]``, from the values of groups and of single decisions."""
        if len(self._groups) == 1 and not self._made:
            return of_group(self._groups[0]).astype(kind, copy=False)
        if not self._groups:
            values = [of_single(made) for made in self._made]
            return np.array(values, kind).reshape(self._count, *shape)
        column = np.zeros((self._count, *shape), kind)
        for group in self._groups:
            column[group.places] = of_group(group)
        if self._made:
            values = [of_single(made) for made in self._made]
            column[self._single] = np.array(values, kind).reshape(len(values), *shape)
        return column

    @cached_property
    def action(self) -> Floats:
        widths = {len(group.layout.action) for group in self._groups}
        widths |= {len(made.action) for made in self._made}
        if len(widths) > 1:
            raise InputError(
                f"decisions have actions of {' and '.join(map(str, sorted(widths)))} parts, so "
                "that the store is damaged: run submax doctor, or restore a backup"
            )

        def of_group(group: LayoutGroup) -> Floats:
            columns = [values_at(group.bodies, leaf) for leaf in group.layout.action]
            return np.array(columns, np.float64).T.reshape(len(group.places), len(columns))

        return self._filled((max(widths, default=0),), np.float64, of_group, lambda one: one.action)

    @cached_property
    def propensity(self) -> Floats:
        return self._filled(
            (),
            np.float64,
            lambda group: values_at(group.bodies, group.layout.propensity),
            lambda made: made.propensity,
        )

    @cached_property
    def version(self) -> NDArray[np.int64]:
        return self._filled(
            (),
            np.int64,
            lambda group: values_at(group.bodies, group.layout.version),
            lambda made: made.version,
        )

    @cached_property
    def activated(self) -> NDArray[np.bool_]:
        return self._filled(
            (),
            np.bool_,
            lambda group: (group.bodies[:, group.layout.activated] & 1).astype(np.bool_),
            lambda made: made.activated,
        )

    @cached_property
    def holdout(self) -> NDArray[np.bool_]:
        return self._filled(
            (),
            np.bool_,
            lambda group: (group.bodies[:, group.layout.holdout] & 1).astype(np.bool_),
            lambda made: made.holdout,
        )

    @cached_property
    def paused(self) -> NDArray[np.bool_]:
        return self._filled(
            (),
            np.bool_,
            lambda group: (group.bodies[:, group.layout.paused] & 1).astype(np.bool_),
            lambda made: made.paused,
        )

    @cached_property
    def unit(self) -> NDArray[np.object_]:
        return self._filled((), np.object_, units_of, lambda made: made.unit)

    @cached_property
    def group(self) -> NDArray[np.void]:
        return self._filled((), GROUP_RECORD, groups_of, lambda made: group_record(made.group))

    def encoded_contexts(self, schema: ContextSchema) -> NDArray[np.float32]:
        values = self._context_values(schema, np.float32)
        numbers = all(isinstance(field, Number) for field in schema.fields)
        return values if numbers else schema.encode_rows(values)

    def _context_values(self, schema: ContextSchema, kind: type[np.floating]) -> NDArray[Any]:
        """Return the context, ``[n, fields]``, with indices in place of categories."""
        width = len(schema.fields)
        try:
            return self._filled(
                (width,),
                kind,
                lambda group: context_of(group, schema),
                lambda made: _indices(made.context, schema),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"the context of a decision is damaged or from a newer submax ({error}): run "
                "submax doctor, install a newer submax, or restore a backup"
            ) from error

    def context_arrays(self, schema: ContextSchema) -> list[Any]:
        import pyarrow as pa

        columns = np.ascontiguousarray(self._context_values(schema, np.float64).T)
        return [
            pa.array(column)
            if isinstance(field, Number)
            else pa.array(field.values, pa.string()).take(pa.array(column.astype(np.int64)))
            for field, column in zip(schema.fields, columns, strict=True)
        ]

    def eligible(self) -> Eligible:
        known: dict[bytes, int] = {}
        numbers = np.zeros(self._count, np.int64)
        for group in self._groups:
            span = np.ascontiguousarray(group.bodies[:, group.layout.eligible_span])
            if (span == span[0]).all():
                numbers[group.places] = known.setdefault(span[0].tobytes(), len(known))
                continue
            found, inverse = np.unique(span.view(f"V{span.shape[1]}")[:, 0], return_inverse=True)
            of_found = [known.setdefault(one.tobytes(), len(known)) for one in found]
            numbers[group.places] = np.array(of_found)[inverse]
        for place, made in zip(self._single.tolist(), self._made, strict=True):
            numbers[place] = known.setdefault(ENCODER.encode(made.eligible), len(known))
        return numbers, [ELIGIBLE.decode(encoded) for encoded in known]

    def probabilities(self) -> Any:
        import pyarrow as pa

        lengths = np.zeros(self._count, np.int64)
        listed = np.zeros(self._count, np.bool_)
        for group in self._groups:
            if group.layout.probabilities is not None:
                listed[group.places] = True
                lengths[group.places] = len(group.layout.probabilities)
        for place, made in zip(self._single.tolist(), self._made, strict=True):
            if made.probabilities is not None:
                listed[place], lengths[place] = True, len(made.probabilities)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        flat = np.zeros(offsets[-1])
        for group in self._groups:
            if group.layout.probabilities:
                values = floats_at(group.bodies, group.layout.probabilities)
                begins = offsets[group.places][:, None]
                flat[begins + np.arange(values.shape[1])] = values
        for place, made in zip(self._single.tolist(), self._made, strict=True):
            flat[offsets[place] : offsets[place + 1]] = made.probabilities or ()
        return pa.ListArray.from_arrays(
            pa.array(offsets.astype(np.int32)),
            pa.array(flat),
            mask=None if listed.all() else pa.array(~listed),
        )


def _indices(context: Sequence[Any], schema: ContextSchema) -> list[float]:
    return [
        field.values.index(str(value)) if isinstance(field, Category) else float(value)
        for field, value in zip(schema.fields, context, strict=True)
    ]
