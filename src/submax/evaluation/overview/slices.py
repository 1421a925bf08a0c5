"""Parts of a log with the same value in one column."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans
from submax.core.errors import InputError
from submax.core.summary import listed, number
from submax.evaluation.logs.log import Log
from submax.evaluation.report.estimate import Estimate
from submax.schema.context_schema import Category

MOST_SLICES = 12
"""Values of a category that are slices of their own, the most frequent ones. The rows of the
others are one slice together."""
QUANTILES = (0.25, 0.5, 0.75)
"""A number is cut at its quartiles."""


class Slice(NamedTuple):
    """The rows, ``mask [n]``, in which the context field ``column`` has a ``value``."""

    column: str
    value: str
    mask: Booleans


class SliceEstimate(NamedTuple):
    """The recommended estimate of a policy for the rows of a slice."""

    column: str
    value: str
    estimate: Estimate


def check_slices(columns: Sequence[str], log: Log) -> None:
    """Refuse a column that is not a field of the context."""
    if isinstance(columns, str):
        raise InputError(
            f"slices is {columns!r}, and must be a list of columns: put it into a list, [...]",
            parameter="slices",
        )
    known = log.schema.context.names
    for column in columns:
        if column not in known:
            raise InputError(
                f"the slice is by {column!r}; a column of the context is allowed "
                f"({listed(known) or 'this log has none'}): name one of them, or add the column to "
                "the context",
                parameter="slices",
            )


def slices_of(log: Log, columns: Sequence[str]) -> list[Slice]:
    """Return the slices of a log by each of the columns, without empty slices."""
    found = []
    for column in columns:
        place = log.schema.context.names.index(column)
        field, values = log.schema.context.fields[place], log.context[:, place]
        if isinstance(field, Category):
            found += _by_category(column, field.values, values.astype(np.int64))
        else:
            found += _by_quartile(column, values)
    return [one for one in found if one.mask.any()]


def _by_category(column: str, names: Sequence[str], code: NDArray[Any]) -> list[Slice]:
    counts = np.bincount(code, minlength=len(names))
    order = np.argsort(-counts, kind="stable")
    slices = [Slice(column, names[one], code == one) for one in order[:MOST_SLICES]]
    rest = order[MOST_SLICES:]
    if rest.size:
        slices.append(Slice(column, f"{rest.size} other values", np.isin(code, rest)))
    return slices


def _by_quartile(column: str, values: NDArray[Any]) -> list[Slice]:
    edges = np.unique(np.quantile(values, QUANTILES).astype(values.dtype))
    bin_of = np.searchsorted(edges, values, side="left")
    words = [f"up to {number(edges[0])}"]
    words += [f"above {number(low)}, up to {number(high)}" for low, high in pairwise(edges)]
    words.append(f"above {number(edges[-1])}")
    return [Slice(column, word, bin_of == place) for place, word in enumerate(words)]
