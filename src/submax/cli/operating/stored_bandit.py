"""A bandit in a store that a command opens itself."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from submax.cli.inspection import chosen_bandit, opened_for_reading
from submax.cli.operating.operated_bandit import VERBS, OperatedBandit
from submax.cli.operating.operator_overview import OperatorOverview
from submax.cli.operating.printed_alarm import PrintedAlarm
from submax.cli.operating.read_bandit import opened_for_writing, read_bandit
from submax.live.bandits.bandit import Bandit
from submax.live.declaring.change_settings import change_settings
from submax.live.declaring.delete import delete_bandit
from submax.live.declaring.ramps import limits_at
from submax.live.log.bandits import bandit_names
from submax.live.monitoring.alarms.alarm_log import AlarmLog
from submax.live.monitoring.lift.lift_report import LiftReport
from submax.live.monitoring.lift.lift_reports import lift_reports
from submax.live.monitoring.shadow.shadow_comparison import stored_report
from submax.live.monitoring.shadow.shadow_report import ShadowReport
from submax.live.operating.arm_status import arm_statuses, recent_contexts
from submax.live.operating.audit_log import COMMAND_LINE, AuditEntry, AuditLog
from submax.live.operating.current_probabilities import CurrentProbabilities
from submax.live.operating.notices import notices
from submax.live.serving.decision import Decision, Receipt
from submax.web.server.access.key import time_text


class StoredBandit(OperatedBandit):
    """A bandit in the store at ``place``; without a name, the only one of the store.

    Methods that only read also work while another process uses the store. Methods that change
    something open the store for writing, which fails if another process uses an SQLite file.
    """

    def __init__(self, place: str, name: str | None) -> None:
        self._place = place
        if name is None:
            with opened_for_reading(place) as store:
                name = chosen_bandit(bandit_names(store), None)
        self.name = name

    def overview(self) -> OperatorOverview:
        with read_bandit(self._place, self.name) as bandit:
            settings, serving = bandit.projection.settings, bandit.state.serving
            limits = limits_at(bandit.projection.ramps, bandit.ledger.counts["decisions"])
            if limits:
                serving = serving.limited(limits)
            probabilities = CurrentProbabilities().of(serving, recent_contexts(bandit.ledger))
            arms = arm_statuses(serving, bandit.ledger, probabilities)
            return OperatorOverview(
                self.name,
                settings.status,
                settings.policy,
                serving.version,
                bandit.ledger.counts,
                arms,
                notices(bandit.projection, serving, bandit.ledger),
            )

    def lift(self) -> list[LiftReport]:
        with read_bandit(self._place, self.name) as bandit:
            groups, since = bandit.ledger.comparisons.by_group, bandit.projection.groups_since
            return lift_reports(bandit.projection.settings, groups, since)

    def set(self, changes: Mapping[str, Any], detail: str) -> None:
        self._change(changes, "set", detail)

    def change_status(self, status: str) -> None:
        self._change({"status": status}, VERBS[status], "")

    def _change(self, changes: Mapping[str, Any], operation: str, detail: str) -> None:
        with opened_for_writing(self._place) as store:
            change_settings(store, self.name, changes)
            AuditLog(store).write(AuditEntry(operation, self.name, "", COMMAND_LINE, detail))

    def delete(self) -> None:
        with opened_for_writing(self._place) as store:
            delete_bandit(store, self.name)
            AuditLog(store).write(AuditEntry("delete", self.name, "", COMMAND_LINE))

    def decide(
        self, context: Mapping[str, Any], identifier: str | None, unit: str | None
    ) -> Decision:
        with self._opened() as bandit:
            return bandit.decide(context or None, id=identifier, unit=unit)

    def reward(self, identifier: str, value: Any, **which: str | None) -> Receipt:
        with self._opened() as bandit:
            return bandit.reward(identifier, value, **which)

    def shadow(self) -> ShadowReport:
        with opened_for_reading(self._place) as store:
            return stored_report(store, chosen_bandit(bandit_names(store), self.name))

    def set_shadow(self, policy: str | dict[str, Any] | None) -> ShadowReport:
        with self._opened() as bandit:
            bandit.set_shadow(policy, by=COMMAND_LINE)
            return bandit.shadow()

    def promote_shadow(self) -> tuple[str | dict[str, Any], int]:
        with self._opened() as bandit:
            version = bandit.promote_shadow(by=COMMAND_LINE)
            return bandit.settings.policy, version

    def roll_back_shadow(self) -> tuple[str | dict[str, Any], int]:
        with self._opened() as bandit:
            version = bandit.roll_back_shadow(by=COMMAND_LINE)
            return bandit.settings.policy, version

    def alarms(self) -> list[PrintedAlarm]:
        with opened_for_reading(self._place) as store:
            alarms = AlarmLog(store, chosen_bandit(bandit_names(store), self.name)).follow()
        return [
            PrintedAlarm(one.kind, time_text(one.at), one.active, one.sentence)
            for one in reversed(alarms)
        ]

    def acknowledge_alarms(self) -> int:
        with self._opened() as bandit:
            return bandit.acknowledge_alarms(by=COMMAND_LINE)

    def close(self) -> None:
        """Do nothing: every call opens the store and closes it."""

    @contextmanager
    def _opened(self) -> Iterator[Bandit]:
        """The bandit, opened so that it can decide and be changed."""
        with (
            opened_for_writing(self._place) as store,
            Bandit.of_store(store, self.name, background=False) as bandit,
        ):
            yield bandit
