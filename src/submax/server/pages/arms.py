"""The page of arms and segments: what each choice earns, and what is shown to whom."""

import math

import msgspec

from submax.bandit.arms import ArmStatus
from submax.bandit.durable import DurableBandit
from submax.server.pages.formats import sentence
from submax.server.pages.overview import is_personalised, leader, page_number, slot_of, unit_of
from submax.server.pages.segments import (
    LOOKED_AT,
    Crossed,
    colours_of,
    crossed,
    most_different,
)

MOST_ARMS = 100
"""Choices on one page, so a browser shows it quickly."""
NOTES = {"silent-arm": "no rewards", "late-arm": "late rewards"}
"""What a condition says about an arm, in two words."""


class ArmNote(msgspec.Struct, frozen=True):
    """What is unusual about an arm, in two words and in a sentence."""

    choice: str
    words: str
    sentence: str


class ArmsPage(msgspec.Struct, frozen=True):
    """The choices of a slot, and segments of contexts if there are any.

    If there are many arms, ``arms`` are those of one ``page``, the most frequent first. ``leader``
    is the arm that is surely ahead, empty if none is. ``fields`` are those of the context.
    """

    name: str
    unit: str
    personalised: bool
    slots: list[str]
    slot: str
    leader: str
    arms: list[ArmStatus]
    colours: dict[str, int]
    notes: list[ArmNote]
    page: int
    pages: int
    total: int
    fields: list[str]
    first: str
    second: str
    segments: Crossed | None


def arms_page(
    bandit: DurableBandit,
    slot: str | None = None,
    page: str | None = None,
    first: str | None = None,
    second: str | None = None,
) -> ArmsPage:
    """What each choice earns, and segments by the fields ``first`` and ``second``.

    Without ``first``, by the field by which choices differ most, crossed with the next one.
    """
    slots = [one.name for one in bandit.menu.slots]
    slot = slot_of(slots, slot)
    found = [one for one in bandit.arms() if one.slot == slot] if slots else []
    ahead = leader(bandit, found)
    number, pages = page_number(page), math.ceil(len(found) / MOST_ARMS)
    if pages > 1:
        found.sort(key=lambda one: -one.decisions)
    fields, table = list(bandit.settings.context.names), None
    if fields and slots:
        if first is None:
            first, second = most_different(bandit, LOOKED_AT, slot) or (fields[0], None)
            second = second or next((one for one in fields if one != first), None)
        table = crossed(bandit, first, second or None, slot=slot)
    return ArmsPage(
        bandit.name,
        unit_of(bandit),
        is_personalised(bandit),
        slots,
        slot,
        ahead,
        found[(number - 1) * MOST_ARMS : number * MOST_ARMS],
        colours_of(bandit, slot),
        [
            ArmNote(one.subject, NOTES[one.kind], sentence(one.sentence))
            for one in bandit.conditions()
            if one.kind in NOTES
        ],
        number,
        pages,
        len(found),
        fields,
        first or "",
        second or "",
        table,
    )
