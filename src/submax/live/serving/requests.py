"""Calls as entries of the log, and what was written as answers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from submax.core.errors import ConflictError, InputError, NotFoundError
from submax.live.declaring.names import check_identifier, new_identifier
from submax.live.log.records import (
    ACTIVATION,
    DECISION,
    REWARD,
    DecisionMade,
    RewardGiven,
    activation_key,
    body_of,
    decision_key,
    identifier_of,
    reward_key,
)
from submax.live.serving.decision import Decision, Receipt
from submax.live.serving.late_rewards import LateRewards
from submax.live.serving.present import Present
from submax.live.store.event import Entry, Written
from submax.live.store.store import Store
from submax.live.store.writing import Writing, joined
from submax.schema.context_schema import LARGEST, as_number
from submax.schema.names import short_repr

ENCODER = msgspec.msgpack.Encoder()
ONLY = "reward"
"""The key of a decision's reward where it has one alone."""


class Requests:
    """Checks and draws; nothing is written here."""

    def __init__(
        self, store: Store, stream: str, present: Present, rng: np.random.Generator
    ) -> None:
        self._store, self._stream, self._present, self._rng = store, stream, present, rng
        # Enough to know whether the burn-in is over.
        self.decided = 0
        self.late = LateRewards()

    def deciding(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the word that callers know
        eligible: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        activate: bool = True,
    ) -> Writing[Decision]:
        """A decision that is drawn."""
        if id is None:
            id = new_identifier()  # noqa: A001 - the same word as in decide
        else:
            check_identifier("the id of a decision", id)
        if not isinstance(activate, bool):
            raise InputError(f"activate must be true or false, not {activate!r:.60}")
        made = self._made(context, eligible, activate)
        entry = Entry(DECISION, ENCODER.encode(made), decision_key(id))
        return Writing(self._stream, [entry], self._decision)

    def _made(self, context: object, eligible: object, activate: bool) -> DecisionMade:
        serving = self._present.serving
        values = serving.settings.context.clean(context)
        shown = serving.active if eligible is None else serving.menu.eligible(eligible)
        rails = serving.settings.guard_rails
        held_out = (
            rails.holdout > 0
            and serving.may_hold_out(shown)
            and bool(self._rng.random() < rails.holdout)
        )
        if held_out:
            drawn = serving.baseline()
        else:
            drawn = serving.draw(values, shown, self.decided < rails.burn_in, self._rng)
        self.decided += 1
        return DecisionMade(
            drawn.row,
            drawn.propensity,
            serving.version,
            values,
            shown,
            drawn.probabilities,
            activate,
            held_out,
        )

    def _decision(self, written: list[Written]) -> Decision:
        event, made = written[0].event, body_of(written[0].event, DecisionMade)
        self.decided -= not written[0].new
        return Decision(
            identifier_of(event.key or ""),
            self._present.named(made.action),
            made.propensity,
            made.version,
            made.holdout,
            not written[0].new,
        )

    def rewarding(self, id: str, value: float, *, key: str = ONLY) -> Writing[Receipt]:  # noqa: A002 - the same word as in decide
        """A reward that is checked."""
        if isinstance(id, Decision):
            raise InputError(
                "a Decision was given in place of its id, which is a text: pass decision.id"
            )
        check_identifier("the id of a decision", id)
        check_identifier("the key of a reward", key)
        given = self._value(value)
        body = ENCODER.encode(RewardGiven(given))
        entry = Entry(REWARD, body, reward_key(id, key), decision_key(id))

        def answer(written: list[Written]) -> Receipt:
            standing = body_of(written[0].event, RewardGiven).value
            if standing != given:
                raise ConflictError(
                    f"decision {id!r} already has the reward {standing} under the key {key!r}, so "
                    f"that {given} was not stored: give another key to add to it"
                )
            receipt = self._receipt(id, written[0])
            if written[0].new:
                self.late.count(receipt.status == "late")
            return receipt

        return Writing(self._stream, [entry], answer)

    def rewarding_many(self, rewards: Iterable[Mapping[str, Any]]) -> Writing[list[Receipt]]:
        """Rewards that are checked; a conflict is told by its receipt."""
        return joined([self._forgiving(**reward) for reward in rewards])

    def _forgiving(self, id: str, value: float, *, key: str = ONLY) -> Writing[Receipt]:  # noqa: A002 - the same word as in decide
        strict = self.rewarding(id, value, key=key)

        def answer(written: list[Written]) -> Receipt:
            try:
                return strict.answer(written)
            except ConflictError:
                return Receipt(id, "conflict", repeated=True)

        return Writing(strict.stream, strict.entries, answer)

    def _value(self, value: object) -> float:
        number = as_number(value)
        if number is None:
            raise InputError(
                f"a reward must be a number from {-LARGEST:g} to {LARGEST:g}, "
                f"not {short_repr(value)}"
            )
        try:
            self._present.scale.check(np.array([number]))
        except InputError as error:
            kind = self._present.settings.rewards["kind"]
            raise InputError(
                f"{error}: give a reward on the scale that was declared, {kind!r}, or declare a "
                "bandit with another one, such as rewards='continuous'"
            ) from error
        return number

    def activating(self, id: str) -> Writing[Receipt]:  # noqa: A002 - the same word as in decide
        """An activation of a decision that is there."""
        check_identifier("the id of a decision", id)
        if self._store.find(self._stream, decision_key(id)) is None:
            raise NotFoundError(f"there is no decision {id!r} to activate")
        entry = Entry(ACTIVATION, b"", activation_key(id), decision_key(id))
        return Writing(self._stream, [entry], lambda written: self._receipt(id, written[0]))

    def _receipt(self, identifier: str, written: Written) -> Receipt:
        return Receipt(identifier, self._status(identifier, written), not written.new)

    def _status(self, identifier: str, written: Written) -> str:
        event, wait = written.event, self._present.settings.longest_wait
        if event.about_position == 0:
            return "accepted" if self._came_since(identifier, written) else "quarantined"
        return "late" if event.at - event.about_at >= wait else "accepted"

    def _came_since(self, identifier: str, written: Written) -> bool:
        """Whether a reward that is repeated has found its decision meanwhile."""
        if written.new:
            return False
        return self._store.find(self._stream, decision_key(identifier)) is not None
