"""Logs with the same columns and different vocabularies, expressed in a common one."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from submax.evaluation.logs.log import Log
from submax.evaluation.reading.columns.vocabulary import rank
from submax.schema.context_schema import Category, ContextSchema, Field
from submax.schema.menu import ChoiceIndices, Menu
from submax.schema.rewards import rewards_of
from submax.schema.schema import Schema


def common_schema(schemas: Sequence[Schema]) -> Schema:
    """Return the schema with the choices, categories and rewards of all parts of a log."""
    first = schemas[0]
    if all(one == first for one in schemas):
        return first
    menu = first.menu
    if any(one.menu != menu for one in schemas):
        names = {
            slot.name: _sorted([[c.name for c in one.menu.slots[place].choices] for one in schemas])
            for place, slot in enumerate(menu.slots)
        }
        menu = Menu.of(next(iter(names.values())) if menu.plain else names)
    fields: dict[str, Field] = {}
    for place, name in enumerate(first.context.names):
        field = first.context.fields[place]
        if isinstance(field, Category) and field.default is None:
            parts = [one.context.fields[place] for one in schemas]
            field = Category(
                tuple(_sorted([one.values for one in parts if isinstance(one, Category)]))
            )
        fields[name] = field
    kinds = {str(one.rewards["kind"]) for one in schemas}
    rewards = first.rewards if len(kinds) == 1 else rewards_of("continuous")
    return Schema(menu=menu, context=ContextSchema.of(fields), rewards=rewards)


def _sorted(lists: Sequence[Sequence[str]]) -> list[str]:
    return sorted({name for one in lists for name in one}, key=rank)


def recoded(log: Log, schema: Schema) -> Log:
    """Return a log whose indices of choices and categories are those of another schema."""
    if log.schema == schema:
        return log
    action, context = log.action.copy(), log.context.copy()
    slots = zip(log.schema.menu.slots, schema.menu.slots, strict=True)
    places = []
    for slot, (old, new) in enumerate(slots):
        index = {choice.name: place for place, choice in enumerate(new.choices)}
        places.append(np.array([index[choice.name] for choice in old.choices]))
        action[:, slot] = places[-1][action[:, slot].astype(np.int64)]
    fields = zip(log.schema.context.fields, schema.context.fields, strict=True)
    for place, (field, new_field) in enumerate(fields):
        if isinstance(field, Category) and isinstance(new_field, Category):
            code = np.array([new_field.values.index(value) for value in field.values])
            context[:, place] = code[context[:, place].astype(np.int64)]
    everything = log.schema.menu.active
    sets = [
        schema.menu.active if one == everything else _moved(one, places)
        for one in log.eligible_sets
    ]
    return replace(log, schema=schema, action=action, context=context, eligible_sets=tuple(sets))


def _moved(eligible: ChoiceIndices, places: Sequence[np.ndarray]) -> ChoiceIndices:
    pairs = zip(eligible, places, strict=True)
    return tuple(tuple(sorted(place[list(one)].tolist())) for one, place in pairs)


def joined(logs: Sequence[Log]) -> Log:
    """Return the rows of several logs with the same schema as one log."""
    first = logs[0]
    sets: dict[ChoiceIndices, int] = {}
    eligible = []
    for log in logs:
        number = np.array([sets.setdefault(one, len(sets)) for one in log.eligible_sets])
        eligible.append(number[log.eligible_set].astype(np.int32))
    slots = [one.slot_propensity for one in logs if one.slot_propensity is not None]
    columns = [one.probability for one in logs if one.probability is not None]
    return replace(
        first,
        context=np.concatenate([one.context for one in logs]),
        action=np.concatenate([one.action for one in logs]),
        reward=np.concatenate([one.reward for one in logs]),
        propensity=np.concatenate([one.propensity for one in logs]),
        estimated=np.concatenate([one.estimated for one in logs]),
        eligible_set=np.concatenate(eligible),
        eligible_sets=tuple(sets),
        slot_propensity=np.concatenate(slots) if slots else None,
        probability=np.concatenate(columns) if columns else None,
        notes=(),
    )
