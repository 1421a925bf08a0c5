"""Sentences about what needs a person's attention."""

from submax.live.bandits.bandit import LiveBandit
from submax.live.monitoring.alarms.alarm_records import Alarm
from submax.live.monitoring.rollups.rollups import Rollups
from submax.web.dashboard.formats import sentence
from submax.web.server.pages.arms.arm_notes import LATE, arm_notes


def alerts(bandit: LiveBandit, rollups: Rollups | None) -> list[str]:
    """All alerts of a bandit, the gravest first."""
    found = [sentence(one.sentence) for one in active_alarms(bandit)]
    found += [
        f"{count:,} {kind} since the server was started."
        for kind, count in bandit.failures.items()
        if count
    ]
    found += _about_arms(bandit, rollups)
    found += bandit.notices()
    if bandit.held:
        found.append(f"Version {bandit.version} is held: newer versions are fitted but not used.")
    return found


def _about_arms(bandit: LiveBandit, rollups: Rollups | None) -> list[str]:
    """Sentences on arms that seem broken, and on rewards that come late."""
    notes, counts = arm_notes(bandit, rollups), bandit.counts()
    found = [one.sentence for one in notes]
    late, rewards = counts.get("late rewards", 0), counts.get("rewards", 0)
    named = any(one.words == LATE for one in notes)
    if late > 0.05 * (late + rewards) and not named:
        found.append(
            f"{late:,} of {late + rewards:,} rewards came too late to be learned from: a longer "
            "reward_wait would let them count."
        )
    return found


def active_alarms(bandit: LiveBandit) -> list[Alarm]:
    """The alarms that are neither over nor acknowledged, newest first."""
    if not bandit.active_alarms():
        return []
    return [one for one in bandit.alarms() if one.active]
