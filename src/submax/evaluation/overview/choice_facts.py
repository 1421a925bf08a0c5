"""How often a log took each choice, what it earned, and whether its propensities agree."""

from typing import Any, NamedTuple

import numpy as np

from submax.evaluation.logs.log import Log
from submax.evaluation.report.diagnosis.propensity_calibration import (
    PropensityCalibration,
    calibrations,
)


class ChoiceFacts(NamedTuple):
    """One choice of a slot: its ``rows``, their mean ``reward``, and its ``calibration``.

    The reward is NaN if no row took the choice. The calibration is None if too few rows took it.
    """

    slot: str
    name: str
    rows: int
    reward: float
    calibration: PropensityCalibration | None

    def row(self) -> dict[str, Any]:
        """Return the facts as a row of a table, with the numbers of the calibration."""
        checked = self.calibration
        return {
            "slot": self.slot,
            "action": self.name,
            "rows": self.rows,
            "mean_reward": self.reward,
            "ratio": None if checked is None else checked.ratio,
            "z": None if checked is None else checked.z,
        }


def choice_facts(log: Log) -> list[ChoiceFacts]:
    """Return the facts about every choice, the most frequent choice of each slot first."""
    checked = {(one.slot, one.choice): one for one in calibrations(log)}
    found: list[ChoiceFacts] = []
    for place, slot in enumerate(log.schema.menu.slots):
        chosen = log.action[:, place].astype(np.int64)
        rows = np.bincount(chosen, log.count, minlength=len(slot.choices))
        reward = log.reward if log.count is None else log.count * log.reward
        earned = np.bincount(chosen, reward, minlength=len(slot.choices))
        for index in np.argsort(-rows, kind="stable"):
            name, count = slot.choices[index].name, int(rows[index])
            mean = float(earned[index] / count) if count else float("nan")
            found.append(ChoiceFacts(slot.name, name, count, mean, checked.get((slot.name, name))))
    return found
