"""A bandit: it decides, receives rewards, and learns from them."""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np

from submax.bandit.decision import Decision, Receipt, UnknownDecisionWarning
from submax.bandit.rewards import LateRewardWarning
from submax.bandit.settings import STORE_ONLY, Actions, BanditOptions
from submax.core.errors import InputError
from submax.core.policy import Policy
from submax.live.background import BACKGROUND
from submax.live.bandits.managed_bandit import ManagedBandit
from submax.live.bandits.saved_bandit import SavedBandit, generator_at
from submax.live.declaring.declare import check_options, declare_in_memory
from submax.live.fitting.online_learner import OnlineLearner
from submax.live.fitting.refitter import Refitter
from submax.live.fitting.training.training_process import (
    TrainingProcess,
    shared_training_process,
)
from submax.live.running.background import Background
from submax.live.running.scheduler import Scheduler
from submax.live.store.memory_store import MemoryStore
from submax.live.store.pending_write import joined
from submax.live.store.store import Store
from submax.schema.trained_policy import TrainedPolicy

POLL_SECONDS = 0.2
"""Pause between two reads of a store: a change by another process is in force after it."""
MEMORY_NAME = "bandit"
"""The name of every bandit in memory, of which there is one in its store."""
DRAWING = 1
"""Put behind the seed of a bandit, so that decisions and fits have different random streams."""


class Bandit(ManagedBandit):
    """Decide, receive rewards, and learn from them.

    ``Bandit(actions)`` is in memory: it learns before the next decision, and ``save`` and ``load``
    keep it in a file. ``submax.open`` makes a bandit with a durable store, for rewards that come
    late: there, every method returns after its events are durable, and calls that wait at the same
    time share one transaction. All methods may be called from any thread.

    >>> bandit = Bandit(["A", "B", "C"], seed=1)
    >>> for _ in range(200):
    ...     decision = bandit.decide()
    ...     _ = bandit.reward(decision.id, float(decision.action == "B"))
    >>> bandit.decide().action
    'B'
    """

    def __init__(
        self,
        actions: Actions | None = None,
        *,
        learned: str | Path | TrainedPolicy | None = None,
        clock: Callable[[], float] = time.time,
        rng: np.random.Generator | None = None,
        **options: Unpack[BanditOptions],
    ) -> None:
        """A new bandit in memory.

        ``actions`` are names, or a table of slots, each with names of choices or (low, high). The
        ``options`` are those of ``submax.open``. If ``reward_wait`` is not given, it is 0: a
        decision is learned from when its reward comes, and never without a reward, unless
        ``no_reward_after`` is given. Decisions are drawn by ``rng``, or by a generator with
        ``seed`` if that is given.

        With ``learned``, a policy that was learned from a log or its file, the bandit has the
        actions, context, rewards and policy of the log unless they are given, is fitted to the rows
        that the learned policy kept, and goes on learning from these and its own.
        """
        if rng is not None and not isinstance(rng, np.random.Generator):
            raise InputError(
                f"rng must be a numpy.random.Generator, not {rng!r:.60}: leave it out, or give "
                "numpy.random.default_rng(1)",
                parameter="rng",
            )
        check_options(options)
        for word in STORE_ONLY:
            if word in options:
                raise InputError(
                    f"{word} was given, and a bandit in memory has no versions to fit: leave it "
                    "out, or use submax.open with a file; learn_share says how often it learns",
                    parameter=word,
                )
        store = MemoryStore(clock)
        declaration = {"reward_wait": 0.0, **options}
        if actions is not None:
            declaration["actions"] = actions
        start = None if learned is None else TrainedPolicy.given(learned)
        own = declare_in_memory(store, MEMORY_NAME, declaration, start)
        if rng is None and "seed" in options:
            rng = np.random.default_rng([options["seed"], DRAWING])
        self._begin(store, MEMORY_NAME, own, rng, clock)
        learner = OnlineLearner(store, MEMORY_NAME, self._live_state, clock)
        if start is not None:
            learner.start_from(start.rows)
        self._learner = learner

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

    def save(self, path: str | Path) -> None:
        """Write a bandit in memory into a file that ``load`` reads.

        The file is in the format safetensors and holds the declaration, the policy's state, the
        rows that are kept to learn from again, and the decisions whose rewards are still to come.
        An existing file is replaced as a whole.
        """
        learner = self._learner
        if not isinstance(learner, OnlineLearner):
            raise InputError(
                f"the bandit {self.name!r} has a store, which holds all of it already, and save is "
                "for bandits in memory: copy the store by submax backup"
            )
        if not Path(path).parent.is_dir():
            raise InputError(
                f"cannot save to {str(path)!r}: its folder must exist, so make the folder first"
            )
        learner.saved(self._rng).write(path, self.settings)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        policy: Policy[Any] | None = None,
        trust: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Read a bandit that ``save`` wrote; it decides and learns as the saved one would have.

        If its policy is an object that no table can describe, give an equal ``policy`` again. If
        the class of its policy is in somebody's own file or module, that code is run only with
        ``trust``.
        """
        saved, made = SavedBandit.read(path, policy, trust=trust)
        store = MemoryStore.from_contents(saved.logged(), clock)
        bandit = cls.__new__(cls)
        bandit._begin(store, MEMORY_NAME, made, generator_at(saved.generator), clock)
        learner = OnlineLearner(store, MEMORY_NAME, bandit._live_state, clock)
        learner.restore(saved)
        ramps = bandit._live_state.projection.ramps
        bandit.requests.draws.resume(learner.ledger.counts["decisions"], ramps)
        bandit._learner = learner
        return bandit

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
        self._learner.before_decision()
        with BACKGROUND.held_off():
            return self.write(
                self.requests.deciding(
                    context, id=id, eligible=eligible, activate=activate, unit=unit
                )
            )

    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """Make several decisions in one transaction; each request has arguments of ``decide``."""
        self._check_open()
        self._learner.before_decision()
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

        A reward for an unknown id waits in quarantine for its decision; see ``Receipt``. A bandit
        in memory gives an ``UnknownDecisionWarning`` as well.
        """
        pending = self.requests.rewarding(id, value, key=key, name=name, slot=slot)
        receipt = self.write(pending)
        self._warn([receipt])
        return receipt

    def reward_many(self, rewards: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        """Record several rewards in one transaction; each has the arguments of ``reward``.

        If another value was recorded before under the same id and key, the receipt has the status
        ``conflict``, and the other rewards are recorded.
        """
        receipts = self.write(self.requests.rewarding_many(rewards))
        self._warn(receipts)
        return receipts

    def _warn(self, receipts: list[Receipt]) -> None:
        """Warn of rewards that come too late and, in memory, of those whose decision is unknown.

        Decisions in a store may be made by other processes, so that a reward can come first.
        """
        sentence = self.requests.late.sentence(self.settings)
        if sentence is not None:
            warnings.warn(sentence, LateRewardWarning, stacklevel=3)
        unknown = [one.id for one in receipts if one.status == "quarantined"]
        if unknown and isinstance(self._learner, OnlineLearner):
            warnings.warn(UnknownDecisionWarning.about(unknown[0]), stacklevel=3)

    def activate(self, id: str) -> Receipt:  # noqa: A002 - the same word as in decide
        """Confirm a decision that was made with ``activate=False``: its action was carried out."""
        return self.write(self.requests.activating(id))
