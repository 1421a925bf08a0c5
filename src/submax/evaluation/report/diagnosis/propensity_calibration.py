"""Whether the logged propensities agree with how often each choice was taken."""

from typing import NamedTuple

import numpy as np

from submax.evaluation.contracts.counts import error_of_mean, mean, some, total
from submax.evaluation.logs.log import Log
from submax.evaluation.report.diagnosis.diagnostics import SIGNIFICANT_ERRORS, errors_from_one

FEWEST_TAKEN = 30
"""Rows that a choice must have to be checked: with 30 terms a mean is about normal."""


class PropensityCalibration(NamedTuple):
    """How well the propensities of one choice agree with how often it was taken.

    Over the rows that took a choice, Σ 1 / p is on average the number of rows in which the choice
    was eligible, times the number of joint actions that contain it. ``ratio`` is the sum over this
    expectation. ``z`` is the distance of the ratio from 1 in standard errors; it allows for rare
    rows that happen not to have occurred. ``error`` is the standard error without this allowance.
    """

    slot: str
    choice: str
    ratio: float
    z: float
    error: float

    @property
    def plausible(self) -> bool:
        """Whether chance explains the distance of the ratio from 1."""
        return not abs(self.z) > SIGNIFICANT_ERRORS


def worst_calibration(log: Log) -> PropensityCalibration | None:
    """Return the calibration of the choice with the largest |z|, among all slots.

    None if no choice was taken in at least ``FEWEST_TAKEN`` rows.
    """
    return max(calibrations(log), key=lambda one: abs(one.z), default=None)


def calibrations(log: Log) -> list[PropensityCalibration]:
    """Return the calibration of every choice that was taken in at least ``FEWEST_TAKEN`` rows."""
    checked: list[PropensityCalibration] = []
    inverse, menu = 1.0 / log.propensity, log.schema.menu
    volume = float(np.prod([one.high - one.low for one in menu.ranges]))
    sizes = np.array(
        [[len(indices) for indices in eligible] for eligible in log.eligible_sets], dtype=float
    )
    joint_actions = sizes.prod(axis=1) * volume
    for slot, one in enumerate(menu.slots):
        # Number of eligible joint actions that contain a given eligible choice of this slot.
        containing = joint_actions / sizes[:, slot]
        score = inverse / containing[log.eligible_set]
        eligible_choices = log.eligible_choices(slot)
        for index, choice in enumerate(one.choices):
            eligible = eligible_choices[:, index][log.eligible_set]
            taken = eligible & (log.action[:, slot] == index)
            # Choices that were rarely or never taken are reported as a lack of support instead.
            counted = some(log.count, eligible)
            if total(taken[taken], some(log.count, taken)) >= FEWEST_TAKEN:
                terms = np.where(taken, score, 0.0)[eligible]
                z = errors_from_one(terms, float(score[eligible].max()), counted)
                error, ratio = error_of_mean(terms, counted), mean(terms, counted)
                checked.append(PropensityCalibration(one.name, choice.name, ratio, z, error))
    return checked
