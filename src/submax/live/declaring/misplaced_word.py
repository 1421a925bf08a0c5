"""Where a word belongs that somebody gave to a bandit and that is no setting of a bandit."""

import dataclasses
from typing import Any

from submax.core.errors import InputError
from submax.core.registry import Registry
from submax.estimators import ESTIMATORS
from submax.live.declaring.guard_rails import GuardRails
from submax.policies import POLICIES
from submax.strategies import STRATEGIES

MAX_KINDS_NAMED = 3
"""How many kinds of policies a message names: more would hide the example."""


def refuse_misplaced(word: str, value: object) -> None:
    """Raise an ``InputError`` if the word is a guard rail or a parameter of a policy.

    The error says how to give the word. Any other word is left to the caller.
    """
    if word in GuardRails.__struct_fields__:
        raise InputError(
            f"{word} was given to the bandit, and it is one of the guard rails: give "
            f"guard_rails={{{word!r}: {value!r:.40}}}",
            parameter=word,
        )
    kinds = _kinds_with(POLICIES, word)
    if kinds:
        example = f"policy={{'kind': {kinds[0]!r}, {word!r}: {value!r:.40}}}"
        raise InputError(
            f"{word} was given to the bandit, and it is a parameter of a policy "
            f"({_few(kinds)}): give it with the policy, {example}",
            parameter=word,
        )
    for folder in (STRATEGIES, ESTIMATORS):
        kinds = _kinds_with(folder, word)
        if kinds:
            part = f"{folder.word!r}: {{'kind': {kinds[0]!r}, {word!r}: {value!r:.40}}}"
            raise InputError(
                f"{word} was given to the bandit, and it is a parameter of the {folder.word} of a "
                f"policy ({_few(kinds)}): give it with the policy, "
                f"policy={{'kind': 'reward-conditioned', {part}}}",
                parameter=word,
            )


def _kinds_with(folder: Registry[Any], word: str) -> list[str]:
    """The kinds of a folder that have a parameter of this name; those with few parameters first."""
    found = []
    for kind in folder.classes():
        names = [field.name for field in dataclasses.fields(kind)]
        name = folder.kind_of(kind)
        if word in names and name is not None:
            found.append((len(names), name))
    return [name for _, name in sorted(found)]


def _few(kinds: list[str]) -> str:
    more = ", …" if len(kinds) > MAX_KINDS_NAMED else ""
    return ", ".join(kinds[:MAX_KINDS_NAMED]) + more
