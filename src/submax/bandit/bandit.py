"""A bandit in memory: it decides, receives rewards, and learns from them."""

import time
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
    missing_rails,
    rail_notices,
    unknown_notices,
)
from submax.bandit.assignment import CheckedRequest
from submax.bandit.decision import Decision, LiftReport, Receipt, UnknownDecisionWarning
from submax.bandit.declaration import (
    changed_choices,
    changed_settings,
    check_options,
    check_propensities,
    custom_policy,
    new_settings,
    warn_if_context_is_ignored,
    with_status_of,
    without_propensity,
)
from submax.bandit.drawing import DrawnDecision, Draws, Pin, checked_request
from submax.bandit.guard_rails import GuardRailWarning, Ramp
from submax.bandit.learning import Learner, RefitResult, why_nothing_matured
from submax.bandit.lift import lift_reports
from submax.bandit.maturing import Decisions, DecisionsState, MadeDecision
from submax.bandit.names import check_identifier
from submax.bandit.rewards import CheckedReward, LateRewards, LateRewardWarning, RewardValues
from submax.bandit.saving import SavedBandit, decoded, encoded, generator_at, generator_state
from submax.bandit.settings import STORE_ONLY, Actions, BanditOptions, Settings
from submax.core.arrays import Floats
from submax.core.errors import ConflictError, InputError, StoreError
from submax.core.policy import Policy
from submax.core.summary import Summary
from submax.schema.actions import ARMS, ActionSpec, Change, clean_features
from submax.schema.trained_policy import TrainedPolicy

NAME = "bandit"
"""The name of every bandit in memory."""
DRAWING = 1
"""Put behind the seed of a bandit, so that decisions and fits have different random streams."""
PINS_KEPT = 100_000
"""Pins of units that are remembered; the oldest are forgotten first."""


class MemoryPins:
    """The pins of units, in a dictionary."""

    def __init__(self, pins: Iterable[Pin] = ()) -> None:
        self._pins = OrderedDict(((pin.unit, pin.period), pin) for pin in pins)

    def __iter__(self) -> Any:
        return iter(self._pins.values())

    def find(self, units: Collection[str], periods: Sequence[str], after: float) -> dict[str, Pin]:
        """The pins of these units that were made after a time: of each, in the first period."""
        found: dict[str, Pin] = {}
        for unit in units:
            for period in periods:
                pin = self._pins.get((unit, period))
                if pin is not None and pin.at > after:
                    found[unit] = pin
                    break
        return found

    def keep(self, pins: Sequence[Pin]) -> Sequence[Pin]:
        """Keep pins; forget the oldest ones if there are too many."""
        for pin in pins:
            self._pins[pin.unit, pin.period] = pin
            if len(self._pins) > PINS_KEPT:
                self._pins.popitem(last=False)
        return pins


class BanditRecord(msgspec.Struct):
    """What a bandit is besides its policy's state, as it is saved."""

    settings: Settings
    menu: ActionSpec
    ramps: tuple[Ramp, ...]
    groups_since: int
    without_propensity: int
    decisions: DecisionsState
    pins: list[Pin]


class Bandit:
    """Decide, receive rewards, and learn from them, in memory.

    The bandit learns before the next decision; ``save`` and ``load`` keep it in a file.
    ``submax.open`` makes a bandit with a durable store, for rewards that come late. All methods may
    be called from any thread.

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
        _refuse_store_only(options)
        declaration = {"reward_wait": 0.0, **options}
        if actions is not None:
            declaration["actions"] = actions
        trained = None if learned is None else TrainedPolicy.given(learned)
        settings = new_settings(NAME, declaration, trained)
        policy = settings.build_policy(custom_policy(declaration))
        warn_if_context_is_ignored(settings, policy)
        menu = settings.menu if trained is None else with_status_of(settings.menu, trained)
        if rng is None and "seed" in options:
            rng = np.random.default_rng([options["seed"], DRAWING])
        self._begin(settings, menu, policy, rng or np.random.default_rng(), clock, MemoryPins())
        if trained is not None:
            self._without_propensity = without_propensity(trained)
            self._learner.start_from(trained.rows)
            self._renew()

    def _begin(
        self,
        settings: Settings,
        menu: ActionSpec,
        policy: Policy[Any],
        rng: np.random.Generator,
        clock: Callable[[], float],
        pins: MemoryPins,
    ) -> None:
        self._settings, self._menu, self._policy = settings, menu, policy
        self._rng, self._clock, self._lock, self._closed = rng, clock, RLock(), False
        self._failures: Counter[str] = Counter()
        self._ramps: tuple[Ramp, ...] = ()
        self._groups_since = self._without_propensity = 0
        self._decisions, self._pins = Decisions(settings), pins
        self._draws = Draws(NAME, pins, rng, clock)
        self._rewards, self._late = RewardValues(settings), LateRewards()
        self._learner = Learner(
            settings.schema(menu), policy, settings.seed, settings.learn_share, self._failures
        )
        self._renew()

    def _renew(self) -> None:
        """Decide by the present settings, choices and model from now on."""
        settings, learner = self._settings, self._learner
        learner.use(settings.schema(self._menu), self._policy, settings.seed, settings.learn_share)
        self._active = ActiveVersion(
            settings,
            self._menu,
            learner.fitted_policy,
            learner.model,
            learner.version,
            self._failures,
            self._groups_since,
            self._ramps,
        )

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

        If a decision with this ``id`` exists, it is returned again, and none is drawn. (The last
        100,000 ids are remembered.) ``eligible`` are the names of the arms that may be chosen, or a
        table of slots with such names. With ``activate=False`` the decision is learned from only if
        ``activate`` is called before ``reward_wait`` is over.

        ``unit`` names the visitor or customer for whom the decision is made. As long as the setting
        ``sticky`` says, a unit gets the same action, and it is always in the same group: held out
        or not, with the control or not.
        """
        with self._lock:
            now = self._answer()
            self._learn_if_due()
            request = checked_request(
                self._active, context, id=id, eligible=eligible, activate=activate, unit=unit
            )
            if id is not None and (made := self._decisions.find(id)) is not None:
                return msgspec.structs.replace(made.answer, repeated=True)
            return self._made(request, self._draws.draw(self._active, request), now)

    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """Make several decisions, whose probabilities are computed as one array.

        Each request has arguments of ``decide``. If one is invalid, none is drawn.
        """
        with self._lock:
            now = self._answer()
            self._learn_if_due()
            checked = [checked_request(self._active, **request) for request in requests]
            known: dict[str, Decision] = {}
            new: dict[str, CheckedRequest] = {}
            for request in checked:
                made = self._decisions.find(request.identifier)
                if made is None:
                    new.setdefault(request.identifier, request)
                else:
                    known[request.identifier] = made.answer
            drawn = self._draws.draw_many(self._active, list(new.values()))
            for request, decision in zip(new.values(), drawn, strict=True):
                known[request.identifier] = self._made(request, decision, now)
            return [
                known[request.identifier]
                if new.get(request.identifier) is request
                else msgspec.structs.replace(known[request.identifier], repeated=True)
                for request in checked
            ]

    def _made(self, request: CheckedRequest, decision: DrawnDecision, now: float) -> Decision:
        """Remember a decision that was drawn."""
        drawn = decision.drawn
        answer = Decision(
            request.identifier,
            self._menu.action(drawn.row),
            drawn.propensity,
            decision.version,
            decision.holdout,
            False,
            request.unit,
            decision.paused,
        )
        self._decisions.add(
            MadeDecision(answer, now, drawn.row, request.values, request.activate, decision.group)
        )
        return answer

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

        A reward for an unknown id waits in quarantine for its decision, and an
        ``UnknownDecisionWarning`` is given; see ``Receipt``.
        """
        with self._lock:
            self._answer()
            identifier, given = self._checked_reward(id, value, key=key, name=name, slot=slot)
            receipt = self._rewarded(identifier, given)
        self._warn([receipt])
        return receipt

    def reward_many(self, rewards: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        """Record several rewards, each with the arguments of ``reward``, all or none.

        If another value was recorded before under the same id and key, the receipt has the status
        ``conflict``, and the other rewards are recorded.
        """
        receipts = []
        with self._lock:
            self._answer()
            for identifier, given in [self._checked_reward(**reward) for reward in rewards]:
                try:
                    receipts.append(self._rewarded(identifier, given))
                except ConflictError:
                    receipts.append(Receipt(identifier, "conflict", repeated=True))
        self._warn(receipts)
        return receipts

    def _checked_reward(
        self,
        id: str,  # noqa: A002 - the same word as in decide
        value: object,
        *,
        key: str | None = None,
        name: str | None = None,
        slot: str | None = None,
    ) -> tuple[str, CheckedReward]:
        if isinstance(id, Decision):
            raise InputError(
                "a Decision was given in place of its id, which is a text: pass decision.id"
            )
        check_identifier("the id of a decision", id)
        if key is not None:
            check_identifier("the key of a reward", key)
        return id, self._rewards.checked(value, key, name, slot)

    def _rewarded(self, identifier: str, given: CheckedReward) -> Receipt:
        receipt, is_new = self._decisions.reward(identifier, given)
        if is_new:
            self._late.count(receipt.status == "late")
        return receipt

    def _warn(self, receipts: Sequence[Receipt]) -> None:
        """Warn of rewards that come too late, and of those whose decision is unknown."""
        sentence = self._late.sentence(self._settings)
        if sentence is not None:
            warnings.warn(sentence, LateRewardWarning, stacklevel=3)
        for receipt in receipts:
            if receipt.status == "quarantined":
                warnings.warn(UnknownDecisionWarning.about(receipt.id), stacklevel=3)
                return

    def activate(self, id: str) -> Receipt:  # noqa: A002 - the same word as in decide
        """Confirm a decision that was made with ``activate=False``: its action was carried out."""
        with self._lock:
            self._answer()
            check_identifier("the id of a decision", id)
            return self._decisions.activate(id)

    def refit(self) -> RefitResult:
        """Learn now from all decisions that have matured; the result says what was learned."""
        with self._lock:
            self._check_open()
            self._advance()
            new, learner = len(self._decisions.rows), self._learner
            if not new and not learner.outdated:
                fresh = learner.state.rows == 0
                reason = why_nothing_matured(self._decisions.counts, self._settings, fresh)
                return RefitResult(False, learner.version, 0, reason)
            if not self._learn():
                return RefitResult(
                    False, learner.version, 0, f"the policy failed: {learner.failure}"
                )
            what = f"learned from {new} new rows" if new else "fitted anew for the active choices"
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

    def add(
        self,
        choice: str,
        *,
        slot: str = ARMS,
        features: Mapping[str, float | str] | None = None,
        ramp: int | None = None,
    ) -> None:
        """Add an arm, or a choice to a slot; it is eligible at once.

        The new choice is ramped up over ``ramp`` decisions N: after n of them its probability is
        at most (n + 1) / N, and what it does not get goes to the other choices. N is 1,000 if it is
        not given, or the number of decisions so far if these are fewer. With 0 there is no ramp.

        If the choices have features, the new one must bring the same ones: ``features`` is a table
        of numbers and texts. A text that no other choice has is a new category.
        """
        cleaned = clean_features(choice, {} if features is None else features)
        self.change(Change("add", choice, slot, cleaned, ramp))

    def pause(self, choice: str | None = None, *, slot: str = ARMS) -> None:
        """Make a choice ineligible until ``resume``; without a choice, pause the whole bandit.

        A paused bandit answers with the control, or else the baseline, or else uniformly, and does
        not learn from these decisions.
        """
        if choice is None:
            self.set(status="paused")
        else:
            self._take_away(Change("pause", choice, slot))

    def resume(self, choice: str | None = None, *, slot: str = ARMS) -> None:
        """Make a paused choice eligible again; without a choice, resume the whole bandit."""
        if choice is None:
            self.set(status="active")
        else:
            self.change(Change("resume", choice, slot))

    def retire(self, choice: str, *, slot: str = ARMS) -> None:
        """Make a choice ineligible forever; its name cannot be used again."""
        self._take_away(Change("retire", choice, slot))

    def change(self, change: Change) -> None:
        """Apply a change to a choice."""
        with self._lock:
            self._check_open()
            decided = self._decisions.counts["decisions"]
            self._menu, self._ramps = changed_choices(
                self._settings, self._menu, self._ramps, change, decided
            )
            self._renew()

    def _take_away(self, change: Change) -> None:
        """Pause or retire a choice, and warn if a guard rail loses its effect by this."""
        with self._lock:
            rails = self._settings.guard_rails
            before = missing_rails(rails, self._menu)
            self.change(change)
            after = missing_rails(rails, self._menu)
        for sentence in after:
            if sentence not in before:
                warnings.warn(sentence, GuardRailWarning, stacklevel=3)

    def set(self, **changes: Unpack[BanditOptions]) -> Settings:
        """Change settings while the bandit is in use, all or none, and return all settings.

        They are checked as in a declaration. None stands for a setting's default. A table of guard
        rails changes those that it names. A table of a context adds fields, and categories to
        fields; earlier decisions have the default of a new field.
        """
        with self._lock:
            self._check_open()
            _refuse_store_only(changes)
            settings, policy = changed_settings(self._settings, changes), self._policy
            if settings == self._settings:
                return settings
            if "policy" in changes:
                policy = settings.build_policy(custom_policy(changes))
            check_propensities(settings, policy, self._without_propensity)
            msgspec.structs.replace(settings, menu=self._menu).check(policy)
            if settings.groups != self._settings.groups:
                self._groups_since += 1
            if settings.context != self._settings.context:
                self._decisions.use_context(settings.context)
            self._settings, self._policy = settings, policy
            self._renew()
            # The state of the policy that decided until now does not fit another policy.
            self.refit()
            return settings

    def arms(self) -> list[ArmStatus]:
        """The decisions, share, reward rate and current probability of each choice."""
        with self._lock:
            self._advance()
            active = self._draws.ramped(self._active)
            probabilities = active.average_probabilities(self._recent_contexts())
            return arm_statuses(self._settings, self._menu, self._decisions.tally, probabilities)

    def _recent_contexts(self) -> Floats:
        """The encoded contexts of the last rows that were learned from."""
        parts, count = [], 0
        for part in reversed(self._learner.recent.parts):
            parts.append(part.context)
            count += len(part.context)
            if count >= AVERAGED_CONTEXTS:
                break
        if not parts:
            return np.zeros((0, self._settings.context.width))
        return np.concatenate(parts[::-1])[-AVERAGED_CONTEXTS:].astype(np.float64)

    def notices(self) -> list[str]:
        """Sentences about what an operator should look at; empty if there is nothing."""
        with self._lock:
            self._advance()
            decisions, rails = self._decisions, self._settings.guard_rails
            found = rail_notices(
                self._settings,
                self._menu,
                self._ramps,
                decisions.counts["decisions"],
                decisions.tally,
            )
            found += unknown_notices(self._failures)
            if rails.holdout or rails.control_share:
                found += [f"{one.against}: {one.cautions[-1]}" for one in self.lift() if one.alarm]
            return found

    def lift(self) -> list[LiftReport]:
        """How much more a decision of the bandit earns than one of the holdout and of the control.

        One report for each of the two that is declared. The intervals are valid however often one
        looks; decisions count when they have matured.
        """
        with self._lock:
            self._advance()
            comparisons = self._decisions.comparisons
            return lift_reports(self._settings, comparisons, self._groups_since)

    def counts(self) -> dict[str, int]:
        """Counts of decisions and rewards, and of what became of decisions, by kind."""
        with self._lock:
            self._advance()
            return dict(self._decisions.counts)

    @property
    def settings(self) -> Settings:
        """The current settings."""
        return self._settings

    @property
    def menu(self) -> ActionSpec:
        """The actions with their current status."""
        return self._menu

    @property
    def policy(self) -> Policy[Any]:
        """The policy that learns from the next rows."""
        return self._policy

    @property
    def version(self) -> int:
        """How often the model that decides was learned; 0 before anything was."""
        return self._active.version

    @property
    def failures(self) -> dict[str, int]:
        """How often something failed and the bandit went on, by kind of failure."""
        return dict(self._failures)

    def save(self, path: str | Path) -> None:
        """Write the bandit into a file that ``load`` reads.

        The file is in the format safetensors and holds the declaration, the policy's state, the
        rows that are kept to learn from again, and the decisions whose rewards are still to come.
        An existing file is replaced as a whole.
        """
        with self._lock:
            learner = self._learner
            record = BanditRecord(
                self._settings,
                self._menu,
                self._ramps,
                self._groups_since,
                self._without_propensity,
                self._decisions.saved(),
                list(self._pins),
            )
            saved = SavedBandit(
                encoded(record),
                learner.state,
                learner.version,
                learner.recent.parts,
                generator_state(self._rng),
            )
            saved.write(path, self._settings.policy)

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
        saved, made = SavedBandit.read(path, policy, trust=trust)
        record = decoded(saved.record, BanditRecord)
        rng = generator_at(saved.generator)
        bandit = cls.__new__(cls)
        bandit._begin(record.settings, record.menu, made, rng, clock, MemoryPins(record.pins))
        bandit._ramps, bandit._groups_since = record.ramps, record.groups_since
        bandit._without_propensity = record.without_propensity
        bandit._decisions.restore(record.decisions)
        bandit._learner.restore(saved.learned, saved.version, saved.rows)
        bandit._draws.resume(bandit._decisions.counts["decisions"], record.ramps)
        bandit._renew()
        return bandit

    def close(self) -> None:
        """Refuse further decisions and rewards; a second call does nothing."""
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return str(self._summary())

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _summary(self) -> Summary:
        with self._lock:
            self._advance()
            decisions, active = self._decisions, self._draws.ramped(self._active)
            return bandit_summary(NAME, active, decisions.counts, decisions.tally, self._failures)

    def _advance(self) -> float:
        """Let decisions mature whose time is over; return the seconds that have passed."""
        return self._decisions.advance(self._clock())

    def _answer(self) -> float:
        """Refuse a call if the bandit is closed or archived; return the seconds that passed."""
        self._check_open()
        if self._settings.status == "archived":
            raise ConflictError(
                "this bandit is archived, so it takes no decisions and no rewards: call resume() "
                "first",
                code="archived",
            )
        return self._decisions.advance(self._clock())

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(
                "this bandit is closed and answers no more calls: make a new one, or load what was "
                "saved by submax.Bandit.load"
            )


def _refuse_store_only(options: Mapping[str, Any]) -> None:
    for word in STORE_ONLY:
        if word in options:
            raise InputError(
                f"{word} was given, and it is a setting of bandits with a store: leave it out, or "
                "use submax.open with a file; learn_share says how often a bandit in memory learns",
                parameter=word,
            )
