"""Warnings about networks that are trained on too few passes over a log."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from submax.models.training import Training, most_steps

FEWEST_PASSES = 10.0
"""Passes over the rows below which a network counts as under-trained. With four passes over 20,000
rows, policies with networks earned 4 to 24 points less than after training to convergence."""


class UnderTrainedWarning(UserWarning):
    """A network was trained on fewer passes over the rows than it needs."""


def training_warnings(policy: Any, rows: int) -> list[str]:
    """Return a sentence for every training of a policy that is too short for this many rows.

    >>> training_warnings(Training(300), 20_000)[0][:47]
    'a network is trained for 300 steps of 256 rows,'
    """
    found = []
    for training in _trainings(policy):
        steps, most = _most_steps(training, rows)
        passes = steps * training.batch / max(rows, 1)
        if passes < FEWEST_PASSES:
            advice = (
                "give a higher learning rate"
                if training.steps == "converged"
                else ("give training.steps=converged")
            )
            found.append(
                f"a network is trained for {most}{steps} steps of {training.batch} rows, "
                f"{passes:.2g} passes over the {rows} rows of the log; at least "
                f"{FEWEST_PASSES:g} are allowed without this warning: {advice}"
            )
    return found


def _most_steps(training: Training, rows: int) -> tuple[int, str]:
    """Return the largest number of steps, and words that say whether there may be fewer."""
    if not isinstance(training.steps, str):
        return training.steps, ""
    return int(most_steps(np.array([rows]), training)[0]), "at most "


def _trainings(part: Any) -> Iterator[Training]:
    if isinstance(part, Training):
        yield part
    elif dataclasses.is_dataclass(part) and not isinstance(part, type):
        for field in dataclasses.fields(part):
            yield from _trainings(getattr(part, field.name))
