"""The page of arms and segments: what each choice earns, and what is shown to whom."""

import math

from submax.bandit.durable import DurableBandit
from submax.server.pages.formats import Shown, sentence
from submax.server.pages.overview import is_personalised, leader, page_number, slot_of, unit_of
from submax.server.pages.segments import (
    LOOKED_AT,
    colours_of,
    crossed,
    most_different,
)

MOST_ARMS = 100
"""Choices on one page, so a browser shows it quickly."""
NOTES = {"silent-arm": "no rewards", "late-arm": "late rewards"}
"""What a condition says about an arm, in two words."""


def arms_page(
    bandit: DurableBandit,
    slot: str | None = None,
    page: str | None = None,
    first: str | None = None,
    second: str | None = None,
) -> Shown:
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
    return Shown(
        name=bandit.name,
        unit=unit_of(bandit),
        personalised=is_personalised(bandit),
        slots=slots,
        slot=slot,
        leader=ahead,
        arms=found[(number - 1) * MOST_ARMS : number * MOST_ARMS],
        colours=colours_of(bandit, slot),
        notes=[
            Shown(choice=one.subject, words=NOTES[one.kind], sentence=sentence(one.sentence))
            for one in bandit.conditions()
            if one.kind in NOTES
        ],
        page=number,
        pages=pages,
        total=len(found),
        fields=fields,
        first=first or "",
        second=second or "",
        segments=table,
    )
