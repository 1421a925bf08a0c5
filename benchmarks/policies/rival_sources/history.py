"""The rows on which rivals and the sources of other people are compared, and how these are read."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from submax import Arms, Feedback, Problem

ARMS, ROWS = 4, 400
NO_CONTEXT = np.zeros((1, 1, 0))


@contextmanager
def importing(folder: Path) -> Iterator[Any]:
    """Yield a function that imports modules of a checkout; afterwards they are forgotten.

    Different checkouts have modules of the same name, such as ``utils``.
    """
    if not folder.is_dir():
        raise FileNotFoundError(folder)
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if file.startswith(str(folder)):
                del sys.modules[name]


def rows(seed: int) -> tuple[Any, Any]:
    """Return random arms, each of the first ones once, and rewards 0 and 1."""
    rng = np.random.default_rng(seed)
    arms = np.concatenate([np.arange(ARMS), rng.integers(ARMS, size=ROWS - ARMS)])
    return arms, (rng.random(ROWS) < np.linspace(0.2, 0.8, ARMS)[arms]).astype(float)


def row_feedback(arm: int, reward: float, log_prob: float = -1.0) -> Feedback:
    """Return one decision of one replica."""
    shape = (1, 1)
    return Feedback(
        NO_CONTEXT,
        np.array([[[arm]]]),
        np.full(shape, reward),
        np.full(shape, log_prob),
        np.ones(shape),
    )


def ours_by_row(policy: Any, seed: int) -> Any:
    """Return our probabilities after each row, ``[rows, arms]``."""
    return np.array(
        [policy.probabilities(state, NO_CONTEXT)[0, 0] for state in states(policy, seed)]
    )


def states(policy: Any, seed: int) -> Iterator[Any]:
    """Yield the state of our policy after each row."""
    rng = np.random.default_rng(0)
    state = policy.init(Problem(Arms(ARMS)), 1, rng)
    for arm, reward in zip(*rows(seed), strict=True):
        with np.errstate(divide="ignore"):
            log_prob = np.log(policy.probabilities(state, NO_CONTEXT)[0, 0, arm])
        state = policy.update(state, row_feedback(arm, reward, max(log_prob, -30.0)), rng)
        yield state
