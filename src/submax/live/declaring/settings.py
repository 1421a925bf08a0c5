"""What can be declared of a bandit: the one definition for Python, TOML, HTTP and the store.

``Settings`` has the names, types, bounds, defaults and descriptions. ``BanditOptions`` says which
types Python callers may give, and ``PLAIN_FORMS`` how JSON and TOML write the settings that Python
callers may give as objects. The server makes its message from these.
"""

import math
import typing
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta

from submax.core.checks import one_of, positive
from submax.core.errors import InputError
from submax.core.policy import Policy
from submax.core.problem import Problem
from submax.core.rewards import Scale
from submax.live.declaring.alarm_settings import AlarmSettings
from submax.live.declaring.bandit_options import DURATIONS
from submax.live.declaring.conversions import CONVERSIONS
from submax.live.declaring.guard_rails import GuardRails
from submax.live.declaring.setting_checks import check_bounds, check_settings
from submax.live.declaring.setting_types import (
    MAX_SECONDS,
    Combination,
    Status,
    Stickiness,
    Sticky,
)
from submax.policies.specification import PolicySpecification
from submax.schema.context_schema import LARGEST, ContextSchema
from submax.schema.known_type import known_type
from submax.schema.menu import Menu
from submax.schema.reward_parts import SLOTS, RewardParts
from submax.schema.rewards import rewards_of, scale_of
from submax.schema.schema import Schema


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of a bandit, as the store holds them.

    ``menu`` has the declared ``actions`` and ``action_features``; see ``PLAIN_FORMS`` for these,
    ``context``, ``policy``, ``rewards`` and ``guard_rails``.
    """

    menu: Menu
    context: ContextSchema = ContextSchema()
    policy: str | dict[str, Any] = "rcp-adaptive"
    shadow: str | dict[str, Any] | None = None
    rewards: dict[str, Any] = msgspec.field(default_factory=lambda: {"kind": "binary"})
    combine: Annotated[
        Combination,
        Meta(
            description="How several rewards of one decision become one. With reward_wait=0 only "
            "'first' is possible, and is the default."
        ),
    ] = "last"
    reward_wait: Annotated[
        float,
        Meta(
            ge=0,
            le=MAX_SECONDS,
            description="Seconds after which a decision matures, that is, is learned from with the "
            "rewards that have come. With 0 it matures when its first reward comes.",
        ),
    ] = 3600.0
    no_reward_after: (
        Annotated[
            float,
            Meta(
                gt=0,
                le=MAX_SECONDS,
                description="With reward_wait=0: seconds after which a decision without a reward "
                "is learned from with the default_reward. None: it never is.",
            ),
        ]
        | None
    ) = None
    default_reward: (
        Annotated[
            float,
            Meta(
                ge=-LARGEST,
                le=LARGEST,
                description="The reward of a decision that has none when it matures. None: such a "
                "decision is not learned from.",
            ),
        ]
        | None
    ) = 0.0
    quarantine: Annotated[
        float,
        Meta(
            gt=0,
            le=MAX_SECONDS,
            description="Seconds that a reward with an unknown id waits for its decision.",
        ),
    ] = 86400.0
    guard_rails: GuardRails = GuardRails()
    alarms: AlarmSettings = AlarmSettings()
    sticky: Annotated[
        Sticky,
        Meta(
            description="How long a unit gets the same action: as long as a 'version' decides, for "
            "a number of seconds, or 'none': every decision is drawn by itself."
        ),
    ] = "version"
    refit_rows: Annotated[
        int,
        Meta(
            ge=1,
            le=10**9,
            description="Number of newly matured decisions after which a version is fitted.",
        ),
    ] = 100
    refit_seconds: Annotated[
        float,
        Meta(
            gt=0,
            le=MAX_SECONDS,
            description="Seconds after which a version is fitted even if fewer have matured.",
        ),
    ] = 60.0
    status: Annotated[
        Status,
        Meta(
            description="'active'; 'paused': decisions are the control or the baseline, or else "
            "uniform, and are not learned from; 'archived': decisions and rewards are refused, and "
            "the log can be read."
        ),
    ] = "active"
    seed: Annotated[
        int,
        Meta(
            ge=0,
            le=2**62,
            description="Seed of the fits: the same log and seed give the same version.",
        ),
    ] = 0
    keep_versions: Annotated[
        int,
        Meta(ge=2, le=10_000, description="Number of versions whose models stay in the store."),
    ] = 20
    archive_after: (
        Annotated[
            float,
            Meta(
                gt=0,
                le=MAX_SECONDS,
                description="Seconds after which matured events are moved from the store to its "
                "archive of compressed files. So long ids are remembered. None: never.",
            ),
        ]
        | None
    ) = 30 * 86400.0
    learn_share: (
        Annotated[
            float,
            Meta(
                ge=0,
                lt=1,
                description="For a bandit in memory: it learns before a decision if there are new "
                "rows, at least this share of the rows learned from. 0: from every row at once. "
                "None: 0.02, or 0.25 if the policy trains networks.",
            ),
        ]
        | None
    ) = None

    @classmethod
    def of(cls, declaration: Mapping[str, Any]) -> Self:
        """Settings from a table of words of ``Declaration``, of which ``actions`` is required."""
        given = dict(declaration)
        for name in DURATIONS:
            if isinstance(given.get(name), timedelta):
                given[name] = given[name].total_seconds()
        if given.get("reward_wait") == 0:
            given.setdefault("combine", "first")
        if "combine" in given:
            one_of("combine", str(given["combine"]), typing.get_args(Combination))
        if "status" in given:
            one_of("status", str(given["status"]), typing.get_args(Status))
        if isinstance(given.get("sticky"), str):
            one_of("sticky", given["sticky"], typing.get_args(Stickiness))
        elif "sticky" in given:
            positive("sticky", given["sticky"])
        menu = Menu.of(given.pop("actions"), given.pop("action_features", None))
        for name, converted in CONVERSIONS.items():
            if name in given:
                given[name] = converted(given[name])
        settings = cls(menu=menu, **given)
        check_bounds(settings)
        try:
            # As it is read back, so that the same declaration is equal to what was written.
            return msgspec.msgpack.decode(msgspec.msgpack.encode(settings), type=known_type(cls))
        except (msgspec.MsgspecError, TypeError, OverflowError, UnicodeError) as error:
            raise InputError(
                f"the declaration cannot be written down ({error}): give plain values"
            ) from error

    @property
    def longest_wait(self) -> float:
        """Seconds after which a decision without a reward matures; infinite if it never does."""
        if self.reward_wait > 0:
            return self.reward_wait
        return math.inf if self.no_reward_after is None else self.no_reward_after

    def archive_age(self, older_than: float) -> float:
        """The age in seconds at which events can be archived: ``older_than``, or more.

        A reward may come before its decision and wait in quarantine. The two must not be
        parted while the decision can still mature.
        """
        wait = self.longest_wait if self.longest_wait < math.inf else 0.0
        return max(older_than, wait + self.quarantine)

    @property
    def groups(self) -> tuple[Any, ...]:
        """Everything by which decisions are drawn into the holdout and the control."""
        rails = self.guard_rails
        holdout = rails.holdout, rails.baseline, rails.aa_test
        return *holdout, rails.control, rails.control_share, self.seed

    @property
    def scale(self) -> Scale:
        """The scale of the rewards; if they have parts, that of the combined reward."""
        parts = self.reward_parts
        return scale_of(self.rewards) if parts is None else parts.scale

    @property
    def reward_parts(self) -> RewardParts | None:
        """The parts of a reward, if there is one for each name or slot."""
        return RewardParts.of(self.rewards, [slot.name for slot in self.menu.slots])

    @property
    def problem(self) -> Problem:
        """The problem that a policy is given, with all declared choices."""
        return self.schema(self.menu).problem

    def schema(self, menu: Menu) -> Schema:
        """The schema of decisions and rewards, with the choices of ``menu``."""
        parts = self.reward_parts
        if parts is None:
            return Schema(menu=menu, context=self.context, rewards=self.rewards)
        return Schema(
            menu=menu,
            context=self.context,
            rewards=rewards_of(parts.scale),
            slot_rewards=parts.each if parts.kind == SLOTS else None,
        )

    def build_policy(self, given: Policy[Any] | None) -> Policy[Any]:
        """The policy; ``given`` is the object with which the bandit was opened, if any."""
        return PolicySpecification(self.policy).build(given)

    def check(self, policy: Policy[Any]) -> None:
        """Refuse settings that contradict each other, or that the policy cannot work with."""
        check_settings(self, policy)
