"""What can be declared of a bandit: the one definition for Python, TOML, HTTP and the store.

``Settings`` has the names, types, bounds, defaults and descriptions. ``BanditOptions`` says which
types Python callers may give, and ``PLAIN_FORMS`` how JSON and TOML write the settings that Python
callers may give as objects. The server makes its message from these.
"""

import math
import types
import typing
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, Literal, Self, TypedDict

import msgspec
import numpy as np
from msgspec import Meta

from submax.core.checks import below_one, non_negative, one_of, positive, whole_number
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.rewards.continuous import Continuous
from submax.core.rewards.counts import Counts
from submax.core.rewards.scale import Scale
from submax.live.declaring.alarm_settings import AlarmSettings
from submax.live.declaring.guard_rails import GuardRails
from submax.policies.specification import PolicySpecification
from submax.schema.context_schema import LARGEST, ContextSchema
from submax.schema.menu import Menu
from submax.schema.reward_parts import SLOTS, RewardParts, declared_rewards
from submax.schema.rewards import rewards_of, scale_of
from submax.schema.schema import Schema

MAX_SECONDS = 1e9
"""The longest duration that can be declared: 31 years, far from where clocks lose precision."""
Combination = Literal["first", "last", "max", "sum"]
Status = Literal["active", "paused", "archived"]
Stickiness = Literal["none", "version"]
Sticky = Stickiness | Annotated[float, Meta(gt=0, le=MAX_SECONDS)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Names = Annotated[list[Name], Meta(max_length=10_000)]
FeatureValue = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)] | Name
ChoiceFeatures = dict[str, FeatureValue]
"""The numbers and categories that describe a choice."""


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
        settings._check_bounds()
        try:
            # As it is read back, so that the same declaration is equal to what was written.
            return msgspec.msgpack.decode(msgspec.msgpack.encode(settings), type=cls)
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
        self._check_without_wait()
        scale, parts = self.scale, self.reward_parts
        if self.default_reward is not None:
            scale.check(np.array([self.default_reward]))
        if parts is not None:
            self._check_parts(parts)
            # Several rewards of one name are summed on the scale of each.
            scale = parts.each_scale
        if self.combine == "sum" and not isinstance(scale, (Counts, Continuous)):
            raise InputError(
                f"combine='sum' was given with {self.rewards['kind']} rewards, and rewards that "
                "are summed need a scale that holds the sum: declare rewards='counts' or "
                "'continuous'"
            )
        if self.combine == "sum" and isinstance(scale, Continuous) and scale != Continuous():
            raise InputError(
                f"combine='sum' was given with {scale}, and rewards that are summed need a "
                "continuous scale without bounds: declare rewards='continuous'"
            )
        self.guard_rails.check(self.menu)
        self.alarms.check()
        self._check_sticky()
        # A policy that does not suit the problem is refused here, not at the first decision.
        policy.init(self.problem, 1, np.random.default_rng(0))
        if self.shadow is not None:
            shadow = PolicySpecification(self.shadow).build()
            shadow.init(self.problem, 1, np.random.default_rng(0))

    def _check_parts(self, parts: RewardParts) -> None:
        """Refuse rewards for each slot that nothing could be learned from."""
        if parts.kind != SLOTS:
            return
        if self.menu.plain or self.menu.ranges:
            raise InputError(
                "rewards of the kind 'slots' were declared, and they are for actions that are a "
                "table of slots with names of choices: declare such actions, or other rewards"
            )
        if self.default_reward:
            raise InputError(
                f"default_reward={self.default_reward:g} was given with a reward for each slot, of "
                "which 0 and None are allowed: leave default_reward out"
            )

    def _check_bounds(self) -> None:
        """Refuse values outside the bounds in the types, in the words of ``core.checks``."""
        for name, hint in SETTING_TYPES.items():
            meta, value = _meta(hint), getattr(self, name)
            if meta is None or value is None or (meta.ge is None and meta.gt is None):
                continue
            if typing.get_args(hint)[0] is int:
                whole_number(name, value, at_least=int(meta.ge or 0), at_most=meta.le)  # type: ignore[arg-type]  # bounds of ints are ints
            elif meta.lt == 1:
                below_one(name, value)
            elif meta.gt == 0:
                positive(name, value)
            elif meta.ge == 0:
                non_negative(name, value)
            if meta.le is not None and isinstance(value, float) and value > meta.le:
                raise InputError(f"{name} must be at most {meta.le:g}, not {value!r}")

    def _check_sticky(self) -> None:
        """Refuse to repeat actions for longer than the store finds them."""
        longest = math.inf if self.archive_after is None else self.archive_after
        if not isinstance(self.sticky, str) and self.sticky > longest:
            raise InputError(
                f"sticky={self.sticky:g} seconds was given with archive_after={longest:g}, after "
                "which the action of a unit is forgotten: give a shorter sticky, or a longer "
                "archive_after"
            )

    def _check_without_wait(self) -> None:
        """Refuse settings that go only with a ``reward_wait`` of 0, or only with another one."""
        if self.no_reward_after is not None and self.reward_wait > 0:
            raise InputError(
                f"no_reward_after={self.no_reward_after:g} was given with reward_wait="
                f"{self.reward_wait:g}; it is allowed only with reward_wait=0, since otherwise "
                "reward_wait says when a decision has no reward: leave one of them out"
            )
        if self.reward_wait == 0 and self.combine != "first":
            raise InputError(
                f"combine={self.combine!r} was given with reward_wait=0, with which a decision is "
                "learned from at its first reward, so that only 'first' is allowed: leave combine "
                "out, or set a reward_wait in which all rewards of a decision come"
            )


FIXED = (
    "context",
    "rewards",
    "combine",
    "reward_wait",
    "no_reward_after",
    "default_reward",
    "quarantine",
)
"""Settings that cannot change once the bandit decides: rewards that are in the log already would
have to be understood in another way."""
MEMORY_ONLY = ("learn_share",)
"""Settings of bandits in memory, which learn as rewards come."""
STORE_ONLY = ("shadow", "alarms", "refit_rows", "refit_seconds", "keep_versions", "archive_after")
"""Settings of bandits with a store, which fit versions."""

Actions = Sequence[str] | Mapping[str, Sequence[str] | Sequence[float]]
"""Names of arms, or a table of slots, each with names of choices or (low, high)."""


class BanditOptions(TypedDict, total=False):
    """The types in which Python callers declare a bandit, beside its actions.

    ``Settings`` and ``PLAIN_FORMS`` describe each option and its default; a test asserts that names
    and types agree with them.
    """

    action_features: Mapping[str, Mapping[str, Any]]
    context: Mapping[str, Any]
    policy: str | Mapping[str, Any] | Policy[Any]
    shadow: str | Mapping[str, Any] | Policy[Any] | None
    rewards: Scale | str | Mapping[str, Any]
    combine: Combination
    reward_wait: float | timedelta
    no_reward_after: float | timedelta | None
    default_reward: float | None
    quarantine: float | timedelta
    guard_rails: GuardRails | Mapping[str, Any]
    alarms: AlarmSettings | Mapping[str, Any]
    sticky: Stickiness | float | timedelta
    status: Status
    refit_rows: int
    refit_seconds: float | timedelta
    seed: int
    keep_versions: int
    archive_after: float | timedelta | None
    learn_share: float | None


class Declaration(BanditOptions, total=False):
    """The options of a bandit and its actions."""

    actions: Actions


class ContextField(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A field of a context: a category if it has ``values``, else a number.

    ``default`` is used if the field is missing, or if its category is unknown.
    """

    values: Names | None = None
    default: str | float | None = None


PLAIN_FORMS: dict[str, Any] = {
    "actions": Annotated[
        Names | dict[str, list[str | float]],
        Meta(description="Names of arms, or a table of slots: names of choices, or [low, high]."),
    ],
    "action_features": Annotated[
        dict[str, dict[str, FeatureValue | ChoiceFeatures]],
        Meta(
            description="A table of arms, each with a table of numbers and texts that describe it; "
            "with slots, a table of slots with such tables."
        ),
    ],
    "context": Annotated[
        dict[str, str | list[str] | ContextField],
        Meta(description="A table of fields: 'number', a list of categories, or a table."),
    ],
    "policy": Annotated[
        str | dict[str, Any],
        Meta(description="The name of a preset such as 'rcp-adaptive', or a table with a 'kind'."),
    ],
    "shadow": Annotated[
        str | dict[str, Any] | None,
        Meta(
            description="A second policy, as in 'policy', that decides beside the first: what it "
            "would have done is logged and compared, and never displayed. None: there is none."
        ),
    ],
    "rewards": Annotated[
        str | dict[str, Any],
        Meta(
            description="The scale of the rewards: its name, or a table with a 'kind'; or a table "
            "of names and weights for several rewards; or 'slots' for one of each slot."
        ),
    ],
    "guard_rails": GuardRails,
    "alarms": AlarmSettings,
}
"""How JSON and TOML write the settings that Python callers may give as objects."""
SETTING_TYPES: dict[str, Any] = {
    name: hint
    for name, hint in typing.get_type_hints(Settings, include_extras=True).items()
    if name != "menu"
}
"""The settings with their types, bounds and descriptions."""
DECLARED_TYPES: dict[str, Any] = {**SETTING_TYPES, **PLAIN_FORMS}
"""All words of a declaration with their types in plain data."""
DURATIONS = [
    name
    for name, hint in typing.get_type_hints(BanditOptions).items()
    if timedelta in typing.get_args(hint)
]
"""Settings in seconds, which may be given as a ``timedelta``."""


def allows_none(name: str) -> bool:
    """Whether None is a value of a setting, and not only a way to leave it out."""
    return type(None) in typing.get_args(SETTING_TYPES.get(name))


def _meta(hint: Any) -> Meta | None:
    """The bounds and the description of a type, also within a union."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return next(filter(None, map(_meta, typing.get_args(hint))), None)
    return next((one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Meta)), None)


def _guard_rails(given: object) -> GuardRails:
    if given is None:
        return GuardRails()
    if isinstance(given, GuardRails):
        return given
    if isinstance(given, Mapping):
        for key in given:
            one_of("guard rail", str(key), GuardRails.__struct_fields__)
    try:
        return msgspec.convert(given, GuardRails)
    except msgspec.ValidationError as error:
        raise InputError(f"guard_rails: {error}") from error


def _alarms(given: object) -> AlarmSettings:
    if given is None:
        return AlarmSettings()
    if isinstance(given, Mapping):
        for key in given:
            one_of("setting of alarms:", str(key), AlarmSettings.__struct_fields__)
    try:
        return msgspec.convert(given, AlarmSettings)
    except msgspec.ValidationError as error:
        raise InputError(f"alarms: {error}") from error


def _shadow(given: object) -> str | dict[str, Any] | None:
    if given is None:
        return None
    specification = PolicySpecification.of(given)
    if specification.is_object:
        raise InputError(
            f"the shadow was given as {given!r:.80}, which no table can describe, so that it could "
            "not be made again: give a name, or a table {'kind': 'my_policy.py:MyPolicy'}"
        )
    return specification.data


CONVERSIONS: dict[str, Any] = {
    "context": ContextSchema.of,
    "policy": lambda policy: PolicySpecification.of(policy).data,
    "shadow": _shadow,
    "rewards": declared_rewards,
    "guard_rails": _guard_rails,
    "alarms": _alarms,
}
"""How a value that a caller may give as an object becomes the one that the store holds."""
