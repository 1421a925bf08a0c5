"""Actions, choices and contexts as the texts that the store has, which an analyst can read."""

from collections.abc import Sequence
from typing import Any

import msgspec

from submax.bandit.rewards import DEFAULT_REWARD_KEY
from submax.bandit.tables import DAMAGED
from submax.core.errors import InputError
from submax.schema.actions import ActionSpec, ChoiceIndices
from submax.schema.context import Value
from submax.schema.names import Action

CONTEXTS = msgspec.json.Decoder(list[list[float | str]])


def context_text(values: Sequence[Value]) -> str | None:
    """The values of a context as the store has them: a list in the order of the fields."""
    return msgspec.json.encode(values).decode() if values else None


def read_contexts(texts: Sequence[str | None]) -> list[list[Any]]:
    """The values of contexts; of a decision before fields were added they are fewer."""
    try:
        return CONTEXTS.decode(f"[{','.join([text or '[]' for text in texts])}]")
    except msgspec.MsgspecError as error:
        raise InputError(
            f"a context in the store cannot be read ({error}): restore a backup of the store",
            code=DAMAGED,
        ) from error


def key_text(key: str) -> str:
    """The key of a reward as the store has it: empty for the default, which most rewards have."""
    return "" if key == DEFAULT_REWARD_KEY else key


def read_key(text: str) -> str:
    """The key that the store has as this text."""
    return text or DEFAULT_REWARD_KEY


def action_text(menu: ActionSpec, row: Sequence[int | float]) -> str:
    """An encoded action as the store has it: the name, or a JSON object of slots."""
    action = menu.action(row)
    return action if isinstance(action, str) else msgspec.json.encode(action).decode()


def read_action(menu: ActionSpec, text: str) -> Action:
    """The action that the store has as this text."""
    return text if menu.plain else msgspec.json.decode(text, type=dict[str, str | float])


def choices_text(
    menu: ActionSpec,
    eligible: ChoiceIndices,
    probabilities: list[float] | None,
    *,
    exact: bool = False,
) -> tuple[str | None, str | None]:
    """The eligible choices and the probabilities of their joint actions, as the store has them.

    Probabilities of plain arms are a JSON object by name, so it says which arms were eligible.
    Those of joint actions are a list, in which the choice of the last slot changes first. What is
    not ``exact`` has six digits, and eligible choices are left out if they are all active ones.
    """
    if probabilities is not None and not exact:
        probabilities = [float(f"{one:.6g}") for one in probabilities]
    if menu.plain and probabilities is not None:
        choices = menu.slots[0].choices
        named = {
            choices[index].name: p for index, p in zip(eligible[0], probabilities, strict=True)
        }
        return None, msgspec.json.encode(named).decode()
    text = None
    if exact or eligible != menu.active or probabilities is not None:
        text = msgspec.json.encode(choice_names(menu, eligible)).decode()
    return text, None if probabilities is None else msgspec.json.encode(probabilities).decode()


def choice_names(menu: ActionSpec, choices: ChoiceIndices) -> list[list[str]]:
    """The names of some choices of each slot."""
    return [
        [slot.choices[index].name for index in indices]
        for slot, indices in zip(menu.slots, choices, strict=True)
    ]


def read_choices(
    menu: ActionSpec, eligible: str | None, probabilities: str | None
) -> tuple[ChoiceIndices, list[float] | None]:
    """What ``choices_text`` wrote; choices that are left out are all active ones."""
    listed: Any = None if probabilities is None else msgspec.json.decode(probabilities)
    if isinstance(listed, dict):
        names: list[list[str]] = [list(listed)]
        listed = list(listed.values())
    elif eligible is not None:
        names = msgspec.json.decode(eligible)
    else:
        return menu.active, listed
    indices = []
    for slot, wanted in zip(menu.slots, names, strict=True):
        places = {choice.name: place for place, choice in enumerate(slot.choices)}
        indices.append(tuple(places[name] for name in wanted))
    return tuple(indices), listed
