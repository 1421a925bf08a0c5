"""The settings of a bandit: what can be declared, how it is checked, and what it means."""

import math
import typing
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, Literal, Self, TypedDict, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from submax.bandit.guard_rails import GuardRails
from submax.core.checks import one_of, wrong_type
from submax.core.decoding import known_type
from submax.core.errors import InputError
from submax.core.policy import Policy
from submax.core.problem import Problem
from submax.core.rewards import Continuous, Counts, Scale
from submax.policies.specification import PolicySpecification
from submax.schema.actions import ActionSpec
from submax.schema.context import LARGEST, ContextSchema
from submax.schema.names import short_repr
from submax.schema.rewards import SLOTS, RewardParts, declared_rewards, rewards_of, scale_of
from submax.schema.schema import Schema

MAX_SECONDS = 1e9
"""The longest duration that can be declared: 31 years, far from where clocks lose precision."""
Combination = Literal["first", "last", "max", "sum"]
Status = Literal["active", "paused", "archived"]
Stickiness = Literal["none", "version"]
Seconds = Annotated[float, Meta(gt=0, le=MAX_SECONDS)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Names = Annotated[list[Name], Meta(max_length=10_000)]
FeatureValue = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)] | Name
ChoiceFeatures = dict[str, FeatureValue]
"""The numbers and categories that describe a choice."""

FIXED = (
    "rewards",
    "combine",
    "reward_wait",
    "no_reward_after",
    "default_reward",
    "quarantine",
)
"""Settings that cannot change once the bandit decides: rewards that are in the log already would
have to be understood in another way. To a context fields and categories can be added."""
MEMORY_ONLY = ("learn_share",)
"""Settings of bandits in memory, which learn as rewards come."""
STORE_ONLY = ("alarms", "refit_rows", "refit_seconds", "keep_versions")
"""Settings of bandits with a store, which fit versions."""


class AlarmSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When there is an alarm.

    ``false_alarms`` is the largest chance of a false alarm about the reward rate, and about
    missing rewards, within 100,000 decisions. ``smallest_propensity`` is an alarm if an action was
    drawn with a smaller probability; 0: it never is.
    """

    false_alarms: Annotated[float, Meta(gt=0, lt=1)] = 0.01
    smallest_propensity: Annotated[float, Meta(ge=0, le=1)] = 0.0


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
    learn_share: float | None


class Declaration(BanditOptions, total=False):
    """The options of a bandit and its actions."""

    actions: Actions


DURATIONS = [
    name
    for name, hint in typing.get_type_hints(BanditOptions).items()
    if timedelta in typing.get_args(hint)
]
"""Settings in seconds, which may be given as a ``timedelta``."""


Part = TypeVar("Part", GuardRails, AlarmSettings)


def _converted(given: object, kind: type[Part], setting: str, word: str) -> Part:
    """The settings of ``kind`` that a table or an object gives; the defaults if it is None.

    In errors, ``setting`` is the name of the whole, and ``word`` says what a key of the table is.
    """
    if given is None:
        return kind()
    if isinstance(given, Mapping):
        for key in given:
            one_of(word, str(key), kind.__struct_fields__)
    try:
        return msgspec.convert(given, known_type(kind))
    except msgspec.ValidationError as error:
        if isinstance(given, Mapping):
            raise refused_setting(error, given) from error
        raise InputError(f"{setting}: {error}") from error


CONVERSIONS: dict[str, Any] = {
    "context": ContextSchema.of,
    "policy": lambda policy: PolicySpecification.of(policy).data,
    "rewards": declared_rewards,
    "guard_rails": lambda given: _converted(given, GuardRails, "guard_rails", "guard rail"),
    "alarms": lambda given: _converted(given, AlarmSettings, "alarms", "setting of alarms:"),
}
"""How a value that a caller may give as an object becomes the one that the store holds."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of a bandit, as the store holds them.

    ``menu`` has the declared ``actions`` and ``action_features``. ``ABOUT`` says what each setting
    means, and ``PLAIN_FORMS`` how JSON writes those that callers may give as objects.
    """

    menu: ActionSpec
    context: ContextSchema = ContextSchema()
    policy: str | dict[str, Any] = "rcp-adaptive"
    rewards: dict[str, Any] = msgspec.field(default_factory=lambda: {"kind": "binary"})
    combine: Combination = "last"
    reward_wait: Annotated[float, Meta(ge=0, le=MAX_SECONDS)] = 3600.0
    no_reward_after: Seconds | None = None
    default_reward: Annotated[float, Meta(ge=-LARGEST, le=LARGEST)] | None = 0.0
    quarantine: Seconds = 86400.0
    guard_rails: GuardRails = GuardRails()
    alarms: AlarmSettings = AlarmSettings()
    sticky: Stickiness | Seconds = "version"
    refit_rows: Annotated[int, Meta(ge=1, le=10**9)] = 100
    refit_seconds: Seconds = 60.0
    status: Status = "active"
    seed: Annotated[int, Meta(ge=0, le=2**62)] = 0
    keep_versions: Annotated[int, Meta(ge=2, le=10_000)] = 20
    learn_share: Annotated[float, Meta(ge=0, lt=1)] | None = None

    @classmethod
    def of(cls, declaration: Mapping[str, Any]) -> Self:
        """Settings from a table of words of ``Declaration``, of which ``actions`` is required."""
        given = dict(declaration)
        for name in DURATIONS:
            if isinstance(given.get(name), timedelta):
                given[name] = given[name].total_seconds()
        if given.get("reward_wait") == 0:
            given.setdefault("combine", "first")
        for name, words in (("combine", Combination), ("status", Status), ("sticky", Stickiness)):
            if isinstance(given.get(name), str):
                one_of(name, given[name], typing.get_args(words))
        menu = ActionSpec.of(given.pop("actions"), given.pop("action_features", None))
        for name, converted in CONVERSIONS.items():
            if name in given:
                given[name] = converted(given[name])
        try:
            # As it is read back, so the same declaration is equal to what was written.
            written = msgspec.msgpack.encode(cls(menu=menu, **given))
            return msgspec.msgpack.decode(written, type=known_type(cls))
        except msgspec.ValidationError as error:
            raise refused_setting(error, given) from error
        except (msgspec.MsgspecError, TypeError, OverflowError, UnicodeError) as error:
            large = (one for one, each in given.items() if isinstance(each, int) and each >> 63)
            raise InputError(
                f"the declaration cannot be written down ({error}): give plain values",
                parameter=next(large, None),
            ) from error

    @property
    def longest_wait(self) -> float:
        """Seconds after which a decision without a reward matures; infinite if it never does."""
        if self.reward_wait > 0:
            return self.reward_wait
        return math.inf if self.no_reward_after is None else self.no_reward_after

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

    def schema(self, menu: ActionSpec) -> Schema:
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

    def check(self, policy: Policy[Any] | None) -> None:
        """Refuse settings that contradict each other, or that the policy cannot work with.

        ``policy`` is None if code of the user would have to be run to make it.
        """
        if self.no_reward_after is not None and self.reward_wait > 0:
            raise InputError(
                f"no_reward_after={self.no_reward_after:g} was given with reward_wait="
                f"{self.reward_wait:g}; it is allowed only with reward_wait=0, since otherwise "
                "reward_wait says when a decision has no reward: leave one of them out",
                parameter="no_reward_after",
            )
        if self.reward_wait == 0 and self.combine != "first":
            raise InputError(
                f"combine={self.combine!r} needs a reward_wait above 0, because with 0 a "
                "decision is learned from at its first reward: set a reward_wait, or leave "
                "combine out",
                parameter="combine",
            )
        self._check_rewards()
        self.guard_rails.check(self.menu)
        # A policy that does not suit the problem is refused here, not at the first decision.
        if policy is not None:
            policy.init(self.problem, 1, np.random.default_rng(0))

    def _check_rewards(self) -> None:
        """Refuse rewards that cannot be summed, or from which nothing could be learned."""
        parts, default = self.reward_parts, self.default_reward
        if default is not None:
            self.scale.check(np.array([default]))
        # Several rewards of one name are summed on the scale of each.
        scale = self.scale if parts is None else parts.each_scale
        if self.combine == "sum" and not isinstance(scale, Counts) and scale != Continuous():
            raise InputError(
                f"combine='sum' does not work with {scale}, because sums need a scale "
                "without an upper bound: declare rewards='counts' or 'continuous'",
                parameter="combine",
            )
        if parts is None or parts.kind != SLOTS:
            return
        if self.menu.plain or self.menu.ranges:
            raise InputError(
                "rewards of the kind 'slots' need actions that are a table of slots: "
                "declare such actions, or other rewards",
                parameter="rewards",
            )
        if default:
            raise InputError(
                f"default_reward={default:g} is not possible with a reward for each slot, "
                "only 0 or None: leave default_reward out",
                parameter="default_reward",
            )


def refused_setting(error: msgspec.ValidationError, given: Mapping[str, Any]) -> InputError:
    """The error for a setting that does not have its type, or is outside its bounds."""
    place, problem = wrong_type(error)
    name = place.partition(".")[0]
    value = short_repr(given.get(name))
    return InputError(f"{name} {problem.partition(', not ')[0]}, not {value}", parameter=name)


class ContextField(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A field of a context: a category if it has ``values``, else a number.

    ``default`` is used if the field is missing, or if its category is unknown. Without a default an
    ``unknown`` category counts as "other", or "refuse" makes it an error.
    """

    values: Names | None = None
    default: str | float | None = None
    unknown: Literal["other", "refuse"] | None = None


def _about(name: str, hint: Any) -> Any:
    return Annotated[hint, Meta(description=ABOUT[name])] if name in ABOUT else hint


PLAIN_FORMS: dict[str, Any] = {
    "actions": Names | dict[str, list[str | float]],
    "action_features": dict[str, dict[str, FeatureValue | ChoiceFeatures]],
    "context": dict[str, str | list[str] | ContextField],
    "policy": str | dict[str, Any],
    "rewards": str | dict[str, Any],
    "guard_rails": GuardRails,
    "alarms": AlarmSettings,
}
"""How JSON and TOML write the settings that Python callers may give as objects."""
ABOUT = {
    "actions": "Names of arms, or a table of slots: names of choices, or [low, high].",
    "action_features": "A table of arms, each with a table of numbers and texts that describe it; "
    "with slots, a table of slots with such tables.",
    "context": "A table of fields: 'number', a list of categories, or a table.",
    "policy": "The name of a preset such as 'rcp-adaptive', or a table with a 'kind'.",
    "rewards": "The scale of the rewards: its name, or a table with a 'kind'; or a table of names "
    "and weights for several rewards; or 'slots' for one of each slot.",
    "combine": "How several rewards of one decision become one. With reward_wait=0 only 'first' is "
    "possible, and is the default.",
    "reward_wait": "Seconds after which a decision matures, that is, is learned from with the "
    "rewards that have come. With 0 it matures when its first reward comes.",
    "no_reward_after": "With reward_wait=0: seconds after which a decision without a reward is "
    "learned from with the default_reward. None: it never is.",
    "default_reward": "The reward of a decision that has none when it matures. None: such a "
    "decision is not learned from.",
    "quarantine": "Seconds that a reward with an unknown id waits for its decision.",
    "sticky": "How long a unit gets the same action: as long as a 'version' decides, for a number "
    "of seconds, or 'none': every decision is drawn by itself.",
    "refit_rows": "Number of newly matured decisions after which a version is fitted.",
    "refit_seconds": "Seconds after which a version is fitted even if fewer have matured.",
    "status": "'active'; 'paused': decisions follow the control, the baseline or chance, "
    "and are not learned from; 'archived': decisions and rewards are refused, "
    "and the log can be read.",
    "seed": "Seed of the fits: the same log and seed give the same version.",
    "keep_versions": "Number of versions whose models stay in the store.",
    "learn_share": "For a bandit in memory: it learns before a decision if there are new rows, at "
    "least this share of the rows learned from. 0: from every row at once. None: 0.04, with a "
    "context 0.1, and 0.25 if the policy trains networks.",
}
"""What each setting means."""
HINTS = typing.get_type_hints(Settings, include_extras=True)
SETTING_TYPES: dict[str, Any] = {
    name: _about(name, HINTS[name]) for name in HINTS if name != "menu"
}
"""The settings with their types, bounds and descriptions."""
DECLARED_TYPES: dict[str, Any] = {
    **SETTING_TYPES,
    **{name: _about(name, hint) for name, hint in PLAIN_FORMS.items()},
}
"""All words of a declaration with their types in plain data."""


def allows_none(name: str) -> bool:
    """Whether None is a value of a setting, and not only a way to leave it out."""
    return type(None) in typing.get_args(HINTS.get(name))
