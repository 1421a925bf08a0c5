"""What answers decisions between two versions."""

import logging
import math
from collections import Counter
from copy import copy
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.contracts.policy import Policy
from submax.core.errors import InputError, one_line
from submax.core.numerics.categorical import TOLERANCE
from submax.core.running.fallback import counted_fallbacks
from submax.core.spaces.space import Space
from submax.live.declaring.settings import Settings
from submax.live.serving.lottery import Drawn, Lottery
from submax.schema.menu import LISTED, Menu, Row, Shown
from submax.schema.model import Model

SIMPLER = "decisions taken more simply than asked"
UNIFORM = "decisions by a policy that failed"
LOG = logging.getLogger("submax")
REMEMBERED = 256
"""Sets of eligible choices whose places are remembered."""


class Places(NamedTuple):
    """Where joint actions stand in a version's list, ``[M]``, and which are ``fresh`` to it."""

    place: Integers
    fresh: Booleans
    share: float
    """That of the fresh ones."""


class Serving:
    """One version and one menu, ready to decide; never changed, but replaced.

    Choices that the version does not know, since they came later, have the probability that a
    uniform policy would give them; those that it knows and that are no longer active have none.
    """

    def __init__(
        self,
        settings: Settings,
        menu: Menu,
        policy: Policy[Any],
        model: Model,
        version: int,
        failures: Counter[str],
    ) -> None:
        self.settings, self.menu, self.version = settings, menu, version
        self.active = menu.active
        self._failures, self._stumbled = failures, False
        self._policy, self._model = policy, model
        self._lists = menu.lists
        self._same = not policy.facts.uses_context or settings.context.width == 0
        self._places = lru_cache(REMEMBERED)(self._find_places)
        rails = settings.guard_rails
        self._baseline: Row = [] if rails.baseline is None else menu.row(rails.baseline)
        self._control = None if rails.control is None else tuple(menu.row(rails.control))

    @property
    def shares(self) -> list[float] | None:
        """The probabilities of all active actions; None if they depend on the context."""
        if not self._lists or not self._same:
            return None
        found: list[float] = self._guarded([], self.active, uniform=False).tolist()
        return found

    @property
    def model(self) -> Model:
        """What decides."""
        return self._model

    def with_model(self, model: Model, version: int) -> "Serving":
        """The same settings and menu with another model."""
        new = copy(self)
        new._model, new.version, new._stumbled = model, version, False
        for table in ("_shared", "_opinion"):
            new.__dict__.pop(table, None)
        if model.shown != self._model.shown:
            new._places = lru_cache(REMEMBERED)(new._find_places)
        return new

    def draw(
        self, values: list[Any], shown: Shown, uniform: bool, rng: np.random.Generator
    ) -> Drawn:
        """Draw among the choices ``shown``; ``values`` is the clean context."""
        if not self._lists:
            return self._draw_unlisted(values, shown, uniform, rng)
        if self._same and not uniform and shown == self.active:
            return self._shared.draw(rng)
        return Lottery(self._guarded(values, shown, uniform), shown).draw(rng)

    def may_hold_out(self, shown: Shown) -> bool:
        """Whether the baseline is eligible."""
        pairs = zip(shown, self._baseline, strict=False)
        return all(wanted in numbers for numbers, wanted in pairs)

    def baseline(self) -> Drawn:
        """The action of the holdout."""
        return Drawn(self._baseline, 1.0, None)

    @cached_property
    def _shared(self) -> Lottery:
        """What all decisions are drawn from where the context makes no difference."""
        return Lottery(self._guarded([], self.active, uniform=False), self.active)

    @cached_property
    def _opinion(self) -> Floats:
        """The policy's probabilities where the context makes no difference."""
        return self._asked(np.zeros((1, 1, self.settings.context.width)))

    def _asked(self, context: Floats) -> Floats:
        """The policy's probabilities; uniform where it fails, since someone waits for an answer."""
        try:
            with counted_fallbacks() as simpler:
                found: Floats = self._policy.probabilities(self._model.state, context)[0, 0]
            if simpler:
                self._failures[SIMPLER] += sum(simpler)
            # Not a number fails the comparison.
            if abs(np.add.reduce(found) - 1) <= TOLERANCE:
                return found
            self._stumble(f"{found} are no probabilities")
        except Exception as error:
            self._stumble(one_line(error))
        size = math.prod(map(len, self._model.shown))
        return np.full(size, 1 / size)

    def _stumble(self, reason: str) -> None:
        """Count, and say it once: a policy that fails may fail a thousand times a second."""
        if not self._stumbled:
            LOG.error("version %d could not decide, so this was uniform: %s", self.version, reason)
        self._stumbled = True
        self._failures[UNIFORM] += 1

    def _encoded(self, values: list[Any]) -> Floats:
        encoded = self.settings.context.encode(values)
        return self._model.standardization.apply(encoded)[None, None]

    def _guarded(self, values: list[Any], shown: Shown, uniform: bool) -> Floats:
        """Probabilities of the joint actions, within the guard rails."""
        if uniform:
            size = math.prod(map(len, shown))
            return self._within_rails(np.full(size, 1 / size), shown)
        said = self._opinion if self._same else self._asked(self._encoded(values))
        places = self._places(shown)
        if places is not None:
            said = _restricted(said, places)
        return self._within_rails(said, shown)

    def _find_places(self, shown: Shown) -> Places | None:
        """None where the version lists the same actions."""
        known = self._model.shown
        if shown == known:
            return None
        # Row by row of the product of all slots, the last fastest, as the version lists them.
        place, fresh = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=bool)
        for numbers, before in zip(shown, known, strict=True):
            known_place = {number: place for place, number in enumerate(before)}
            where = np.array([known_place.get(number, -1) for number in numbers])
            place = (place[:, None] * len(before) + np.maximum(where, 0)).ravel()
            fresh = (fresh[:, None] | (where < 0)).ravel()
        return Places(place, fresh, float(fresh.mean()))

    def _within_rails(self, probabilities: Floats, shown: Shown) -> Floats:
        rails = self.settings.guard_rails
        control = self._control_place(shown) if self._control is not None else None
        if not rails.minimum and control is None:
            return probabilities
        if len(probabilities) == 1:
            return np.ones(1)
        others = np.ones(len(probabilities), dtype=bool)
        if control is not None:
            others[control] = False
        mass = 1.0 if control is None else 1.0 - rails.control_share
        count = int(others.sum())
        said = np.where(others, probabilities, 0.0)
        total = said.sum()
        said = said / total if total > 0 else others / count
        least = min(rails.minimum, mass / count)
        guarded: Floats = np.where(others, least + (mass - least * count) * said, 1.0 - mass)
        return guarded

    def _control_place(self, shown: Shown) -> int | None:
        """The number of the control among the joint actions, if it is eligible."""
        number = 0
        for numbers, wanted in zip(shown, self._control or (), strict=True):
            if wanted not in numbers:
                return None
            number = number * len(numbers) + numbers.index(int(wanted))
        return number

    def _draw_unlisted(
        self, values: list[Any], shown: Shown, uniform: bool, rng: np.random.Generator
    ) -> Drawn:
        """Let the policy draw; uniform until there is a version for the choices as they are."""
        if shown != self.active:
            raise InputError(
                f"eligible choices can be named among up to {LISTED} joint actions without "
                "real-valued parts, and this bandit has others: pause choices instead"
            )
        space = self.menu.space(shown)
        if uniform or shown != self._model.shown:
            return _uniform(space, shown, rng)
        try:
            with counted_fallbacks() as simpler:
                drawn = self._drawn_by_policy(self._encoded(values), shown, rng)
            self._failures[SIMPLER] += sum(simpler)
            return drawn
        except Exception as error:
            self._stumble(one_line(error))
            return _uniform(space, shown, rng)

    def _drawn_by_policy(self, context: Floats, shown: Shown, rng: np.random.Generator) -> Drawn:
        decision = self._policy.act(self._model.state, context, rng)
        found = decision.log_prob
        if found is None:
            found = self._policy.log_prob(self._model.state, context, decision.action)
        propensity = math.exp(found[0, 0])
        if not 0 < propensity < math.inf:
            raise InputError(f"the probability of an action that was drawn is {propensity}")
        return Drawn(_named(decision.action[0, 0], shown), propensity, None)


def _restricted(said: Floats, places: Places) -> Floats:
    """A version's probabilities for other actions than it lists."""
    found = np.where(places.fresh, 0.0, said[places.place])
    total = found.sum()
    # Without any mass on what is eligible the policy has no opinion.
    found = found / total if total > 0 else np.full(len(found), 1 / len(found))
    if places.share == 0:
        return found
    mixed: Floats = (1 - places.share) * found if total > 0 else found
    return np.where(places.fresh, 1 / len(found), mixed)


def _uniform(space: Space, shown: Shown, rng: np.random.Generator) -> Drawn:
    action = space.uniform((1, 1), rng)
    return Drawn(_named(action[0, 0], shown), math.exp(-space.log_measure), None)


def _named(action: Any, shown: Shown) -> Row:
    """The choices by their own numbers, and the real-valued parts as they are."""
    parts = action.tolist()
    return [
        *(numbers[int(part)] for numbers, part in zip(shown, parts, strict=False)),
        *parts[len(shown) :],
    ]
