"""What a bandit is declared to be."""

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal

import msgspec
import numpy as np

from submax.core.checks import below_one, non_negative, one_of, positive, whole_number
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.rewards.continuous import Continuous
from submax.core.rewards.counts import Counts
from submax.core.rewards.scale import Scale
from submax.live.declaring.guard_rails import GuardRails
from submax.policies import make_policy
from submax.schema.context_schema import ContextSchema
from submax.schema.menu import Menu
from submax.schema.rewards import rewards_of, scale_of
from submax.schema.schema import Schema

COMBINING = ("first", "last", "max", "sum")
FIXED = (
    "context",
    "rewards",
    "combine",
    "reward_wait",
    "no_reward_after",
    "default_reward",
    "quarantine",
)
"""What cannot change once there are decisions."""
OWN = "own"
"""Stands for a policy that was given as an object."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All that was declared; see ``submax.open`` for what each means."""

    menu: Menu
    context: ContextSchema = ContextSchema()
    policy: str | dict[str, Any] = "rcp-adaptive"
    rewards: dict[str, Any] = msgspec.field(default_factory=lambda: {"kind": "binary"})
    combine: Literal["first", "last", "max", "sum"] = "last"
    reward_wait: float = 3600.0
    default_reward: float | None = 0.0
    quarantine: float = 86400.0
    guard_rails: GuardRails = GuardRails()
    refit_rows: int = 100
    refit_seconds: float = 60.0
    seed: int = 0
    keep_versions: int = 20
    no_reward_after: float | None = None
    learn_share: float | None = None

    @property
    def longest_wait(self) -> float:
        """Seconds after which a decision without a reward matures; infinite if it never does."""
        if self.reward_wait > 0:
            return self.reward_wait
        return math.inf if self.no_reward_after is None else self.no_reward_after

    @property
    def scale(self) -> Scale:
        """The scale of the rewards."""
        return scale_of(self.rewards)

    @property
    def problem(self) -> Problem:
        """What a policy is told, with all active choices."""
        return self.schema(self.menu).problem

    def schema(self, menu: Menu) -> Schema:
        """The names, with the choices as they stand."""
        return Schema(menu=menu, context=self.context, rewards=self.rewards)

    def check(self, policy: Policy[Any]) -> None:
        """Refuse what does not go together."""
        non_negative("reward_wait", self.reward_wait)
        self._check_without_wait()
        positive("quarantine", self.quarantine)
        positive("refit_seconds", self.refit_seconds)
        whole_number("refit_rows", self.refit_rows, at_least=1)
        whole_number("seed", self.seed, at_least=0)
        whole_number("keep_versions", self.keep_versions, at_least=2)
        scale = self.scale
        if self.default_reward is not None:
            scale.check(np.array([self.default_reward]))
        if self.combine == "sum" and not isinstance(scale, (Counts, Continuous)):
            raise InputError(
                "rewards that are summed need a scale that holds the sum: counts or continuous"
            )
        if self.combine == "sum" and isinstance(scale, Continuous) and scale != Continuous():
            raise InputError("rewards that are summed need a continuous scale without bounds")
        self.guard_rails.check(self.menu)
        # A policy that does not suit the problem says so here, not at the first decision.
        policy.init(self.problem, 1, np.random.default_rng(0))

    def _check_without_wait(self) -> None:
        """Refuse what makes no sense together with a ``reward_wait`` of 0, or without it."""
        if self.learn_share is not None:
            below_one("learn_share", self.learn_share)
        if self.no_reward_after is not None:
            positive("no_reward_after", self.no_reward_after)
            if self.reward_wait > 0:
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


def declared(
    *,
    actions: object,
    context: object,
    policy: object,
    rewards: object,
    action_features: object = None,
    **others: Any,
) -> Settings:
    """Settings from what a caller wrote."""
    for name in ("reward_wait", "no_reward_after", "quarantine", "refit_seconds"):
        if isinstance(others.get(name), timedelta):
            others[name] = others[name].total_seconds()
    if others.get("reward_wait") == 0:
        others.setdefault("combine", "first")
    if "combine" in others:
        one_of("combine", str(others["combine"]), COMBINING)
    for name, least in (("refit_rows", 1), ("seed", 0), ("keep_versions", 2)):
        if name in others:
            whole_number(name, others[name], at_least=least)
    rails = others.pop("guard_rails", None)
    settings = Settings(
        menu=Menu.of(actions, action_features),
        context=ContextSchema.of(context),
        policy=_specification(policy),
        rewards=rewards_of(rewards),
        guard_rails=_rails(rails),
        **others,
    )
    try:
        # As it is read back, so that the same declaration is equal to what was written.
        return msgspec.msgpack.decode(msgspec.msgpack.encode(settings), type=Settings)
    except (msgspec.MsgspecError, TypeError, OverflowError, UnicodeError) as error:
        raise InputError(f"the declaration cannot be written down: {error}") from error


def policy_of(specification: str | dict[str, Any], own: Policy[Any] | None) -> Policy[Any]:
    """The policy itself; one that was given as an object must be given again."""
    if isinstance(specification, dict) and specification.get("kind") == OWN:
        if own is not None and specification == _specification(own):
            return own
        raise InputError(
            "this bandit was declared with a policy object: give it again, policy=..., or name "
            "it by its file, {'kind': 'my_policy.py:MyPolicy'}"
        )
    return make_policy(specification)


def _specification(policy: object) -> str | dict[str, Any]:
    if isinstance(policy, Policy):
        return {"kind": OWN, "class": f"{type(policy).__module__}.{type(policy).__qualname__}"}
    if isinstance(policy, str):
        return policy
    if isinstance(policy, Mapping):
        return dict(policy)
    raise InputError(f"policy must be a name, a table with a 'kind' or a Policy, not {policy!r}")


def _rails(rails: object) -> GuardRails:
    if rails is None:
        return GuardRails()
    if isinstance(rails, GuardRails):
        return rails
    if isinstance(rails, Mapping):
        for key in rails:
            one_of("guard rail", str(key), GuardRails.__struct_fields__)
    try:
        return msgspec.convert(rails, GuardRails)
    except msgspec.ValidationError as error:
        raise InputError(f"guard_rails: {error}") from error
