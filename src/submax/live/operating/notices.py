"""Sentences about what an operator should look at."""

from collections.abc import Iterator, Sequence

from submax.bandit.active_version import ActiveVersion
from submax.bandit.guard_rails import GuardRails, limits_at
from submax.bandit.lift import lift_reports
from submax.live.declaring.settings_projection import SettingsProjection
from submax.live.log.ledger import Ledger
from submax.live.operating.arm_status import ArmStatus, arm_statuses
from submax.schema.actions import ActionSpec
from submax.schema.names import Action


def notices(projection: SettingsProjection, serving: ActiveVersion, ledger: Ledger) -> list[str]:
    """All notices about a bandit; none if nothing is unusual."""
    settings = projection.settings
    found = []
    if settings.status == "paused":
        found.append(
            "the bandit is paused: decisions are the control or the baseline, or else uniform, and "
            "are not learned from"
        )
    elif settings.status == "archived":
        found.append("the bandit is archived: decisions and rewards are refused")
    found += _ramped(projection, ledger)
    rails = settings.guard_rails
    found += missing_rails(rails, projection.menu)
    if isinstance(rails.control, str) and projection.menu.plain:
        # Rates need no probabilities, for which a policy may take long.
        found += _capped_control(rails, rails.control, arm_statuses(serving, ledger, None))
    if rails.holdout or rails.control_share:
        reports = lift_reports(settings, ledger.comparisons.by_group, projection.groups_since)
        found += [f"{one.against}: {one.cautions[-1]}" for one in reports if one.alarm]
    return found


def missing_rails(rails: GuardRails, menu: ActionSpec) -> list[str]:
    """Which of control and baseline is not active, and what follows."""
    found = []
    if rails.control is not None and not _is_active(rails.control, menu):
        found.append(
            f"the control {rails.control!r} is not active, so that no decision gets it and nothing "
            "is compared with it: resume it, or set another control"
        )
    if rails.baseline is not None and not _is_active(rails.baseline, menu):
        found.append(
            f"the baseline {rails.baseline!r} is not active, so that no decision is held out: "
            "resume it, or set another baseline"
        )
    return found


def _ramped(projection: SettingsProjection, ledger: Ledger) -> Iterator[str]:
    """Which choices are still ramped up, and for how long."""
    for limit in limits_at(projection.ramps, ledger.counts["decisions"]):
        slot, index = limit.place
        name = projection.menu.slots[slot].choices[index].name
        yield (
            f"{name!r} is new: it gets at most {100 * limit.share:.3g} % of the decisions now, and "
            f"this limit rises until it ends after {limit.left:,} more"
        )


def _is_active(action: Action, menu: ActionSpec) -> bool:
    encoded, active = menu.encoded(action), menu.active
    return all(index in indices for indices, index in zip(active, encoded, strict=False))


def _capped_control(rails: GuardRails, name: str, arms: Sequence[ArmStatus]) -> Iterator[str]:
    """Whether the control earns most, although it has only its share."""
    rates = {
        one.choice: one.reward_rate
        for one in arms
        if one.status == "active" and one.reward_rate is not None
    }
    control = rates.get(name)
    if control is not None and len(rates) > 1 and control >= max(rates.values()):
        yield (
            f"the control {name!r} has the highest reward rate, {control:.4g}, and gets "
            f"no more than its share of {rails.control_share:.4g}: raise control_share, or set no "
            "control and compare with a holdout"
        )
