"""A bandit that has learned, so that its policy decides and not chance."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import submax

LEARNED = 500
"""Decisions that the version has learned from."""


def fit_bandit(store: str | Path, name: str, actions: Sequence[str], context: Any) -> None:
    """Declare a bandit and fit its first version to decisions in random contexts.

    ``context`` has the type ``float`` or a list of values for each variable. The fourth action is
    the best one everywhere.
    """
    rng = np.random.default_rng(0)
    requests = [
        {"context": {variable: _drawn(kind, rng) for variable, kind in context.items()}}
        for _ in range(LEARNED)
    ]
    with submax.open(
        store, name=name, actions=actions, context=context, reward_wait=0.0, background=False
    ) as bandit:
        made = bandit.decide_many(requests)
        bandit.reward_many(
            [{"id": one.id, "value": float(one.action == actions[3])} for one in made]
        )
        if not bandit.refit():
            raise RuntimeError("no version was fitted, so that nothing can be measured")


def _drawn(kind: Any, rng: np.random.Generator) -> Any:
    return float(rng.normal()) if kind is float else str(rng.choice(kind))
