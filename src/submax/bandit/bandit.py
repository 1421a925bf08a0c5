"""A bandit in memory: it decides, receives rewards, and learns from them."""

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from threading import RLock
from typing import Any, Self, Unpack

import msgspec
import numpy as np

from submax.bandit.active_version import ActiveVersion
from submax.bandit.arms import (
    AVERAGED_CONTEXTS,
    ArmStatus,
    arm_statuses,
    bandit_summary,
    rail_notices,
    unknown_notices,
)
from submax.bandit.decision import Decision, LiftReport, Receipt
from submax.bandit.drawing import CheckedRequest, DrawnDecision, Draws, Pin, Pins, checked_request
from submax.bandit.face import BanditFace
from submax.bandit.guard_rails import Ramp
from submax.bandit.learning import Learner, RefitResult, why_nothing_matured
from submax.bandit.lift import lift_reports
from submax.bandit.maturing import Decisions, DecisionsState, MadeDecision
from submax.bandit.names import check_identifier
from submax.bandit.rewards import RewardValues
from submax.bandit.saving import KIND, SavedBandit, decoded, generator_at, generator_state
from submax.bandit.settings import (
    STORE_ONLY,
    Actions,
    BanditOptions,
    Settings,
    Status,
    changed_choices,
    changed_settings,
    check_options,
    custom_policy,
    new_settings,
    warn_if_context_is_ignored,
)
from submax.core.errors import ConflictError, InputError
from submax.core.policy import Policy
from submax.core.summary import Summary, counted
from submax.schema.actions import ActionSpec, Change
from submax.schema.trained_policy import PolicyFacts, TrainedPolicy, read_with_policy

NAME = "bandit"
"""The name of every bandit in memory."""
DRAWING = 1
"""Put behind the seed of a bandit, so decisions and fits have different random streams."""
PINS_KEPT = 100_000
"""Pins of units that are remembered; the oldest are forgotten first."""


class BanditRecord(msgspec.Struct):
    """What a bandit is besides its policy's state, as it is saved."""

    settings: Settings
    menu: ActionSpec
    ramps: tuple[Ramp, ...] = ()
    groups_since: int = 0
    decisions: DecisionsState | None = None
    pins: list[Pin] = []


class Bandit(BanditFace):
    """Decide, receive rewards, and learn from them, in memory.

    The bandit learns before the next decision; ``save`` and ``load`` keep it in a file.
    ``submax.open`` opens a bandit with a durable store, for rewards that arrive late. All methods
    may be called from any thread.

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
        ``options`` are those of ``submax.open``. By default, ``reward_wait`` is 0: a decision is
        learned from when its reward arrives, and never without a reward, unless
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
        check_options(options, STORE_ONLY)
        declaration = {"reward_wait": 0.0, **options}
        if actions is not None:
            declaration["actions"] = actions
        trained = None if learned is None else TrainedPolicy.given(learned)
        settings = new_settings(NAME, declaration, trained)
        policy = settings.build_policy(custom_policy(declaration))
        warn_if_context_is_ignored(settings, policy)
        if rng is None and "seed" in options:
            rng = np.random.default_rng([options["seed"], DRAWING])
        record = BanditRecord(settings, settings.menu if trained is None else trained.schema.menu)
        self._begin(record, policy, rng or np.random.default_rng(), clock)
        if trained is not None:
            self._learner.start_from(trained.rows)
            self._renew()

    def _begin(
        self,
        record: BanditRecord,
        policy: Policy[Any],
        rng: np.random.Generator,
        clock: Callable[[], float],
    ) -> None:
        super().__init__()
        settings, self._record, self._policy = record.settings, record, policy
        self._rng, self._clock, self._lock = rng, clock, RLock()
        self._decisions = Decisions(settings, record.decisions)
        self._pins = Pins(PINS_KEPT, record.pins)
        self._draws = Draws(NAME, self._pins, rng, clock)
        self._draws.decided = self._decisions.counts["decisions"]
        self._rewards = RewardValues(settings)
        self._learner = Learner(settings.schema(record.menu), policy, settings.seed, self._failures)
        self._renew()

    def _renew(self) -> None:
        """Decide by the present settings, choices and model from now on."""
        settings, menu, learner = self.settings, self.menu, self._learner
        learner.use(settings.schema(menu), self._policy, settings.seed)
        self._active = ActiveVersion(
            settings, menu, learner.fitted_policy, learner.model, learner.version, self._failures,
            self._record.groups_since, self._record.ramps,
        )  # fmt: skip

    def _decided(self, **request: Any) -> Decision:
        with self._lock:
            now = self._answer()
            self._learn_if_due()
            checked = checked_request(self._active, **request)
            if self._decisions.find(checked.identifier) is not None:
                return self._repeated(checked)
            return self._made(checked, self._draws.draw(self._active, [checked])[0], now)

    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        with self._lock:
            now = self._answer()
            self._learn_if_due()
            checked = [checked_request(self._active, **request) for request in requests]
            new: dict[str, CheckedRequest] = {}
            for request in checked:
                if self._decisions.find(request.identifier) is None:
                    new.setdefault(request.identifier, request)
            drawn = zip(new.values(), self._draws.draw(self._active, [*new.values()]), strict=True)
            made = {request.identifier: self._made(request, one, now) for request, one in drawn}
            return [
                made.pop(one.identifier) if one.identifier in made else self._repeated(one)
                for one in checked
            ]

    def _repeated(self, request: CheckedRequest) -> Decision:
        known = self._decisions.known(request.identifier)
        return msgspec.structs.replace(known.answer, repeated=True)

    def _made(self, request: CheckedRequest, decision: DrawnDecision, now: float) -> Decision:
        drawn = decision.drawn
        answer = Decision(
            request.identifier, self._record.menu.action(drawn.row), drawn.propensity,
            decision.version, decision.holdout, False, request.unit, decision.paused,
        )  # fmt: skip
        self._decisions.add(
            MadeDecision(answer, now, drawn.row, request.values, request.activate, decision.group)
        )
        return answer

    def _rewarded(self, **arguments: Any) -> Receipt:
        with self._lock:
            self._answer()
            return self._decisions.reward(*self._rewards.checked_call(**arguments))

    def reward_many(self, rewards: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        receipts = []
        with self._lock:
            self._answer()
            checked = [self._rewards.checked_call(**reward) for reward in rewards]
            for identifier, _ in checked:
                self._decisions.known(identifier)
            for identifier, given in checked:
                try:
                    receipts.append(self._decisions.reward(identifier, given))
                except ConflictError:
                    receipts.append(Receipt(identifier, "conflict", repeated=True))
        return receipts

    def activate(self, id: str) -> Receipt:  # noqa: A002 - the same word as in decide
        with self._lock:
            self._answer()
            check_identifier("the id of a decision", id)
            return self._decisions.activate(id)

    def refit(self) -> RefitResult:
        with self._lock:
            self._check_open()
            self._advance()
            new, learner = len(self._decisions.rows), self._learner
            if not new and not learner.outdated:
                fresh = learner.model.rows == 0
                reason = why_nothing_matured(self._decisions.counts, self.settings, fresh)
                return RefitResult(False, learner.version, 0, reason)
            if not self._learn():
                reason = f"the policy failed: {learner.failure}"
                return RefitResult(False, learner.version, 0, reason)
            what = "fitted anew for the active choices"
            if new:
                what = f"learned from {counted(new, 'new row')}"
            return RefitResult(True, learner.version, new, what)

    def _learn_if_due(self) -> None:
        if self._learner.is_due(len(self._decisions.rows)):
            self._learn()

    def _learn(self) -> bool:
        """Learn from the new rows; False if the policy raised an error."""
        decisions, learner = self._decisions, self._learner
        ahead = len(decisions.rows) + decisions.pending
        if not learner.learn(decisions.columns(), ahead):
            return False
        # Rows are cleared after the policy has learned: if it fails, they are not lost.
        decisions.rows.clear()
        self._active = self._active.with_model(
            learner.fitted_policy, learner.model, learner.version
        )
        return True

    def change(self, change: Change) -> None:
        with self._lock:
            self._check_open()
            record, decided = self._record, self._decisions.counts["decisions"]
            record.menu, record.ramps = changed_choices(
                record.settings, record.menu, record.ramps, change, decided
            )
            self._renew()

    def set_status(self, status: Status) -> Settings:
        return self.set(status=status)

    def set(self, **changes: Unpack[BanditOptions]) -> Settings:
        with self._lock:
            self._check_open()
            check_options(changes, STORE_ONLY)
            record, before = self._record, self.settings
            settings, policy = changed_settings(before, changes), self._policy
            if settings == before:
                return settings
            if "policy" in changes:
                policy = settings.build_policy(custom_policy(changes))
            msgspec.structs.replace(settings, menu=record.menu).check(policy)
            record.groups_since += settings.groups != before.groups
            if settings.context != before.context:
                self._decisions.use_context(settings.context)
            record.settings, self._policy = settings, policy
            self._renew()
            # The state of the policy that decided until now does not fit another policy.
            self.refit()
            return settings

    def arms(self) -> list[ArmStatus]:
        with self._lock:
            self._advance()
            contexts = self._learner.recent().context[-AVERAGED_CONTEXTS:].astype(np.float64)
            probabilities = self.active.average_probabilities(contexts)
            return arm_statuses(self.settings, self.menu, self._decisions.tallies, probabilities)

    def notices(self) -> list[str]:
        with self._lock:
            self._advance()
            rails, decided = self.settings.guard_rails, self._decisions.counts["decisions"]
            found = rail_notices(self.settings, self.menu, self._record.ramps, decided)
            found += unknown_notices(self._failures)
            if rails.holdout or rails.control_share:
                found += [f"{one.against}: {one.cautions[-1]}" for one in self.lift() if one.alarm]
            return found

    def lift(self) -> list[LiftReport]:
        with self._lock:
            self._advance()
            comparisons = self._decisions.comparisons
            return lift_reports(self.settings, comparisons, self._record.groups_since)

    def counts(self) -> dict[str, int]:
        with self._lock:
            self._advance()
            return dict(self._decisions.counts)

    @property
    def settings(self) -> Settings:
        return self._record.settings

    @property
    def menu(self) -> ActionSpec:
        return self._record.menu

    @property
    def active(self) -> ActiveVersion:
        return self._draws.ramped(self._active)

    @property
    def policy(self) -> Policy[Any]:
        return self._policy

    def save(self, path: str | Path) -> None:
        """Write the bandit into a file that ``load`` reads.

        The file is in the format safetensors and holds the declaration, the policy's state, the
        rows that are kept to learn from again, and the decisions whose rewards are still to come.
        An existing file is replaced as a whole.
        """
        with self._lock:
            learner, record = self._learner, self._record
            record.decisions, record.pins = self._decisions.saved(), list(self._pins)
            saved = SavedBandit(
                np.frombuffer(msgspec.msgpack.encode(record), dtype=np.uint8),
                learner.model,
                learner.version,
                learner.recent(),
                generator_state(self._rng),
            )
            saved.write(path, record.settings.policy)

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
        the class of its policy is in a file or module outside submax, that code is run only with
        ``trust``.
        """
        needed = (
            "Bandit.save did not write it, or it is damaged: give a saved bandit, or open a store "
            "with submax.open"
        )
        _, made, saved = read_with_policy(
            path, KIND, PolicyFacts, needed, trust=trust, given=policy
        )
        record = decoded(saved.record, BanditRecord)
        bandit = cls.__new__(cls)
        bandit._begin(record, made, generator_at(saved.generator), clock)
        bandit._learner.restore(saved.learned, saved.version, saved.rows)
        bandit._renew()
        return bandit

    def close(self) -> None:
        self._closed = True

    def _summary(self) -> Summary:
        with self._lock:
            self._advance()
            counts, tallies = self._decisions.counts, self._decisions.tallies
            return bandit_summary(NAME, self.active, counts, tallies, self._failures)

    def _advance(self) -> float:
        """Let decisions mature whose time is over; return the seconds that have passed."""
        return self._decisions.advance(self._clock())

    def _answer(self) -> float:
        """Refuse a call if the bandit is closed or archived; return the seconds that passed."""
        self._check_answers()
        return self._advance()
