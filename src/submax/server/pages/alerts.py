"""Sentences about what needs a person's attention."""

from submax.core.arrays import Floats
from submax.live.bandit import Bandit
from submax.live.rollups.rollups import Rollups
from submax.live.rollups.sums import Sums

RARE = 0.05
"""The chance of a false alarm about any arm that never got a reward, if all are alike."""


def alerts(bandit: Bandit, rollups: Rollups | None) -> list[str]:
    """All alerts of a bandit, the gravest first."""
    found = [
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
    if rollups is not None and bandit.menu.plain:
        found += [
            f"{name} never earned anything in {count:,} decisions, while the others did in "
            f"{share:.1%}: is it broken?"
            for name, count, share in without_success(bandit, rollups)
        ]
    if bandit.held:
        found.append(f"Version {bandit.version} is held: newer versions are fitted but not used.")
    return found


def without_success(bandit: Bandit, rollups: Rollups) -> list[tuple[str, int, float]]:
    """Active arms without any success, which would be unlikely if they were like the others.

    A success is a reward of 1 if rewards are 0 or 1, and any reward otherwise. With the other arms'
    share of successes p, an arm like them has none in n decisions with the chance (1 − p)ⁿ. Each
    has its number of decisions, and p.
    """
    sums = Sums.of_table(rollups.choices.rows)
    binary = bandit.settings.rewards["kind"] == "binary"
    matured = _by_choice(rollups, sums.matured)
    rewarded = _by_choice(rollups, sums.reward if binary else sums.rewarded)
    found = []
    for number, choice in enumerate(bandit.menu.slots[0].choices):
        own, others = matured.get(number, 0.0), sum(matured.values()) - matured.get(number, 0.0)
        if choice.status != "active" or rewarded.get(number) or not others:
            continue
        share = sum(rewarded.values()) / others
        if (1 - share) ** own < RARE / len(bandit.menu.slots[0].choices):
            found.append((choice.name, int(own), share))
    return found


def _by_choice(rollups: Rollups, column: Floats) -> dict[int, float]:
    return dict(zip(rollups.choices.leading.tolist(), column.tolist(), strict=True))
