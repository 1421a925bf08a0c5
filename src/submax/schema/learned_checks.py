"""Checks of a learned policy that was read from a file.

The caller puts the name of the file before every error: "its actions" are those in the file.
"""

from typing import Any

import numpy as np

from submax.core.errors import InputError, one_line
from submax.core.policy import Policy
from submax.schema.columns import Columns
from submax.schema.context_schema import ContextSchema
from submax.schema.menu import Menu
from submax.schema.model import Model
from submax.schema.rewards import rewards_of
from submax.schema.schema import Schema
from submax.schema.standardization import Standardization


def check_schema(schema: Schema) -> None:
    """Raise an ``InputError`` unless a user could declare this schema, and can decide with it.

    A file can hold a schema that no declaration gives, such as one with two slots of one name. So
    actions and context are declared again and compared. To decide, every slot needs an active
    choice.
    """
    menu, context = schema.menu, schema.context
    if Menu.of(menu.declaration, menu.features) != menu.revived:
        raise InputError("its actions could not be declared: a slot is named twice or not at all")
    if not all(menu.active):
        raise InputError("its actions have a slot without any active choice")
    table = dict(zip(context.names, context.fields, strict=False))
    if len(context.names) != len(context.fields) or ContextSchema.of(table) != context:
        raise InputError("its context could not be declared: each field has a name of its own")
    rewards_of(schema.rewards)


def check_contents(contents: Any, schema: Schema, policy: Policy[Any]) -> tuple[Model, Columns]:
    """Return the model and the rows, which ``contents`` must be a pair of.

    Raise an ``InputError`` if they do not fit the schema, or if the policy cannot decide with the
    state of the model.
    """
    pair = contents if isinstance(contents, tuple) and len(contents) == 2 else (None, None)
    model, rows = pair
    if not isinstance(model, Model) or not isinstance(rows, Columns):
        raise InputError("it does not hold a model and rows")
    _check_shapes(rows, schema)
    _check_values(rows, schema)
    _check_standardization(model.standardization, schema.context.width)
    if model.active != schema.menu.active:
        raise InputError("its model is of other choices than the active ones")
    try:
        _check_state(model.state, schema, policy)
    except InputError:
        raise
    except Exception as error:
        # Arrays of wrong shapes can fail anywhere, also in a user-defined policy.
        raise InputError(f"its policy cannot decide: {one_line(error)}") from error
    return model, rows


def _check_shapes(rows: Columns, schema: Schema) -> None:
    count = rows.reward.size if isinstance(rows.reward, np.ndarray) else 0
    slots = len(schema.menu.slots) + len(schema.menu.ranges)
    wanted = ((count, schema.context.width), (count, slots), (count,), (count,))
    for name, shape in zip(rows._fields[: len(wanted)], wanted, strict=True):
        column: Any = getattr(rows, name)
        floats = isinstance(column, np.ndarray) and column.dtype.kind == "f"
        if not floats or column.shape != shape:
            raise InputError(f"the column {name} of its rows must have the shape {shape}")


def _check_values(rows: Columns, schema: Schema) -> None:
    if not np.isfinite(rows.context).all():
        raise InputError("a context of its rows is not finite")
    menu = schema.menu
    limits = [(0.0, len(slot.choices) - 1.0) for slot in menu.slots]
    limits += [(one.low, one.high) for one in menu.ranges]
    low, high = np.array(limits).T
    whole = rows.action[:, : len(menu.slots)]
    if not ((rows.action >= low) & (rows.action <= high)).all() or (whole % 1).any():
        raise InputError("an action of its rows is not among its actions")
    schema.scale.check(rows.reward)


def _check_standardization(given: object, width: int) -> None:
    arrays = given if isinstance(given, Standardization) else ()
    good = [
        isinstance(one, np.ndarray) and one.shape == (width,) and np.isfinite(one).all()
        for one in arrays
    ]
    if not good or not all(good):
        raise InputError(f"its contexts must be standardized by {width} numbers")


def _check_state(state: Any, schema: Schema, policy: Policy[Any]) -> None:
    """Raise an ``InputError`` unless the state fits policy and problem, and can decide."""
    rng, problem = np.random.default_rng(0), schema.problem
    fresh = policy.init(problem, 1, rng)
    if type(state) is not type(fresh) or state.problem != fresh.problem:
        raise InputError("its state is of another policy or problem than it says")
    action = policy.act(state, np.zeros((1, 1, schema.context.width)), rng).action
    if not problem.space.contains(action[0]):
        raise InputError("its policy chooses an action that is not among its actions")
