"""How far the numbers of an evaluation can be trusted."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.log import Log
from submax.evaluation.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.target import Seen, Witness

FEWEST_EFFECTIVE, LEAST_SHARE = 100.0, 0.01
"""Effective rows below which weighted estimates are doubtful; also as a share of all rows."""
LARGE_SHARE = 0.05
"""Of all weight, in one row."""
UNSUPPORTED = 0.01
"""Probability of actions that the log never has."""
STRANGE = 4.0
"""Standard errors beyond which chance is no explanation."""
UNSEEN = 10.0
"""Rows of the least propensity: that none comes where so many are expected is as strange."""
UNEVEN = 0.01
"""By how much the propensities of a uniform log may differ."""


class Diagnostics(NamedTuple):
    """Of the weights w = π / p of one policy over n ``rows``.

    ``effective`` is the effective sample size (Σ w)² / Σ w², ``largest`` the largest weight and
    ``largest_share`` its share of Σ w. ``mean_weight`` should be 1, up to ``mean_error``, its
    standard error; it is less where actions of the policy had no chance. ``unsupported`` is the
    policy's probability of choices that the log never has.
    """

    rows: int
    effective: float
    largest: float
    largest_share: float
    mean_weight: float
    mean_error: float
    unsupported: float

    @classmethod
    def of(cls, seen: Seen) -> "Diagnostics":
        """From the evidence about a policy."""
        weight = seen.evidence.weight
        total, square = float(weight.sum()), float((weight**2).sum())
        largest = float(weight.max())
        return cls(
            rows=len(weight),
            effective=total**2 / square if square > 0 else 0.0,
            largest=largest,
            largest_share=largest / total if total > 0 else 0.0,
            mean_weight=float(weight.mean()),
            mean_error=float(weight.std() / np.sqrt(len(weight))),
            unsupported=float(seen.unsupported.mean()),
        )


class Calibration(NamedTuple):
    """The choice whose logged propensities fit worst to how often it was taken.

    Over the rows with a choice, Σ 1 / p is on average the number of rows in which it was eligible
    times that of joint actions it is part of; ``ratio`` is what it is instead, over this, and ``z``
    how many standard errors that is from 1, rare rows that did not come allowed for.
    """

    choice: str
    ratio: float
    z: float

    @property
    def good(self) -> bool:
        """Whether chance explains the difference."""
        return not abs(self.z) > STRANGE


class Caution(NamedTuple):
    """A sentence about numbers that should not be trusted, and what they rely on.

    ``about`` is `weights`, `propensities`, `model`, `slots`, `replay` or `all`.
    """

    about: str
    sentence: str

    def concerns(self, estimator: OffPolicyEstimator) -> bool:
        """Whether an estimator relies on that."""
        return {
            "weights": estimator.uses_weights,
            "propensities": estimator.uses_propensities,
            "model": estimator.uses_model,
            "slots": estimator.uses_slots,
            "replay": estimator.short == "replay",
            "all": True,
        }[self.about]


def calibration(log: Log) -> Calibration | None:
    """The worst choice of all slots; None where nothing can be compared."""
    worst: Calibration | None = None
    inverse = 1.0 / log.propensity
    menu = log.schema.menu
    volume = float(np.prod([one.high - one.low for one in menu.intervals]))
    sizes = np.array([[len(numbers) for numbers in shown] for shown in log.menus], dtype=float)
    joint = sizes.prod(axis=1) * volume
    for slot, one in enumerate(menu.slots):
        if len(one.choices) < 2:
            continue
        # In a row where the choice is eligible, so many joint actions hold it.
        expected = (joint / sizes[:, slot])[log.shown]
        score = inverse / expected
        for number, choice in enumerate(one.choices):
            may = np.array([number in shown[slot] for shown in log.menus])[log.shown]
            taken = may & (log.action[:, slot] == number)
            # Too few for a mean to be normal, or none: that is a matter of support.
            if np.count_nonzero(taken) < 30:
                continue
            terms = np.where(taken, score, 0.0)[may]
            ratio = float(terms.mean())
            error = _error_of_mean(terms, float(score[may].max()))
            z = (ratio - 1) / error
            if worst is None or abs(z) > abs(worst.z):
                worst = Calibration(choice.name, ratio, z)
    return worst


def _error_of_mean(terms: Floats, largest: float) -> float:
    """The standard error, and what rare terms as large as this may add that have not come."""
    return float(terms.std() / np.sqrt(len(terms)) + UNSEEN / STRANGE * largest / len(terms))


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
    fit = calibration(log)
    if fit is not None and not fit.good:
        yield Caution(
            "propensities",
            f"the propensities of {fit.choice!r} do not fit how often it was taken: their inverses "
            f"add up to {fit.ratio:.2f} of what they should ({abs(fit.z):.0f} standard errors off)",
        )
    if _uneven(log):
        yield Caution("replay", "replay is right for a uniform log, and these propensities differ")
    yield from _slot_cautions(witness)


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
    if found.unsupported > UNSUPPORTED:
        never = ", ".join(witness.never_taken()[:5])
        yield Caution(
            "all",
            f"the policy gives {found.unsupported:.0%} of its decisions to actions that the log "
            f"never has ({never}): nothing is known about them",
        )
    error = _error_of_mean(seen.evidence.weight, _heaviest(witness.log, found))
    short = found.mean_weight - 1 < -STRANGE * error
    if short or found.mean_weight - 1 > STRANGE * error:
        why = "some of its actions had no chance in the log" if short else "that cannot be chance"
        yield Caution(
            "weights",
            f"the weights average {found.mean_weight:.2f} and should average 1: {why}, or the "
            "propensities are wrong",
        )
    few = found.effective < FEWEST_EFFECTIVE or found.effective < LEAST_SHARE * found.rows
    if few:
        yield Caution(
            "weights",
            f"the {found.rows} rows are worth {found.effective:.0f} of the policy's own: too few "
            "for what it does differently",
        )
    if found.largest_share > LARGE_SHARE:
        yield Caution(
            "weights",
            f"one row has {found.largest_share:.0%} of all weight ({found.largest:.3g}): intervals "
            "are too short",
        )
    agreeing = _rewards_seen(seen)
    if agreeing < 10 and not few:
        yield Caution(
            "weights",
            f"only {agreeing} rows with a reward of its own speak for the policy: intervals are "
            "too short",
        )


def _heaviest(log: Log, found: Diagnostics) -> float:
    """The largest weight that could have come: a policy surely takes what was rare in the log."""
    return found.largest if log.schema.menu.intervals else 1.0 / float(log.propensity.min())


def _rewards_seen(seen: Seen) -> int:
    """Rows that have weight, and another reward than most."""
    reward = seen.evidence.reward[seen.evidence.weight > 0]
    if reward.size == 0:
        return 0
    values, counts = np.unique(reward, return_counts=True)
    return int(reward.size - counts.max()) if len(values) > 1 else int(reward.size)


def _uneven(log: Log) -> bool:
    for number in range(len(log.menus)):
        found: Floats = log.propensity[log.shown == number]
        if found.size and found.max() > (1 + UNEVEN) * found.min():
            return True
    return False


def _slot_cautions(witness: Witness) -> Iterator[Caution]:
    slots = witness.slot_propensity
    if slots is None:
        return
    if witness.slots_estimated:
        yield Caution(
            "slots",
            "the propensities of single slots are estimated: log them as propensity_SLOT",
        )
        return
    apart = np.abs(np.log(slots.prod(axis=1) / witness.log.propensity))
    if apart.mean() > UNEVEN:
        yield Caution(
            "slots",
            "the log did not choose its slots independently of each other, as the pseudo-inverse "
            "supposes",
        )
