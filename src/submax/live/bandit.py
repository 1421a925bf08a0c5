"""A bandit: it decides, hears of rewards, and learns from them."""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np

from submax.core.contracts.policy import Policy
from submax.core.errors import InputError
from submax.live.background import Background
from submax.live.declaring.declaration import Actions, Options
from submax.live.declaring.declare import check_words, declare
from submax.live.fitting.online_learner import OnlineLearner
from submax.live.fitting.refitter import Refitter
from submax.live.managed_bandit import ManagedBandit
from submax.live.saved_bandit import SavedBandit, generator_at
from submax.live.serving.decision import Decision, Receipt
from submax.live.serving.late_rewards import LateRewardWarning
from submax.live.serving.requests import ONLY
from submax.live.store.memory_store import MemoryStore
from submax.live.store.pending_write import joined
from submax.live.store.store import Store

POLL_SECONDS = 0.2
"""Between two looks at what is new in a store."""
MEMORY_NAME = "bandit"
"""The name of a bandit in memory."""
DRAWING = 1
"""Set beside a seed, so that decisions and fits have different random streams."""
WORDS_OF_VERSIONS = ("refit_rows", "refit_seconds", "keep_versions")
"""What can be declared only of a bandit with a store."""


class Bandit(ManagedBandit):
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
        if rng is not None and not isinstance(rng, np.random.Generator):
            raise InputError(
                f"rng must be a numpy.random.Generator, not {rng!r:.60}: leave it out, or give "
                "numpy.random.default_rng(1)"
            )
        check_words(options)
        for word in WORDS_OF_VERSIONS:
            if word in options:
                raise InputError(
                    f"{word} was given, and a bandit in memory has no versions to fit: leave it "
                    "out, or use submax.open with a file; learn_share says how often it learns"
                )
        store = MemoryStore(clock)
        declaration = {"reward_wait": 0.0, **options, "actions": actions}
        own = declare(store, MEMORY_NAME, declaration, new=True)
        if rng is None and "seed" in options:
            rng = np.random.default_rng([options["seed"], DRAWING])
        self._begin(store, MEMORY_NAME, own, rng)
        self._learner = OnlineLearner(store, MEMORY_NAME, self._live_state, clock)

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
        refitter = Refitter(store, name, bandit._live_state, clock)
        bandit._learner = refitter
        if bandit.settings.guard_rails.burn_in:
            bandit.requests.decided = refitter.catch_up().counts["decisions"]
        if background:
            bandit._beside = [
                Background(f"submax-settings-{name}", bandit._live_state.follow, POLL_SECONDS),
                Background(f"submax-refit-{name}", refitter.step, POLL_SECONDS),
            ]
        return bandit

    def save(self, path: str | Path) -> None:
        """Write a bandit in memory into a file, from which ``load`` makes it again.

        The file is in the format safetensors and holds the declaration, what was learned, what is
        needed to learn further, and the decisions whose rewards are still to come. A file that is
        there is replaced as a whole.
        """
        learner = self._learner
        if not isinstance(learner, OnlineLearner):
            raise InputError(
                f"the bandit {self.name!r} has a store, which holds all of it already, and save is "
                "for bandits in memory: copy the store by submax backup"
            )
        if not Path(path).parent.is_dir():
            raise InputError(
                f"cannot save to {str(path)!r}: its folder must be there, so make it first"
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
        learner = OnlineLearner(store, MEMORY_NAME, bandit._live_state, clock)
        learner.restore(saved)
        bandit.requests.decided = learner.ledger.counts["decisions"]
        bandit._learner = learner
        return bandit

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
