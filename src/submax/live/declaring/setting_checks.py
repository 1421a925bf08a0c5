"""Refuses settings that are out of bounds, that contradict each other, or that suit no policy."""

import math
import types
import typing
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Meta

from submax.core.checks import below_one, non_negative, positive, whole_number
from submax.core.errors import InputError
from submax.core.policy import Policy
from submax.core.rewards import Continuous, Counts, Scale
from submax.policies.specification import PolicySpecification
from submax.schema.reward_parts import SLOTS, RewardParts

if TYPE_CHECKING:
    from submax.live.declaring.settings import Settings


def check_settings(settings: "Settings", policy: Policy[Any]) -> None:
    """Refuse settings that contradict each other, or that the policy cannot work with."""
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
    _check_sticky(settings)
    # A policy that does not suit the problem is refused here, not at the first decision.
    policy.init(settings.problem, 1, np.random.default_rng(0))
    if settings.shadow is not None:
        shadow = PolicySpecification(settings.shadow).build()
        shadow.init(settings.problem, 1, np.random.default_rng(0))


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


def _check_sticky(settings: "Settings") -> None:
    """Refuse to repeat actions for longer than the store finds them."""
    longest = math.inf if settings.archive_after is None else settings.archive_after
    if not isinstance(settings.sticky, str) and settings.sticky > longest:
        raise InputError(
            f"sticky={settings.sticky:g} seconds was given with archive_after={longest:g}, after "
            "which the action of a unit is forgotten: give a shorter sticky, or a longer "
            "archive_after",
            parameter="sticky",
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
