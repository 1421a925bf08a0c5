"""A bandit as commands use it, wherever it is."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

from submax.cli.operating.operator_overview import OperatorOverview
from submax.cli.operating.printed_alarm import PrintedAlarm
from submax.live.monitoring.lift.lift_report import LiftReport
from submax.live.monitoring.shadow.shadow_report import ShadowReport
from submax.live.serving.decision import Decision, Receipt

VERBS = {"paused": "pause", "active": "resume", "archived": "archive"}
"""The operation, as the interface and the audit name it, that gives a bandit this status."""


class OperatedBandit(ABC):
    """A bandit that commands look at and change: in a store, or on a server over HTTP.

    Every change of settings, shadows and alarms is recorded in the audit.
    """

    name: str

    @abstractmethod
    def overview(self) -> OperatorOverview:
        """The bandit with its choices, counts and notices."""

    @abstractmethod
    def lift(self) -> list[LiftReport]:
        """The lift over the holdout and over the control."""

    @abstractmethod
    def set(self, changes: Mapping[str, Any], detail: str) -> None:
        """Change settings, all or none; ``detail`` is how the audit of a store describes it."""

    @abstractmethod
    def change_status(self, status: str) -> None:
        """Give the bandit one of the statuses of ``VERBS``."""

    @abstractmethod
    def delete(self) -> None:
        """Delete the bandit with its log, for ever."""

    @abstractmethod
    def decide(
        self, context: Mapping[str, Any], identifier: str | None, unit: str | None
    ) -> Decision:
        """Make a decision."""

    @abstractmethod
    def reward(self, identifier: str, value: Any, **which: str | None) -> Receipt:
        """Record a reward; ``which`` has its key, its name and its slot."""

    @abstractmethod
    def shadow(self) -> ShadowReport:
        """Compare the shadow with the policy that decides."""

    @abstractmethod
    def set_shadow(self, policy: str | dict[str, Any] | None) -> ShadowReport:
        """Set a shadow, or none, and return how it compares."""

    @abstractmethod
    def promote_shadow(self) -> tuple[str | dict[str, Any], int]:
        """Let the shadow decide; return the policy and the version that decide now."""

    @abstractmethod
    def roll_back_shadow(self) -> tuple[str | dict[str, Any], int]:
        """Undo the last promotion; return the policy and the version that decide now."""

    @abstractmethod
    def alarms(self) -> list[PrintedAlarm]:
        """The last 100 alarms, newest first."""

    @abstractmethod
    def acknowledge_alarms(self) -> int:
        """Say that all alarms were seen; return how many were active."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections of a client, if there are any."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
