"""Sums and mean rewards of each choice, what is unusual about them, and the printed summary."""

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from submax.bandit.active_version import UNKNOWN_CATEGORIES, ActiveVersion
from submax.bandit.guard_rails import GuardRails, Ramp, is_eligible, limits_at
from submax.bandit.settings import Settings
from submax.core.arrays import Floats
from submax.core.rewards import Binary
from submax.core.summary import LINES, Summary, counted, number, percentage
from submax.policies.specification import PolicySpecification
from submax.schema.actions import ActionSpec

QUANTILE = 1.96
"""The standard normal quantile of an interval that is right in 95 of 100 cases."""
AVERAGED_CONTEXTS = 200
"""Number of recent contexts over which probabilities are averaged."""


class Tally(msgspec.Struct):
    """Sums over decisions, of one choice for example.

    ``known`` are decisions whose reward is known, also by default, and ``rewarded`` those that got
    one; then come the sums of r, r², w, w², w r, w² r and w² r², with w = 1 / propensity.
    """

    decisions: float = 0.0
    known: float = 0.0
    rewarded: float = 0.0
    reward: float = 0.0
    squares: float = 0.0
    weight: float = 0.0
    weight2: float = 0.0
    weight_reward: float = 0.0
    weight2_reward: float = 0.0
    weight2_reward2: float = 0.0

    @classmethod
    def total(cls, tallies: Iterable["Tally"]) -> "Tally":
        return cls(*map(sum, zip(*map(msgspec.structs.astuple, tallies), strict=True)))

    def learned(self, reward: float, weight: float) -> None:
        """Count one row that is learned from."""
        weighted = weight * reward
        self.known += 1
        self.reward += reward
        self.squares += reward * reward
        self.weight += weight
        self.weight2 += weight * weight
        self.weight_reward += weighted
        self.weight2_reward += weight * weighted
        self.weight2_reward2 += weighted * weighted

    @property
    def mean(self) -> float | None:
        return self.reward / self.known if self.known else None

    @property
    def standard_error(self) -> float | None:
        """The standard error of the mean; None with fewer than two rewards."""
        if self.known < 2:
            return None
        spread = max(self.squares - self.reward**2 / self.known, 0.0)
        return math.sqrt(spread / (self.known - 1) / self.known)

    @property
    def effective(self) -> float | None:
        """How many decisions of equal propensity the weighted mean is worth."""
        return self.weight**2 / self.weight2 if self.weight2 else None

    def weighted_rate(self, scale: object) -> tuple[float | None, float | None, float | None]:
        """The mean reward weighted by 1 / propensity, and the ends of its interval.

        The mean is Σ w r / Σ w, with the variance Σ w² (r − mean)² / (Σ w)². For binary rewards the
        interval is Wilson's, for (Σ w)² / Σ w² observations, because it is right for few rows too.
        """
        if not self.known:
            return None, None, None
        mean = self.weight_reward / self.weight
        if isinstance(scale, Binary):
            shown = min(max(mean, 0.0), 1.0)
            return mean, *wilson_interval(shown, self.weight**2 / self.weight2)
        if self.known < 2:
            return mean, None, None
        spread = self.weight2_reward2 - 2 * mean * self.weight2_reward + mean**2 * self.weight2
        half = QUANTILE * math.sqrt(max(spread, 0.0)) / self.weight
        return mean, mean - half, mean + half


def wilson_interval(mean: float, count: float) -> tuple[float, float]:
    """Wilson's 95 % interval for a probability that was found in ``count`` observations."""
    shrink = 1 + QUANTILE**2 / count
    centre = (mean + QUANTILE**2 / (2 * count)) / shrink
    spread = mean * (1 - mean) / count + QUANTILE**2 / (4 * count**2)
    half = QUANTILE * math.sqrt(spread) / shrink
    return max(centre - half, 0.0), min(centre + half, 1.0)


Tallies = Sequence[Sequence[Tally]]
"""The sums of each choice, by slot and index."""


class ArmStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A choice with its numbers.

    ``share`` is its share of all decisions, ``rows`` is the number of decisions that were learned
    from, and ``reward_rate`` is their mean reward, with a 95 % interval for one look from ``low``
    to ``high``. For plain arms, rewards are weighted by 1 / propensity, so an arm is not
    judged by the contexts or the times in which it was chosen most often. ``probability`` is that
    of the next decision, a mean over recent contexts; None if it cannot be computed.
    """

    slot: str
    choice: str
    status: str
    decisions: int
    share: float | None
    rows: int
    reward_rate: float | None
    low: float | None
    high: float | None
    probability: float | None


def arm_statuses(
    settings: Settings, menu: ActionSpec, tallies: Tallies, probabilities: Floats | None
) -> list[ArmStatus]:
    """The choices of all slots with their numbers, in the order of the menu.

    ``probabilities`` are those of the active joint actions at the next decision, if known.
    """
    found = []
    for place, slot in enumerate(menu.slots):
        known = tallies[place]
        total = sum(one.decisions for one in known)
        chances: dict[int, float] = {}
        if probabilities is not None:
            joint = np.reshape(probabilities, [*map(len, menu.active)])
            others = tuple(axis for axis in range(joint.ndim) if axis != place)
            chances = dict(zip(menu.active[place], joint.sum(axis=others).tolist(), strict=True))
        for index, choice in enumerate(slot.choices):
            one = known[index] if index < len(known) else Tally()
            rate, low, high = one.weighted_rate(settings.scale)
            found.append(
                ArmStatus(
                    slot=slot.name,
                    choice=choice.name,
                    status=choice.status,
                    decisions=round(one.decisions),
                    share=one.decisions / total if total else None,
                    rows=round(one.known),
                    reward_rate=rate,
                    low=low,
                    high=high,
                    probability=None if probabilities is None else chances.get(index, 0.0),
                )
            )
    return found


def missing_rails(rails: GuardRails, menu: ActionSpec) -> list[str]:
    """Which of control and baseline is not active, and what follows."""
    found = []
    for name, action, follows in (
        ("control", rails.control, "no decision gets it and nothing is compared with it"),
        ("baseline", rails.baseline, "no decision is held out"),
    ):
        if action is not None and not is_eligible(menu.encoded(action), menu.active):
            found.append(
                f"the {name} {action!r} is not active, so {follows}: resume it, or set another "
                f"{name}"
            )
    return found


STATUS_MEANINGS = {
    "paused": "decisions follow the control, the baseline or chance, and are not learned from",
    "archived": "decisions and rewards are refused",
}


def rail_notices(
    settings: Settings, menu: ActionSpec, ramps: Sequence[Ramp], decided: int
) -> list[str]:
    """What an operator should know about status, ramps and guard rails after so many decisions."""
    found = []
    if settings.status != "active":
        found.append(f"the bandit is {settings.status}: {STATUS_MEANINGS[settings.status]}")
    for limit in limits_at(ramps, decided):
        slot, index = limit.place
        found.append(
            f"{menu.slots[slot].choices[index].name!r} is new: it gets at most "
            f"{100 * limit.share:.3g} % of the decisions now; the limit rises, and ends "
            f"after {limit.left:,} more"
        )
    return found + missing_rails(settings.guard_rails, menu)


def unknown_notices(failures: Mapping[str, int]) -> list[str]:
    """Which fields of contexts had categories that were not declared."""
    return [
        f"{counted(count, 'decision')} had {kind}, which are treated alike: add "
        "them with set(context=…)"
        for kind, count in failures.items()
        if kind.startswith(UNKNOWN_CATEGORIES)
    ]


def _interval(arm: ArmStatus, binary: bool) -> str:
    if arm.low is None or arm.high is None:
        return "–"
    if binary:
        return f"{100 * arm.low:.1f}–{100 * arm.high:.1f} %"
    return f"{number(arm.low, 3)} to {number(arm.high, 3)}"


def bandit_summary(
    name: str,
    version: ActiveVersion,
    counts: Mapping[str, int],
    tallies: Tallies,
    failures: Mapping[str, int],
    more: Sequence[str] = (),
) -> Summary:
    """Sentences, and a table of choices with counts, mean rewards and shares of decisions.

    ``counts`` are those of events and outcomes, ``failures`` has counts by kind, and ``more`` are
    further sentences. The most frequent choices of each slot come first.
    """
    settings, menu = version.settings, version.menu
    decisions, learned = counts.get("decisions", 0), counts.get("learned", 0)
    title, names = PolicySpecification(settings.policy).title, settings.context.names
    context = f"context: {', '.join(names)}" if names else "no context"
    known = "learned from" if version.version else "to learn from"
    sentences = [
        f"Bandit {name!r}: {title}, {_actions(menu)}, {context}",
        f"{counted(decisions, 'decision')}, {learned:,} {known}, "
        f"{decisions - counts.get('matured', 0):,} open; version {version.version}",
    ]
    for kind, became in (
        ("late rewards", "arrived too late to be learned from"),
        (
            "dropped from quarantine",
            "for unknown decisions were dropped because too many were waiting",
        ),
    ):
        if counts.get(kind):
            sentences.append(f"{counted(counts[kind], 'reward')} {became}")
    failed = [f"{kind} ({count:,})" for kind, count in failures.items() if count]
    if failed:
        sentences.append(f"Continued after failures: {', '.join(failed)}")
    if settings.status != "active":
        sentences.append(f"the bandit is {settings.status}")
    sentences += [one.partition(", so")[0] for one in missing_rails(settings.guard_rails, menu)]
    sentences += more
    probabilities = version.average_probabilities(np.zeros((0, 0))) if menu.plain else None
    arms, binary = arm_statuses(settings, menu, tallies, probabilities), settings.scale == Binary()
    room = max(1, (LINES - len(sentences) - 2) // max(1, len(menu.slots)))
    shown: list[ArmStatus] = []
    for slot in menu.slots:
        of_slot = [one for one in arms if one.slot == slot.name]
        most = len(of_slot) if menu.plain else room
        shown += sorted(of_slot, key=lambda one: -one.decisions)[:most]
    rows = [
        [
            *([] if menu.plain else [arm.slot]),
            arm.choice if arm.status == "active" else f"{arm.choice} ({arm.status})",
            f"{arm.decisions:,}",
            percentage(arm.share),
            f"{arm.rows:,}",
            percentage(arm.reward_rate) if binary else number(arm.reward_rate),
            _interval(arm, binary),
            *([] if probabilities is None else [percentage(arm.probability)]),
        ]
        for arm in shown
    ]
    columns = [
        *(["action"] if menu.plain else ["slot", "choice"]),
        *("decisions", "share", "learned", "rate" if binary else "mean", "95 % interval"),
        *([] if probabilities is None else ["next"]),
    ]
    left_out = len(arms) - len(shown)
    return Summary(sentences, columns, rows, texts=1 if menu.plain else 2, more=left_out)


def _actions(menu: ActionSpec) -> str:
    if menu.plain:
        return counted(len(menu.active[0]), "action")
    slots = counted(len(menu.parts), "slot")
    joint = math.prod(map(len, menu.active))
    return slots if menu.ranges else f"{slots} with {joint:,} joint actions"
