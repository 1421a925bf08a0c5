"""What every page asks of a bandit: how its rewards are shown, and which arm is ahead."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from submax.bandit.arms import Tally
from submax.bandit.conditions import Condition
from submax.bandit.decision import LiftReport
from submax.bandit.durable import DurableBandit
from submax.bandit.lift import PLANNED_DECISIONS
from submax.bandit.reading import HOLDOUT, PAUSED
from submax.schema.actions import ActionSpec
from submax.sequential.mixture_boundary import mixture_boundary
from submax.server.pages.charts import DEVIATIONS
from submax.server.pages.formats import sentence

ERROR = 0.05  # the chance with which the interval of two arms misses the truth at any time
FEWEST = 50  # rows of an arm below which nothing is said: the interval holds for large samples


def unit_of(bandit: DurableBandit) -> str:
    """How mean rewards of a bandit are shown: in percent if they are 0 or 1."""
    return "percent" if bandit.settings.rewards["kind"] == "binary" else "number"


def lift_of(bandit: DurableBandit) -> list[LiftReport]:
    """The lift over holdout and control, as far as they are declared."""
    rails = bandit.settings.guard_rails
    return bandit.lift() if rails.holdout or rails.control_share else []


def is_personalised(bandit: DurableBandit) -> bool:
    """Whether different contexts can get different actions."""
    return bool(bandit.settings.context.width) and bandit.policy.traits.uses_context


def own_totals(totals: dict[str, Tally]) -> Tally:
    """The sums of the decisions that the policy or the control made."""
    return Tally.total(sums for part, sums in totals.items() if part not in (HOLDOUT, PAUSED))


def alerts(bandit: DurableBandit, conditions: Sequence[Condition] | None = None) -> list[str]:
    """Sentences about what needs attention, the most serious first."""
    known = bandit.conditions() if conditions is None else conditions
    waiting, failures = bandit.read.waiting(), bandit.failures.items()
    found = [sentence(one.sentence) for one in known]
    found += [f"{count:,} {kind} since the server started." for kind, count in failures if count]
    found += [sentence(one) for one in bandit.notices() if one != waiting]
    if bandit.held:
        found.append(f"Version {bandit.version} is held: newer versions are fitted but not used.")
    return found


class ArmComparison(NamedTuple):
    """By how much the arm ``ahead`` is better than ``behind``, with an interval."""

    ahead: str
    behind: str
    low: float
    high: float


def comparison(
    menu: ActionSpec, tallies: Sequence[Tally], *, at_any_time: bool = True
) -> ArmComparison | None:
    """Compare the two active arms that earn most; None if one was chosen too rarely.

    Every row gives x = w r for the better arm, −w r for the other and 0 for all others, with
    w = 1 / propensity. Its expected value is the difference of what the two arms earn, whatever the
    policy preferred at that time. The interval around the mean of x is valid at all times (Howard,
    Ramdas, McAuliffe and Sekhon 2021), or for one look, for large samples.
    """
    total = sum(one.known for one in tallies)
    known = [
        (one.weight_reward / one.weight, choice.name, one)
        for choice, one in zip(menu.slots[0].choices, tallies, strict=False)
        if choice.status == "active" and one.known >= FEWEST
    ]
    if len(known) < 2:
        return None
    (_, ahead, best), (_, behind, second) = sorted(known, key=lambda row: -row[0])[:2]
    difference = (best.weight_reward - second.weight_reward) / total
    variance = (best.weight2_reward2 + second.weight2_reward2) / total
    width = DEVIATIONS * math.sqrt(total)
    if at_any_time:
        width = mixture_boundary(total, ERROR, 0.0, PLANNED_DECISIONS)
    half = math.sqrt(variance) * width / total
    return ArmComparison(ahead, behind, difference - half, difference + half)
