"""A bandit that a server has open."""

from collections.abc import Mapping
from typing import Any

import msgspec

from submax.cli.operating.operated_bandit import OperatedBandit
from submax.cli.operating.operator_overview import OperatorOverview
from submax.cli.operating.printed_alarm import PrintedAlarm
from submax.live.monitoring.lift.lift_report import LiftReport
from submax.live.monitoring.shadow.shadow_report import ShadowReport
from submax.live.operating.arm_status import ArmStatus
from submax.live.serving.decision import Decision, Receipt
from submax.schema.known_type import known_type
from submax.web.server.client.client import Client


class ServedBandit(OperatedBandit):
    """The bandit ``name`` of the server at an address, which is used over HTTP."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self.name = client, name

    def overview(self) -> OperatorOverview:
        details = self._client.show()
        return OperatorOverview(
            self.name,
            details["status"],
            details["policy"],
            details["version"],
            details["counts"],
            msgspec.convert(details["arms"], known_type(list[ArmStatus])),
            details["notices"],
        )

    def lift(self) -> list[LiftReport]:
        return self._client.lift()

    def set(self, changes: Mapping[str, Any], detail: str) -> None:
        self._client.set(**changes)

    def change_status(self, status: str) -> None:
        change = {
            "paused": self._client.pause,
            "active": self._client.resume,
            "archived": self._client.archive,
        }
        change[status]()

    def delete(self) -> None:
        self._client.delete()

    def decide(
        self, context: Mapping[str, Any], identifier: str | None, unit: str | None
    ) -> Decision:
        return self._client.decide(context or None, id=identifier, unit=unit)

    def reward(self, identifier: str, value: Any, **which: str | None) -> Receipt:
        return self._client.reward(identifier, value, **which)

    def shadow(self) -> ShadowReport:
        return self._client.shadow()

    def set_shadow(self, policy: str | dict[str, Any] | None) -> ShadowReport:
        return self._client.set_shadow(policy)

    def promote_shadow(self) -> tuple[str | dict[str, Any], int]:
        version = self._client.promote_shadow()
        return self._client.show()["policy"], version

    def roll_back_shadow(self) -> tuple[str | dict[str, Any], int]:
        version = self._client.roll_back_shadow()
        return self._client.show()["policy"], version

    def alarms(self) -> list[PrintedAlarm]:
        return [
            PrintedAlarm(one["kind"], one["at"], one["active"], one["sentence"])
            for one in self._client.alarms()
        ]

    def acknowledge_alarms(self) -> int:
        active = sum(one.active for one in self.alarms())
        self._client.acknowledge_alarms()
        return active

    def close(self) -> None:
        self._client.close()
