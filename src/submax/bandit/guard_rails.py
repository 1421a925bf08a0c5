"""Guard rails and ramps: what is declared, and what they do to probabilities."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import below_one, whole_number
from submax.core.errors import InputError
from submax.schema.actions import LISTED, ActionSpec, ChoiceIndices, EncodedAction
from submax.schema.names import Action


class GuardRails(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits that hold whatever the policy decides.

    Every eligible action has at least the probability ``minimum``. The action ``control`` has
    exactly the probability ``control_share`` if it is eligible. The first ``burn_in`` decisions are
    drawn uniformly within these two limits; between versions, each process on a shared store counts
    its own decisions. A share ``holdout`` of the decisions gets the action ``baseline`` and is not
    learned from, so the policy can be compared with the baseline. With ``aa_test`` the holdout is
    decided by the policy as well, so both groups are alike and every difference is an error.
    """

    minimum: float = 0.0
    control: Action | None = None
    control_share: float = 0.0
    burn_in: int = 0
    holdout: float = 0.0
    baseline: Action | None = None
    aa_test: bool = False

    def check(self, menu: ActionSpec) -> None:
        """Refuse contradictory limits, with the code `guard-rail`."""
        try:
            self._check(menu)
        except InputError as error:
            raise InputError(str(error), code="guard-rail", parameter=error.parameter) from error

    def _check(self, menu: ActionSpec) -> None:
        for name in ("minimum", "control_share", "holdout"):
            below_one(name, getattr(self, name))
        whole_number("burn_in", self.burn_in, at_least=0)
        for share, action in (("control_share", "control"), ("holdout", "baseline")):
            has_action = getattr(self, action) is not None
            if has_action != (getattr(self, share) != 0):
                missing = f"{share} is 0" if has_action else f"{action} is missing"
                raise InputError(
                    f"{action} and {share} belong together, and {missing}: give both, or neither",
                    parameter=share,
                )
        if self.aa_test and not self.holdout:
            raise InputError(
                "aa_test compares the holdout with the other decisions: give holdout and "
                "baseline too",
                parameter="aa_test",
            )
        for chosen in (self.control, self.baseline):
            if chosen is not None:
                menu.encoded(chosen)
        if self.control is not None and self.control_share < self.minimum:
            raise InputError(
                f"control_share {self.control_share} is below minimum {self.minimum}, which also "
                "applies to the control: raise control_share or lower minimum",
                parameter="control_share",
            )
        if menu.can_list and self.minimum * (size := menu.space(menu.active).size) > 1:
            raise InputError(
                f"minimum {self.minimum} is more than each of {size} joint actions can "
                f"have: give at most {1 / size:.4g}, one over their number",
                parameter="minimum",
            )
        if not menu.can_list and (self.minimum or self.control_share):
            raise InputError(
                f"minimum and control work for up to {LISTED} joint actions without real-valued "
                "parts; burn_in and holdout work for all",
                parameter="minimum" if self.minimum else "control_share",
            )


DEFAULT_RAMP = 1_000
"""Decisions over which a new choice is ramped up unless its caller says otherwise; fewer if the
bandit is younger, because then its other choices are hardly known either."""
LONGEST_RAMP = 1_000_000_000
"""The longest ramp that can be asked for, in decisions."""

Place = tuple[int, int]
"""The slot of a choice, and its index there."""


class Limit(NamedTuple):
    """The largest ``share`` of decisions that a choice may have, for the ``left`` next ones."""

    place: Place
    share: float
    left: int


class Ramp(NamedTuple):
    """A ramp over the first ``decisions`` after a choice was added, after ``since`` decisions."""

    place: Place
    decisions: int
    since: int


def limits_at(ramps: Iterable[Ramp], decided: int) -> tuple[Limit, ...]:
    """Return the limits of the choices that are still ramped up after ``decided`` decisions.

    After n of the N decisions of its ramp, a choice has at most the probability (n + 1) / N.

    >>> limits_at([Ramp((0, 3), decisions=1000, since=500)], decided=599)
    (Limit(place=(0, 3), share=0.1, left=901),)
    """
    found = []
    for ramp in ramps:
        done = max(0, decided - ramp.since)
        if done < ramp.decisions:
            share = (done + 1) / ramp.decisions
            found.append(Limit(ramp.place, share, ramp.decisions - done))
    return tuple(found)


def is_eligible(action: EncodedAction | None, eligible: ChoiceIndices) -> bool:
    """Whether there is this action, and all its choices are eligible."""
    if action is None:
        return False
    return all(choice in indices for indices, choice in zip(eligible, action, strict=False))


def find_places(eligible: ChoiceIndices, known: ChoiceIndices) -> Integers:
    """The places ``[M]`` of the eligible joint actions in the list of those of ``known``.

    The place of an action that is not in this list is below 0. Joint actions are listed so that the
    choice of the last slot changes first, in both lists.
    """
    places = np.zeros(1, dtype=np.int64)
    for indices, before in zip(eligible, known, strict=True):
        known_place = {index: place for place, index in enumerate(before)}
        place = np.array([known_place.get(index, -1) for index in indices])
        places = np.where(place < 0, -1, places[:, None] * len(before) + place).ravel()
    return places


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
    least = min(rails.minimum, mass / count)
    shares = _shares(probabilities, others)
    guarded: Floats = np.where(others, least + (mass - least * count) * shares, 1.0 - mass)
    return guarded


def _shares(probabilities: Floats, among: Booleans) -> Floats:
    """The shares ``[n, M]`` of some actions in their sum; equal ones if that is 0."""
    kept = np.where(among, probabilities, 0.0)
    total = kept.sum(axis=1, keepdims=True)
    has_any = total > 0
    shares: Floats = np.where(has_any, kept / np.where(has_any, total, 1.0), among / among.sum())
    return shares


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
    moved: Floats = limited + lost * _shares(probabilities, takers)
    return moved
