"""What a report says about the log."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.core.summary import listed, number, percentage
from submax.evaluation.diagnostics import PropensityCalibration, calibrations
from submax.evaluation.estimates import Overlap, SliceEstimate
from submax.evaluation.intervals import mean
from submax.evaluation.log import Log
from submax.schema.context import Category


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


class FieldFacts(NamedTuple):
    """A field of the context: its ``kind`` (number or category), and its values in words."""

    name: str
    kind: str
    values: str


def field_facts(log: Log) -> list[FieldFacts]:
    """Return a line about each field of the context."""
    found = []
    schema = log.schema.context
    for name, field, column in zip(schema.names, schema.fields, log.context.T, strict=True):
        if isinstance(field, Category):
            counts = np.bincount(column.astype(np.int64), log.count, minlength=len(field.values))
            order = np.argsort(-counts, kind="stable")
            shares = [
                f"{field.values[one]} {percentage(counts[one] / log.decisions)}" for one in order
            ]
            found.append(FieldFacts(name, "category", listed(shares)))
        else:
            low, middle, high = np.quantile(column, [0, 0.5, 1])
            values = f"{number(low)} to {number(high)}, median {number(middle)}"
            found.append(FieldFacts(name, "number", values))
    return found


class Overview(NamedTuple):
    """The data checks of a log, and what is needed to compute a comparison again.

    ``rows`` were evaluated and ``learned_rows`` were learned from. ``rewards`` and
    ``propensities`` are the lowest, the mean and the highest one; ``estimated`` propensities are
    those that a model estimated. ``overlap`` has the weights of each policy. ``settings`` are the
    arguments of the comparison, and ``digest`` identifies the log: it is a SHA-256 hash of the
    contexts, actions and rewards of all rows.
    """

    rows: int
    learned_rows: int
    reward_kind: str
    rewards: tuple[float, float, float]
    propensities: tuple[float, float, float]
    estimated: int
    choices: Sequence[ChoiceFacts]
    fields: Sequence[FieldFacts]
    settings: Mapping[str, Any]
    digest: str
    overlap: Mapping[str, Overlap] = {}
    slices: Sequence[SliceEstimate] = ()

    @classmethod
    def of(
        cls, log: Log, learned_rows: int, settings: Mapping[str, Any], digest: str
    ) -> "Overview":
        """Return the overview of the evaluated rows of a log, without policies."""
        return cls(
            rows=log.decisions,
            learned_rows=learned_rows,
            reward_kind=str(log.schema.rewards["kind"]),
            rewards=_low_mean_high(log.reward, log.count),
            propensities=_low_mean_high(log.propensity, log.count),
            estimated=int(log.estimated.sum()),
            choices=choice_facts(log),
            fields=field_facts(log),
            settings=settings,
            digest=digest,
        )


def _low_mean_high(values: Floats, count: Floats | None) -> tuple[float, float, float]:
    return float(values.min()), mean(values, count), float(values.max())
