"""The time of a decision and its reward with a bandit in memory, and of saving and loading it."""

import os

# Set before numpy is imported, because the benchmark measures a single core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import submax

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring.claim import Claim, print_claims

ARMS = ["A", "B", "C"]
ROUNDS = 3000
WIDTH = 20
NAMES = [f"x{number}" for number in range(WIDTH)]
LIMIT_PLAIN, LIMIT_CONTEXT = 1.0, 10.0
"""The most milliseconds of processor time for a decision and its reward, learning included."""
LIMIT_SAVING = 1000.0
"""The most milliseconds to save a bandit and load it again."""


def measure() -> list[Claim]:
    """Return the claims about mean times over the first 3000 decisions of a new bandit."""
    rng = np.random.default_rng(0)
    plain = submax.Bandit(ARMS, seed=1)
    without = pair_milliseconds(plain, lambda: None, rng)
    contextual = submax.Bandit(ARMS, seed=1, context=dict.fromkeys(NAMES, float))
    within = pair_milliseconds(
        contextual, lambda: dict(zip(NAMES, rng.normal(size=WIDTH).tolist(), strict=True)), rng
    )
    saving = saving_milliseconds(contextual)
    return [
        _claim("decide and reward in memory, 3 actions", without, LIMIT_PLAIN),
        _claim(f"the same with {WIDTH} numbers of context", within, LIMIT_CONTEXT),
        _claim("save and load the latter", saving, LIMIT_SAVING),
    ]


def pair_milliseconds(
    bandit: submax.Bandit, context: Callable[[], dict[str, Any] | None], rng: np.random.Generator
) -> float:
    """Mean processor time of a decision and its reward."""
    spent = 0.0
    for _ in range(ROUNDS):
        seen = context()
        begin = time.process_time()
        decision = bandit.decide(seen)
        spent += time.process_time() - begin
        reward = float(rng.random() < 0.1 + 0.2 * ARMS.index(str(decision.action)))
        begin = time.process_time()
        bandit.reward(decision.id, reward)
        spent += time.process_time() - begin
    return 1e3 * spent / ROUNDS


def saving_milliseconds(bandit: submax.Bandit) -> float:
    """Wall time of saving a bandit and loading it again."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        bandit.save(Path(folder) / "bandit.safetensors")
        submax.Bandit.load(Path(folder) / "bandit.safetensors")
        return 1e3 * (time.perf_counter() - begin)


def _claim(what: str, measured: float, limit: float) -> Claim:
    return Claim(what, f"{measured:.2f} ms", f"{limit:g} ms", measured <= limit)


if __name__ == "__main__":
    print_claims(measure())
