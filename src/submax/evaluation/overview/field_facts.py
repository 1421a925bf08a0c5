"""A line about each field of the context of a log."""

from typing import NamedTuple

import numpy as np

from submax.core.summary import listed, number, percentage
from submax.evaluation.logs.log import Log
from submax.schema.context_schema import Category


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
