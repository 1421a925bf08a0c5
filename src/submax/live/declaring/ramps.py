"""Ramps: how a choice that was added to a live bandit gets its share little by little."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

DEFAULT_RAMP = 1_000
"""Decisions over which a new choice is ramped up unless its caller says otherwise; fewer if the
bandit is younger, because then its other choices are hardly known either."""
LONGEST_RAMP = 1_000_000_000
"""The longest ramp that can be asked for, in decisions."""

Place = tuple[int, int]
"""The slot of a choice, and its index there."""


class Limit(NamedTuple):
    """The largest ``share`` of the next decisions that a choice may have, and what is left.

    ``left`` is the number of decisions until there is no limit.
    """

    place: Place
    share: float
    left: int


class Ramp(NamedTuple):
    """A ramp over the first ``decisions`` after a choice was added.

    ``since`` is the number of decisions that the log had when the choice was added.
    """

    place: Place
    decisions: int
    since: int


def limits_at(
    ramps: Iterable[Ramp], decided: int, starts: Mapping[Place, int] | None = None
) -> tuple[Limit, ...]:
    """Return the limits of the choices that are still ramped up after ``decided`` decisions.

    After n of the N decisions of its ramp, a choice has at most the probability (n + 1) / N. The
    ramp of a choice begins at ``since``, or where ``starts`` says.

    >>> limits_at([Ramp((0, 3), decisions=1000, since=500)], decided=599)
    (Limit(place=(0, 3), share=0.1, left=901),)
    """
    found = []
    for ramp in ramps:
        done = max(0, decided - (starts or {}).get(ramp.place, ramp.since))
        if done < ramp.decisions:
            share = (done + 1) / ramp.decisions
            found.append(Limit(ramp.place, share, ramp.decisions - done))
    return tuple(found)
