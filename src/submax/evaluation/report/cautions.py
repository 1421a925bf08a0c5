"""Sentences about numbers that should not be trusted."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from submax.evaluation.logs.log import Log
from submax.evaluation.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.report.diagnostics import STRANGE, Diagnostics, calibration, distance
from submax.evaluation.report.witness import Seen, Witness

FEWEST_EFFECTIVE, LEAST_SHARE = 100.0, 0.01
"""Effective rows below which weighted estimates are doubtful; also as a share of all rows."""
LARGE_SHARE = 0.05
"""Of all weight, in one row."""
UNSUPPORTED = 0.01
"""Probability of actions that the log never has."""
UNEVEN = 0.01
"""By how much the propensities of a uniform log may differ."""
FEWEST_REWARDS = 10


class Caution(NamedTuple):
    """A sentence about numbers that should not be trusted, and what they rely on.

    ``about`` is `weights`, `propensities`, `slots`, `replay`, `all`, or `model`: of the rewards, by
    those who rely on it alone.
    """

    about: str
    sentence: str

    def concerns(self, estimator: OffPolicyEstimator) -> bool:
        """Whether an estimator relies on that."""
        return {
            "weights": estimator.uses_weights,
            "propensities": estimator.uses_propensities,
            "model": estimator.uses_model and not estimator.uses_weights,
            "slots": estimator.uses_slots,
            "replay": estimator.short == "replay",
            "all": True,
        }[self.about]


def log_cautions(witness: Witness) -> Iterator[Caution]:
    """What holds for all policies alike."""
    log = witness.log
    guessed = int(log.estimated.sum())
    if guessed:
        yield Caution(
            "propensities",
            f"{guessed} of {len(log)} propensities are estimated: these numbers are as good as the "
            "model of how the log was made",
        )
    if all(len(slot.choices) < 2 for slot in log.schema.menu.slots) and log.schema.menu.slots:
        yield Caution("all", "the log has one action only, so that there is nothing to compare")
    fit = calibration(log)
    if fit is not None and not fit.good:
        yield Caution(
            "propensities",
            f"the propensities of {fit.choice!r} do not fit how often it was taken: their inverses "
            f"add up to {fit.ratio:.2f} of what they should, and chance does not explain that",
        )
    rarest = float(log.propensity.min())
    if rarest * len(log) < 1 and not log.schema.menu.ranges:
        yield Caution(
            "propensities",
            f"a propensity is as small as {rarest:.2g}: of {len(log)} rows less than one is "
            "expected with it, and wrong propensities cannot be told from such rare ones",
        )
    if _uneven(log):
        yield Caution("replay", "replay is right for a uniform log, and these propensities differ")
    yield from _about_slots(witness)


def policy_cautions(
    seen: Seen, found: Diagnostics, witness: Witness, same_rows: bool
) -> Iterator[Caution]:
    """What holds for one policy."""
    if same_rows:
        yield Caution(
            "all",
            "the policy was learned from the rows it is evaluated on, so that it looks too good: "
            "learn it from a share of them",
        )
    yield from _about_support(seen, found, witness)
    yield from _about_spread("weights", found)
    yield from _about_rewards(seen, found)
    yield from _about_model(seen)
    slots = seen.evidence.slot_weight
    if slots is not None:
        added = Diagnostics.of_weights(1 - slots.shape[1] + slots.sum(axis=1))
        yield from _about_spread("slots", added)


def _about_support(seen: Seen, found: Diagnostics, witness: Witness) -> Iterator[Caution]:
    if found.unsupported > UNSUPPORTED:
        never = ", ".join(witness.never_taken()[:5])
        yield Caution(
            "all",
            f"the policy gives {found.unsupported:.0%} of its decisions to actions that the "
            f"evaluated rows never have ({never}): nothing is known about them",
        )
    # A policy may surely take what was rare in the log.
    rarest = 1.0 / float(witness.log.propensity.min())
    intervals = witness.log.schema.menu.ranges
    z = distance(seen.evidence.weight, found.largest if intervals else rarest)
    if abs(z) > STRANGE:
        why = "some of its actions had no chance in the log" if z < 0 else "that cannot be chance"
        yield Caution(
            "weights",
            f"the weights average {found.mean_weight:.2f} and should average 1: {why}, or the "
            "propensities are wrong",
        )


def _about_spread(about: str, found: Diagnostics) -> Iterator[Caution]:
    of = " of slots, added up," if about == "slots" else ""
    if _few(found):
        yield Caution(
            about,
            f"the {found.rows} rows are worth {found.effective:.0f} of the policy's own by their "
            f"weights{of}: too few for what it does differently",
        )
    if found.largest_share > LARGE_SHARE:
        yield Caution(
            about,
            f"one row has {found.largest_share:.0%} of all weight{of or ','} {found.largest:.3g}: "
            "intervals are too short",
        )


def _about_rewards(seen: Seen, found: Diagnostics) -> Iterator[Caution]:
    """Rows that have weight, and another reward than most, must be some."""
    reward = seen.evidence.reward[seen.evidence.weight > 0]
    values, counts = np.unique(reward, return_counts=True)
    speaking = int(reward.size - counts.max()) if len(values) > 1 else int(reward.size)
    if speaking < FEWEST_REWARDS and not _few(found):
        yield Caution(
            "weights",
            f"only {speaking} rows with a reward of its own speak for the policy: intervals are "
            "too short",
        )


def _about_model(seen: Seen) -> Iterator[Caution]:
    """The direct method has nothing that corrects it; where rewards contradict it, that is said."""
    evidence = seen.evidence
    off = evidence.weight * (evidence.reward - evidence.predicted)
    error = float(off.std() / np.sqrt(len(off)))
    if abs(off.mean()) > STRANGE * error:
        yield Caution(
            "model",
            f"the rewards contradict the model of them: for this policy it is off by "
            f"{off.mean():+.2g}",
        )
    else:
        yield Caution(
            "model", "the interval of dm does not know of the error of its model of the rewards"
        )


def _few(found: Diagnostics) -> bool:
    return found.effective < FEWEST_EFFECTIVE or found.effective < LEAST_SHARE * found.rows


def _uneven(log: Log) -> bool:
    lowest, highest = np.full(len(log.menus), np.inf), np.zeros(len(log.menus))
    np.minimum.at(lowest, log.shown, log.propensity)
    np.maximum.at(highest, log.shown, log.propensity)
    return bool(np.any(highest > (1 + UNEVEN) * lowest))


def _about_slots(witness: Witness) -> Iterator[Caution]:
    slots = witness.slot_propensity
    if slots is None:
        return
    if witness.slots_estimated:
        yield Caution(
            "slots",
            "propensities of single slots are estimated: log them as propensity_SLOT",
        )
        return
    apart = np.abs(np.log(slots.prod(axis=1) / witness.log.propensity))
    if apart.mean() > UNEVEN:
        yield Caution(
            "slots",
            "the log did not choose its slots independently of each other, as the pseudo-inverse "
            "supposes",
        )
