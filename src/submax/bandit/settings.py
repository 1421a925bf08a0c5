"""The settings of a bandit: what can be declared, how it is checked, and what it means."""

import dataclasses
import math
import types
import typing
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import Annotated, Any, Literal, Self, TypedDict, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from submax.bandit.guard_rails import GuardRails
from submax.core.checks import below_one, non_negative, one_of, positive, probability, whole_number
from submax.core.decoding import known_type
from submax.core.errors import InputError
from submax.core.policy import Policy
from submax.core.problem import Problem
from submax.core.registry import Registry
from submax.core.rewards import Continuous, Counts, Scale
from submax.estimators import ESTIMATORS
from submax.policies import POLICIES
from submax.policies.specification import PolicySpecification
from submax.schema.actions import ActionSpec
from submax.schema.context import LARGEST, ContextSchema
from submax.schema.rewards import SLOTS, RewardParts, declared_rewards, rewards_of, scale_of
from submax.schema.schema import Schema
from submax.strategies import STRATEGIES

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

    false_alarms: float = 0.01
    smallest_propensity: float = 0.0

    def check(self) -> None:
        """Refuse numbers that are no probabilities."""
        probability("false_alarms", self.false_alarms)
        probability("smallest_propensity", self.smallest_propensity)
        if not 0 < self.false_alarms < 1:
            raise InputError(
                f"false_alarms is {self.false_alarms}, and a chance above 0 and below 1 is needed: "
                "give one such as 0.01",
                parameter="false_alarms",
            )


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


def _guard_rails(given: object) -> GuardRails:
    return _converted(given, GuardRails, "guard_rails", "guard rail")


def _alarms(given: object) -> AlarmSettings:
    return _converted(given, AlarmSettings, "alarms", "setting of alarms:")


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
        raise InputError(f"{setting}: {error}") from error


CONVERSIONS: dict[str, Any] = {
    "context": ContextSchema.of,
    "policy": lambda policy: PolicySpecification.of(policy).data,
    "rewards": declared_rewards,
    "guard_rails": _guard_rails,
    "alarms": _alarms,
}
"""How a value that a caller may give as an object becomes the one that the store holds."""


def check_settings(settings: "Settings", policy: Policy[Any] | None) -> None:
    """Refuse settings that contradict each other, or that the policy cannot work with.

    ``policy`` is None if code of the user would have to be run to make it.
    """
    _check_without_wait(settings)
    scale, parts = settings.scale, settings.reward_parts
    if settings.default_reward is not None:
        scale.check(np.array([settings.default_reward]))
    if parts is not None:
        _check_parts(settings, parts)
        # Several rewards of one name are summed on the scale of each.
        scale = parts.each_scale
    if settings.combine == "sum":
        _check_sum(settings, scale)
    settings.guard_rails.check(settings.menu)
    settings.alarms.check()
    # A policy that does not suit the problem is refused here, not at the first decision.
    if policy is not None:
        policy.init(settings.problem, 1, np.random.default_rng(0))


def _check_sum(settings: "Settings", scale: Scale) -> None:
    """Refuse to sum rewards on a scale that does not hold the sum."""
    if not isinstance(scale, (Counts, Continuous)):
        raise InputError(
            f"combine='sum' was given with {settings.rewards['kind']} rewards, and rewards that "
            "are summed need a scale that holds the sum: declare rewards='counts' or 'continuous'",
            parameter="combine",
        )
    if isinstance(scale, Continuous) and scale != Continuous():
        raise InputError(
            f"combine='sum' was given with {scale}, and rewards that are summed need a continuous "
            "scale without bounds: declare rewards='continuous'",
            parameter="combine",
        )


def _check_parts(settings: "Settings", parts: RewardParts) -> None:
    """Refuse rewards for each slot that nothing could be learned from."""
    if parts.kind != SLOTS:
        return
    if settings.menu.plain or settings.menu.ranges:
        raise InputError(
            "rewards of the kind 'slots' were declared, and they are for actions that are a "
            "table of slots with names of choices: declare such actions, or other rewards",
            parameter="rewards",
        )
    if settings.default_reward:
        raise InputError(
            f"default_reward={settings.default_reward:g} was given with a reward for each slot, of "
            "which 0 and None are allowed: leave default_reward out",
            parameter="default_reward",
        )


def _check_without_wait(settings: "Settings") -> None:
    """Refuse settings that go only with a ``reward_wait`` of 0, or only with another one."""
    if settings.no_reward_after is not None and settings.reward_wait > 0:
        raise InputError(
            f"no_reward_after={settings.no_reward_after:g} was given with reward_wait="
            f"{settings.reward_wait:g}; it is allowed only with reward_wait=0, since otherwise "
            "reward_wait says when a decision has no reward: leave one of them out",
            parameter="no_reward_after",
        )
    if settings.reward_wait == 0 and settings.combine != "first":
        raise InputError(
            f"combine={settings.combine!r} was given with reward_wait=0, with which a decision is "
            "learned from at its first reward, so that only 'first' is allowed: leave combine "
            "out, or set a reward_wait in which all rewards of a decision come",
            parameter="combine",
        )


def check_bounds(settings: "Settings") -> None:
    """Refuse values outside the bounds in the types, in the words of ``core.checks``."""
    for name, hint in _types(type(settings)).items():
        meta, value = _meta(hint), getattr(settings, name)
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
            raise InputError(f"{name} must be at most {meta.le:g}, not {value!r}", parameter=name)


@cache
def _types(kind: type) -> dict[str, Any]:
    """The types of the fields of a class, with their bounds."""
    return typing.get_type_hints(kind, include_extras=True)


def _meta(hint: Any) -> Meta | None:
    """The bounds and the description of a type, also within a union."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return next(filter(None, map(_meta, typing.get_args(hint))), None)
    return next((one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Meta)), None)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of a bandit, as the store holds them.

    ``menu`` has the declared ``actions`` and ``action_features``; see ``PLAIN_FORMS`` for these,
    ``context``, ``policy``, ``rewards`` and ``guard_rails``.
    """

    menu: ActionSpec
    context: ContextSchema = ContextSchema()
    policy: str | dict[str, Any] = "rcp-adaptive"
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
    learn_share: (
        Annotated[
            float,
            Meta(
                ge=0,
                lt=1,
                description="For a bandit in memory: it learns before a decision if there are new "
                "rows, at least this share of the rows learned from. 0: from every row at once. "
                "None: 0.02, with a context 0.1, and 0.25 if the policy trains networks.",
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
        menu = ActionSpec.of(given.pop("actions"), given.pop("action_features", None))
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
        """Refuse settings that contradict each other, or that the policy cannot work with."""
        check_settings(self, policy)


class ContextField(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A field of a context: a category if it has ``values``, else a number.

    ``default`` is used if the field is missing, or if its category is unknown. Without a default an
    ``unknown`` category counts as "other", or "refuse" makes it an error.
    """

    values: Names | None = None
    default: str | float | None = None
    unknown: Literal["other", "refuse"] | None = None


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


def allows_none(name: str) -> bool:
    """Whether None is a value of a setting, and not only a way to leave it out."""
    return type(None) in typing.get_args(SETTING_TYPES.get(name))


MAX_KINDS_NAMED = 3
"""How many kinds of policies a message names: more would hide the example."""


def suggest_option(word: str, value: object) -> None:
    """Raise an ``InputError`` if the word is a guard rail or a parameter of a policy.

    The error says how to give the word. Any other word is left to the caller.
    """
    if word in GuardRails.__struct_fields__:
        raise InputError(
            f"{word} was given to the bandit, and it is one of the guard rails: give "
            f"guard_rails={{{word!r}: {value!r:.40}}}",
            parameter=word,
        )
    kinds = _kinds_with(POLICIES, word)
    if kinds:
        example = f"policy={{'kind': {kinds[0]!r}, {word!r}: {value!r:.40}}}"
        raise InputError(
            f"{word} was given to the bandit, and it is a parameter of a policy "
            f"({_few(kinds)}): give it with the policy, {example}",
            parameter=word,
        )
    for folder in (STRATEGIES, ESTIMATORS):
        kinds = _kinds_with(folder, word)
        if kinds:
            part = f"{folder.word!r}: {{'kind': {kinds[0]!r}, {word!r}: {value!r:.40}}}"
            raise InputError(
                f"{word} was given to the bandit, and it is a parameter of the {folder.word} of a "
                f"policy ({_few(kinds)}): give it with the policy, "
                f"policy={{'kind': 'reward-conditioned', {part}}}",
                parameter=word,
            )


def _kinds_with(folder: Registry[Any], word: str) -> list[str]:
    """The kinds of a folder that have a parameter of this name; those with few parameters first."""
    found = []
    for kind in folder.classes():
        names = [field.name for field in dataclasses.fields(kind)]
        name = folder.kind_of(kind)
        if word in names and name is not None:
            found.append((len(names), name))
    return [name for _, name in sorted(found)]


def _few(kinds: list[str]) -> str:
    more = ", …" if len(kinds) > MAX_KINDS_NAMED else ""
    return ", ".join(kinds[:MAX_KINDS_NAMED]) + more
