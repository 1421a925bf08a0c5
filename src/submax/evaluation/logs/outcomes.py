"""Logs with several rewards, a column for each."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import finite, one_of
from submax.core.errors import InputError
from submax.schema.rewards import rewards_of

if TYPE_CHECKING:
    from submax.evaluation.logs.log import Log

Reward = str | Mapping[str, float]
"""One of the rewards of a log by name, or the weights of their sum, {'click': 1, 'buy': 20}."""


def with_reward(log: "Log", reward: Reward) -> "Log":
    """Return the log with one of its rewards, or with a weighted sum of them, as the reward."""
    if log.outcomes is None:
        raise InputError(
            f"the reward {reward!r} is asked for, and this log has one column of rewards; several "
            "are allowed: read the log with columns={'reward': ['click', 'buy']}",
            parameter="reward",
        )
    weights = {reward: 1.0} if isinstance(reward, str) else dict(reward)
    if not weights:
        raise InputError(
            "the combination of rewards is empty, and needs at least one of "
            f"{', '.join(log.outcome_names)}: give weights such as {{'{log.outcome_names[0]}': 1}}",
            parameter="reward",
        )
    for name, weight in weights.items():
        one_of("reward", str(name), log.outcome_names)
        finite(f"the weight of the reward {name!r}", weight)
    places = [log.outcome_names.index(name) for name in weights]
    parts = log.outcomes[:, places]
    values = parts @ np.array(list(weights.values()), dtype=np.float64)
    schema = msgspec.structs.replace(log.schema, rewards=_scale(parts, weights, values))
    return replace(log, reward=values, schema=schema)


def _scale(parts: Floats, weights: Mapping[str, float], values: Floats) -> dict[str, Any]:
    """Return which rewards can occur: known ends if all parts are 0 or 1."""
    if np.isin(values, (0, 1)).all():
        return rewards_of("binary")
    if not np.isin(parts, (0, 1)).all():
        return rewards_of("continuous")
    numbers = np.array(list(weights.values()), dtype=np.float64)
    low, high = (float(clip(numbers, 0).sum()) for clip in (np.minimum, np.maximum))
    return rewards_of({"kind": "continuous", "low": low, "high": high})
