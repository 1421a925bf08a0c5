"""Bandits, versions, keys and changes as messages of the interface."""

from typing import Any

import msgspec

from submax.live.bandits.bandit import LiveBandit
from submax.live.log.records import Fitted
from submax.live.operating.audit_log import AuditEntry
from submax.schema.context import Field, Number
from submax.web.server.access.key import Key, time_text
from submax.web.server.interface.answers import (
    AuditedChange,
    BanditDetails,
    ChoiceDetails,
    KeyDetails,
    VersionDetails,
)


def bandit_details(bandit: LiveBandit) -> BanditDetails:
    """The message that describes a bandit."""
    settings, menu = bandit.settings, bandit.menu
    actions: dict[str, list[ChoiceDetails | float]] = {
        slot.name: [ChoiceDetails(one.name, one.status, one.features) for one in slot.choices]
        for slot in menu.slots
    }
    for interval in menu.ranges:
        actions[interval.name] = [interval.low, interval.high]
    # The log is read for these, before its events are counted.
    arms, notices = bandit.arms(), bandit.notices()
    fields = zip(settings.context.names, settings.context.fields, strict=True)
    return BanditDetails(
        bandit.name,
        actions,
        {name: _field(field) for name, field in fields},
        settings.policy,
        bool(settings.context.width) and not bandit.policy.traits.uses_context,
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
        settings.status,
        settings.sticky,
        settings.quarantine,
        settings.refit_rows,
        settings.refit_seconds,
        settings.seed,
        settings.keep_versions,
        settings.archive_after,
        arms,
        notices,
        bandit.active_alarms(),
    )


def version_details(fitted: Fitted) -> VersionDetails:
    """The message that describes a version."""
    table = msgspec.structs.asdict(fitted)
    return VersionDetails(**{name: table[name] for name in VersionDetails.__struct_fields__})


def key_details(key: Key, last_used: float | None) -> KeyDetails:
    """The message that describes a key, without its secret."""
    bandits = None if key.bandits is None else list(key.bandits)
    expires = None if key.expires is None else time_text(key.expires)
    used = None if last_used is None else time_text(last_used)
    return KeyDetails(
        key.id, key.name, list(key.scopes), bandits, key.rate, expires, used, key.browser
    )


def audited_change(at: float, entry: AuditEntry) -> AuditedChange:
    """The message that describes a change."""
    return AuditedChange(
        time_text(at), entry.key, entry.name, entry.operation, entry.subject, entry.detail
    )


def _field(field: Field) -> Any:
    if isinstance(field, Number):
        return {"type": "number", "default": field.default}
    return {"type": "category", "values": list(field.values), "default": field.default}
