"""The version that decides: its policy with a fallback, within guard rails, and the draw."""

import logging
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from submax.bandit.guard_rails import (
    Limit,
    Ramp,
    find_places,
    is_eligible,
    within_limits,
    within_rails,
)
from submax.bandit.settings import Settings
from submax.core.arrays import Booleans, Floats
from submax.core.errors import InputError, counted_fallbacks, one_line
from submax.core.numerics import TOLERANCE
from submax.core.policy import Policy, probabilities_by
from submax.core.spaces import Space
from submax.schema.actions import LISTED, ActionSpec, ChoiceIndices, EncodedAction
from submax.schema.model import Model

MAX_LOGGED_PROBABILITIES = 256
"""With more joint actions, a decision is logged without the probabilities of all of them: they
would make up most of the log."""


class DrawnAction(NamedTuple):
    """An action that was drawn and its probability.

    ``probabilities`` are those of all eligible joint actions; None if there are too many to log.
    """

    row: EncodedAction
    propensity: float
    probabilities: list[float] | None


class ActionSampler:
    """Draws joint actions of the eligible choices with given ``probabilities [M]``.

    The joint actions are listed so that the choice of the last slot changes first.
    """

    def __init__(self, probabilities: Floats, eligible: ChoiceIndices) -> None:
        self.probabilities, self._eligible = probabilities, eligible
        # For few numbers Python lists are faster than numpy.
        few = len(probabilities) <= MAX_LOGGED_PROBABILITIES
        self._logged: list[float] | None = probabilities.tolist() if few else None
        self._cumulated: list[float] | Floats = (
            list(accumulate(self._logged)) if self._logged else np.cumsum(probabilities)
        )

    def draw(self, rng: np.random.Generator) -> DrawnAction:
        """Draw by inversion: the first action whose cumulative probability exceeds U(0, 1)."""
        index = bisect_right(self._cumulated, rng.random() * self._cumulated[-1])
        action = joint_action(index, self._eligible)
        return DrawnAction(action, self.probabilities.item(index), self._logged)


def joint_action(index: int, eligible: ChoiceIndices) -> EncodedAction:
    """Return the joint action at an index of the list."""
    action: EncodedAction = []
    for indices in reversed(eligible):
        index, place = divmod(index, len(indices))
        action.append(indices[place])
    return action[::-1]


def uniform_action(space: Space, eligible: ChoiceIndices, rng: np.random.Generator) -> DrawnAction:
    """Draw an action uniformly; the propensity is its density."""
    action = space.uniform((1, 1), rng)
    return DrawnAction(encoded_action(action[0, 0], eligible), math.exp(-space.log_measure), None)


def encoded_action(action: Any, eligible: ChoiceIndices) -> EncodedAction:
    """Return an action of a policy with the indices that its choices have in the menu."""
    parts = action.tolist()
    return [
        *(indices[int(part)] for indices, part in zip(eligible, parts, strict=False)),
        *parts[len(eligible) :],
    ]


SIMPLER = "fallback decisions"
"""The name under which fallbacks inside a policy are counted among the failures of a bandit."""
UNIFORM = "decisions by a policy that failed"
"""The name under which decisions are counted that were uniform because the policy failed."""
LOG = logging.getLogger("submax")
MAX_CACHED_STATES = 32
"""The number of different sets of eligible choices whose states are cached: with a context, each
may take half a megabyte."""


class PolicyWithFallback:
    """A policy with the model of a version; what the policy returns is checked.

    If the policy fails, decisions are uniform, because callers wait for an answer. This is counted
    in ``failures``, and its reason is logged once.
    """

    def __init__(
        self, policy: Policy[Any], model: Model, version: int, failures: Counter[str]
    ) -> None:
        self.policy, self.model, self._version = policy, model, version
        self._failures, self._has_failed = failures, False
        self._restricted = lru_cache(MAX_CACHED_STATES)(
            lambda eligible: policy.restricted(model.state, eligible)
        )

    def probabilities(self, context: Floats, eligible: ChoiceIndices | None = None) -> Floats:
        """The probabilities of all joint actions of the model, ``[1, n, D] -> [n, M]``.

        If choices are ``eligible``, by their indices in the model, the policy decides among the
        joint actions of these alone, and M is their number.
        """
        rows, size = context.shape[1], math.prod(map(len, eligible or self.model.active))
        try:
            with counted_fallbacks() as simpler:
                if eligible is None:
                    listed = self.policy.probabilities(self.model.state, context)
                else:
                    smaller = self._restricted(eligible)
                    listed = probabilities_by(
                        self.policy, smaller, self.model.state, context, eligible
                    )
            if simpler:
                self._failures[SIMPLER] += sum(simpler)
            if np.shape(listed) != (1, rows, size):
                raise InputError(
                    f"the probabilities of {self.policy!r:.80} must be an array of shape "
                    f"{(1, rows, size)}, not {np.shape(listed)}: test the policy with "
                    "submax.testing.policies"
                )
            found: Floats = np.asarray(listed)[0]
            # A comparison with NaN is false.
            sums, least = np.add.reduce(found, axis=1), np.minimum.reduce(found, axis=1)
            valid = (abs(sums - 1) <= TOLERANCE) & (least >= 0)
            if valid.all():
                return found
            self._count_failures(
                f"the probabilities of {self.policy!r:.80} must be 0 or more and sum to 1, and "
                f"they are {found[~valid][0]}: test the policy with submax.testing.policies",
                int((~valid).sum()),
            )
            return np.where(valid[:, None], found, 1 / size)
        except Exception as error:
            self._count_failures(one_line(error), rows)
        return np.full((rows, size), 1 / size)

    def draw(
        self, context: Floats, space: Space, eligible: ChoiceIndices, rng: np.random.Generator
    ) -> DrawnAction:
        """Let the policy draw an action of ``space`` in a context ``[1, 1, D]``."""
        try:
            with counted_fallbacks() as simpler:
                action, log_prob = self.policy.act(self.model.state, context, rng)
                if log_prob is None:
                    log_prob = self.policy.log_prob(self.model.state, context, action)
            if simpler:
                self._failures[SIMPLER] += sum(simpler)
            propensity = math.exp(log_prob[0, 0])
            if not 0 < propensity < math.inf:
                raise InputError(f"the probability of an action that was drawn is {propensity}")
            return DrawnAction(encoded_action(action[0, 0], eligible), propensity, None)
        except Exception as error:
            self._count_failures(one_line(error))
            return uniform_action(space, eligible, rng)

    def _count_failures(self, reason: str, count: int = 1) -> None:
        """Count failures; log only the first, since there may be a thousand in a second."""
        if not self._has_failed:
            LOG.error(
                "version %d could not decide, so the draw was uniform: %s", self._version, reason
            )
        self._has_failed = True
        self._failures[UNIFORM] += count


UNKNOWN_CATEGORIES = "unknown categories"
"""The beginning of the name under which decisions are counted whose context has a category that
was not declared, by field."""
LATE = "decisions after the deadline"
"""The name under which decisions are counted that were uniform because the policy took too long."""
MAX_PROBABILITIES = 2**18
"""Probabilities that are computed at once for several decisions: 2 MB for each array of them."""
MAX_CACHED_SETS = 256
"""The number of different sets of eligible choices whose places and probabilities are cached."""


class ActiveVersion:
    """One version and one menu, ready to decide; it is replaced, and never changed.

    Choices that were added after the version was fitted have the probability that a uniform policy
    would give them. Choices that are no longer active have the probability 0. ``groups_since`` is
    the position of the settings by which holdout and control are drawn, and ``ramps`` are those of
    new choices; ``limited`` applies them.
    """

    def __init__(
        self,
        settings: Settings,
        menu: ActionSpec,
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
        self.active, self.can_list = menu.active, menu.can_list
        self.failures = failures
        rails = settings.guard_rails
        self.control, self.baseline = (
            None if action is None else menu.encoded(action)
            for action in (rails.control, rails.baseline)
        )
        self._use(policy, model)

    def _use(self, policy: Policy[Any], model: Model) -> None:
        # Not cached properties: up to Python 3.11 these hold one lock for all objects of a class,
        # so that one policy that takes for ever would stop all bandits.
        self.model = model
        self._checked = PolicyWithFallback(policy, model, self.version, self.failures)
        self.ignores_context = not policy.traits.uses_context or model.width == 0
        nothing = np.zeros((1, 1, model.width))
        self._known_among = lru_cache(MAX_CACHED_SETS)(self._find_known)
        self._context_free = lru_cache(MAX_CACHED_SETS)(
            lambda eligible: self._among(nothing, eligible)
        )
        self._sampler = lru_cache(MAX_CACHED_SETS)(self._context_free_sampler)

    def with_model(self, policy: Policy[Any], model: Model, version: int) -> "ActiveVersion":
        new = copy(self)
        new.version = version
        new._use(policy, model)
        return new

    def limited(self, limits: Sequence[Limit]) -> "ActiveVersion":
        """A copy that decides within these limits of new choices, which may soon be others."""
        new = copy(self)
        new.limits = limits
        new._sampler = lru_cache(MAX_CACHED_SETS)(new._context_free_sampler)
        return new

    def average_probabilities(self, encoded: Floats) -> Floats | None:
        """The mean probabilities ``[M]`` of all active joint actions over contexts ``[n, D]``.

        None if the actions cannot be listed, or if there are no contexts to average over.
        """
        if not self.can_list or (not self.ignores_context and not len(encoded)):
            return None
        if self.ignores_context:
            return self._sampler(self.active, False).probabilities
        context = self.model.standardization.apply(encoded)[None]
        average: Floats = self._within_rails(self._among(context, self.active), self.active).mean(0)
        return average

    def draw(
        self,
        rows: Sequence[list[Any]],
        eligible: ChoiceIndices,
        uniform: bool,
        rng: np.random.Generator,
    ) -> list[DrawnAction]:
        """Draw among the ``eligible`` choices for each row of checked context values."""
        if not self.can_list:
            return [self._draw_unlisted(values, eligible, uniform, rng) for values in rows]
        return [one.draw(rng) for one in self.samplers(rows, eligible, uniform)]

    def samplers(
        self, rows: Sequence[list[Any]], eligible: ChoiceIndices, uniform: bool
    ) -> Iterable[ActionSampler]:
        """For each row of context values, a sampler of the eligible joint actions, if listed."""
        if uniform or self.ignores_context:
            return [self._sampler(eligible, uniform)] * len(rows)
        # Listed probabilities of all rows at once could fill the memory.
        size = max(math.prod(map(len, eligible)), math.prod(map(len, self.model.active)))
        step = max(1, MAX_PROBABILITIES // size)
        contexts = (
            self._encoded(rows[first : first + step]) for first in range(0, len(rows), step)
        )
        return (
            ActionSampler(probabilities, eligible)
            for context in contexts
            for probabilities in self._within_rails(self._among(context, eligible), eligible)
        )

    def _context_free_sampler(self, eligible: ChoiceIndices, uniform: bool) -> ActionSampler:
        """The sampler for probabilities that are equal, or do not depend on the context."""
        size = math.prod(map(len, eligible))
        among = np.full((1, size), 1 / size) if uniform else self._context_free(eligible)
        (probabilities,) = self._within_rails(among, eligible)
        return ActionSampler(probabilities, eligible)

    def _among(self, context: Floats, eligible: ChoiceIndices) -> Floats:
        """The policy's probabilities of the eligible joint actions: ``[1, n, D] -> [n, M]``."""
        if eligible == self.model.active:
            return self._checked.probabilities(context)
        is_known, choices = self._known_among(eligible)
        if is_known.all():
            return self._checked.probabilities(context, choices)
        size = len(is_known)
        found = np.full((context.shape[1], size), 1 / size)
        if is_known.any():
            known = self._checked.probabilities(context, choices)
            found[:, is_known] = (1 - (~is_known).mean()) * known
        return found

    def _find_known(self, eligible: ChoiceIndices) -> tuple[Booleans, ChoiceIndices]:
        """Which eligible joint actions the version knows, and its indices of their choices."""
        choices = []
        for indices, known in zip(eligible, self.model.active, strict=True):
            places = find_places((indices,), (known,))
            choices.append(tuple(places[places >= 0].tolist()))
        return find_places(eligible, self.model.active) >= 0, tuple(choices)

    def _encoded(self, rows: Sequence[list[Any]]) -> Floats:
        return self.model.standardization.apply(self.settings.context.encode(rows))[None]

    def _within_rails(self, probabilities: Floats, eligible: ChoiceIndices) -> Floats:
        """Probabilities ``[n, M]`` within the guard rails and the limits of new choices."""
        rails, control = self.settings.guard_rails, self.control_place(eligible)
        found = within_rails(probabilities, rails, control)
        if not self.limits:
            return found
        return within_limits(found, eligible, self.limits, rails.minimum, control)

    def control_place(self, eligible: ChoiceIndices) -> int | None:
        """The index of the control among the eligible joint actions.

        None if there is no control, or if it is not eligible.
        """
        if not is_eligible(self.control, eligible):
            return None
        place = 0
        for indices, wanted in zip(eligible, self.control or (), strict=True):
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
                f"eligible choices can be named for up to {LISTED} joint actions without "
                "real-valued parts: pause choices instead"
            )
        space = self.menu.space(eligible)
        if uniform or eligible != self.model.active:
            return uniform_action(space, eligible, rng)
        context = self._encoded([values])
        return self._checked.draw(context, space, eligible, rng)
