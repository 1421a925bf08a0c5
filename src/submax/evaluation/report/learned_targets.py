"""Which rows the policies of a comparison learn from, and the policies after they have learned."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from submax.core.arrays import Booleans, Integers
from submax.evaluation.choosing.one_policy import learn_one
from submax.evaluation.logs.counted import divided_by_split
from submax.evaluation.logs.log import By, Log
from submax.evaluation.targets.target_policy import TargetPolicy
from submax.schema.learned import Learned


def split_of(
    log: Log, candidates: Mapping[str, Any], share: float, by: By, seed: int
) -> tuple[Log, Booleans, Integers]:
    """Return the log, which of its rows policies learn from, and their numbers for the caller.

    The rows are those of the caller's log, unless they stand for several decisions: then they may
    be divided.
    """
    if not any(learns(one) for one in candidates.values()):
        return log, np.zeros(len(log), dtype=bool), np.arange(len(log))
    if log.count is None:
        return log, log.chosen(share, by, seed), np.arange(len(log))
    divided = divided_by_split(log, share, by, seed)
    return divided.log, divided.part == 0, divided.number


def learned_target(candidate: Any, log: Log, first: Booleans, seed: int) -> Any:
    """Return a candidate after it has learned from some rows of a log, if it has to learn."""
    if isinstance(candidate, TargetPolicy) and candidate.learns:
        return candidate.learned_from(log.rows(first), seed)
    if learns(candidate):
        return learn_one(log.rows(first), candidate, seed=seed, keep_rows=0)
    return candidate


def learns(candidate: Any) -> bool:
    """Return whether a candidate has to learn from a part of the log before it is evaluated."""
    if isinstance(candidate, TargetPolicy):
        return candidate.learns
    return not isinstance(candidate, Learned)
