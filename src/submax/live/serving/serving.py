"""Draws decisions by one version, within the guard rails."""

import math
from collections import Counter
from collections.abc import Sequence
from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np

from submax.core.arrays import Floats
from submax.core.errors import InputError
from submax.core.policy import Policy
from submax.live.declaring.ramps import Limit, Ramp
from submax.live.declaring.settings import Settings
from submax.live.serving.action_sampler import ActionSampler, DrawnAction, draw_rows
from submax.live.serving.checked_policy import CheckedPolicy
from submax.live.serving.guarded import (
    Places,
    find_places,
    with_new_choices,
    within_limits,
    within_rails,
)
from submax.live.serving.unlisted_actions import uniform_action
from submax.schema.menu import LISTED, ChoiceIndices, EncodedAction, Menu
from submax.schema.model import Model

LATE = "decisions after the deadline"
"""The name under which decisions are counted that were uniform because the policy took too long."""
MAX_PROBABILITIES = 2**18
"""Probabilities that are computed at once for several decisions: 2 MB for each array of them."""
MAX_CACHED_SETS = 256
"""The number of different sets of eligible choices whose ``Places`` are cached."""


class Serving:
    """One version and one menu, ready to decide; it is replaced, and never changed.

    Choices that were added after the version was fitted have the probability that a uniform policy
    would give them. Choices that are no longer active have the probability 0. ``groups_since`` is
    the position of the settings by which holdout and control are drawn, and ``ramps`` are those of
    new choices; ``limited`` applies them.
    """

    def __init__(
        self,
        settings: Settings,
        menu: Menu,
        policy: Policy[Any],
        model: Model,
        version: int,
        failures: Counter[str],
        groups_since: int = 0,
        ramps: tuple[Ramp, ...] = (),
    ) -> None:
        self.settings, self.menu, self.version = settings, menu, version
        self.groups_since, self.ramps = groups_since, ramps
        self.limits: Sequence[Limit] = ()
        self._is_ramped = False
        self.active = menu.active
        self._failures = failures
        self._checked = CheckedPolicy(policy, model, version, failures)
        self._lists = menu.can_list
        self._same = not policy.traits.uses_context or settings.context.width == 0
        self._places = lru_cache(MAX_CACHED_SETS)(self._find_places)
        # Not cached properties: up to Python 3.11 these hold one lock for all objects of a class,
        # so that one policy that takes for ever would stop all bandits.
        self._shared_sampler: ActionSampler | None = None
        self._context_free = lru_cache(MAX_CACHED_SETS)(self._without_context)
        self._shared_probabilities: Floats | None = None
        rails = settings.guard_rails
        self._baseline: EncodedAction = (
            [] if rails.baseline is None else menu.encoded(rails.baseline)
        )
        self._control = None if rails.control is None else tuple(menu.encoded(rails.control))

    @property
    def shares(self) -> list[float] | None:
        """The probabilities of all active actions; None if they depend on the context."""
        if not self._lists or not self._same:
            return None
        found: list[float] = self._guarded([[]], self.active, uniform=False)[0].tolist()
        return found

    def average_probabilities(self, encoded: Floats) -> Floats | None:
        """The mean probabilities ``[M]`` of all active joint actions over contexts ``[n, D]``.

        None if the actions cannot be listed, or if there are no contexts to average over.
        """
        if not self._lists or (not self._same and not len(encoded)):
            return None
        if self._same:
            return self.probabilities([], self.active, uniform=False)
        context = self.model.standardization.apply(encoded)[None]
        found = self._within_rails(self._among(context, self.active), self.active)
        average: Floats = found.mean(axis=0)
        return average

    @property
    def model(self) -> Model:
        """The model that decides."""
        return self._checked.model

    def with_model(self, policy: Policy[Any], model: Model, version: int) -> "Serving":
        """A copy with another model, of this policy."""
        new = copy(self)
        if policy is not self._checked.policy:
            new._same = not policy.traits.uses_context or self.settings.context.width == 0
        new._checked = CheckedPolicy(policy, model, version, self._failures)
        new.version = version
        new._shared_sampler = new._shared_probabilities = None
        new._context_free = lru_cache(MAX_CACHED_SETS)(new._without_context)
        if model.active != self.model.active:
            new._places = lru_cache(MAX_CACHED_SETS)(new._find_places)
        return new

    def limited(self, limits: Sequence[Limit]) -> "Serving":
        """A copy that decides within these limits of new choices, which may soon be others."""
        new = copy(self)
        new.limits, new._is_ramped = limits, True
        new._shared_sampler = new._shared_probabilities = None
        return new

    def draw(
        self, values: list[Any], eligible: ChoiceIndices, uniform: bool, rng: np.random.Generator
    ) -> DrawnAction:
        """Draw among the ``eligible`` choices; ``values`` are the checked values of the context."""
        if not self._lists:
            return self._draw_unlisted(values, eligible, uniform, rng)
        if self._same and not uniform and eligible == self.active:
            return self._shared().draw(rng)
        return ActionSampler(self._guarded([values], eligible, uniform)[0], eligible).draw(rng)

    def draw_many(
        self,
        rows: Sequence[list[Any]],
        eligible: ChoiceIndices,
        uniform: bool,
        rng: np.random.Generator,
    ) -> list[DrawnAction]:
        """Draw one decision for each row of context values, independently of each other."""
        if not self._lists:
            return [self._draw_unlisted(values, eligible, uniform, rng) for values in rows]
        if self._same and not uniform and eligible == self.active:
            return self._shared().draw_many(len(rows), rng)
        if self._same or uniform:
            sampler = ActionSampler(self._guarded(rows[:1], eligible, uniform)[0], eligible)
            return sampler.draw_many(len(rows), rng)
        # Listed probabilities of all rows at once could fill the memory.
        size = max(math.prod(map(len, eligible)), math.prod(map(len, self.model.active)))
        step = max(1, MAX_PROBABILITIES // size)
        drawn = []
        for first in range(0, len(rows), step):
            part = self._guarded(rows[first : first + step], eligible, uniform=False)
            drawn += draw_rows(part, eligible, rng)
        return drawn

    @property
    def can_list(self) -> bool:
        """Whether the joint actions can be listed with their probabilities."""
        return self._lists

    @property
    def may_vary(self) -> bool:
        """Whether decisions of the version may have different probabilities.

        They depend on the context, or on how far a ramp is.
        """
        return not self._same or self._is_ramped

    def probabilities(self, values: list[Any], eligible: ChoiceIndices, uniform: bool) -> Floats:
        """The probabilities ``[M]`` of the eligible joint actions, if these can be listed."""
        if not self._same or uniform or eligible != self.active:
            found: Floats = self._guarded([values], eligible, uniform)[0]
            return found
        if self._shared_probabilities is None:
            self._shared_probabilities = self._guarded([[]], eligible, uniform)[0]
        return self._shared_probabilities

    def probabilities_of_many(self, rows: Sequence[list[Any]], eligible: ChoiceIndices) -> Floats:
        """The probabilities ``[n, M]`` of the eligible joint actions in several contexts."""
        found = self._guarded(rows, eligible, uniform=False)
        return np.broadcast_to(found, (len(rows), found.shape[1]))

    def may_hold_out(self, eligible: ChoiceIndices) -> bool:
        """Whether the baseline is eligible, so that the decision may belong to the holdout."""
        pairs = zip(eligible, self._baseline, strict=False)
        return all(wanted in indices for indices, wanted in pairs)

    def fixed_action(self, eligible: ChoiceIndices) -> DrawnAction | None:
        """The control, or else the baseline, for decisions of a paused bandit; None if neither is
        declared and eligible.
        """
        if self._control is not None and self.control_place(eligible) is not None:
            return DrawnAction(list(self._control), 1.0, None)
        return self.baseline() if self._baseline and self.may_hold_out(eligible) else None

    def baseline(self) -> DrawnAction:
        """The baseline action, which a decision of the holdout has for certain."""
        return DrawnAction(self._baseline, 1.0, None)

    def is_control(self, row: EncodedAction) -> bool:
        """Whether an action is the control."""
        return tuple(row) == self._control

    def _shared(self) -> ActionSampler:
        """The sampler for all decisions, if the probabilities do not depend on the context."""
        if self._shared_sampler is None:
            (probabilities,) = self._guarded([[]], self.active, uniform=False)
            self._shared_sampler = ActionSampler(probabilities, self.active)
        return self._shared_sampler

    def _without_context(self, eligible: ChoiceIndices) -> Floats:
        """The policy's probabilities ``[1, M]``, if they do not depend on the context."""
        return self._among(np.zeros((1, 1, self.settings.context.width)), eligible)

    def _among(self, context: Floats, eligible: ChoiceIndices) -> Floats:
        """The policy's probabilities of the eligible joint actions: ``[1, n, D] -> [n, M]``."""
        places = self._places(eligible)
        if places is None:
            return self._checked.probabilities(context)
        if places.known is None:
            return np.full((context.shape[1], len(places.fresh)), 1 / len(places.fresh))
        found = self._checked.probabilities(context, places.known)
        return with_new_choices(found, places) if places.share else found

    def encoded_contexts(self, rows: Sequence[list[Any]]) -> Floats:
        """The encoded and standardized contexts, ``[1, n, D]``."""
        schema = self.settings.context
        encoded = schema.encode(rows[0])[None] if len(rows) == 1 else schema.encode_exactly(rows)
        return self.model.standardization.apply(encoded)[None]

    def _guarded(self, rows: Sequence[list[Any]], eligible: ChoiceIndices, uniform: bool) -> Floats:
        """The probabilities ``[n, M]`` of the eligible joint actions, within the guard rails.

        There is one row if the probabilities do not depend on the context.
        """
        if uniform:
            size = math.prod(map(len, eligible))
            probabilities = np.full((1, size), 1 / size)
        elif self._same:
            probabilities = self._context_free(eligible)
        else:
            probabilities = self._among(self.encoded_contexts(rows), eligible)
        return self._within_rails(probabilities, eligible)

    def _within_rails(self, probabilities: Floats, eligible: ChoiceIndices) -> Floats:
        """Probabilities ``[n, M]`` within the guard rails and the limits of new choices."""
        rails, control = self.settings.guard_rails, self.control_place(eligible)
        found = within_rails(probabilities, rails, control)
        if not self.limits:
            return found
        return within_limits(found, eligible, self.limits, rails.minimum, control)

    def _find_places(self, eligible: ChoiceIndices) -> Places | None:
        """The places of the eligible actions; None if the version lists the same actions."""
        known = self.model.active
        return None if eligible == known else find_places(eligible, known)

    def control_place(self, eligible: ChoiceIndices) -> int | None:
        """The index of the control among the eligible joint actions.

        None if there is no control, or if it is not eligible.
        """
        if self._control is None:
            return None
        place = 0
        for indices, wanted in zip(eligible, self._control, strict=True):
            if wanted not in indices:
                return None
            place = place * len(indices) + indices.index(int(wanted))
        return place

    def _draw_unlisted(
        self, values: list[Any], eligible: ChoiceIndices, uniform: bool, rng: np.random.Generator
    ) -> DrawnAction:
        """Let the policy draw, if joint actions are too many to list or have real-valued parts.

        Uniform if the version was fitted for other choices than those that are active now.
        """
        if eligible != self.active:
            raise InputError(
                f"eligible choices can be named among up to {LISTED} joint actions without "
                "real-valued parts, and this bandit has others: pause choices instead"
            )
        space = self.menu.space(eligible)
        if uniform or eligible != self.model.active:
            return uniform_action(space, eligible, rng)
        context = self.encoded_contexts([values])
        return self._checked.draw(context, space, eligible, rng)
