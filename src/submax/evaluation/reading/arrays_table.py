"""Turns arrays into a table of named columns, as ``Log.read`` accepts it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from submax.core.checks import whole_number
from submax.core.errors import InputError
from submax.evaluation.reading.columns.column_names import ACTION, CONTEXT
from submax.schema.choices import MOST_CHOICES


def arrays_table(
    action: ArrayLike,
    reward: ArrayLike,
    propensity: ArrayLike | None,
    context: ArrayLike | None,
) -> dict[str, NDArray[Any]]:
    """Return the columns ``action``, ``reward``, ``propensity``, ``context_x0`` and so on."""
    rewards, actions = _array("reward", reward, (1,)), _array("action", action, (1, 2))
    table = {"action": actions}
    if actions.ndim == 2:
        table = {f"{ACTION}slot{slot}": column for slot, column in enumerate(actions.T)}
    table["reward"] = rewards
    if propensity is not None:
        table["propensity"] = _array("propensity", propensity, (1,))
    if context is not None:
        for field, column in enumerate(_array("context", context, (2,)).T):
            table[f"{CONTEXT}x{field}"] = column
    for name, column in table.items():
        if len(column) != len(rewards):
            raise InputError(
                f"{name} has {len(column)} rows and reward has {len(rewards)}: give arrays of the "
                "same length",
                parameter=name,
            )
    return {name: np.ascontiguousarray(column) for name, column in table.items()}


def obp_table(feedback: Mapping[str, Any]) -> tuple[dict[str, NDArray[Any]], list[str] | None]:
    """Return the columns of a bandit feedback of Open Bandit Pipeline, and its action names."""
    for name in ("action", "reward"):
        if not isinstance(feedback, Mapping) or feedback.get(name) is None:
            raise InputError(
                f"the bandit feedback has no key {name!r}: give the dictionary of Open Bandit "
                "Pipeline, with 'action' and 'reward'",
                parameter=name,
            )
    if np.ndim(feedback["action"]) != 1:
        raise InputError(
            f"the actions of the bandit feedback have {np.ndim(feedback['action'])} dimensions, "
            "and must be one array [n_rounds]: for several slots use Log.from_arrays",
            parameter="action",
        )
    table = arrays_table(
        feedback["action"], feedback["reward"], feedback.get("pscore"), feedback.get("context")
    )
    position = feedback.get("position")
    if position is not None and len(np.unique(position)) > 1:
        table[f"{CONTEXT}position"] = np.asarray(position).astype(str)
    return table, _action_names(table["action"], feedback.get("n_actions"))


def _action_names(action: NDArray[Any], count: Any) -> list[str] | None:
    """Return the numbers of all actions as names; None if the actions are not numbers."""
    if count is not None:
        whole_number("n_actions", count, at_least=1, at_most=MOST_CHOICES)
    elif action.dtype.kind in "iu" and action.size:
        count = min(int(action.max()) + 1, MOST_CHOICES)
    return [str(number) for number in range(count)] if count else None


def _array(name: str, values: ArrayLike, dimensions: tuple[int, ...]) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} must be an array: {error}", parameter=name) from error
    if array.ndim not in dimensions:
        wanted = " or ".join("[N]" if count == 1 else f"[N, {name}s]" for count in dimensions)
        raise InputError(f"{name} must have the shape {wanted}, not {array.shape}", parameter=name)
    return array
