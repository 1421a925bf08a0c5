"""What a report says about a log of slates."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.overview.choice_facts import ChoiceFacts
from submax.evaluation.overview.overlap import Overlap
from submax.evaluation.overview.overview import Overview
from submax.evaluation.ranking.slates import Slates


def slate_overview(
    slates: Slates, settings: Mapping[str, Any], overlap: Mapping[str, Overlap]
) -> Overview:
    """Return the data checks of a log of slates: rewards per slate, items and positions."""
    sums = slates.reward.sum(axis=1)
    propensity = slates.propensity[slates.filled]
    return Overview(
        rows=len(slates),
        learned_rows=0,
        reward_kind="binary" if np.isin(slates.reward, (0, 1)).all() else "continuous",
        rewards=_low_mean_high(sums),
        propensities=_low_mean_high(propensity),
        estimated=0,
        choices=[*_items(slates), *_positions(slates)],
        fields=(),
        settings=settings,
        digest=slates.fingerprint,
        overlap=overlap,
    )


def _items(slates: Slates) -> list[ChoiceFacts]:
    """Return how often each item was in a slate and what it earned there, the most frequent first.

    The propensities of items are not checked: which items could have been in a slate is not known.
    """
    chosen = slates.item[slates.filled]
    rows = np.bincount(chosen, minlength=len(slates.items))
    earned = np.bincount(chosen, slates.reward[slates.filled], minlength=len(slates.items))
    order = np.argsort(-rows, kind="stable")
    return [_facts("", slates.items[one], int(rows[one]), float(earned[one])) for one in order]


def _positions(slates: Slates) -> list[ChoiceFacts]:
    """Return how many slates have each position, and what was earned at it."""
    rows, earned = slates.filled.sum(axis=0), slates.reward.sum(axis=0)
    return [
        _facts("position", str(place + 1), int(rows[place]), float(earned[place]))
        for place in range(slates.positions)
    ]


def _facts(slot: str, name: str, rows: int, earned: float) -> ChoiceFacts:
    return ChoiceFacts(slot, name, rows, earned / rows if rows else float("nan"), None)


def _low_mean_high(values: Floats) -> tuple[float, float, float]:
    return float(values.min()), float(values.mean()), float(values.max())
