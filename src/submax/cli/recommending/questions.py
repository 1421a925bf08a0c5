"""Asks the five questions in a terminal."""

import sys
from collections.abc import Mapping
from typing import Any

import click

from submax.core.errors import InputError
from submax.recommendation.answers import GOALS, REWARDS, sizes_of

ACTIONS = (
    "1 of 5. What is chosen? The number of actions such as 20; the sizes of slots that are chosen "
    "together, such as 2x4x8; or number, for a price"
)
CONTEXT = "2 of 5. Is something known before a decision, such as the country of the visitor?"
REWARD = (
    "3 of 5. What are the rewards? 0 and 1: often (1 in 5 decisions or more), seldom (1 in 33 or "
    "more), rare; other: ratings, numbers, counts, sparse-counts (mostly 0)"
)
BATCH = "4 of 5. How many decisions are made before their rewards are known and learned from?"
GOAL = (
    "5 of 5. What matters? earn: as much as possible; adapt: the world changes; explain: every "
    "decision must be explained; identify: only find the best action"
)


def can_ask() -> bool:
    """Whether a person can be asked: the input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def ask(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all answers; those that were not given are asked for."""
    return {**given, **{key: _ask(key) for key, answer in given.items() if answer is None}}


def _ask(question: str) -> Any:
    if question == "actions":
        return click.prompt(ACTIONS, value_proc=_checked_actions, err=True)
    if question == "context":
        return click.confirm(CONTEXT, default=False, err=True)
    if question == "rewards":
        return click.prompt(REWARD, type=click.Choice(REWARDS), show_choices=False, err=True)
    if question == "batch":
        return click.prompt(BATCH, type=click.IntRange(min=1), default=100, err=True)
    return click.prompt(
        GOAL, type=click.Choice(GOALS), default="earn", show_choices=False, err=True
    )


def _checked_actions(text: str) -> str:
    """The answer, if it is one; otherwise the question is asked again."""
    try:
        sizes_of(text)
    except InputError as error:
        raise click.BadParameter(str(error)) from error
    return text
