"""Sentences about what needs a person's attention."""

from submax.dashboard.formats import sentence
from submax.live.alarms.alarm_records import Alarm
from submax.live.bandit import Bandit
from submax.server.pages.silent_arms import silent_arms


def alerts(bandit: Bandit) -> list[str]:
    """All alerts of a bandit, the gravest first."""
    found = [sentence(one.sentence) for one in active_alarms(bandit)]
    found += [
        f"{count:,} {kind} since the server was started."
        for kind, count in bandit.failures.items()
        if count
    ]
    counts = bandit.counts()
    late, rewards = counts.get("late rewards", 0), counts.get("rewards", 0)
    if late > 0.05 * (late + rewards):
        found.append(
            f"{late:,} of {late + rewards:,} rewards came too late to be learned from: a longer "
            "reward_wait would let them count."
        )
    found += bandit.notices()
    found += [one.sentence for one in silent_arms(bandit, bandit.rollups())]
    if bandit.held:
        found.append(f"Version {bandit.version} is held: newer versions are fitted but not used.")
    return found


def active_alarms(bandit: Bandit) -> list[Alarm]:
    """The alarms that are neither over nor acknowledged, newest first."""
    if not bandit.active_alarms():
        return []
    return [one for one in bandit.alarms() if one.active]
