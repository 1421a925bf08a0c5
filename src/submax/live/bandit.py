"""A bandit that decides now and learns from rewards that come later."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, Self

import msgspec
import numpy as np

from submax.core.errors import Conflict, InvalidValue, StoreUnavailable, Unknown
from submax.core.policy import Policy
from submax.live.background import Background
from submax.live.context_schema import LARGEST
from submax.live.control import Control
from submax.live.decision import Decision, Receipt
from submax.live.event import Entry, Written
from submax.live.ledger import Ledger
from submax.live.menu import ARMS, Change, Menu
from submax.live.model import Model
from submax.live.names import check_identifier, new_identifier
from submax.live.records import (
    ACTIVATION,
    CHOICE,
    DECISION,
    PUBLISHED,
    REWARD,
    DecisionMade,
    Fitted,
    Published,
    RewardGiven,
    activation_key,
    body_of,
    decision_key,
    identifier_of,
    reward_key,
)
from submax.live.refitter import Refitter, log_stream, model_name, settings_stream
from submax.live.serving import Serving
from submax.live.settings import Settings, policy_of
from submax.live.store import Store
from submax.live.writing import Answer, Writing

LOG = logging.getLogger("submax")
MOST_AT_ONCE = 1000
"""Decisions or rewards in one call."""
POLL_SECONDS = 0.2
WAITING_SECONDS = 30.0
"""A store that takes longer than this does not answer."""
ENCODER = msgspec.msgpack.Encoder()
ONLY = "reward"
"""The key of a decision's reward where it has one alone."""


class Bandit:
    """Decide, reward, and the rest; made by ``submax.open``.

    Every method returns after what it did is durable. All may be called from any thread; calls
    that wait at the same time are made durable together.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        *,
        policy: Policy[Any] | None = None,
        background: bool = True,
        clock: Callable[[], float] = time.time,
        rng: np.random.Generator | None = None,
    ) -> None:
        declared = store.find(settings_stream(name), "declared")
        if declared is None:
            raise Unknown(f"there is no bandit {name!r} in this store: declare its actions")
        self.store, self.name = store, name
        self.damaged = 0
        self._own = policy
        self._rng = rng or np.random.default_rng()
        self._control = Control(declared, lambda after: store.read(settings_stream(name), after))
        self._controlling, self._fitting = Lock(), Lock()
        self._follow()
        self._refitter = Refitter(store, name, lambda: self._control, lambda: self._policy, clock)
        self._decided = self._count_decided()
        self._beside: list[Background] = []
        if background:
            self._beside = [
                Background(f"submax-settings-{name}", self._follow_news, POLL_SECONDS),
                Background(f"submax-refit-{name}", self._refitter_step, POLL_SECONDS),
            ]

    @property
    def settings(self) -> Settings:
        """As they stand."""
        return self._control.settings

    @property
    def menu(self) -> Menu:
        """The actions with their status."""
        return self._control.menu

    @property
    def policy(self) -> Policy[Any]:
        """The policy of the next version."""
        return self._policy

    @property
    def version(self) -> int:
        """The version that decides."""
        return self._serving.version

    @property
    def published(self) -> int:
        """The version that should decide; another does where its model is damaged."""
        return self._control.published[-1].version if self._control.published else 0

    @property
    def held(self) -> bool:
        """Whether a person chose the version, so that newer ones do not take its place."""
        return self._control.held

    def counts(self) -> dict[str, int]:
        """What was read of the log so far, by kind; empty where another process does this."""
        return self._refitter.counts()

    @property
    def failures(self) -> int:
        """How often a step in the background failed."""
        return sum(one.failures for one in self._beside)

    def decide(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the word that callers know
        eligible: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        activate: bool = True,
    ) -> Decision:
        """Choose an action.

        The same ``id`` again gives the same decision. ``eligible`` are the names that may be
        chosen, of arms or of some slots. With ``activate=False`` the decision is learned from only
        if ``activate`` is called before ``reward_wait`` is over.
        """
        return self.write(self.deciding(context, id=id, eligible=eligible, activate=activate))

    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """The same for several at once; each request holds the arguments of ``decide``."""
        return self.write(joined([self.deciding(**request) for request in _few(requests)]))

    def reward(self, id: str, value: float, *, key: str = ONLY) -> Receipt:  # noqa: A002
        """Tell the reward of a decision; several of one decision have keys of their own."""
        return self.write(self.rewarding(id, value, key=key))

    def reward_many(self, rewards: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        """The same for several at once; each holds the arguments of ``reward``."""
        return self.write(joined([self.rewarding(**reward) for reward in _few(rewards)]))

    def activate(self, id: str) -> Receipt:  # noqa: A002
        """Say that a decision made with ``activate=False`` was shown."""
        return self.write(self.activating(id))

    def write(self, writing: Writing[Answer]) -> Answer:
        """Wait until it is durable."""
        future = self.store.append(writing.stream, writing.entries)
        try:
            return writing.answer(future.result(WAITING_SECONDS))
        except TimeoutError as error:
            raise StoreUnavailable(
                f"the store did not answer within {WAITING_SECONDS:.0f} seconds: try again with "
                "the same id"
            ) from error

    def deciding(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,  # noqa: A002
        eligible: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        activate: bool = True,
    ) -> Writing[Decision]:
        """A decision that is drawn but not yet written."""
        if id is None:
            id = new_identifier()  # noqa: A001
        else:
            check_identifier("the id of a decision", id)
        if not isinstance(activate, bool):
            raise InvalidValue(f"activate must be true or false, not {activate!r:.60}")
        made = self._made(context, eligible, activate)
        entry = Entry(DECISION, ENCODER.encode(made), decision_key(id))
        return Writing(log_stream(self.name), [entry], self._decision)

    def _made(self, context: object, eligible: object, activate: bool) -> DecisionMade:
        serving = self._serving
        values = serving.settings.context.clean(context)
        shown = serving.active if eligible is None else serving.menu.eligible(eligible)
        rails = serving.settings.guard_rails
        held_out = rails.holdout > 0 and self._rng.random() < rails.holdout
        if held_out:
            drawn = serving.baseline()
        else:
            drawn = serving.draw(values, shown, self._decided < rails.burn_in, self._rng)
        self._decided += 1
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
        return Decision(
            identifier_of(event.key or ""),
            self._control.menu.action(made.action),
            made.propensity,
            made.version,
            made.holdout,
            not written[0].new,
        )

    def rewarding(self, id: str, value: float, *, key: str = ONLY) -> Writing[Receipt]:  # noqa: A002
        """A reward that is checked but not yet written."""
        check_identifier("the id of a decision", id)
        check_identifier("the key of a reward", key)
        if not isinstance(value, (int, float)) or not -LARGEST <= value <= LARGEST:
            raise InvalidValue(f"a reward must be a finite number, not {value!r:.60}")
        value = float(value)
        self._scale.check(np.array([value]))
        entry = Entry(
            REWARD, ENCODER.encode(RewardGiven(value)), reward_key(id, key), decision_key(id)
        )

        def answer(written: list[Written]) -> Receipt:
            standing = body_of(written[0].event, RewardGiven).value
            if standing != value:
                raise Conflict(
                    f"decision {id!r} already has the reward {standing} under the key {key!r}, so "
                    f"that {value} was not stored: give another key to add to it"
                )
            return self._receipt(id, written[0])

        return Writing(log_stream(self.name), [entry], answer)

    def activating(self, id: str) -> Writing[Receipt]:  # noqa: A002
        """An activation that is not yet written."""
        check_identifier("the id of a decision", id)
        if self.store.find(log_stream(self.name), decision_key(id)) is None:
            raise Unknown(f"there is no decision {id!r} to activate")
        entry = Entry(ACTIVATION, b"", activation_key(id), decision_key(id))
        stream = log_stream(self.name)
        return Writing(stream, [entry], lambda written: self._receipt(id, written[0]))

    def _receipt(self, identifier: str, written: Written) -> Receipt:
        event = written.event
        status = "accepted"
        if event.about_position == 0:
            status = "quarantined"
        elif event.at - event.about_at >= self.settings.reward_wait:
            status = "late"
        return Receipt(identifier, status, not written.new)

    def add(self, choice: str, *, slot: str = ARMS) -> None:
        """Add an arm, or a choice to a slot; it is tried at once."""
        self.change(Change("add", choice, slot))

    def pause(self, choice: str, *, slot: str = ARMS) -> None:
        """Show a choice no more until ``resume``."""
        self.change(Change("pause", choice, slot))

    def resume(self, choice: str, *, slot: str = ARMS) -> None:
        """Show a paused choice again."""
        self.change(Change("resume", choice, slot))

    def retire(self, choice: str, *, slot: str = ARMS) -> None:
        """Show a choice no more; its name is never used again."""
        self.change(Change("retire", choice, slot))

    def change(self, change: Change) -> None:
        """Do what a change says."""
        self._follow_news()
        self._control.menu.changed(change)
        key = f"choice {change.slot}\n{change.choice}" if change.verb == "add" else None
        entry = Entry(CHOICE, msgspec.msgpack.encode(change), key)
        (written,) = self._append_setting([entry])
        if not written.new:
            raise Conflict(f"{change.choice!r} is there already: the name of a choice is used once")

    def versions(self) -> list[Fitted]:
        """All versions, oldest first."""
        self._follow_news()
        return [self._control.versions[number] for number in sorted(self._control.versions)]

    def publish(self, version: int | None = None) -> int:
        """Let a version decide, and no newer one until this is called without a version.

        Without a version the newest decides, and those that follow.
        """
        self._follow_news()
        known = self._control.versions
        chosen = max(known, default=0) if version is None else version
        if chosen != 0 and chosen not in known:
            raise Unknown(f"there is no version {version!r}: there are {len(known)}, 1 and up")
        if chosen != 0:
            self._loaded(chosen)
        published = Published(chosen, held=version is not None)
        self._append_setting([Entry(PUBLISHED, msgspec.msgpack.encode(published))])
        return chosen

    def roll_back(self) -> int:
        """Let the version decide that did before the present one."""
        self._follow_news()
        history = [one.version for one in self._control.published]
        earlier = [version for version in history if version != history[-1]]
        if not history:
            raise Conflict("no version was published yet, so that there is none to go back to")
        return self.publish(earlier[-1] if earlier else 0)

    def refit(self) -> Fitted | None:
        """Fit a version now, from what has matured; None where nothing is new."""
        with self._fitting:
            fitted = self._refitter.refit()
            self._follow_news()
        return fitted

    def ledger(self) -> Ledger:
        """What the log says up to now."""
        return self._refitter.catch_up()

    def snapshot(self) -> None:
        """Keep what is known, so that the next opening is quick."""
        self._refitter.snapshot()

    def close(self) -> None:
        """Stop what runs beside, keep what is known, and close the store."""
        self.stop()
        self.store.close()

    def stop(self) -> None:
        """The same, but the store stays open."""
        for one in self._beside:
            one.stop()
        self._beside = []
        try:
            self._refitter.snapshot()
        except StoreUnavailable as error:
            # A snapshot saves time, not data.
            LOG.warning("no snapshot of %s: %s", self.name, error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _append_setting(self, entries: list[Entry]) -> list[Written]:
        stream = settings_stream(self.name)
        written = self.write(Writing(stream, entries, lambda written: written))
        self._follow_news()
        return written

    def _refitter_step(self) -> None:
        # The next fit must know of this one, or it would take the same number.
        with self._fitting:
            if self._refitter.step() is not None:
                self._follow_news()

    def _follow_news(self) -> None:
        with self._controlling:
            if self._control.follow():
                self._renew()

    def _follow(self) -> None:
        with self._controlling:
            self._control.follow()
            self._renew()

    def _renew(self) -> None:
        """Decide by the settings, choices and version as they are now."""
        control = self._control
        self._policy = policy_of(control.settings.policy, self._own)
        self._scale = control.settings.scale
        version, policy, model = self._best()
        self._serving = Serving(control.settings, control.menu, policy, model, version)

    def _best(self) -> tuple[int, Policy[Any], Model]:
        """The published version, or the last one before it whose model is whole."""
        control = self._control
        for published in reversed(control.published):
            if published.version == 0:
                break
            try:
                return published.version, *self._loaded(published.version)
            except InvalidValue as error:
                self.damaged += 1
                LOG.warning("%s: version %d: %s", self.name, published.version, error)
        fresh = Model.fresh(control.settings, control.menu, self._policy)
        return 0, self._policy, fresh

    def _loaded(self, version: int) -> tuple[Policy[Any], Model]:
        fitted = self._control.versions[version]
        data = self.store.kept(model_name(self.name, version))
        if data is None:
            raise Unknown(f"the model of version {version} is no longer kept")
        policy = policy_of(fitted.policy, self._own)
        return policy, Model.from_bytes(data, fitted.model, policy)

    def _count_decided(self) -> int:
        """Enough to know whether the burn-in is over."""
        if self.settings.guard_rails.burn_in == 0:
            return 0
        return self._refitter.catch_up().counts["decisions"]


def joined(writings: Sequence[Writing[Answer]]) -> Writing[list[Answer]]:
    """Several as one, all written or none."""
    if not writings:
        raise InvalidValue("there must be at least one request")

    def answer(written: list[Written]) -> list[Answer]:
        rest = iter(written)
        return [one.answer([next(rest) for _ in one.entries]) for one in writings]

    entries = [entry for one in writings for entry in one.entries]
    return Writing(writings[0].stream, entries, answer)


def _few(requests: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    found = list(requests)
    if len(found) > MOST_AT_ONCE:
        raise InvalidValue(f"at most {MOST_AT_ONCE} in one call, not {len(found)}")
    return found
