"""The part that bandits in memory and bandits with a store have in common."""

import logging
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from submax.bandit.settings import Settings
from submax.core.errors import StoreError
from submax.core.policy import Policy
from submax.core.summary import Summary
from submax.live.bandits.bandit_view import bandit_summary
from submax.live.fitting.learner import Learner
from submax.live.fitting.refit_result import RefitResult
from submax.live.log.bandits import log_stream, settings_stream
from submax.live.log.ledger import Ledger
from submax.live.lookup.believed_actions import BelievedActions
from submax.live.monitoring.rollups.rollups import Rollups
from submax.live.operating.current_probabilities import CurrentProbabilities
from submax.live.running.background import Background
from submax.live.serving.decision_draws import DecisionDraws
from submax.live.serving.live_state import DAMAGED, LiveState
from submax.live.serving.requests import Requests
from submax.live.serving.units.unit_draws import UnitDraws
from submax.live.store.event import AppendResult, Entry
from submax.live.store.pending_write import Answer, PendingWrite
from submax.live.store.store import Store
from submax.schema.actions import ActionSpec

LOG = logging.getLogger("submax")
WRITE_TIMEOUT_SECONDS = 30.0
"""How long a caller waits for a write to become durable before it gets an error."""


class BanditBase:
    """A store, the live state and a learner: what can be asked of a bandit, and how it ends."""

    _learner: Learner

    def _begin(
        self,
        store: Store,
        name: str,
        own: Policy[Any] | None,
        rng: np.random.Generator | None,
        clock: Callable[[], float],
    ) -> None:
        self.store, self.name, self._closed = store, name, False
        self._live_state = LiveState(store, name, own)
        self._rng = rng or np.random.default_rng()
        self._current = CurrentProbabilities()
        self._believed = BelievedActions(self._live_state)
        units = UnitDraws(store, log_stream(name), name, clock)
        draws = DecisionDraws(units, self._rng)
        self.requests = Requests(store, name, self._live_state, draws, units)
        self._background: list[Background] = []

    @property
    def settings(self) -> Settings:
        """The current settings."""
        return self._live_state.settings

    @property
    def menu(self) -> ActionSpec:
        """The actions with their current status."""
        return self._live_state.projection.menu

    @property
    def policy(self) -> Policy[Any]:
        """The policy by which the next version is fitted."""
        return self._live_state.policy

    @property
    def version(self) -> int:
        """The number of the version that decides; 0 before anything was learned."""
        return self._live_state.serving.version

    @property
    def published(self) -> int:
        """The version that was published last; if its model is damaged, an earlier one decides."""
        history = self._live_state.projection.published
        return history[-1].version if history else 0

    @property
    def published_at(self) -> list[float]:
        """The times at which a version began to decide, oldest first."""
        return list(self._live_state.projection.published_at)

    @property
    def held(self) -> bool:
        """Whether an operator chose the version, so that newer ones do not replace it."""
        return self._live_state.projection.held

    @property
    def deleted(self) -> bool:
        """Whether the bandit was deleted, here or by another process."""
        return self._live_state.deleted

    @property
    def damaged(self) -> int:
        """How often the model of a version was damaged and could not be used."""
        return self._live_state.failures[DAMAGED]

    @property
    def failures(self) -> dict[str, int]:
        """How often something failed and the bandit went on, by kind of failure."""
        steps = sum(one.failures for one in self._background)
        return {**self._live_state.failures, "steps in the background": steps}

    def counts(self) -> dict[str, int]:
        """Counts of events and outcomes of decisions; empty if another process reads the log."""
        return self._learner.counts()

    def follow(self) -> None:
        """Read new settings, choices and versions now, and not within a second."""
        self._live_state.follow()

    def refit(self) -> RefitResult:
        """Learn now from decisions that have matured; the result says what was learned or why not.

        With a store this fits a new version; in memory it updates the policy with all new rows,
        however few.
        """
        self._check_open()
        return self._learner.refit()

    def ledger(self) -> Ledger:
        """The ledger, after the whole log was read."""
        return self._learner.catch_up()

    def rollups(self) -> Rollups | None:
        """Sums of decisions and rewards by time, choice and version; see ``Rollups``.

        They are those of a moment ago. None if nothing has been counted yet.
        """
        return self._learner.rollups()

    def snapshot(self) -> None:
        """Write a snapshot of the ledger to the store, so that the next opening is quick."""
        self._learner.snapshot()

    def write(self, pending: PendingWrite[Answer]) -> Answer:
        """Append the entries of a pending write, wait until they are durable, and answer."""
        self._check_open()
        future = self.store.append(pending.stream, pending.entries)
        try:
            return pending.answer(future.result(WRITE_TIMEOUT_SECONDS))
        except TimeoutError as error:
            raise StoreError(
                f"the store did not answer within {WRITE_TIMEOUT_SECONDS:.0f} seconds: try again "
                "with the same id"
            ) from error

    def close(self) -> None:
        """Stop the background threads, write a snapshot, and close the store.

        A closed bandit refuses decisions and rewards; a second call does nothing.
        """
        if self._closed:
            return
        self.stop()
        self._closed = True
        self.store.close()

    def stop(self) -> None:
        """Stop the background threads and write a snapshot; the store stays open."""
        for one in self._background:
            one.stop()
        self._background = []
        try:
            self._learner.snapshot()
        except StoreError as error:
            # Without a snapshot the next opening takes longer, and nothing is lost.
            LOG.warning("no snapshot of %s: %s", self.name, error)
        if self.deleted:
            self.store.resign(self.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return str(self._summary())

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _summary(self) -> Summary:
        try:
            ledger = self._learner.ledger_if_read()
        except StoreError:
            ledger = None
        serving = self.requests.draws.ramped(self._live_state.serving)
        return bandit_summary(self.name, serving, ledger, self.failures)

    def _append_setting(self, entries: list[Entry]) -> list[AppendResult]:
        stream = settings_stream(self.name)
        written = self.write(PendingWrite(stream, entries, lambda written: written))
        self._live_state.follow()
        return written

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(
                f"the bandit {self.name!r} is closed and answers no more calls: open it again by "
                "submax.open, or load what was saved by submax.Bandit.load"
            )
