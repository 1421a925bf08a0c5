"""Probabilities of the actions that are eligible, within the guard rails."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.numerics.categorical import TOLERANCE
from submax.live.declaring.guard_rails import GuardRails
from submax.schema.menu import ChoiceIndices

FEW_ACTIONS = 50
"""Up to this number of probabilities, a list of Python is summed faster than an array of numpy."""


class Places(NamedTuple):
    """Where the M eligible joint actions are in a version's list of joint actions.

    ``place [M]`` is the index of each action in that list, ``fresh [M]`` marks the actions that the
    version does not know, and ``share`` is the share of these among the M. ``known`` has, for each
    slot, the indices of the eligible choices that the version knows; None if a slot has none.
    """

    place: Integers
    fresh: Booleans
    share: float
    known: ChoiceIndices | None


def find_places(eligible: ChoiceIndices, known: ChoiceIndices) -> Places:
    """The places of the eligible joint actions in the list of the joint actions of ``known``.

    Joint actions are listed so that the choice of the last slot changes first, in both lists.
    """
    place, fresh = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=bool)
    kept = []
    for indices, before in zip(eligible, known, strict=True):
        known_place = {index: place for place, index in enumerate(before)}
        where = np.array([known_place.get(index, -1) for index in indices])
        place = (place[:, None] * len(before) + np.maximum(where, 0)).ravel()
        fresh = (fresh[:, None] | (where < 0)).ravel()
        kept.append(tuple(where[where >= 0].tolist()))
    return Places(place, fresh, float(fresh.mean()), tuple(kept) if all(kept) else None)


def adds_up(probabilities: Floats) -> bool:
    """Whether ``probabilities [M]`` are 0 or more and sum to 1.

    If they are few, they are compared as numbers of Python and not as an array, because a caller
    waits for each decision.
    """
    if len(probabilities) <= FEW_ACTIONS:
        listed = probabilities.tolist()
        total, least = sum(listed), min(listed)
    else:
        total, least = np.add.reduce(probabilities), np.minimum.reduce(probabilities)
    # If a number is NaN, so is the sum, and the second comparison is false.
    return bool(least >= 0 and abs(total - 1) <= TOLERANCE)


def with_new_choices(probabilities: Floats, places: Places) -> Floats:
    """The probabilities ``[n, M]`` of all eligible actions, from those of the known ones.

    An action that the version does not know has the probability of a uniform draw.
    """
    size = len(places.fresh)
    found = np.full((len(probabilities), size), 1 / size)
    found[:, ~places.fresh] = (1 - places.share) * probabilities
    return found


def within_rails(probabilities: Floats, rails: GuardRails, control: int | None) -> Floats:
    """Probabilities ``[n, M]`` raised to the minimum, with the share of the control at its place.

    ``control`` is the place of the control among the M actions; None if it is not eligible, or if
    there is none.
    """
    if not rails.minimum and control is None:
        return probabilities
    size = probabilities.shape[1]
    if size == 1:
        return np.ones_like(probabilities)
    others = np.ones(size, dtype=bool)
    if control is not None:
        others[control] = False
    mass = 1.0 if control is None else 1.0 - rails.control_share
    count = int(others.sum())
    probabilities = np.where(others, probabilities, 0.0)
    total = probabilities.sum(axis=1, keepdims=True)
    has_any = total > 0
    shares = np.where(has_any, probabilities / np.where(has_any, total, 1.0), others / count)
    least = min(rails.minimum, mass / count)
    guarded: Floats = np.where(others, least + (mass - least * count) * shares, 1.0 - mass)
    return guarded
