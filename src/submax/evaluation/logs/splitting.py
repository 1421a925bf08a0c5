"""Which rows of a log a split takes first."""

from typing import Literal

import numpy as np

from submax.core.arrays import Booleans, Integers
from submax.core.checks import one_of, whole_number
from submax.core.errors import InputError
from submax.evaluation.logs.clusters import random_clusters

By = Literal["time", "random"]
"""Which rows a split takes first: the earliest ones, or random ones."""


def check_split(share: float, by: By, seed: int, decisions: int) -> None:
    """Refuse a split that is not possible."""
    one_of("split by", by, ["time", "random"])
    whole_number("seed", seed, at_least=0)
    if not 0 < share < 1:
        raise InputError(
            f"the share is {share!r}, and must be above 0 and below 1: give 0.5 to learn from "
            "half of the rows",
            parameter="share",
        )
    if decisions < 2:
        raise InputError(
            f"a log of {decisions} rows cannot be split, since both parts need a row: "
            "read a log of at least 2 rows"
        )


def chosen_rows(rows: int, cluster: Integers | None, share: float, by: By, seed: int) -> Booleans:
    """Return which of the rows are in the first part; both parts have at least one row.

    Random parts consist of whole clusters, if there are any.
    """
    check_split(share, by, seed, rows)
    count = min(max(round(share * rows), 1), rows - 1)
    first = np.zeros(rows, dtype=bool)
    if by == "time":
        first[:count] = True
    elif cluster is None:
        first[np.random.default_rng(seed).permutation(rows)[:count]] = True
    else:
        first = random_clusters(cluster, count, seed)
    return first
