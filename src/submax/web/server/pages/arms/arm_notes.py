"""What is unusual about single arms: that they seem broken, or that their rewards come late."""

from collections.abc import Sequence
from operator import is_not
from weakref import WeakKeyDictionary

import msgspec

from submax.live.bandits.bandit import LiveBandit
from submax.live.monitoring.rollups.rollups import Rollups
from submax.web.server.pages.arms.late_arms import arm_delays, late_sentence
from submax.web.server.pages.arms.silent_arms import silent_arms

LATE, SILENT = "rewards late", "no rewards"


class ArmNote(msgspec.Struct, frozen=True):
    """A sentence about an arm, and what it says in two words."""

    choice: str
    words: str
    sentence: str


KNOWN: "WeakKeyDictionary[LiveBandit, tuple[Sequence[object], list[ArmNote]]]" = WeakKeyDictionary()
"""What was found last for each bandit, and from what."""


def arm_notes(bandit: LiveBandit, rollups: Rollups | None) -> list[ArmNote]:
    """The notes on the arms of a bandit, those on broken arms first."""
    if rollups is None:
        return []
    # Sums that did not change are the same arrays: most bandits of a server are idle.
    sums = [rollups.delays.table, *(tier.choices.rows for tier in rollups.tiers)]
    seen = [bandit.menu, bandit.settings, *sums]
    before, found = KNOWN.get(bandit, ((), []))
    if len(before) != len(seen) or any(map(is_not, before, seen)):
        found = _found(bandit, rollups)
        KNOWN[bandit] = seen, found
    return found


def _found(bandit: LiveBandit, rollups: Rollups) -> list[ArmNote]:
    late = [
        ArmNote(one.choice, LATE, late_sentence(one, bandit.settings))
        for one in arm_delays(bandit, rollups, notable=True)
    ]
    names = {one.choice for one in late}
    # All rewards of an arm may be late: then the arm is late, and not broken.
    silent = [
        ArmNote(one.choice, SILENT, one.sentence)
        for one in silent_arms(bandit, rollups)
        if one.choice not in names
    ]
    return silent + late
