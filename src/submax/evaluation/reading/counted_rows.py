"""Rows of a table that stand for several decisions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.evaluation.reading.checked_batch import CheckedBatch

MOST_DECISIONS = 2.0**53
"""Whole numbers up to this one are exact as floating-point numbers."""


def read_counts(batch: CheckedBatch, column: str) -> Floats:
    """Return the number of decisions of each row; rows without a whole number are bad."""
    count = batch.required_numbers(column)
    batch.note(column, "is below 0, as no number of decisions can be", count < 0)
    whole = (count == np.round(count)) | np.isnan(count)
    batch.note(column, "is not a whole number of decisions", ~whole | (count > MOST_DECISIONS))
    return count


def read_successes(batch: CheckedBatch, column: str, count: Floats) -> Floats:
    """Return how many decisions of each row had the reward 1; the others had the reward 0."""
    successes = read_counts(batch, column)
    batch.note(column, "is above the number of decisions of its row", successes > count)
    return successes


def with_rewards(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the columns with a row for each reward, 0 and 1, of rows that count successes.

    The column ``successes`` is replaced by ``reward``, and ``count`` is the number of decisions
    with this reward. Rows that stand for no decision are left out.
    """
    successes = columns.pop("successes", None)
    if successes is not None:
        failures = columns["count"] - successes
        columns = {name: np.repeat(values, 2, axis=0) for name, values in columns.items()}
        columns["reward"] = np.tile([1.0, 0.0], len(successes))
        columns["count"] = np.stack([successes, failures], axis=1).ravel()
    if "count" not in columns:
        return columns
    some = columns["count"] > 0
    return {name: values[some] for name, values in columns.items()}
