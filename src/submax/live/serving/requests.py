"""Turns calls into pending writes, and append results into answers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from submax.bandit.active_version import LATE, ActiveVersion
from submax.bandit.assignment import CheckedRequest
from submax.bandit.decision import Decision, Receipt
from submax.bandit.names import check_identifier, new_identifier
from submax.bandit.rewards import LateRewards
from submax.core.errors import ConflictError, InputError, NotFoundError
from submax.live.archive.archived_ids import ArchivedIds
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
from submax.live.serving.decision_draws import DecisionDraws
from submax.live.serving.drawn_decision import DrawnDecision
from submax.live.serving.live_state import LiveState
from submax.live.serving.units.unit_draws import UnitDraws
from submax.live.store.event import AppendResult, Entry
from submax.live.store.pending_write import PendingWrite, joined
from submax.live.store.store import Store

ENCODER = msgspec.msgpack.Encoder()


class Requests:
    """Checks calls and draws decisions; writing is left to the caller."""

    def __init__(
        self,
        store: Store,
        name: str,
        live_state: LiveState,
        draws: DecisionDraws,
        units: UnitDraws,
    ) -> None:
        self._store, self._live_state = store, live_state
        self._stream, self._archived = log_stream(name), ArchivedIds(store, name)
        self.draws, self._units = draws, units
        self.late = LateRewards()

    @property
    def serving(self) -> ActiveVersion:
        """The version and the choices by which decisions are drawn now."""
        return self._live_state.serving

    def reads_store(self, unit: str | None) -> bool:
        """Whether drawing a decision for a unit may have to wait for a store of many processes."""
        if unit is None or self._store.appended(self._stream) is not None:
            return False
        return self._units.must_pin(self.draws.ramped(self.serving))

    def deciding(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the word that callers know
        eligible: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        activate: bool = True,
        unit: str | None = None,
    ) -> PendingWrite[Decision]:
        """Draw a decision, to be written under its id."""
        self._live_state.check_answers()
        serving = self._live_state.serving
        request = self._checked(
            serving, context, id=id, eligible=eligible, activate=activate, unit=unit
        )
        return self._pending(request, self.draws.one(serving, request, uniform=False))

    def deciding_uniformly(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the same word as in decide
        eligible: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        activate: bool = True,
        unit: str | None = None,
    ) -> PendingWrite[Decision]:
        """Draw a decision uniformly within the guard rails, and count it as a failure.

        This is for callers that could not wait for the policy.
        """
        self._live_state.check_answers()
        serving = self._live_state.serving
        request = self._checked(
            serving, context, id=id, eligible=eligible, activate=activate, unit=unit
        )
        pending = self._pending(request, self.draws.one(serving, request, uniform=True))
        self._live_state.failures[LATE] += 1
        return pending

    def deciding_many(self, requests: Iterable[Mapping[str, Any]]) -> list[PendingWrite[Decision]]:
        """Draw several decisions, whose probabilities are computed as one array.

        Each request has arguments of ``deciding``. If one is invalid, none is drawn.
        """
        self._live_state.check_answers()
        serving = self._live_state.serving
        checked = [self._checked(serving, **request) for request in requests]
        return self._drawn_together(serving, checked)

    def _drawn_together(
        self, serving: ActiveVersion, requests: Sequence[CheckedRequest]
    ) -> list[PendingWrite[Decision]]:
        drawn = self.draws.together(serving, requests)
        return [self._pending(*one) for one in zip(requests, drawn, strict=True)]

    def deciding_each(
        self, requests: Iterable[Mapping[str, Any]]
    ) -> list[PendingWrite[Decision] | InputError]:
        """Draw the decisions of different callers as one array, or return the error of each."""
        self._live_state.check_answers()
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
        serving: ActiveVersion,
        /,
        context: object = None,
        *,
        id: object = None,  # noqa: A002 - the same word as in decide
        eligible: object = None,
        activate: object = True,
        unit: object = None,
    ) -> CheckedRequest:
        if id is None:
            identifier = new_identifier()
        else:
            check_identifier("the id of a decision", id)
            identifier = str(id)
        if not isinstance(activate, bool):
            raise InputError(
                f"activate must be true or false, not {activate!r:.60}", parameter="activate"
            )
        if unit is not None:
            check_identifier("the unit of a decision", unit)
        values = serving.settings.context.clean(context)
        choices = serving.active if eligible is None else serving.menu.eligible(eligible)
        return CheckedRequest(
            identifier, values, choices, activate, None if unit is None else str(unit)
        )

    def _pending(self, request: CheckedRequest, decision: DrawnDecision) -> PendingWrite[Decision]:
        drawn = decision.drawn
        made = DecisionMade(
            drawn.row,
            drawn.propensity,
            decision.version,
            request.values,
            request.eligible,
            drawn.probabilities,
            request.activate,
            decision.holdout,
            request.unit,
            decision.group,
            decision.paused,
        )
        entry = Entry(DECISION, ENCODER.encode(made), decision_key(request.identifier))
        entries = [entry] if decision.pin is None else [entry, decision.pin]
        return PendingWrite(self._stream, entries, self._decision)

    def _decision(self, written: list[AppendResult]) -> Decision:
        event, made = written[0].event, body_of(written[0].event, DecisionMade)
        self.draws.decided -= not written[0].new
        for pin in written[1:]:
            self._units.confirm(pin)
        return Decision(
            identifier_of(event.key or ""),
            self._live_state.named(made.action),
            made.propensity,
            made.version,
            made.holdout,
            not written[0].new,
            made.unit,
            made.paused,
        )

    def rewarding(
        self,
        id: str,  # noqa: A002 - the same word as in decide
        value: object,
        *,
        key: str | None = None,
        name: str | None = None,
        slot: str | None = None,
        source: str = "",
    ) -> PendingWrite[Receipt]:
        """Check a reward, to be written under its id and key; ``source`` is who sent it."""
        self._live_state.check_answers()
        if isinstance(id, Decision):
            raise InputError(
                "a Decision was given in place of its id, which is a text: pass decision.id"
            )
        check_identifier("the id of a decision", id)
        if key is not None:
            check_identifier("the key of a reward", key)
        given = self._live_state.rewards.checked(value, key, name, slot)
        body = ENCODER.encode(RewardGiven(given.value, source, given.parts))
        entry = Entry(REWARD, body, reward_key(id, given.key), decision_key(id))

        def answer(written: list[AppendResult]) -> Receipt:
            standing = body_of(written[0].event, RewardGiven)
            if (standing.value, standing.parts) != (given.value, given.parts):
                before, now = (one.parts or one.value for one in (standing, given))
                raise ConflictError(
                    f"decision {id!r} already has the reward {before} under the key {given.key!r}, "
                    f"so that {now} was not stored: give another key to add to it"
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
        value: object,
        *,
        key: str | None = None,
        name: str | None = None,
        slot: str | None = None,
    ) -> PendingWrite[Receipt]:
        strict = self.rewarding(id, value, key=key, name=name, slot=slot, source=source)

        def answer(written: list[AppendResult]) -> Receipt:
            try:
                return strict.answer(written)
            except ConflictError:
                return Receipt(id, "conflict", repeated=True)

        return PendingWrite(strict.stream, strict.entries, answer)

    def activating(self, id: str) -> PendingWrite[Receipt]:  # noqa: A002 - the same word as in decide
        """Check an activation of a decision that exists."""
        self._live_state.check_answers()
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
