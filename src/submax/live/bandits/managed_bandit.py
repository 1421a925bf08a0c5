"""Operating a bandit: its choices come and go, its versions are published."""

import warnings
from collections.abc import Mapping
from typing import Unpack

import msgspec

from submax.bandit.decision import LiftReport
from submax.bandit.guard_rails import DEFAULT_RAMP, LONGEST_RAMP, GuardRailWarning
from submax.bandit.lift import lift_reports
from submax.bandit.names import check_identifier
from submax.bandit.rewards import DEFAULT_REWARD_KEY
from submax.bandit.settings import MEMORY_ONLY, BanditOptions, Settings
from submax.core.checks import whole_number
from submax.core.errors import ConflictError, InputError, NotFoundError
from submax.core.policy import Policy
from submax.live.bandits.bandit_base import BanditBase
from submax.live.declaring.change_settings import change_settings
from submax.live.declaring.delete import delete_bandit
from submax.live.fitting.refitter import Refitter
from submax.live.log.records import CHOICE, PUBLISHED, DecisionMade, Fitted, Published
from submax.live.lookup.believed_actions import BelievedAction
from submax.live.lookup.decision_finder import DecisionFinder
from submax.live.lookup.found_decision import DecisionRow, FoundDecision
from submax.live.monitoring.alarms.alarm_log import AlarmLog
from submax.live.monitoring.alarms.alarm_records import Alarm
from submax.live.operating.arm_status import ArmStatus, arm_statuses, recent_contexts
from submax.live.operating.audit_log import PYTHON, AuditEntry, AuditLog
from submax.live.operating.notices import missing_rails, notices
from submax.live.store.event import Entry
from submax.schema.actions import ARMS, LISTED, STATUS, ActionSpec, Change, clean_features

ACKNOWLEDGE = "acknowledge-alarms"
"""The name of the operation in the audit log."""


class ManagedBandit(BanditBase):
    """A bandit whose choices can be changed, whose versions can be published, and with alarms."""

    _alarm_log: AlarmLog

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

    def archive(self) -> None:
        """Refuse decisions and rewards until ``resume``; the log can still be read."""
        self.set(status="archived")

    def set(self, **changes: Unpack[BanditOptions]) -> Settings:
        """Change settings while the bandit is in use, all or none, and return all settings.

        They are checked as in a declaration. None stands for a setting's default. A table of guard
        rails changes those that it names. The change is recorded in the audit, and holds in all
        processes that have the bandit open within a second.
        """
        self._check_open()
        for word in MEMORY_ONLY:
            if word in changes:
                raise InputError(
                    f"{word} was given, and it is a setting of bandits in memory: leave it out",
                    parameter=word,
                )
        policy = changes.get("policy")
        own = policy if isinstance(policy, Policy) else self._live_state.own
        settings = change_settings(self.store, self.name, changes, own)
        if own is not None:
            self._live_state.use_policy(own)
        self._live_state.follow()
        detail = ", ".join(f"{word}={value!r}" for word, value in changes.items())
        AuditLog(self.store).write(AuditEntry("set", self.name, "", PYTHON, detail))
        return settings

    def retire(self, choice: str, *, slot: str = ARMS) -> None:
        """Make a choice ineligible for ever; its name cannot be used again."""
        self._take_away(Change("retire", choice, slot))

    def change(self, change: Change) -> None:
        """Apply a change to a choice."""
        self._live_state.follow()
        changed = self.menu.changed(change)
        self.settings.guard_rails.check(changed)
        if change.verb == "add":
            change = self._with_ramp(change, changed)
        key = f"choice {change.slot}\n{change.choice}" if change.verb == "add" else None
        entry = Entry(CHOICE, msgspec.msgpack.encode(change), key)
        (written,) = self._append_setting([entry])
        if not written.new:
            raise ConflictError(
                f"{change.choice!r} is there already, and the name of a choice is used once: give "
                "another name"
            )
        # Another process may have made a conflicting change at the same moment.
        if self.menu.status(change) != STATUS[change.verb]:
            raise ConflictError(
                f"{change.choice!r} was changed by another process at the same moment: look at the "
                "menu, and repeat the call if it is still needed"
            )

    def _with_ramp(self, change: Change, changed: ActionSpec) -> Change:
        """The change with its ramp, and the number of decisions after which this begins."""
        if change.ramp is not None:
            whole_number("ramp", change.ramp, at_least=0, at_most=LONGEST_RAMP)
        if not changed.can_list:
            if change.ramp:
                raise InputError(
                    f"ramp was given, and a ramp needs at most {LISTED} joint actions without "
                    "real-valued parts: leave it out",
                    parameter="ramp",
                )
            return msgspec.structs.replace(change, ramp=0)
        decided = self._learner.catch_up().counts["decisions"]
        ramp = min(DEFAULT_RAMP, decided) if change.ramp is None else change.ramp
        return msgspec.structs.replace(change, ramp=ramp, since=decided)

    def _take_away(self, change: Change) -> None:
        """Pause or retire a choice, and warn if a guard rail loses its effect by this."""
        before = missing_rails(self.settings.guard_rails, self.menu)
        self.change(change)
        for sentence in missing_rails(self.settings.guard_rails, self.menu):
            if sentence not in before:
                warnings.warn(sentence, GuardRailWarning, stacklevel=3)

    def arms(self) -> list[ArmStatus]:
        """The decisions, share, reward rate and current probability of each choice."""
        serving = self.requests.draws.ramped(self._live_state.serving)
        # Without the lock of the ledger: a policy may take for ever.
        found = self._current.of(serving, self._learner.inspect(recent_contexts))
        return self._learner.inspect(lambda ledger: arm_statuses(serving, ledger, found))

    def find_decision(self, id: str) -> FoundDecision | None:  # noqa: A002 - as in decide
        """The decision with this id, with its rewards; None if the log does not have it.

        Of archived decisions, the newest four million events are searched.
        """
        self._check_open()
        check_identifier("the id of a decision", id)
        return self._finder().find(id)

    def is_quarantined(self, id: str) -> bool:  # noqa: A002 - as in decide
        """Whether a reward came for an id that no decision has, as far as its key is usual."""
        return self._finder().has_reward(id)

    def newest_decisions(self, unit: str | None = None) -> list[DecisionRow]:
        """The newest 25 decisions, newest first, or those of one unit.

        Units have no index: their decisions are found among the newest 100,000 events.
        """
        self._check_open()
        if unit is not None:
            check_identifier("the unit of a decision", unit)
        return self._finder().newest(self._learner.catch_up().read_position, unit)

    def believed_actions(self, made: DecisionMade) -> list[BelievedAction]:
        """What the actions of a decision were believed to earn by the version that decided."""
        return self._believed.of(made)

    def _finder(self) -> DecisionFinder:
        settings = self.settings
        parts = settings.reward_parts
        names = () if parts is None else parts.names
        slots = [f"slot-{number}" for number in range(len(names))]
        keys = tuple(dict.fromkeys([DEFAULT_REWARD_KEY, *names, *slots]))
        return DecisionFinder(self.store, self.name, keys, settings.longest_wait)

    def notices(self) -> list[str]:
        """Sentences about what an operator should look at; empty if there is nothing."""
        projection, serving = self._live_state.projection, self._live_state.serving
        return self._learner.inspect(lambda ledger: notices(projection, serving, ledger))

    def delete(self) -> None:
        """Delete the bandit with its log, versions and settings, and close it.

        This cannot be undone; ``submax backup`` and ``submax export`` make copies. The name can be
        declared again.
        """
        self._check_open()
        delete_bandit(self.store, self.name)
        AuditLog(self.store).write(AuditEntry("delete", self.name, "", PYTHON))
        self._live_state.follow()
        self.close()

    def lift(self) -> list[LiftReport]:
        """How much more a decision of the bandit earns than one of the holdout and of the control.

        One report for each of the two that is declared. The intervals are valid however often one
        looks; decisions count when they have matured.
        """
        settings, since = self.settings, self._live_state.projection.groups_since
        return self._learner.inspect(
            lambda ledger: lift_reports(settings, ledger.comparisons.by_group, since)
        )

    def versions(self) -> list[Fitted]:
        """All versions, oldest first."""
        self._live_state.follow()
        return [fitted for _, fitted in sorted(self._live_state.projection.versions.items())]

    def publish(self, version: int | None = None) -> int:
        """Let a version decide, and hold it: newer versions are fitted but do not decide.

        Without a version the newest one decides, and so will those that are fitted later.
        """
        self._live_state.follow()
        known = self._live_state.projection.versions
        chosen = max(known, default=0) if version is None else version
        if chosen != 0 and chosen not in known:
            raise NotFoundError(
                f"there is no version {version!r}: give 0 to {max(known, default=0)}, the newest"
            )
        if chosen != 0:
            self._live_state.loaded(chosen)
        published = Published(chosen, held=version is not None)
        self._append_setting([Entry(PUBLISHED, msgspec.msgpack.encode(published))])
        return chosen

    def roll_back(self) -> int:
        """Publish the last version before the current one that was published, and hold it."""
        self._live_state.follow()
        history = [one.version for one in self._live_state.projection.published]
        if not history:
            raise ConflictError(
                "no version was published yet, so that there is none to go back to: refit first"
            )
        return self.publish(max((one for one in history if one < history[-1]), default=0))

    def alarms(self) -> list[Alarm]:
        """The last 100 alarms, newest first; see ``Alarm``."""
        self._check_open()
        return self._alarm_log.follow()[::-1]

    def active_alarms(self) -> dict[str, int]:
        """The number of active alarms by kind, as they were last read."""
        return dict(self._alarm_log.active())

    def acknowledge_alarms(self, *, by: str = PYTHON) -> int:
        """Say that all alarms were seen, so that they are no longer active; return how many."""
        self._check_open()
        count = self._alarm_log.acknowledge()
        if count:
            self._audit(ACKNOWLEDGE, by, f"{count} alarms")
        return count

    def smallest_propensity(self) -> float | None:
        """The smallest probability with which an action was drawn, if this process has read it."""
        learner = self._learner
        return learner.alarms.watch.state.smallest if isinstance(learner, Refitter) else None

    def _audit(self, operation: str, by: str, detail: str) -> None:
        # The server writes its own entry, with the key.
        if by:
            AuditLog(self.store).write(AuditEntry(operation, self.name, "", by, detail))
