"""What each page shows, which is also its answer in JSON."""

from typing import Any, Literal, TypeAlias

import msgspec

from submax.bandit.decision import LiftReport
from submax.live.operating.arm_status import ArmStatus
from submax.web.server.interface.answers import AlarmDetails
from submax.web.server.pages.arms.arm_notes import ArmNote
from submax.web.server.pages.arms.late_arms import ArmDelay
from submax.web.server.pages.series import Series
from submax.web.server.pages.setting_forms import SettingForm

Unit: TypeAlias = Literal["percent", "number"]
"""How mean rewards are shown: in percent if rewards are 0 or 1."""


class BanditRow(msgspec.Struct, frozen=True):
    """A bandit in the list of all.

    ``hourly`` is how many decisions it made in the last hour, and ``joined`` the share of matured
    decisions that got a reward. ``alerts`` are sentences about what needs attention.
    """

    name: str
    version: int
    hourly: int
    decisions: int
    joined: float | None
    mean: float | None
    alerts: list[str]
    status: str
    lift: list[LiftReport]
    unit: Unit


class HomePage(msgspec.Struct, frozen=True):
    """All bandits that the viewer may see."""

    bandits: list[BanditRow]


class OverviewPage(msgspec.Struct, frozen=True):
    """How a bandit does: sentences, numbers, and its reward over time.

    ``marks`` are the times at which another version began to decide.
    """

    name: str
    sentences: list[str]
    lift: list[LiftReport]
    alerts: list[str]
    facts: dict[str, float | None]
    rewards: Series
    marks: list[float]
    unit: Unit


class ArmsPage(msgspec.Struct, frozen=True):
    """The choices of a bandit, and their share of the decisions over time.

    If there are more than 100, ``arms`` are those of one ``page`` of ``pages``, the most frequent
    first; ``total`` is how many there are. ``leader`` is the arm that is surely ahead, empty if
    none is. ``notes`` say what is unusual about single arms.
    """

    name: str
    slots: list[str]
    slot: str
    contextual: bool
    arms: list[ArmStatus]
    shares: Series
    page: int
    pages: int
    total: int
    leader: str
    notes: list[ArmNote]
    unit: Unit


class VersionRow(msgspec.Struct, frozen=True):
    """A version: what it learned from, and what was decided and earned with it.

    ``error`` is the standard error of ``mean``.
    """

    version: int
    policy: Any
    rows: int
    base: int
    decisions: int
    mean: float | None
    error: float | None
    deciding: bool
    usable: bool


class VersionsPage(msgspec.Struct, frozen=True):
    """The versions of a bandit, newest first."""

    name: str
    deciding: int
    held: bool
    total: int
    versions: list[VersionRow]
    unit: Unit


class DelayBin(msgspec.Struct, frozen=True):
    """How many rewards came between ``low`` and ``high`` seconds after their decision."""

    low: float
    high: float | None
    count: int


class HealthPage(msgspec.Struct, frozen=True):
    """Whether a bandit works as it should.

    ``delays`` are those of all rewards, and ``arm_delays`` those of each arm, the slowest first.
    ``wait`` are the seconds after which a reward is late, null if no reward is.
    """

    name: str
    alerts: list[str]
    counts: dict[str, int]
    pending: int
    delays: list[DelayBin]
    arm_delays: list[ArmDelay]
    wait: float | None
    least_propensity: float | None
    effective: float | None
    failures: dict[str, int]
    alarms: list[AlarmDetails]
    lift: list[LiftReport]


class SettingsPage(msgspec.Struct, frozen=True):
    """What is declared of a bandit, and the forms by which it can be changed.

    ``fixed`` are the settings that cannot change once the bandit decides.
    """

    name: str
    settings: dict[str, Any]
    status: str
    forms: list[SettingForm]
    fixed: dict[str, Any]


class Login(msgspec.Struct, frozen=True):
    """Where to go after the login."""

    next: str


class SignedIn(msgspec.Struct, frozen=True):
    """The name and the scopes of the key that the browser now acts for."""

    name: str
    scopes: list[str]
