"""What a version of a shadow would have done in decisions that were made."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from submax.bandit.active_version import UNIFORM, ActiveVersion, draw_rows
from submax.bandit.settings import Settings
from submax.core.arrays import Floats
from submax.core.errors import InputError
from submax.core.policy import Policy
from submax.live.log.records import DecisionMade
from submax.live.monitoring.shadow.shadow_records import Opinions
from submax.live.monitoring.shadow.shadow_tally import MAX_WEIGHT
from submax.schema.actions import ActionSpec, ChoiceIndices, EncodedAction
from submax.schema.model import Model

MAX_PROBABILITIES = 2**18
"""Probabilities that are computed at once: 2 MB."""
UNKNOWN = -1.0
"""Stands for the clipped part if the probabilities of all actions were not logged."""


class Judged(NamedTuple):
    """The opinion about one decision, as in ``Opinions``."""

    chance: float
    choice: EncodedAction
    clipped: float


class ShadowJudge:
    """Decides as a bandit would whose policy is the shadow, within the same guard rails."""

    def __init__(
        self, settings: Settings, menu: ActionSpec, policy: Policy[Any], model: Model, version: int
    ) -> None:
        self._seed, self.version = settings.seed, version
        self._settings, self._policy, self._model, self._menu = settings, policy, model, menu
        self._begin()

    def _begin(self) -> None:
        """Forget probabilities that were computed before."""
        self._failures: Counter[str] = Counter()
        self._serving = ActiveVersion(
            self._settings, self._menu, self._policy, self._model, self.version, self._failures
        )

    def within(self, settings: Settings, menu: ActionSpec) -> "ShadowJudge":
        """The same version with other guard rails and choices."""
        if settings is self._settings and menu is self._menu:
            return self
        return ShadowJudge(settings, menu, self._policy, self._model, self.version)

    def opinions(self, decisions: Sequence[tuple[int, DecisionMade]]) -> Opinions:
        """The opinions about decisions at positions; an ``InputError`` if the policy failed."""
        # The same log and the same versions give the same choices.
        rng = np.random.default_rng([self._seed, decisions[0][0]])
        judged: dict[int, Judged] = {}
        groups: dict[ChoiceIndices, list[tuple[int, DecisionMade]]] = {}
        for position, made in decisions:
            groups.setdefault(made.eligible, []).append((position, made))
        for eligible, group in groups.items():
            step = max(1, MAX_PROBABILITIES // max(1, math.prod(map(len, eligible))))
            for first in range(0, len(group), step):
                part = group[first : first + step]
                found = self._listed(eligible, part, rng)
                judged |= zip([position for position, _ in part], found, strict=True)
        failed = self._failures[UNIFORM]
        if failed:
            # A serving version goes on with uniform probabilities, which are not the shadow's.
            self._begin()
            raise InputError(
                f"the shadow could not decide {failed} times, and probabilities "
                "of 0 or more that sum to 1 are needed: see the log, and give another policy"
            )
        return self._collected(decisions, judged)

    def _collected(
        self, decisions: Sequence[tuple[int, DecisionMade]], judged: dict[int, Judged]
    ) -> Opinions:
        ordered = [judged[position] for position, _ in decisions]
        return Opinions(
            self.version,
            [position for position, _ in decisions],
            [one.chance for one in ordered],
            [made.propensity for _, made in decisions],
            [one.choice for one in ordered],
            [one.clipped for one in ordered],
            [made.unit for _, made in decisions],
        )

    def _listed(
        self,
        eligible: ChoiceIndices,
        decisions: Sequence[tuple[int, DecisionMade]],
        rng: np.random.Generator,
    ) -> list[Judged]:
        if not self._serving.can_list:
            return [self._unlisted(made, rng) for _, made in decisions]
        rows = [made.context for _, made in decisions]
        probabilities = self._serving.probabilities_of_many(rows, eligible)
        drawn = draw_rows(probabilities, eligible, rng)
        return [
            Judged(float(own[_place(made.action, eligible)]), choice.row, _clipped(own, made))
            for own, choice, (_, made) in zip(probabilities, drawn, decisions, strict=True)
        ]

    def _unlisted(self, made: DecisionMade, rng: np.random.Generator) -> Judged:
        """The opinion if joint actions are too many to list or have real-valued parts."""
        choice = self._serving.draw(made.context, self._serving.active, False, rng).row
        space = self._menu.space(made.eligible)
        if made.eligible != self._model.active:
            return Judged(math.exp(-space.log_measure), choice, UNKNOWN)
        parts = zip(made.action, made.eligible, strict=False)
        places = [indices.index(int(part)) for part, indices in parts]
        action = np.array([*places, *made.action[len(places) :]], dtype=space.dtype)
        context = self._serving.encoded_contexts([made.context])
        found = self._policy.log_prob(self._model.state, context, action[None, None])
        return Judged(math.exp(float(found[0, 0])), choice, UNKNOWN)


def _place(action: EncodedAction, eligible: ChoiceIndices) -> int:
    """The place of an action in the list of eligible joint actions."""
    place = 0
    for part, indices in zip(action, eligible, strict=True):
        place = place * len(indices) + indices.index(int(part))
    return place


def _clipped(own: Floats, made: DecisionMade) -> float:
    """The part of the shadow's probability that weights of at most ``MAX_WEIGHT`` leave out."""
    if made.probabilities is None:
        return UNKNOWN
    return float(np.maximum(own - MAX_WEIGHT * np.array(made.probabilities), 0.0).sum())
