"""Bandits, versions and keys as messages of the interface."""

from typing import Any

import msgspec

from submax.live.bandit import Bandit
from submax.live.log.records import Fitted
from submax.schema.context_schema import Field, Number
from submax.server.interface.messages import (
    BanditDetails,
    ChoiceDetails,
    KeyDetails,
    VersionDetails,
)
from submax.server.keys import Key


def bandit_details(bandit: Bandit) -> BanditDetails:
    """The message that describes a bandit."""
    settings, menu = bandit.settings, bandit.menu
    actions: dict[str, list[ChoiceDetails | float]] = {
        slot.name: [ChoiceDetails(one.name, one.status, one.features) for one in slot.choices]
        for slot in menu.slots
    }
    for interval in menu.ranges:
        actions[interval.name] = [interval.low, interval.high]
    fields = zip(settings.context.names, settings.context.fields, strict=True)
    return BanditDetails(
        bandit.name,
        actions,
        {name: _field(field) for name, field in fields},
        settings.policy,
        bool(settings.context.width) and not bandit.policy.facts.uses_context,
        settings.rewards,
        settings.combine,
        settings.reward_wait,
        settings.no_reward_after,
        settings.default_reward,
        settings.guard_rails,
        bandit.version,
        bandit.held,
        bandit.counts(),
        bandit.failures,
    )


def version_details(fitted: Fitted) -> VersionDetails:
    """The message that describes a version."""
    table = msgspec.structs.asdict(fitted)
    return VersionDetails(**{name: table[name] for name in VersionDetails.__struct_fields__})


def key_details(key: Key) -> KeyDetails:
    """The message that describes a key, without its secret."""
    bandits = None if key.bandits is None else list(key.bandits)
    return KeyDetails(key.id, list(key.scopes), bandits, key.rate)


def _field(field: Field) -> Any:
    if isinstance(field, Number):
        return {"type": "number", "default": field.default}
    return {"type": "category", "values": list(field.values), "default": field.default}
