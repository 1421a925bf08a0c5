"""Turns calls into pending writes, and append results into answers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from submax.core.errors import ConflictError, InputError, NotFoundError
from submax.live.archive.archived_ids import ArchivedIds
from submax.live.declaring.names import check_identifier, new_identifier
from submax.live.log.bandits import log_stream
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
from submax.live.serving.action_sampler import DrawnAction
from submax.live.serving.checked_request import CheckedRequest
from submax.live.serving.decision import Decision, Receipt
from submax.live.serving.late_rewards import LateRewards
from submax.live.serving.live_state import LiveState
from submax.live.serving.serving import LATE, Serving
from submax.live.store.event import AppendResult, Entry
from submax.live.store.pending_write import PendingWrite, joined
from submax.live.store.store import Store
from submax.schema.context_schema import LARGEST, as_number
from submax.schema.menu import ChoiceIndices
from submax.schema.names import short_repr

ENCODER = msgspec.msgpack.Encoder()
DEFAULT_REWARD_KEY = "reward"
"""The key of a reward if the caller gives none, since most decisions have one reward."""


class Requests:
    """Checks calls and draws decisions; writing is left to the caller."""

    def __init__(
        self, store: Store, name: str, live_state: LiveState, rng: np.random.Generator
    ) -> None:
        self._store, self._live_state, self._rng = store, live_state, rng
        self._stream, self._archived = log_stream(name), ArchivedIds(store, name)
        # The number of decisions of this process, which says whether the burn-in is over.
        self.decided = 0
        self.late = LateRewards()

    @property
    def serving(self) -> Serving:
        """The version and the choices by which decisions are drawn now."""
        return self._live_state.serving

    def deciding(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the word that callers know
        eligible: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        activate: bool = True,
    ) -> PendingWrite[Decision]:
        """Draw a decision, to be written under its id."""
        self._live_state.check_exists()
        serving = self._live_state.serving
        request = self._checked(serving, context, id=id, eligible=eligible, activate=activate)
        return self._drawn_one(serving, request, uniform=False)

    def deciding_uniformly(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the same word as in decide
        eligible: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        activate: bool = True,
    ) -> PendingWrite[Decision]:
        """Draw a decision uniformly within the guard rails, and count it as a failure.

        This is for callers that could not wait for the policy.
        """
        self._live_state.check_exists()
        serving = self._live_state.serving
        request = self._checked(serving, context, id=id, eligible=eligible, activate=activate)
        pending = self._drawn_one(serving, request, uniform=True)
        self._live_state.failures[LATE] += 1
        return pending

    def deciding_many(self, requests: Iterable[Mapping[str, Any]]) -> list[PendingWrite[Decision]]:
        """Draw several decisions, whose probabilities are computed as one array.

        Each request has arguments of ``deciding``. If one is invalid, none is drawn.
        """
        self._live_state.check_exists()
        serving = self._live_state.serving
        checked = [self._checked(serving, **request) for request in requests]
        return self._drawn_together(serving, checked)

    def deciding_each(
        self, requests: Iterable[Mapping[str, Any]]
    ) -> list[PendingWrite[Decision] | InputError]:
        """Draw the decisions of different callers as one array, or return the error of each."""
        self._live_state.check_exists()
        serving = self._live_state.serving
        found: list[CheckedRequest | InputError] = []
        for request in requests:
            try:
                found.append(self._checked(serving, **request))
            except InputError as error:
                found.append(error)
        valid = [one for one in found if not isinstance(one, InputError)]
        drawn = iter(self._drawn_together(serving, valid))
        return [one if isinstance(one, InputError) else next(drawn) for one in found]

    def _checked(
        self,
        serving: Serving,
        /,
        context: object = None,
        *,
        id: object = None,  # noqa: A002 - the same word as in decide
        eligible: object = None,
        activate: object = True,
    ) -> CheckedRequest:
        if id is None:
            identifier = new_identifier()
        else:
            check_identifier("the id of a decision", id)
            identifier = str(id)
        if not isinstance(activate, bool):
            raise InputError(f"activate must be true or false, not {activate!r:.60}")
        values = serving.settings.context.clean(context)
        choices = serving.active if eligible is None else serving.menu.eligible(eligible)
        return CheckedRequest(identifier, values, choices, activate)

    def _drawn_one(
        self, serving: Serving, request: CheckedRequest, *, uniform: bool
    ) -> PendingWrite[Decision]:
        rails = serving.settings.guard_rails
        is_holdout = (
            rails.holdout > 0
            and serving.may_hold_out(request.eligible)
            and bool(self._rng.random() < rails.holdout)
        )
        if is_holdout:
            drawn = serving.baseline()
        else:
            uniform = uniform or self.decided < rails.burn_in
            drawn = serving.draw(request.values, request.eligible, uniform, self._rng)
        self.decided += 1
        return self._pending(serving, request, drawn, is_holdout)

    def _drawn_together(
        self, serving: Serving, requests: Sequence[CheckedRequest]
    ) -> list[PendingWrite[Decision]]:
        """Draw as ``_drawn_one`` does for each request, with the same probabilities."""
        held_out = self._held_out(serving, requests)
        # The first decisions of the burn-in are uniform, and those of the holdout count, too.
        begin = serving.settings.guard_rails.burn_in - self.decided
        groups: dict[tuple[ChoiceIndices, bool], list[int]] = {}
        for place, request in enumerate(requests):
            if not held_out[place]:
                groups.setdefault((request.eligible, place < begin), []).append(place)
        drawn = [serving.baseline()] * len(requests)
        for (eligible, uniform), places in groups.items():
            rows = [requests[place].values for place in places]
            found = serving.draw_many(rows, eligible, uniform, self._rng)
            for place, one in zip(places, found, strict=True):
                drawn[place] = one
        self.decided += len(requests)
        return [self._pending(serving, *one) for one in zip(requests, drawn, held_out, strict=True)]

    def _held_out(self, serving: Serving, requests: Sequence[CheckedRequest]) -> list[bool]:
        share = serving.settings.guard_rails.holdout
        if not share:
            return [False] * len(requests)
        drawn = self._rng.random(len(requests)) < share
        return [
            bool(is_drawn) and serving.may_hold_out(request.eligible)
            for is_drawn, request in zip(drawn, requests, strict=True)
        ]

    def _pending(
        self, serving: Serving, request: CheckedRequest, drawn: DrawnAction, is_holdout: bool
    ) -> PendingWrite[Decision]:
        made = DecisionMade(
            drawn.row,
            drawn.propensity,
            serving.version,
            request.values,
            request.eligible,
            drawn.probabilities,
            request.activate,
            is_holdout,
        )
        entry = Entry(DECISION, ENCODER.encode(made), decision_key(request.identifier))
        return PendingWrite(self._stream, [entry], self._decision)

    def _decision(self, written: list[AppendResult]) -> Decision:
        event, made = written[0].event, body_of(written[0].event, DecisionMade)
        self.decided -= not written[0].new
        return Decision(
            identifier_of(event.key or ""),
            self._live_state.named(made.action),
            made.propensity,
            made.version,
            made.holdout,
            not written[0].new,
        )

    def rewarding(
        self,
        id: str,  # noqa: A002 - the same word as in decide
        value: float,
        *,
        key: str = DEFAULT_REWARD_KEY,
        source: str = "",
    ) -> PendingWrite[Receipt]:
        """Check a reward, to be written under its id and key; ``source`` is who sent it."""
        self._live_state.check_exists()
        if isinstance(id, Decision):
            raise InputError(
                "a Decision was given in place of its id, which is a text: pass decision.id"
            )
        check_identifier("the id of a decision", id)
        check_identifier("the key of a reward", key)
        given = self._value(value)
        body = ENCODER.encode(RewardGiven(given, source))
        entry = Entry(REWARD, body, reward_key(id, key), decision_key(id))

        def answer(written: list[AppendResult]) -> Receipt:
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

        return PendingWrite(self._stream, [entry], answer)

    def rewarding_many(
        self, rewards: Iterable[Mapping[str, Any]], *, source: str = ""
    ) -> PendingWrite[list[Receipt]]:
        """Check several rewards; one that conflicts gets the receipt ``conflict``."""
        return joined([self._rewarding_without_error(source, **reward) for reward in rewards])

    def _rewarding_without_error(
        self,
        source: str,
        /,
        id: str,  # noqa: A002 - the same word as in decide
        value: float,
        *,
        key: str = DEFAULT_REWARD_KEY,
    ) -> PendingWrite[Receipt]:
        strict = self.rewarding(id, value, key=key, source=source)

        def answer(written: list[AppendResult]) -> Receipt:
            try:
                return strict.answer(written)
            except ConflictError:
                return Receipt(id, "conflict", repeated=True)

        return PendingWrite(strict.stream, strict.entries, answer)

    def _value(self, value: object) -> float:
        number = as_number(value)
        if number is None:
            raise InputError(
                f"a reward must be a number from {-LARGEST:g} to {LARGEST:g}, "
                f"not {short_repr(value)}"
            )
        try:
            self._live_state.scale.check(np.array([number]))
        except InputError as error:
            kind = self._live_state.settings.rewards["kind"]
            raise InputError(
                f"{error}: give a reward on the scale that was declared, {kind!r}, or declare a "
                "bandit with another one, such as rewards='continuous'"
            ) from error
        return number

    def activating(self, id: str) -> PendingWrite[Receipt]:  # noqa: A002 - the same word as in decide
        """Check an activation of a decision that exists."""
        self._live_state.check_exists()
        check_identifier("the id of a decision", id)
        if self._store.find(self._stream, decision_key(id)) is None:
            raise NotFoundError(
                f"there is no decision {id!r} to activate, and ids are remembered for "
                "archive_after seconds: give the id of a decision of this bandit"
            )
        entry = Entry(ACTIVATION, b"", activation_key(id), decision_key(id))
        return PendingWrite(self._stream, [entry], lambda written: self._receipt(id, written[0]))

    def _receipt(self, identifier: str, written: AppendResult) -> Receipt:
        return Receipt(identifier, self._status(identifier, written), not written.new)

    def _status(self, identifier: str, written: AppendResult) -> str:
        event, wait = written.event, self._live_state.settings.longest_wait
        if event.about_position == 0:
            if self._decided_since(identifier, written):
                return "accepted"
            return "late" if identifier in self._archived else "quarantined"
        return "late" if event.at - event.about_at >= wait else "accepted"

    def _decided_since(self, identifier: str, written: AppendResult) -> bool:
        """Whether the decision of a repeated reward was made after the reward first came."""
        if written.new:
            return False
        return self._store.find(self._stream, decision_key(identifier)) is not None
