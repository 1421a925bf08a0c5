"""Sentences about what needs a person's attention."""

from submax.live.bandit import Bandit

RARE = 0.05
"""The chance of a false alarm about any arm that never got a reward, if all are alike."""


def alerts(bandit: Bandit) -> list[str]:
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
    found += bandit.notices()
    if bandit.menu.plain:
        found += [
            f"{name} never earned anything in {count:,} decisions, while the others did in "
            f"{share:.1%}: is it broken?"
            for name, count, share in without_success(bandit)
        ]
    if bandit.held:
        found.append(f"Version {bandit.version} is held: newer versions are fitted but not used.")
    return found


def without_success(bandit: Bandit) -> list[tuple[str, int, float]]:
    """Active arms without any success, which would be unlikely if they were like the others.

    A success is a reward other than 0. With the other arms' share of successes p, an arm like them
    has none in n decisions with the chance (1 − p)ⁿ. Each has its number of decisions, and p. For
    rewards other than 0 and 1, p is not known, and nothing is said.
    """
    if bandit.settings.rewards["kind"] != "binary":
        return []
    choices, tallies = bandit.menu.slots[0].choices, bandit.ledger().tally.choices[0]
    rows, successes = sum(one.rows for one in tallies), sum(one.reward for one in tallies)
    found = []
    for choice, tally in zip(choices, tallies, strict=False):
        others = rows - tally.rows
        if choice.status != "active" or tally.reward or not others:
            continue
        share = successes / others
        if (1 - share) ** tally.rows < RARE / len(choices):
            found.append((choice.name, tally.rows, share))
    return found
