"""Decisions, health and settings of a bandit: what happened, what is wrong, what may change."""

import math
from typing import Any

import msgspec

from submax.bandit.arms import Tally
from submax.bandit.durable import BelievedAction, DurableBandit
from submax.bandit.reading import FoundDecision
from submax.bandit.settings import ABOUT, FIXED, SETTING_TYPES, Settings
from submax.core.errors import InputError
from submax.schema.context import Category
from submax.server.pages.comparing import alerts, lift_of, own_totals, unit_of
from submax.server.pages.formats import Shown, action_text, percent, reward

MALFORMED, UNKNOWN, QUARANTINED = "malformed", "unknown", "quarantined"
"""The codes of questions to which there is no decision."""
MOST_OPTIONS = 100  # arms in a list to choose from; of more, the name is typed
MOST_VERSIONS = 200  # on one page, the newest
COUNTS = {
    "decisions": "decisions",
    "learned": "learned from",
    "by default": "of these without a reward",
    "held out": "held out",
    "rewards": "rewards",
    "late rewards": "late rewards",
    "orphans": "rewards without a decision",
    "dropped from quarantine": "rewards dropped from quarantine",
    "never activated": "never activated",
    "without reward": "not learned from (no reward)",
    "paused": "made while paused",
}
"""How pages call the counts of a bandit."""


def decisions_page(
    bandit: DurableBandit, identifier: str | None = None, unit: str | None = None
) -> Shown:
    """The decision with an id, the decisions of a unit, or the newest decisions."""
    identifier, unit = (identifier or "").strip(), (unit or "").strip()
    page = Shown(
        name=bandit.name, measure=unit_of(bandit), id=identifier, unit=unit, problem="", code="",
        decision=None, newest=[],
    )  # fmt: skip
    try:
        if not identifier:
            page.newest = bandit.newest_decisions(unit or None)
            if unit and not page.newest:
                page.code, page.problem = UNKNOWN, (
                    f"The unit {unit} has no decisions: check its spelling, or search by "
                    "decision id."
                )  # fmt: skip
        elif (found := bandit.find_decision(identifier)) is not None:
            page.decision = _details(bandit, found)
        elif bandit.is_quarantined(identifier):
            page.code, page.problem = QUARANTINED, (
                f"No decision has the id {identifier}, but a reward arrived for it and "
                "waits in quarantine."
            )  # fmt: skip
        else:
            page.code, page.problem = UNKNOWN, (
                f"No decision of this bandit has the id {identifier}: check that it is "
                "complete, and that this bandit made the decision."
            )  # fmt: skip
    except InputError as error:
        page.code, page.problem = MALFORMED, f"{error}."
    return page


def _details(bandit: DurableBandit, found: FoundDecision) -> Shown:
    """Everything that is known about a decision."""
    believed = bandit.believed_actions(found)
    total = math.prod(map(len, found.eligible)) if not bandit.menu.ranges else 1
    wait = bandit.settings.longest_wait
    return Shown(
        found=found,
        why=_why(found, believed, unit_of(bandit)),
        wait=wait if math.isfinite(wait) else None,
        default=bandit.settings.default_reward,
        actions=believed,
        unlisted=total - len(believed),
    )


def _why(found: FoundDecision, actions: list[BelievedAction], unit: str) -> str:
    """How the action was chosen, in a sentence or two."""
    chosen = f"'{action_text(found.action)}'"
    if found.group == "holdout":
        return f"This decision belongs to the holdout, which always gets the baseline, {chosen}."
    if found.paused:
        return (
            f"The bandit was paused: the control, the baseline or a uniform choice gave {chosen}."
        )
    chance = f"{chosen} was chosen with probability {percent(found.propensity)}"
    if found.version == 0:
        return f"{chance}. Nothing had been learned yet."
    known = [one for one in actions if one.reward is not None]
    taken = next((one for one in known if one.taken), None)
    if taken is None:
        return f"{chance} by version {found.version}, whose policy does not estimate rewards."
    best = max(known, key=lambda one: one.reward or 0.0)
    expected = f"{chance}. Expected reward {reward(taken.reward, unit)}"
    if best.reward == taken.reward:
        return f"{expected}, the highest of all."
    return (
        f"{expected}; the best was '{action_text(best.action)}' with "
        f"{reward(best.reward, unit)}. A bandit also tries other actions to learn "
        "whether they are better."
    )


def health(bandit: DurableBandit) -> Shown:
    """Whether a bandit works as it should."""
    reader, counts, conditions = bandit.read, bandit.counts(), bandit.conditions()
    wait = bandit.settings.longest_wait
    return Shown(
        name=bandit.name,
        conditions=conditions,
        alerts=alerts(bandit, [])[: 100 - len(conditions)],
        counts={text: counts[name] for name, text in COUNTS.items() if counts.get(name)},
        pending=counts["decisions"] - counts["matured"],
        # Shortest and longest delay of a bin, with a count.
        histogram=[
            (low, high if math.isfinite(high) else None, count)
            for low, high, count in reader.delay_histogram()
        ],
        delays=reader.delays()[:MOST_OPTIONS],
        wait=wait if math.isfinite(wait) else None,
        smallest=reader.smallest_propensity(),
        effective=own_totals(reader.totals()).effective,
        failures=bandit.failures,
        quarantined=reader.early_rewards(20),
        lift=lift_of(bandit),
    )


def settings_page(bandit: DurableBandit) -> Shown:
    """What is declared of a bandit, and how it can be changed."""
    settings = bandit.settings
    table: dict[str, Any] = msgspec.to_builtins(settings)
    versions, sums = bandit.versions()[::-1], bandit.read.by_version()
    choices = bandit.menu.slots[0].choices if bandit.menu.plain else ()
    arms = [one.name for one in choices if one.status != "retired"]
    return Shown(
        name=bandit.name,
        unit=unit_of(bandit),
        status=settings.status,
        values=msgspec.structs.asdict(settings) | {"context": _declared_context(settings)},
        rails=msgspec.structs.asdict(settings.guard_rails),
        alarms=msgspec.structs.asdict(settings.alarms),
        # The description of each setting, as it is declared.
        about={name: ABOUT.get(name, "") for name in SETTING_TYPES},
        # The arms to choose a baseline from; none if the action has several parts.
        arms=arms if len(arms) <= MOST_OPTIONS else [],
        plain=bandit.menu.plain,
        fixed={name: table[name] for name in FIXED if name != "reward_wait"},
        settings=table,
        deciding=bandit.version,
        held=bandit.held,
        total=len(versions),
        versions=[
            Shown(of=one, earned=sums.get(one.version, Tally())) for one in versions[:MOST_VERSIONS]
        ],
        changes=bandit.audit(20),
    )


def _declared_context(settings: Settings) -> dict[str, Any] | None:
    """The fields of the context as they are declared; None without any."""
    context = settings.context
    return {
        name: list(field.values) if isinstance(field, Category) else "number"
        for name, field in zip(context.names, context.fields, strict=True)
    } or None
