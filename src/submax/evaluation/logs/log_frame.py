"""A log as a table of the values that it was read from."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.schema.context_schema import Category
from submax.schema.schema import Schema


def log_columns(
    schema: Schema,
    context: NDArray[np.float32],
    action: NDArray[Any],
    reward: Floats,
    propensity: Floats,
    count: Floats | None = None,
) -> dict[str, NDArray[Any]]:
    """Return columns that ``Log.read`` finds by their names; the arguments are fields of a log."""
    columns: dict[str, NDArray[Any]] = {}
    menu = schema.menu
    for place, slot in enumerate(menu.slots):
        names = np.array([choice.name for choice in slot.choices], dtype=object)
        label = "action" if menu.plain else f"action_{slot.name}"
        columns[label] = names[action[:, place].astype(np.int64)]
    for place, interval in enumerate(menu.ranges, start=len(menu.slots)):
        columns[f"action_{interval.name}"] = action[:, place].astype(np.float64)
    columns["reward"] = reward
    if not np.isnan(propensity).all():
        columns["propensity"] = propensity
    if count is not None:
        columns["count"] = count
    for place, (name, field) in enumerate(
        zip(schema.context.names, schema.context.fields, strict=True)
    ):
        values: NDArray[Any] = context[:, place]
        if isinstance(field, Category):
            values = np.array(field.values, dtype=object)[values.astype(np.int64)]
        columns[f"context_{name}"] = values
    return columns
