"""The types of values that settings have."""

from typing import Annotated, Literal

from msgspec import Meta

from submax.schema.context_schema import LARGEST

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
