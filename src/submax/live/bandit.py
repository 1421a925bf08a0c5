"""A bandit that decides now and learns from rewards that come later."""

import logging
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, Unpack

import msgspec
import numpy as np

from submax.core.errors import Conflict, InvalidValue, StoreUnavailable, Unknown
from submax.core.policy import Policy
from submax.core.summary import Summary
from submax.live.background import Background
from submax.live.bandit_view import bandit_summary
from submax.live.bandits import log_stream, settings_stream
from submax.live.decision import Decision, Receipt
from submax.live.declaration import Actions, Options
from submax.live.declare import check_words, declare
from submax.live.event import Entry, Written
from submax.live.late_rewards import LateRewardWarning
from submax.live.learner import Learner
from submax.live.ledger import Ledger
from submax.live.memory_store import MemoryStore
from submax.live.online_learner import OnlineLearner
from submax.live.present import DAMAGED, Present
from submax.live.records import CHOICE, PUBLISHED, Fitted, Published
from submax.live.refit_result import RefitResult
from submax.live.refitter import Refitter
from submax.live.requests import ONLY, Requests
from submax.live.saved_bandit import SavedBandit, generator_at
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
MEMORY_NAME = "bandit"
"""The name of a bandit in memory."""
DRAWING = 1
"""Set beside a seed, so that decisions and fits have different random streams."""
WORDS_OF_VERSIONS = ("refit_rows", "refit_seconds", "keep_versions")
"""What can be declared only of a bandit with a store."""


class Bandit:
    """Decide, hear of rewards, and learn from them.

    ``Bandit(actions)`` is in memory: it learns from every reward at once, and ``save`` and ``load``
    keep it in a file. ``submax.open`` makes one with a durable store and late rewards: there, every
    method returns after what it did is durable, and calls that wait at the same time are made
    durable together. All methods may be called from any thread.

    >>> bandit = Bandit(["A", "B", "C"], seed=1)
    >>> for _ in range(200):
    ...     decision = bandit.decide()
    ...     _ = bandit.reward(decision.id, float(decision.action == "B"))
    >>> bandit.decide().action
    'B'
    """

    def __init__(
        self,
        actions: Actions,
        *,
        clock: Callable[[], float] = time.time,
        rng: np.random.Generator | None = None,
        **options: Unpack[Options],
    ) -> None:
        """A new bandit in memory.

        ``actions`` are names, or a table of slots, each with names of choices or (low, high). The
        ``options`` are those of ``submax.open``. If ``reward_wait`` is not given, it is 0: a
        decision is learned from when its reward comes, and never without a reward, unless
        ``no_reward_after`` is given. Decisions are drawn by ``rng``, or by ``seed`` if that is
        given.
        """
        check_words(options)
        for word in WORDS_OF_VERSIONS:
            if word in options:
                raise InvalidValue(
                    f"{word} was given, and a bandit in memory has no versions to fit: leave it "
                    "out, or use submax.open with a file; learn_share says how often it learns"
                )
        store = MemoryStore(clock)
        declaration = {"reward_wait": 0.0, **options, "actions": actions}
        own = declare(store, MEMORY_NAME, declaration, new=True)
        if rng is None and "seed" in options:
            rng = np.random.default_rng([options["seed"], DRAWING])
        self._begin(store, MEMORY_NAME, own, rng)
        self._learner: Learner = OnlineLearner(store, MEMORY_NAME, self._present, clock)

    @classmethod
    def of_store(
        cls,
        store: Store,
        name: str,
        *,
        policy: Policy[Any] | None = None,
        background: bool = True,
        clock: Callable[[], float] = time.time,
        rng: np.random.Generator | None = None,
    ) -> Self:
        """The bandit that was declared in a store; ``submax.open`` declares it and calls this."""
        bandit = cls.__new__(cls)
        bandit._begin(store, name, policy, rng)
        refitter = Refitter(store, name, bandit._present, clock)
        bandit._learner = refitter
        if bandit.settings.guard_rails.burn_in:
            bandit.requests.decided = refitter.catch_up().counts["decisions"]
        if background:
            bandit._beside = [
                Background(f"submax-settings-{name}", bandit._present.follow, POLL_SECONDS),
                Background(f"submax-refit-{name}", refitter.step, POLL_SECONDS),
            ]
        return bandit

    def _begin(
        self, store: Store, name: str, own: Policy[Any] | None, rng: np.random.Generator | None
    ) -> None:
        self.store, self.name, self._closed = store, name, False
        self._present = Present(store, name, own)
        self._rng = rng or np.random.default_rng()
        self.requests = Requests(store, log_stream(name), self._present, self._rng)
        self._beside: list[Background] = []

    def save(self, path: str | Path) -> None:
        """Write a bandit in memory into a file, from which ``load`` makes it again.

        The file is in the format safetensors and holds the declaration, what was learned, what is
        needed to learn further, and the decisions whose rewards are still to come. A file that is
        there is replaced as a whole.
        """
        learner = self._learner
        if not isinstance(learner, OnlineLearner):
            raise InvalidValue(
                f"the bandit {self.name!r} has a store, which holds all of it already, and save is "
                "for bandits in memory: copy the store by submax backup"
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
        """The bandit that ``save`` wrote; it decides and learns as that one would have.

        If its policy was given as an object, give the same ``policy`` again. If its policy is a
        file of code, that file is run only with ``trust``.
        """
        saved, made = SavedBandit.read(path, policy, trust=trust)
        store = MemoryStore.from_contents(saved.logged(), clock)
        bandit = cls.__new__(cls)
        bandit._begin(store, MEMORY_NAME, made, generator_at(saved.generator))
        learner = OnlineLearner(store, MEMORY_NAME, bandit._present, clock)
        learner.restore(saved)
        bandit.requests.decided = learner.ledger.counts["decisions"]
        bandit._learner = learner
        return bandit

    def __repr__(self) -> str:
        return str(self._summary())

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _summary(self) -> Summary:
        try:
            ledger = self._learner.known()
        except StoreUnavailable:
            ledger = None
        return bandit_summary(self.name, self._present.serving, ledger)

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
        return self._learner.counts()

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
        self._check_open()
        self._learner.before_decision()
        return self.write(
            self.requests.deciding(context, id=id, eligible=eligible, activate=activate)
        )

    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """The same for several at once; each request holds the arguments of ``decide``."""
        self._check_open()
        self._learner.before_decision()
        return self.write(joined([self.requests.deciding(**request) for request in requests]))

    def reward(self, id: str, value: float, *, key: str = ONLY) -> Receipt:  # noqa: A002 - the same word as in decide
        """Tell the reward of a decision; several of one decision have keys of their own."""
        receipt = self.write(self.requests.rewarding(id, value, key=key))
        self._warn_if_late()
        return receipt

    def reward_many(self, rewards: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        """The same for several at once; each holds the arguments of ``reward``.

        One that conflicts with what stands is told by its receipt, and the others are kept.
        """
        receipts = self.write(self.requests.rewarding_many(rewards))
        self._warn_if_late()
        return receipts

    def _warn_if_late(self) -> None:
        sentence = self.requests.late.sentence(self.settings)
        if sentence is not None:
            warnings.warn(sentence, LateRewardWarning, stacklevel=3)

    def activate(self, id: str) -> Receipt:  # noqa: A002 - the same word as in decide
        """Say that a decision made with ``activate=False`` was shown."""
        return self.write(self.requests.activating(id))

    def write(self, writing: Writing[Answer]) -> Answer:
        """Wait until it is durable."""
        self._check_open()
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
        self._check_versions()
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
        self._check_versions()
        self._present.follow()
        history = [one.version for one in self._present.control.published]
        if not history:
            raise Conflict("no version was published yet, so that there is none to go back to")
        return self.publish(max((one for one in history if one < history[-1]), default=0))

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

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable(
                f"the bandit {self.name!r} is closed and answers no more calls: open it again by "
                "submax.open, or load what was saved by submax.Bandit.load"
            )

    def _check_versions(self) -> None:
        if isinstance(self._learner, OnlineLearner):
            raise InvalidValue(
                "a bandit in memory keeps no versions to choose from; one with a store does: use "
                "submax.open with a file, or save this one before it learns further"
            )
