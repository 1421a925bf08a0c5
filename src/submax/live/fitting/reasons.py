"""Sentences that say why nothing was learned."""

from submax.live.log.ledger import Ledger


def why_nothing_matured(ledger: Ledger, fresh: bool) -> str:
    """Why a ledger has no new rows; ``fresh`` if nothing was ever learned."""
    counts, settings = ledger.counts, ledger.settings
    waiting = counts["decisions"] - counts["matured"]
    if counts["decisions"] == 0:
        return "there is no decision yet: call decide(), then reward(decision.id, value)"
    if waiting == 0:
        return _why_none_was_learned(ledger) if fresh else "no decision came since the last version"
    if settings.reward_wait > 0:
        return (
            f"{_decisions(waiting)} not older than reward_wait = {settings.reward_wait:g} seconds, "
            "and a decision is learned from when that time is over: wait, or declare a shorter "
            "reward_wait (0: learn when the reward comes)"
        )
    limit = settings.no_reward_after
    otherwise = "declare no_reward_after" if limit is None else f"wait {limit:g} seconds"
    return (
        f"{_decisions(waiting)} without a reward, and with reward_wait = 0 a decision is learned "
        f"from when its reward comes: call reward(decision.id, value), or {otherwise}"
    )


def _why_none_was_learned(ledger: Ledger) -> str:
    kinds = ("held out", "never activated", "without reward")
    counts = [f"{ledger.counts[kind]} {kind}" for kind in kinds if ledger.counts[kind]]
    return f"no decision that has matured can be learned from: {', '.join(counts)}"


def _decisions(count: int) -> str:
    return "1 decision is" if count == 1 else f"{count} decisions are"
