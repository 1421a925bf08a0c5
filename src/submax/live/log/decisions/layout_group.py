"""Bodies of decisions that have the same layout, and what they say."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.bandit.assignment import GROUP_NUMBERS, GROUP_RECORD
from submax.core.errors import InputError
from submax.live.log.decisions.body_layout import BodyLayout, floats_at, texts_at, values_at
from submax.schema.context import Category, ContextSchema, Number

Bytes = NDArray[np.uint8]


class LayoutGroup(NamedTuple):
    """Bodies of one layout, ``[n, size]``, and their places among all decisions."""

    places: NDArray[np.int64]
    layout: BodyLayout
    bodies: Bytes


def units_of(group: LayoutGroup) -> NDArray[np.object_]:
    """Return the units of a group of bodies."""
    units = np.full(len(group.places), None, np.object_)
    if group.layout.unit is not None:
        units[:] = texts_at(group.bodies, group.layout.unit)
    return units


def groups_of(group: LayoutGroup) -> NDArray[np.void]:
    """Return the groups of the decisions of some bodies."""
    records = np.zeros(len(group.places), GROUP_RECORD)
    if group.layout.group is not None:
        since, name, *shares = group.layout.group
        records["since"] = values_at(group.bodies, since)
        try:
            numbers = [GROUP_NUMBERS[one] for one in texts_at(group.bodies, name)]
        except KeyError as error:
            raise InputError(
                f"a decision is in the unknown group {error}: install a newer submax, or restore a "
                "backup"
            ) from error
        records["group"] = numbers
        for field, leaf in zip(("holdout_share", "control_share"), shares, strict=True):
            records[field] = values_at(group.bodies, leaf)
    return records


def context_of(group: LayoutGroup, schema: ContextSchema) -> NDArray[Any]:
    """Return the context of a group as numbers, ``[n, fields]``."""
    leaves = group.layout.context
    wanted = [">f8" if isinstance(field, Number) else "S" for field in schema.fields]
    if [leaf.kind for leaf in leaves] != wanted:
        raise ValueError(f"{len(leaves)} values do not have the types of the declared fields")
    if "S" not in wanted:
        return floats_at(group.bodies, leaves)
    return np.array(
        [
            _numbers(texts_at(group.bodies, leaf), field)
            if isinstance(field, Category)
            else values_at(group.bodies, leaf)
            for field, leaf in zip(schema.fields, leaves, strict=True)
        ],
        np.float64,
    ).T


def _numbers(values: Sequence[str], field: Category) -> list[int]:
    numbers = {value: number for number, value in enumerate(field.values)}
    return [numbers[value] for value in values]
