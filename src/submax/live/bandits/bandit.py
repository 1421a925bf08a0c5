"""A bandit: it decides, receives rewards, and learns from them."""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from submax.bandit.decision import Decision, Receipt
from submax.bandit.rewards import LateRewardWarning
from submax.core.policy import Policy
from submax.live.background import BACKGROUND
from submax.live.bandits.managed_bandit import ManagedBandit
from submax.live.fitting.refitter import Refitter
from submax.live.fitting.training.training_process import (
    TrainingProcess,
    shared_training_process,
)
from submax.live.running.background import Background
from submax.live.running.scheduler import Scheduler
from submax.live.store.pending_write import joined
from submax.live.store.store import Store

POLL_SECONDS = 0.2
"""Pause between two reads of a store: a change by another process is in force after it."""


class LiveBandit(ManagedBandit):
    """A bandit with a durable store: decide, receive rewards, and learn from them.

    Every method returns after its events are durable, and calls that wait at the same time share
    one transaction. All methods may be called from any thread. ``submax.open`` makes it.
    """

    @classmethod
    def of_store(
        cls,
        store: Store,
        name: str,
        *,
        policy: Policy[Any] | None = None,
        background: bool = True,
        scheduler: Scheduler | None = None,
        clock: Callable[[], float] = time.time,
        rng: np.random.Generator | None = None,
        training: TrainingProcess | None = None,
    ) -> Self:
        """Open a bandit that is declared in a store; ``submax.open`` declares it and calls this.

        With a ``scheduler`` it has no threads of its own, but shares those of other bandits. A
        policy that trains models does so in the ``training`` process; if none is given, in one that
        all bandits of this process share. With a store in memory it is trained in this process.
        """
        if store.place is None:
            training = None
        elif training is None:
            training = shared_training_process()
        bandit = cls.__new__(cls)
        bandit._begin(store, name, policy, rng, clock)
        refitter = Refitter(store, name, bandit._live_state, clock, training)
        bandit._learner = refitter
        bandit._alarm_log = refitter.alarms.log
        ramps = bandit._live_state.projection.ramps
        if bandit.settings.guard_rails.burn_in or ramps:
            decided = refitter.catch_up().counts["decisions"]
            bandit.requests.draws.resume(decided, ramps)
        if background:
            bandit._start_background(refitter, scheduler)
        return bandit

    def _start_background(self, refitter: Refitter, scheduler: Scheduler | None) -> None:
        """Follow the settings and fit versions, beside decisions."""
        self._background = [
            Background(
                f"submax-settings-{self.name}",
                self._live_state.follow,
                POLL_SECONDS,
                scheduler=scheduler,
                has_work=self._live_state.may_have_changed,
            ),
            Background(
                f"submax-refit-{self.name}",
                refitter.step,
                POLL_SECONDS,
                scheduler=scheduler,
                has_work=refitter.has_work,
            ),
        ]

    def decide(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the word that callers know
        eligible: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        activate: bool = True,
        unit: str | None = None,
    ) -> Decision:
        """Choose an action.

        If a decision with this ``id`` exists, it is returned again and nothing is written. (Ids are
        remembered for ``archive_after`` seconds.)
        ``eligible`` are the names of the arms that may be chosen, or a table of slots with such
        names. With ``activate=False`` the decision is learned from only if ``activate`` is called
        before ``reward_wait`` is over.

        ``unit`` names the visitor or customer for whom the decision is made. As long as the setting
        ``sticky`` says, a unit gets the same action, and it is always in the same group: held out
        or not, with the control or not.
        """
        self._check_open()
        with BACKGROUND.held_off():
            return self.write(
                self.requests.deciding(
                    context, id=id, eligible=eligible, activate=activate, unit=unit
                )
            )

    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """Make several decisions in one transaction; each request has arguments of ``decide``."""
        self._check_open()
        with BACKGROUND.held_off():
            return self.write(joined(self.requests.deciding_many(requests)))

    def reward(
        self,
        id: str,  # noqa: A002 - the same word as in decide
        value: float | Mapping[str, float] | Sequence[float],
        *,
        key: str | None = None,
        name: str | None = None,
        slot: str | None = None,
    ) -> Receipt:
        """Record a reward of a decision; if a decision has several, each needs its own ``key``.

        If rewards were declared with names, give the ``name`` of this one, or a table of names as
        the ``value``; its key is then its name, unless one is given. If every slot has a reward,
        give the ``slot``, a table of slots, or a list with one reward for each slot.

        A reward for an unknown id waits in quarantine for its decision; see ``Receipt``.
        """
        pending = self.requests.rewarding(id, value, key=key, name=name, slot=slot)
        receipt = self.write(pending)
        self._warn()
        return receipt

    def reward_many(self, rewards: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        """Record several rewards in one transaction; each has the arguments of ``reward``.

        If another value was recorded before under the same id and key, the receipt has the status
        ``conflict``, and the other rewards are recorded.
        """
        receipts = self.write(self.requests.rewarding_many(rewards))
        self._warn()
        return receipts

    def _warn(self) -> None:
        """Warn of rewards that come too late.

        Decisions in a store may be made by other processes, so that a reward can come first.
        """
        sentence = self.requests.late.sentence(self.settings)
        if sentence is not None:
            warnings.warn(sentence, LateRewardWarning, stacklevel=3)

    def activate(self, id: str) -> Receipt:  # noqa: A002 - the same word as in decide
        """Confirm a decision that was made with ``activate=False``: its action was carried out."""
        return self.write(self.requests.activating(id))
