"""What a report says about the log."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from submax.core.summary import listed, number, percentage
from submax.evaluation.diagnostics import ChoiceFacts, Overlap
from submax.evaluation.estimates import SliceEstimate
from submax.evaluation.log import Log
from submax.schema.context import Category


class FieldFacts(NamedTuple):
    """A field of the context: its ``kind`` (number or category), and its values in words."""

    name: str
    kind: str
    values: str


def field_facts(log: Log) -> list[FieldFacts]:
    """Return a line about each field of the context."""
    found = []
    schema = log.schema.context
    for name, field, column in zip(schema.names, schema.fields, log.context.T, strict=True):
        if isinstance(field, Category):
            counts = np.bincount(column.astype(np.int64), log.count, minlength=len(field.values))
            order = np.argsort(-counts, kind="stable")
            shares = [
                f"{field.values[one]} {percentage(counts[one] / log.decisions)}" for one in order
            ]
            found.append(FieldFacts(name, "category", listed(shares)))
        else:
            low, middle, high = np.quantile(column, [0, 0.5, 1])
            values = f"{number(low)} to {number(high)}, median {number(middle)}"
            found.append(FieldFacts(name, "number", values))
    return found


class Overview(NamedTuple):
    """The data checks of a log, and what is needed to compute a comparison again.

    ``rows`` were evaluated and ``learned_rows`` were learned from. ``rewards`` and
    ``propensities`` are the lowest, the mean and the highest one; ``estimated`` propensities are
    those that a model estimated. ``overlap`` has the weights of each policy. ``settings`` are the
    arguments of the comparison, and ``digest`` identifies the log: it is a SHA-256 hash of the
    contexts, actions and rewards of all rows.
    """

    rows: int
    learned_rows: int
    reward_kind: str
    rewards: tuple[float, float, float]
    propensities: tuple[float, float, float]
    estimated: int
    choices: Sequence[ChoiceFacts]
    fields: Sequence[FieldFacts]
    settings: Mapping[str, Any]
    digest: str
    overlap: Mapping[str, Overlap] = {}
    slices: Sequence[SliceEstimate] = ()
