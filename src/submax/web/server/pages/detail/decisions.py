"""Makes the page of decisions: one decision with its reasons, or the newest ones."""

import math

from submax.core.errors import InputError
from submax.live.bandits.bandit import LiveBandit
from submax.live.lookup.found_decision import DecisionRow, FoundDecision
from submax.schema.names import Action
from submax.web.dashboard.formats import duration, number, percent
from submax.web.server.pages.detail.decision_messages import (
    ActionRow,
    DecisionDetails,
    DecisionsPage,
    ListedDecision,
)

MALFORMED, UNKNOWN, QUARANTINED = "malformed", "unknown", "quarantined"
"""The codes of questions to which there is no decision."""


def decisions_page(bandit: LiveBandit, identifier: str, unit: str) -> DecisionsPage:
    """The decision with an id, the decisions of a unit, or the newest decisions."""
    identifier, unit = identifier.strip(), unit.strip()
    problem, code, decision, newest = "", "", None, []
    try:
        if identifier:
            found = bandit.find_decision(identifier)
            decision = None if found is None else details(bandit, found)
            if found is None:
                problem, code = _unknown(bandit, identifier)
        else:
            newest = [_listed(bandit, one) for one in bandit.newest_decisions(unit or None)]
            if unit and not newest:
                code = UNKNOWN
                problem = (
                    f"No decision of the unit {unit} is among the newest 100,000 events of the "
                    "log: check how the unit is written, or look for the id of the decision."
                )
    except InputError as error:
        problem, code = f"{error}.", MALFORMED
    return DecisionsPage(bandit.name, identifier, unit, problem, code, decision, newest)


def _unknown(bandit: LiveBandit, identifier: str) -> tuple[str, str]:
    if bandit.is_quarantined(identifier):
        return (
            f"A reward came for the id {identifier}, and no decision of this bandit has it. The "
            "reward waits in quarantine for the decision.",
            QUARANTINED,
        )
    return (
        f"No decision of this bandit has the id {identifier}: check whether it is complete, and "
        "whether another bandit made the decision. Of archived decisions, the newest four million "
        "events were searched; submax export has all of them.",
        UNKNOWN,
    )


def details(bandit: LiveBandit, found: FoundDecision) -> DecisionDetails:
    """Everything that is known about a decision."""
    made, menu = found.made, bandit.menu
    believed = bandit.believed_actions(made)
    actions = [
        ActionRow(menu.action(one.action), one.probability, one.reward, one.taken)
        for one in believed
    ]
    names = bandit.settings.context.names
    total = math.prod(map(len, made.eligible)) if len(made.action) == len(made.eligible) else 1
    return DecisionDetails(
        found.id,
        found.at,
        menu.action(made.action),
        made.propensity,
        made.version,
        made.unit,
        "" if made.group is None else made.group.group,
        _state(bandit, found),
        found.archived,
        dict(zip(names, made.context, strict=True)),
        _why(found, actions),
        actions,
        total - len(actions),
        found.rewards,
    )


def action_text(action: Action) -> str:
    """An action in one line.

    >>> action_text("A"), action_text({"title": "A", "price": 2.5})
    ('A', 'title A, price 2.5')
    """
    if isinstance(action, str):
        return action
    parts = (
        f"{slot} {one if isinstance(one, str) else number(one)}" for slot, one in action.items()
    )
    return ", ".join(parts)


def _state(bandit: LiveBandit, found: FoundDecision) -> str:
    """What became of a decision, in one sentence."""
    wait, made = bandit.settings.longest_wait, found.made
    if made.paused:
        return "The bandit was paused, so that nothing is learned from this decision."
    if not made.activated and found.activated_at is None:
        return "It was not activated; unless it is activated in time, nothing is learned from it."
    in_time = [one for one in found.rewards if not one.late]
    if in_time:
        return f"It has {len(in_time)} reward{'s' if len(in_time) > 1 else ''} in time."
    if found.rewards:
        return "Its reward came too late to be learned from."
    default = bandit.settings.default_reward
    if math.isfinite(wait):
        end = "is not learned from" if default is None else f"counts as {number(default)}"
        return f"No reward has come. Without one within {duration(wait)}, a decision {end}."
    return "No reward has come yet."


def _why(found: FoundDecision, actions: list[ActionRow]) -> list[str]:
    """How the action was chosen, in sentences."""
    made, taken = found.made, next(one for one in actions if one.taken)
    chosen = action_text(taken.action)
    if made.holdout:
        return [
            f"This decision is held out, to compare with: it always gets the baseline, {chosen}."
        ]
    if made.paused:
        return [
            f"The bandit was paused: the control, the baseline or a uniform choice gave {chosen}."
        ]
    if made.version == 0:
        return [f"Nothing had been learned yet, so that {chosen} was drawn without a belief."]
    chance = f"{chosen} was drawn with the probability {percent(made.propensity)}"
    known = [one for one in actions if one.believed is not None]
    if taken.believed is None or not known:
        return [f"{chance} by version {made.version}, which does not say what actions would earn."]
    best = max(known, key=lambda one: -math.inf if one.believed is None else one.believed)
    if best.believed == taken.believed:
        return [f"{chance}: it was believed to earn most, {number(taken.believed)}."]
    return [
        f"{chance}: it was believed to earn {number(taken.believed)}, and "
        f"{action_text(best.action)} most, {number(best.believed)}. A bandit also tries actions "
        "that do not look best, to find out whether they are."
    ]


def _listed(bandit: LiveBandit, row: DecisionRow) -> ListedDecision:
    return ListedDecision(
        row.id,
        row.at,
        bandit.menu.action(row.action),
        row.propensity,
        row.version,
        row.unit,
        row.holdout,
    )
