"""What the checks of a log need, as sums over rows."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.logs.log import Log
from submax.evaluation.overview.choice_facts import ChoiceFacts
from submax.evaluation.parts.moments import Moments, two_points
from submax.evaluation.report.diagnosis.diagnostics import errors_from_one
from submax.evaluation.report.diagnosis.propensity_calibration import (
    FEWEST_TAKEN,
    PropensityCalibration,
)
from submax.schema.menu import ChoiceIndices
from submax.schema.schema import Schema

EXTREMES = 2
"""Lowest and highest rewards that are kept: the outlier, and the next one."""


class LogSums(NamedTuple):
    """Sums over the rows of a log of plain actions, for each of its M choices.

    ``choices [M, 6]`` are, for each choice: rows that took it, their rewards, rows in which it was
    eligible, Σ 1 / p and Σ 1 / p² over the rows that took it, and the largest 1 / p among the rows
    in which it was eligible. ``rewards`` are the moments of the rewards minus a number near their
    mean, ``ends`` the lowest and highest rewards, and ``propensity`` is the sum of all
    propensities; ``by_set`` has the lowest and highest propensity for each set of eligible choices.
    """

    choices: Floats
    rewards: Moments
    ends: Floats
    propensity: float
    by_set: dict[ChoiceIndices, tuple[float, float]]

    @classmethod
    def of(cls, log: Log, centre: float) -> "LogSums":
        """Return the sums over the rows of a part."""
        chosen = log.action[:, 0].astype(np.int64)
        eligible = log.eligible_choices(0)
        size = eligible.shape[1]
        score = 1.0 / log.propensity
        in_sets = np.bincount(log.eligible_set, minlength=len(eligible))
        largest = np.zeros(len(eligible))
        np.maximum.at(largest, log.eligible_set, score)
        low, high = np.full(len(eligible), np.inf), np.zeros(len(eligible))
        np.minimum.at(low, log.eligible_set, log.propensity)
        np.maximum.at(high, log.eligible_set, log.propensity)
        columns = [
            np.bincount(chosen, minlength=size),
            np.bincount(chosen, log.reward, minlength=size),
            in_sets @ eligible,
            np.bincount(chosen, score, minlength=size),
            np.bincount(chosen, score**2, minlength=size),
            (largest[:, None] * eligible).max(axis=0),
        ]
        present = {
            one: (float(low[place]), float(high[place]))
            for place, one in enumerate(log.eligible_sets)
            if in_sets[place]
        }
        moments = Moments.of([log.reward - centre], len(log))
        return cls(
            np.stack(columns, axis=1).astype(np.float64),
            moments,
            _extremes(log.reward),
            float(log.propensity.sum()),
            present,
        )

    def __add__(self, other: "LogSums") -> "LogSums":  # type: ignore[override]  # not of tuples
        choices = self.choices + other.choices
        choices[:, 5] = np.maximum(self.choices[:, 5], other.choices[:, 5])
        by_set = dict(self.by_set)
        for one, (low, high) in other.by_set.items():
            before = by_set.get(one, (np.inf, 0.0))
            by_set[one] = (min(before[0], low), max(before[1], high))
        return LogSums(
            choices,
            self.rewards + other.rewards,
            _extremes(np.concatenate([self.ends, other.ends])),
            self.propensity + other.propensity,
            by_set,
        )

    def propensities(self) -> tuple[float, float, float]:
        """Return the lowest, the mean and the highest propensity."""
        lows, highs = zip(*self.by_set.values(), strict=True)
        return min(lows), self.propensity / self.rewards.rows, max(highs)

    def facts(self, schema: Schema) -> list[ChoiceFacts]:
        """Return the facts about every choice, the most frequent one first."""
        slot = schema.menu.slots[0]
        found = []
        for index in np.argsort(-self.choices[:, 0], kind="stable"):
            rows, earned = self.choices[index, :2]
            mean = float(earned / rows) if rows else float("nan")
            name = slot.choices[index].name
            checked = self._calibration(int(index), slot.name, name)
            found.append(ChoiceFacts(slot.name, name, int(rows), mean, checked))
        return found

    def _calibration(self, index: int, slot: str, name: str) -> PropensityCalibration | None:
        rows, _, count, total, square, largest = self.choices[index]
        if rows < FEWEST_TAKEN:
            return None
        ratio = float(total / count)
        variance = max(float(square / count) - ratio**2, 0.0)
        values, chance = two_points(ratio, variance, 0.0)
        z = errors_from_one(values, float(largest), count * chance)
        return PropensityCalibration(slot, name, ratio, z, float(np.sqrt(variance / count)))

    def reward_terms(self, centre: float) -> tuple[Floats, Floats]:
        """Return few rewards with their counts, which have the mean, variance and ends of all."""
        count, inner = self.rewards.rows, self.ends
        rest = count - len(inner)
        if rest < 2:
            return inner, np.ones(len(inner))
        mean = centre + (float(self.rewards.first[0]) - float((inner - centre).sum())) / rest
        square = float(self.rewards.second[0, 0]) - float(((inner - centre) ** 2).sum())
        variance = max(square / rest - (mean - centre) ** 2, 0.0)
        values, chance = two_points(mean, variance, 0.0)
        within = np.clip(values, inner[EXTREMES - 1], inner[-EXTREMES])
        return np.concatenate([inner, within]), np.concatenate([np.ones(len(inner)), rest * chance])


def _extremes(reward: Floats) -> Floats:
    """Return the lowest and the highest rewards, sorted; all of them if there are few."""
    if len(reward) <= 2 * EXTREMES:
        return np.sort(reward)
    order = np.partition(reward, [EXTREMES - 1, len(reward) - EXTREMES])
    return np.sort(np.concatenate([order[:EXTREMES], order[-EXTREMES:]]))
