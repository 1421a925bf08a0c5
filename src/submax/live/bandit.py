"""A bandit that decides now and learns from rewards that come later."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import msgspec
import numpy as np

from submax.core.errors import Conflict, StoreUnavailable, Unknown
from submax.core.policy import Policy
from submax.live.background import Background
from submax.live.bandits import log_stream, settings_stream
from submax.live.decision import Decision, Receipt
from submax.live.event import Entry, Written
from submax.live.ledger import Ledger
from submax.live.present import DAMAGED, Present
from submax.live.records import CHOICE, PUBLISHED, Fitted, Published
from submax.live.refitter import Refitter
from submax.live.requests import ONLY, Requests
from submax.live.settings import Settings
from submax.live.store import Store
from submax.live.writing import Answer, Writing, joined
from submax.schema.action_features import clean_features
from submax.schema.choices import ARMS, STATUS, Change
from submax.schema.menu import Menu

LOG = logging.getLogger("submax")
POLL_SECONDS = 0.2
WAITING_SECONDS = 30.0
"""A store that takes longer than this does not answer."""


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
        self.store, self.name = store, name
        self._present = Present(store, name, policy)
        self._refitter = Refitter(store, name, self._present, clock)
        self.requests = Requests(
            store,
            log_stream(name),
            self._present,
            self._count_decided(),
            rng or np.random.default_rng(),
        )
        self._beside: list[Background] = []
        if background:
            self._beside = [
                Background(f"submax-settings-{name}", self._present.follow, POLL_SECONDS),
                Background(f"submax-refit-{name}", self._refitter.step, POLL_SECONDS),
            ]

    @property
    def settings(self) -> Settings:
        """As they stand."""
        return self._present.settings

    @property
    def menu(self) -> Menu:
        """The actions with their status."""
        return self._present.control.menu

    @property
    def policy(self) -> Policy[Any]:
        """The policy of the next version."""
        return self._present.policy

    @property
    def version(self) -> int:
        """The version that decides."""
        return self._present.serving.version

    @property
    def published(self) -> int:
        """The version that should decide; another does where its model is damaged."""
        history = self._present.control.published
        return history[-1].version if history else 0

    @property
    def held(self) -> bool:
        """Whether a person chose the version, so that newer ones do not take its place."""
        return self._present.control.held

    @property
    def damaged(self) -> int:
        """How often a model could not be used."""
        return self._present.failures[DAMAGED]

    @property
    def failures(self) -> dict[str, int]:
        """What went wrong without being refused, by kind."""
        steps = sum(one.failures for one in self._beside)
        return {**self._present.failures, "steps in the background": steps}

    def counts(self) -> dict[str, int]:
        """What was read of the log so far, by kind; empty where another process does this."""
        return self._refitter.counts()

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
        return self.write(
            self.requests.deciding(context, id=id, eligible=eligible, activate=activate)
        )

    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """The same for several at once; each request holds the arguments of ``decide``."""
        return self.write(joined([self.requests.deciding(**request) for request in requests]))

    def reward(self, id: str, value: float, *, key: str = ONLY) -> Receipt:  # noqa: A002 - the same word as in decide
        """Tell the reward of a decision; several of one decision have keys of their own."""
        return self.write(self.requests.rewarding(id, value, key=key))

    def reward_many(self, rewards: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        """The same for several at once; each holds the arguments of ``reward``.

        One that conflicts with what stands is told by its receipt, and the others are kept.
        """
        return self.write(self.requests.rewarding_many(rewards))

    def activate(self, id: str) -> Receipt:  # noqa: A002 - the same word as in decide
        """Say that a decision made with ``activate=False`` was shown."""
        return self.write(self.requests.activating(id))

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

    def add(
        self,
        choice: str,
        *,
        slot: str = ARMS,
        features: Mapping[str, float | str] | None = None,
    ) -> None:
        """Add an arm, or a choice to a slot; it is tried at once.

        If the choices have features, the new one must bring the same ones: ``features`` is a table
        of numbers and texts. A text that no other choice has is a new category.
        """
        cleaned = clean_features(choice, {} if features is None else features)
        self.change(Change("add", choice, slot, cleaned))

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
        self._present.follow()
        self.settings.guard_rails.check(self.menu.changed(change))
        key = f"choice {change.slot}\n{change.choice}" if change.verb == "add" else None
        entry = Entry(CHOICE, msgspec.msgpack.encode(change), key)
        (written,) = self._append_setting([entry])
        if not written.new:
            raise Conflict(f"{change.choice!r} is there already: the name of a choice is used once")
        # Someone else may have changed something at the same moment that does not go with this.
        if self.menu.status(change) != STATUS[change.verb]:
            raise Conflict(f"{change.choice!r} was changed by someone else just now: look again")

    def versions(self) -> list[Fitted]:
        """All versions, oldest first."""
        self._present.follow()
        return [fitted for _, fitted in sorted(self._present.control.versions.items())]

    def publish(self, version: int | None = None) -> int:
        """Let a version decide, and no newer one until this is called without a version.

        Without a version the newest decides, and those that follow.
        """
        self._present.follow()
        known = self._present.control.versions
        chosen = max(known, default=0) if version is None else version
        if chosen != 0 and chosen not in known:
            raise Unknown(f"there is no version {version!r}: the newest is {max(known, default=0)}")
        if chosen != 0:
            self._present.loaded(chosen)
        published = Published(chosen, held=version is not None)
        self._append_setting([Entry(PUBLISHED, msgspec.msgpack.encode(published))])
        return chosen

    def roll_back(self) -> int:
        """Let the last version decide that was published before the present one was fitted."""
        self._present.follow()
        history = [one.version for one in self._present.control.published]
        if not history:
            raise Conflict("no version was published yet, so that there is none to go back to")
        return self.publish(max((one for one in history if one < history[-1]), default=0))

    def refit(self) -> Fitted | None:
        """Fit a version now, from what has matured; None where nothing is new."""
        return self._refitter.refit()

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
        self._present.follow()
        return written

    def _count_decided(self) -> int:
        """Enough to know whether the burn-in is over."""
        if self.settings.guard_rails.burn_in == 0:
            return 0
        return self._refitter.catch_up().counts["decisions"]
