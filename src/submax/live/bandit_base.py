"""What every bandit has, wherever it is kept and however it learns."""

import logging
from typing import Any, Self

import numpy as np

from submax.core.contracts.policy import Policy
from submax.core.errors import StoreError
from submax.core.summary import Summary
from submax.live.background import Background
from submax.live.bandit_view import bandit_summary
from submax.live.declaring.settings import Settings
from submax.live.fitting.learner import Learner
from submax.live.fitting.refit_result import RefitResult
from submax.live.log.bandits import log_stream, settings_stream
from submax.live.log.ledger import Ledger
from submax.live.serving.live_state import DAMAGED, LiveState
from submax.live.serving.requests import Requests
from submax.live.store.event import AppendResult, Entry
from submax.live.store.pending_write import Answer, PendingWrite
from submax.live.store.store import Store
from submax.schema.menu import Menu

LOG = logging.getLogger("submax")
WAITING_SECONDS = 30.0
"""A store that takes longer than this does not answer."""


class BanditBase:
    """A store, the settings as they stand, and a learner; what it knows and how it ends."""

    _learner: Learner

    def _begin(
        self, store: Store, name: str, own: Policy[Any] | None, rng: np.random.Generator | None
    ) -> None:
        self.store, self.name, self._closed = store, name, False
        self._live_state = LiveState(store, name, own)
        self._rng = rng or np.random.default_rng()
        self.requests = Requests(store, log_stream(name), self._live_state, self._rng)
        self._beside: list[Background] = []

    @property
    def settings(self) -> Settings:
        """As they stand."""
        return self._live_state.settings

    @property
    def menu(self) -> Menu:
        """The actions with their status."""
        return self._live_state.projection.menu

    @property
    def policy(self) -> Policy[Any]:
        """The policy of the next version."""
        return self._live_state.policy

    @property
    def version(self) -> int:
        """The version that decides."""
        return self._live_state.serving.version

    @property
    def published(self) -> int:
        """The version that should decide; another does where its model is damaged."""
        history = self._live_state.projection.published
        return history[-1].version if history else 0

    @property
    def held(self) -> bool:
        """Whether a person chose the version, so that newer ones do not take its place."""
        return self._live_state.projection.held

    @property
    def damaged(self) -> int:
        """How often a model could not be used."""
        return self._live_state.failures[DAMAGED]

    @property
    def failures(self) -> dict[str, int]:
        """What went wrong without being refused, by kind."""
        steps = sum(one.failures for one in self._beside)
        return {**self._live_state.failures, "steps in the background": steps}

    def counts(self) -> dict[str, int]:
        """What was read of the log so far, by kind; empty where another process does this."""
        return self._learner.counts()

    def refit(self) -> RefitResult:
        """Learn now from what has matured; the result says what was learned, or why nothing was.

        With a store this fits a new version; in memory it updates the policy with all rows that are
        new, however few.
        """
        self._check_open()
        return self._learner.refit()

    def ledger(self) -> Ledger:
        """What the log says up to now."""
        return self._learner.catch_up()

    def snapshot(self) -> None:
        """Keep what is known, so that the next opening is quick."""
        self._learner.snapshot()

    def write(self, writing: PendingWrite[Answer]) -> Answer:
        """Wait until it is durable."""
        self._check_open()
        future = self.store.append(writing.stream, writing.entries)
        try:
            return writing.answer(future.result(WAITING_SECONDS))
        except TimeoutError as error:
            raise StoreError(
                f"the store did not answer within {WAITING_SECONDS:.0f} seconds: try again with "
                "the same id"
            ) from error

    def close(self) -> None:
        """Stop what runs beside, keep what is known, and close the store.

        A closed bandit refuses to decide and to hear of rewards; a second call does nothing.
        """
        if self._closed:
            return
        self.stop()
        self._closed = True
        self.store.close()

    def stop(self) -> None:
        """The same, but the store stays open."""
        for one in self._beside:
            one.stop()
        self._beside = []
        try:
            self._learner.snapshot()
        except StoreError as error:
            # A snapshot saves time, not data.
            LOG.warning("no snapshot of %s: %s", self.name, error)

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
            ledger = self._learner.known()
        except StoreError:
            ledger = None
        return bandit_summary(self.name, self._live_state.serving, ledger)

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
