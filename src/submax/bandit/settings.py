"""The settings of a bandit: what can be declared, how it is checked, and how it may change.

All functions are pure: they return what a bandit becomes, or raise an error and change nothing.
"""

import math
import typing
import warnings
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self, TypedDict

import msgspec
import numpy as np
from msgspec import Meta

from submax.bandit.guard_rails import DEFAULT_RAMP, LONGEST_RAMP, GuardRails, Ramp
from submax.core.checks import did_you_mean, one_of, whole_number, wrong_type
from submax.core.decoding import known_type
from submax.core.errors import ContextIgnoredWarning, InputError
from submax.core.policy import Policy
from submax.core.rewards import Continuous, Counts, Scale
from submax.policies.specification import PolicySpecification
from submax.schema.actions import LISTED, ActionSpec, Change
from submax.schema.context import LARGEST, ContextSchema
from submax.schema.names import short_repr
from submax.schema.rewards import SLOTS, RewardParts, declared_rewards, rewards_of, scale_of
from submax.schema.schema import Schema
from submax.schema.trained_policy import TrainedPolicy

MAX_SECONDS = 1e9
"""The longest duration that can be declared: 31 years, far from where clocks lose precision."""
ENOUGH_ROWS = 10_000
"""A trained policy must have kept this many rows, or all it had: later versions are fitted to these
rows, and with fewer they would forget what the policy had learned."""
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
STORE_ONLY = ("quarantine", "refit_rows", "refit_seconds", "keep_versions")
"""Settings of bandits with a store."""


Actions = Sequence[str] | Mapping[str, Sequence[str] | Sequence[float]]
"""Names of arms, or a table of slots, each with names of choices or (low, high)."""


class BanditOptions(TypedDict, total=False):
    """The types in which Python callers declare a bandit, beside its actions."""

    action_features: Mapping[str, Mapping[str, Any]]
    context: Mapping[str, Any]
    policy: str | Mapping[str, Any] | Policy[Any]
    rewards: Scale | str | Mapping[str, Any]
    combine: Combination
    reward_wait: float
    no_reward_after: float | None
    default_reward: float | None
    quarantine: float
    guard_rails: GuardRails | Mapping[str, Any]
    sticky: Stickiness | float
    status: Status
    refit_rows: int
    refit_seconds: float
    seed: int
    keep_versions: int


class Declaration(BanditOptions, total=False):
    """The options of a bandit and its actions."""

    actions: Actions


CONVERSIONS: dict[str, Any] = {
    "context": ContextSchema.of,
    "policy": lambda policy: PolicySpecification.of(policy).data,
    "rewards": declared_rewards,
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
    sticky: Stickiness | Seconds = "version"
    refit_rows: Annotated[int, Meta(ge=1, le=10**9)] = 100
    refit_seconds: Seconds = 60.0
    status: Status = "active"
    seed: Annotated[int, Meta(ge=0, le=2**62)] = 0
    keep_versions: Annotated[int, Meta(ge=2, le=10_000)] = 20

    @classmethod
    def of(cls, declaration: Mapping[str, Any]) -> Self:
        """Settings from a table of words of ``Declaration``, of which ``actions`` is required."""
        given = dict(declaration)
        if given.get("reward_wait") == 0:
            given.setdefault("combine", "first")
        for name, words in (("combine", Combination), ("status", Status), ("sticky", Stickiness)):
            if isinstance(given.get(name), str):
                one_of(name, given[name], typing.get_args(words))
        menu = ActionSpec.of(given.pop("actions"), given.pop("action_features", None))
        for name, converted in CONVERSIONS.items():
            if name in given:
                given[name] = converted(given[name])
        rails = given.get("guard_rails")
        if isinstance(rails, Mapping):
            for key in rails:
                one_of("guard rail", str(key), GuardRails.__struct_fields__)
            try:
                given["guard_rails"] = msgspec.convert(rails, known_type(GuardRails))
            except msgspec.ValidationError as error:
                raise refused_setting(error, rails) from error
        elif rails is None:
            given.pop("guard_rails", None)
        try:
            # As it is read back, so the same declaration is equal to what was written.
            written = msgspec.msgpack.encode(cls(menu=menu, **given))
            return msgspec.msgpack.decode(written, type=known_type(cls))
        except msgspec.ValidationError as error:
            raise refused_setting(error, given) from error
        except (msgspec.MsgspecError, TypeError, OverflowError, UnicodeError) as error:
            large = (one for one, each in given.items() if isinstance(each, int) and each >> 63)
            raise InputError(
                f"the declaration cannot be stored ({error}): give plain values",
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

    def schema(self, menu: ActionSpec) -> Schema:
        """The schema of decisions and rewards, with the choices of ``menu``."""
        parts = self.reward_parts
        rewards = self.rewards if parts is None else rewards_of(parts.scale)
        by_slot = parts.each if parts is not None and parts.kind == SLOTS else None
        return Schema(menu=menu, context=self.context, rewards=rewards, slot_rewards=by_slot)

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
            policy.init(self.schema(self.menu).problem, 1, np.random.default_rng(0))

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

    ``default`` is used if the field is missing, or if its category is unknown.
    """

    type: Literal["number", "category"] | None = None
    values: Names | None = None
    default: str | float | None = None


def _about(name: str, hint: Any) -> Any:
    return Annotated[hint, Meta(description=ABOUT[name])] if name in ABOUT else hint


PLAIN_FORMS: dict[str, Any] = {
    "actions": Names | dict[str, list[str | float]],
    "action_features": dict[str, dict[str, FeatureValue | ChoiceFeatures]],
    "context": dict[str, str | list[str] | ContextField],
    "policy": str | dict[str, Any],
    "rewards": str | dict[str, Any],
    "guard_rails": GuardRails,
}
"""How JSON and TOML write the settings that Python callers may give as objects."""
ABOUT = {
    "actions": "Names of arms, or a table of slots: names of choices, or [low, high].",
    "action_features": "A table by arm of the numbers and texts that describe it; with slots, a "
    "table by slot of such tables.",
    "context": "A table of fields: 'number', a list of categories, or a table.",
    "policy": "The name of a preset such as 'rcp-adaptive', also with parameters, "
    "'linear-thompson,width=0.5', or a table with a 'kind'.",
    "rewards": "The scale of the rewards: its name, or a table with a 'kind'; or a table of names "
    "and weights for several rewards; or 'slots' for one reward per slot.",
    "combine": "How several rewards of one decision become one. With reward_wait=0, only 'first' "
    "is possible; it is then the default.",
    "reward_wait": "Seconds after which a decision matures: the bandit learns from it with the "
    "rewards observed so far. With 0, it matures at its first reward.",
    "no_reward_after": "With reward_wait=0: seconds after which a decision without a reward is "
    "learned from with the default_reward. None: never.",
    "default_reward": "The reward of a decision that has none when it matures. None: such a "
    "decision is not learned from.",
    "quarantine": "Seconds that a reward with an unknown id waits for its decision.",
    "sticky": "How long a unit keeps its action: as long as a 'version' is live, for a number of "
    "seconds, or 'none': every decision is drawn independently.",
    "refit_rows": "Number of newly matured decisions after which a version is fitted.",
    "refit_seconds": "Seconds after which a version is fitted even if fewer decisions have "
    "matured.",
    "status": "'active'; 'paused': decisions follow the control, the baseline or chance, "
    "and are not learned from; 'archived': decisions and rewards are refused, "
    "and the log can be read.",
    "seed": "Seed of the fits: the same log and seed give the same version.",
    "keep_versions": "Number of versions whose models are kept in the store.",
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


# How settings and choices change, and how a bandit starts


def allows_none(name: str) -> bool:
    """Whether None is a value of a setting, and not only a way to leave it out."""
    return type(None) in typing.get_args(HINTS.get(name))


def check_options(declaration: Mapping[str, Any], refused: Sequence[str] = ()) -> None:
    """Refuse unknown words in a declaration, and those that a bandit in memory does not have."""
    for word, value in declaration.items():
        if word in refused:
            raise InputError(
                f"{word} is a setting of bandits with a store: leave it out, or use submax.open",
                parameter=word,
            )
        if word in GuardRails.__struct_fields__:
            raise InputError(
                f"{word} is one of the guard rails: write guard_rails={{{word!r}: {value!r:.40}}}",
                parameter=word,
            )
        if word not in DECLARED_TYPES:
            allowed = ", ".join(sorted(DECLARED_TYPES))
            hint = did_you_mean(word, DECLARED_TYPES) or (
                f"a parameter of a policy belongs in policy={{'kind': …, {word!r}: …}}; "
            )
            raise InputError(
                f"{word!r} is not a setting of a bandit: {hint}allowed: {allowed}",
                parameter=word,
            )


def custom_policy(given: Mapping[str, Any]) -> Policy[Any] | None:
    """The policy of a declaration, if it was given as an object."""
    policy = given.get("policy")
    return policy if isinstance(policy, Policy) else None


def new_settings(
    name: str,
    declaration: Mapping[str, Any],
    trained: TrainedPolicy | None = None,
    others: Sequence[str] = (),
) -> Settings:
    """The settings of a new bandit; an error if they contradict each other or the policy.

    With a ``trained`` policy the bandit has its schema and policy, unless the declaration says
    otherwise. ``others`` are the names of the bandits that exist.
    """
    given = dict(declaration)
    if trained is not None:
        schema = trained.schema
        given = {
            "actions": schema.menu.declaration,
            "action_features": schema.menu.features,
            "context": schema.context.table,
            "rewards": schema.rewards,
            "policy": specification_of(trained),
            **given,
        }
    if "actions" not in given:
        known = f"; existing bandits: {', '.join(others)}" if others else ""
        raise InputError(
            f"there is no bandit {name!r} yet: to create it, declare its actions, actions=['A', "
            f"'B']{known}",
            parameter="actions",
        )
    settings = Settings.of(given)
    policy = settings.build_policy(custom_policy(given))
    settings.check(policy)
    if trained is not None:
        _check_start(settings, trained)
    return settings


def specification_of(trained: TrainedPolicy) -> str | dict[str, Any]:
    """The name or table of a trained policy; an error if it was given as an object."""
    if trained.specification is None:
        raise InputError(
            "a bandit cannot start from a learned policy that was given as an object: "
            "learn again with a name or a table, {'kind': 'my_policy.py:MyPolicy'}"
        )
    return trained.specification


def _check_start(settings: Settings, trained: TrainedPolicy) -> None:
    """Refuse a trained policy that does not suit a bandit; the status of choices may differ."""
    schema, rows, kept = trained.schema, trained.origin.rows, len(trained.rows.reward)
    for what, agrees in (
        ("actions or features", schema.menu.revived == settings.menu),
        ("contexts", schema.context == settings.context),
        ("rewards", schema.scale == settings.scale),
    ):
        if not agrees:
            raise InputError(
                f"the policy was learned with other {what} than those of the bandit: declare "
                "the bandit with the schema of the log"
            )
    if kept < min(rows, ENOUGH_ROWS):
        raise InputError(
            f"the policy was learned from {rows} rows and kept {kept}, so the next version would "
            f"forget the rest: learn again with --keep-rows of at least {min(rows, ENOUGH_ROWS)}"
        )


def warn_if_context_is_ignored(settings: Settings, policy: Policy[Any]) -> None:
    """Warn if a context is declared and the policy does not look at it."""
    if settings.context.width and not policy.traits.uses_context:
        warnings.warn(
            f"the policy {settings.policy!r} ignores the context: the default, "
            "rcp-adaptive, uses it",
            ContextIgnoredWarning,
            stacklevel=4,
        )


def changed_settings(
    settings: Settings,
    changes: Mapping[str, Any],
    free: Sequence[str] = (),
    *,
    again: bool = False,
) -> Settings:
    """The settings after a change of some of them, all or none; others stay as they are.

    None stands for the default, unless it is a value of the setting. A table of guard rails changes
    those that it names, and a ``GuardRails`` replaces all. If it is the bandit's declaration that
    was given ``again``, its actions must be the same ones. ``free`` are settings that may change
    although FIXED names them. The caller checks the result with the policy and the current choices,
    by ``Settings.check``.
    """
    check_options(changes)
    if not changes:
        raise InputError("give at least one setting, such as seed=1")
    given = dict(changes)
    if not again:
        given = {word: _completed(settings, word, value) for word, value in given.items()}
    declared = Settings.of({"actions": settings.menu.declaration, **given})
    for word, same in (
        ("actions", again and declared.menu.declaration == settings.menu.declaration),
        ("action_features", again and declared.menu == settings.menu),
    ):
        if given.pop(word, None) is not None and not same:
            raise InputError(
                f"this bandit was declared with other {word}, which cannot be set: leave "
                "them out; add, pause, resume or retire choices instead",
                parameter=word,
            )
    for word in given:
        old, new = getattr(settings, word), getattr(declared, word)
        if old != new and word in FIXED and word not in free:
            raise InputError(
                f"{word} is {old} and cannot be changed to {new}: leave it out, or open a bandit "
                "with another name",
                parameter=word,
            )
    values = {word: getattr(declared, word) for word in given}
    if "context" in values:
        values["context"] = settings.context.extended(declared.context)
    return msgspec.structs.replace(settings, **values)


def _completed(settings: Settings, word: str, value: Any) -> Any:
    """The value of a setting, with what a change leaves open."""
    if word == "guard_rails" and isinstance(value, Mapping):
        defaults = msgspec.structs.asdict(DEFAULTS.guard_rails)
        named = {rail: defaults.get(rail) if one is None else one for rail, one in value.items()}
        return {**msgspec.structs.asdict(settings.guard_rails), **named}
    if word == "context" and isinstance(value, Mapping):
        return {**settings.context.table, **value}
    if value is None and word in SETTING_TYPES and not allows_none(word):
        return getattr(DEFAULTS, word)
    return value


DEFAULTS = Settings(menu=ActionSpec(()))
"""Settings in which nothing but the actions was declared."""


def changed_choices(
    settings: Settings, menu: ActionSpec, ramps: tuple[Ramp, ...], change: Change, decided: int
) -> tuple[ActionSpec, tuple[Ramp, ...]]:
    """The choices and ramps after a change, when so many decisions were made.

    The default ramp of a choice that is added is as long as what is known of the others.
    """
    changed = menu.changed(change)
    settings.guard_rails.check(changed)
    if change.ramp is not None:
        whole_number("ramp", change.ramp, at_least=0, at_most=LONGEST_RAMP)
    if change.ramp and not changed.can_list:
        raise InputError(
            f"ramp needs at most {LISTED} joint actions without real-valued parts: leave it out",
            parameter="ramp",
        )
    if change.verb in ("pause", "resume"):
        return changed, ramps
    place = changed.place(change)
    ramps = tuple(
        one for one in ramps if one.place != place and decided < one.since + one.decisions
    )
    length = min(DEFAULT_RAMP, decided) if change.ramp is None else change.ramp
    if change.verb == "add" and length and changed.can_list:
        ramps += (Ramp(place, length, decided),)
    return changed, ramps
