"""Probabilities of the actions that are eligible, within the guard rails."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.numerics import TOLERANCE
from submax.live.declaring.guard_rails import GuardRails
from submax.live.declaring.ramps import Limit
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


def within_limits(
    probabilities: Floats,
    eligible: ChoiceIndices,
    limits: Sequence[Limit],
    minimum: float,
    control: int | None,
) -> Floats:
    """Probabilities ``[n, M]`` in which new choices have no more than their limits.

    If a choice has the probability p and the limit c, the joint actions with it are multiplied by
    min(1, c / p), but none falls below the ``minimum`` of the guard rails. What they lose goes to
    the joint actions without new choices, in proportion, or evenly if these have nothing. The
    control, at the place ``control``, keeps its share. Limits have no effect in a slot in which
    only new choices are eligible, or if nothing but the control is left.
    """
    shape = [len(indices) for indices in eligible]
    joint = probabilities.reshape(-1, *shape)
    factor, receives = np.ones(joint.shape), np.ones(shape, dtype=bool)
    for slot, indices in enumerate(eligible):
        share = {limit.place[1]: limit.share for limit in limits if limit.place[0] == slot}
        is_new = np.array([index in share for index in indices])
        if not is_new.any() or is_new.all():
            continue
        others = tuple(axis for axis in range(1, joint.ndim) if axis != slot + 1)
        chance = joint.sum(axis=others, keepdims=True)
        along = [len(indices) if axis == slot else 1 for axis in range(len(shape))]
        limit = np.array([share.get(index, np.inf) for index in indices]).reshape(along)
        over = chance > limit
        factor *= np.where(over, limit, 1.0) / np.where(over, chance, 1.0)
        receives &= ~is_new.reshape(along)
    scaled = (joint * factor).reshape(probabilities.shape)
    limited: Floats = np.maximum(scaled, np.minimum(probabilities, minimum))
    takers = receives.ravel()
    if control is not None:
        limited[:, control] = probabilities[:, control]
        takers[control] = False
    if not takers.any():
        return probabilities
    lost = (probabilities - limited).sum(axis=1, keepdims=True)
    weights = np.where(takers, probabilities, 0.0)
    total = weights.sum(axis=1, keepdims=True)
    has_any = total > 0
    shares = np.where(has_any, weights / np.where(has_any, total, 1.0), takers / takers.sum())
    moved: Floats = limited + lost * shares
    return moved
