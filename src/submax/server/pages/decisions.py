"""The page of decisions: one decision with its reasons, or the newest ones."""

import math

from submax.bandit.durable import BelievedAction, DurableBandit
from submax.bandit.reading import FoundDecision, ListedDecision
from submax.core.errors import InputError
from submax.server.pages.formats import Shown, action_text, duration, number, percent, reward
from submax.server.pages.overview import unit_of

MALFORMED, UNKNOWN, QUARANTINED = "malformed", "unknown", "quarantined"
"""The codes of questions to which there is no decision."""


def decisions_page(bandit: DurableBandit, identifier: str = "", unit: str = "") -> Shown:
    """The decision with an id, the decisions of a unit, or the newest decisions."""
    identifier, unit = identifier.strip(), unit.strip()
    problem, code, decision = "", "", None
    newest: list[ListedDecision] = []
    try:
        if identifier:
            found = bandit.find_decision(identifier)
            decision = None if found is None else details(bandit, found)
            if found is None:
                problem, code = _unknown(bandit, identifier)
        else:
            newest = bandit.newest_decisions(unit or None)
            if unit and not newest:
                code = UNKNOWN
                problem = (
                    f"The unit {unit} has no decision: check its spelling, or look for the id of "
                    "the decision."
                )
    except InputError as error:
        problem, code = f"{error}.", MALFORMED
    return Shown(
        name=bandit.name,
        measure=unit_of(bandit),
        id=identifier,
        unit=unit,
        problem=problem,
        code=code,
        decision=decision,
        newest=newest,
    )


def _unknown(bandit: DurableBandit, identifier: str) -> tuple[str, str]:
    if bandit.is_quarantined(identifier):
        return (
            f"No decision has the id {identifier}, but a reward came for it: the reward waits in "
            "quarantine for its decision.",
            QUARANTINED,
        )
    return (
        f"No decision of this bandit has the id {identifier}: check whether it is complete, and "
        "whether another bandit made the decision.",
        UNKNOWN,
    )


def details(bandit: DurableBandit, found: FoundDecision) -> Shown:
    """Everything that is known about a decision."""
    believed = bandit.believed_actions(found)
    plain = not bandit.menu.ranges
    total = math.prod(map(len, found.eligible)) if plain else 1
    return Shown(
        found=found,
        state=_state(bandit, found),
        why=_why(found, believed, unit_of(bandit)),
        actions=believed,
        unlisted=total - len(believed),
    )


def _state(bandit: DurableBandit, found: FoundDecision) -> str:
    """What became of a decision, in one sentence."""
    wait = bandit.settings.longest_wait
    if found.paused:
        return "The bandit was paused, so nothing is learned from this decision."
    if found.activated_at is None:
        return "It was not activated; unless it is activated in time, nothing is learned from it."
    in_time = [one for one in found.rewards if not one.late]
    if in_time:
        return f"It has {len(in_time)} reward{'s' if len(in_time) > 1 else ''} in time."
    if found.rewards:
        return "Its reward came too late to be learned from."
    default = bandit.settings.default_reward
    if math.isfinite(wait):
        end = "is not learned from" if default is None else f"counts as {number(default)}"
        return f"It has no reward. Without one within {duration(wait)}, a decision {end}."
    return "It has no reward yet."


def _why(found: FoundDecision, actions: list[BelievedAction], unit: str) -> str:
    """How the action was chosen, in a sentence or two."""
    chosen = f"'{action_text(found.action)}'"
    if found.group == "holdout":
        return f"This decision is held out, to compare with: it always gets the baseline, {chosen}."
    if found.paused:
        return (
            f"The bandit was paused: the control, the baseline or a uniform choice gave {chosen}."
        )
    chance = f"{chosen} was chosen with probability {percent(found.propensity)}"
    if found.version == 0:
        return f"{chance}. Nothing had been learned yet."
    known = [one for one in actions if one.reward is not None]
    taken = next((one for one in actions if one.taken), None)
    if taken is None or taken.reward is None or not known:
        return f"{chance} by version {found.version}, which does not say what actions would earn."
    best = max(known, key=lambda one: -math.inf if one.reward is None else one.reward)
    expected = f"{chance}. Expected reward {reward(taken.reward, unit)}"
    if best.reward == taken.reward:
        return f"{expected}, the highest of all."
    return (
        f"{expected}; the best was '{action_text(best.action)}' with {reward(best.reward, unit)}. "
        "A bandit also tries actions that do not look best, to find out whether they are."
    )
