"""Cautions about weights and propensities that depend on few numbers, not on all rows."""

from collections.abc import Iterator, Sequence

from submax.evaluation.report.diagnosis.caution import Caution
from submax.evaluation.report.diagnosis.diagnostics import SIGNIFICANT_ERRORS, Diagnostics
from submax.evaluation.report.diagnosis.propensity_calibration import PropensityCalibration
from submax.evaluation.report.diagnosis.reward_cautions import rare_reward_cautions

FEWEST_EFFECTIVE = 100.0
"""Effective rows below which weighted estimates are doubtful: the normal approximation of their
intervals needs about this many."""
LEAST_EFFECTIVE_SHARE = 0.01
"""The same as a share of all rows: below it a few rows decide, however many rows there are."""
LARGEST_WEIGHT_SHARE = 0.05
"""One row with more than this share of all weight makes intervals unreliable."""
MOST_UNSUPPORTED = 0.01
"""Probability of untaken actions up to which a policy counts as covered by the log."""
MOST_NAMES = 5
"""Names of choices that a sentence lists."""


def propensity_cautions(
    worst: PropensityCalibration | None, rarest: float | None, decisions: int, uniform: bool
) -> Iterator[Caution]:
    """Yield the cautions about the propensities of a log.

    ``worst`` is the calibration that is farthest from 1, ``rarest`` the smallest propensity (None
    for densities), and ``uniform`` says that rows with the same eligible choices have the same one.
    """
    if worst is not None and not worst.plausible:
        yield Caution(
            "propensities",
            f"the propensities of {worst.choice!r} do not agree with how often it was taken: their "
            f"inverses add up to {worst.ratio:.2f} times the expected sum, and chance does not "
            "explain the difference",
        )
    if rarest is not None and rarest * decisions < 1:
        yield Caution(
            "propensities",
            f"a propensity is as small as {rarest:.2g}: among {decisions} rows less than one "
            "with such a propensity is expected, so that a wrong propensity cannot be "
            "distinguished from a rare event",
        )
    if not uniform:
        yield Caution("replay", "replay needs a uniform log, and the propensities of this log vary")


def weight_cautions(
    found: Diagnostics,
    z: float,
    off: tuple[float, float],
    never_taken: Sequence[str],
    same_rows: bool,
) -> Iterator[Caution]:
    """Yield the cautions that follow from the weights of a policy.

    ``z`` is the distance of the mean weight from 1 in standard errors, ``off`` the mean of
    w (r − q̂) and its standard error, by which the model of rewards is off, and ``same_rows`` says
    that the policy was learned from the rows on which it is evaluated.
    """
    if same_rows:
        yield Caution(
            "all",
            "the policy was learned from the rows on which it is evaluated, so that it looks too "
            "good: learn it from a share of the rows",
        )
    if found.unsupported > MOST_UNSUPPORTED:
        never = ", ".join(never_taken[:MOST_NAMES])
        yield Caution(
            "all",
            f"the policy gives {found.unsupported:.0%} of its decisions to actions that none of "
            f"the evaluated rows took ({never}): nothing is known about these actions",
        )
    yield from mean_weight_cautions(found, z)
    yield from spread_cautions(found)
    yield from rare_reward_cautions(found)
    yield _about_model(*off)


def mean_weight_cautions(found: Diagnostics, z: float, about: str = "weights") -> Iterator[Caution]:
    """Yield a caution if the mean weight is farther from 1 than chance explains, by its ``z``."""
    if abs(z) > SIGNIFICANT_ERRORS:
        why = "the log could not take some of its actions, or " if z < 0 else ""
        yield Caution(
            about,
            f"the weights average {found.mean_weight:.2f} and should average 1, and chance does "
            f"not explain the difference: {why}the propensities are wrong",
        )


def spread_cautions(found: Diagnostics, about: str = "weights") -> Iterator[Caution]:
    """Yield a caution if few rows have most of the weight."""
    weights = {
        "slots": "slot weights",
        "groups": "group weights",
        "sessions": "session weights",
    }.get(about, "weights")
    unit = "session" if about == "sessions" else "row"
    if _few(found):
        yield Caution(
            about,
            f"by their {weights} the {found.rows} {unit}s are worth {found.effective:.0f} {unit}s "
            "of the policy itself, which is too few: the policy decides too differently from the "
            "log",
        )
    if found.largest_share > LARGEST_WEIGHT_SHARE:
        yield Caution(
            about,
            f"one {unit} has {found.largest_share:.0%} of the sum of all {weights} (its weight is "
            f"{found.largest:.3g}): intervals are too short",
        )


def _about_model(average: float, error: float) -> Caution:
    """Return the caution for the direct method, whose model errors nothing corrects."""
    if abs(average) > SIGNIFICANT_ERRORS * error:
        return Caution(
            "model",
            "the rewards contradict the model of rewards: for this policy the model is off by "
            f"{average:+.2g}",
        )
    return Caution("model", "the interval of dm does not include the error of its model of rewards")


def _few(found: Diagnostics) -> bool:
    few = found.effective < FEWEST_EFFECTIVE
    return few or found.effective < LEAST_EFFECTIVE_SHARE * found.rows
