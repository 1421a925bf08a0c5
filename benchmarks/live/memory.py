"""The processor time of a round with a bandit in memory, beside Thompson in plain Python."""

import os

# Set before numpy is imported, because the benchmark measures a single core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import submax

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import Claim, print_claims

CHANCES = {"A": 0.1, "B": 0.6, "C": 0.3}
POLICIES = {
    "the default policy": "rcp-adaptive",
    "Thompson": "thompson-1-1",
    "SubMax": "rcp-submax",
}
ROUNDS, LIMIT_ROUND = 5_000, 120.0
"""Rounds without a context, and the most microseconds for each."""
WIDTH = 10
NAMES, ARMS = [f"x{number}" for number in range(WIDTH)], [f"arm {number}" for number in range(10)]
FIRST, LIMIT_FIRST = 2_000, 600.0
ALL, LIMIT_ALL = 20_000, 300.0
"""Rounds with 10 numbers and 10 arms, and the most microseconds for each, on average."""
LIMIT_DECISION, LIMIT_FILES = 120.0, 12
LIMIT_SAVING = 1000.0
"""The most milliseconds to save a bandit and load it again."""


def measure() -> list[Claim]:
    """Return the claims about a bandit in memory."""
    warm_up()
    plain = plain_thompson(ROUNDS)
    claims = [
        _claim(f"a round of {name}, 3 actions (plain Python: {plain:.0f} µs)", spent, LIMIT_ROUND)
        for name, policy in POLICIES.items()
        for spent in [round_microseconds(policy)]
    ]
    bandit = submax.Bandit(ARMS, seed=1, context=dict.fromkeys(NAMES, float))
    rng = np.random.default_rng(0)
    first = FIRST * contextual_microseconds(bandit, FIRST, rng)
    rest = (ALL - FIRST) * contextual_microseconds(bandit, ALL - FIRST, rng)
    decision, files = decision_microseconds(bandit, rng), len(files_entered(bandit.decide, rng))
    what = "10 actions and 10 numbers"
    return [
        *claims,
        _claim(f"a round with {what}, the first {FIRST:,}", first / FIRST, LIMIT_FIRST),
        _claim(f"the same over {ALL:,}", (first + rest) / ALL, LIMIT_ALL),
        _claim(f"a decision with {what}", decision, LIMIT_DECISION),
        Claim(
            "files entered by a decision",
            str(plain_files()),
            str(LIMIT_FILES),
            plain_files() <= LIMIT_FILES,
        ),
        Claim(f"the same with {what}, the policy's included", str(files), "", True),
        saving_claim(bandit),
    ]


def warm_up() -> None:
    """Let a few rounds import what is imported when it is first needed."""
    for policy in POLICIES.values():
        bandit = submax.Bandit(list(CHANCES), policy=policy, seed=2)
        for reward in (0.0, 1.0) * 10:
            bandit.reward(bandit.decide().id, reward)
    contextual = submax.Bandit(ARMS, seed=2, context=dict.fromkeys(NAMES, float))
    contextual_microseconds(contextual, 100, np.random.default_rng(2))


def plain_thompson(rounds: int) -> float:
    """Microseconds of a round of Thompson sampling with a dictionary and ``random``."""
    rng, counts = random.Random(1), {arm: [1, 1] for arm in CHANCES}
    begin = time.process_time()
    for _ in range(rounds):
        drawn = {arm: rng.betavariate(*count) for arm, count in counts.items()}
        arm = max(drawn, key=drawn.__getitem__)
        counts[arm][rng.random() >= CHANCES[arm]] += 1
    return 1e6 * (time.process_time() - begin) / rounds


def round_microseconds(policy: str) -> float:
    """Mean processor time of a decision and its reward, over the first rounds of a bandit."""
    bandit, uniforms = submax.Bandit(list(CHANCES), policy=policy, seed=1), _uniforms(ROUNDS)
    begin = time.process_time()
    for uniform in uniforms:
        decision = bandit.decide()
        bandit.reward(decision.id, float(uniform < CHANCES[str(decision.action)]))
    return 1e6 * (time.process_time() - begin) / ROUNDS


def contextual_microseconds(bandit: submax.Bandit, rounds: int, rng: np.random.Generator) -> float:
    """Mean processor time of further rounds; each arm's chance depends on one number."""
    contexts, uniforms = rng.normal(size=(rounds, WIDTH)).tolist(), rng.random(rounds).tolist()
    begin = time.process_time()
    for values, uniform in zip(contexts, uniforms, strict=True):
        decision = bandit.decide(dict(zip(NAMES, values, strict=True)))
        seen = values[ARMS.index(str(decision.action))]
        bandit.reward(decision.id, float(uniform < 0.3 + 0.1 * (seen > 0)))
    return 1e6 * (time.process_time() - begin) / rounds


def decision_microseconds(
    bandit: submax.Bandit, rng: np.random.Generator, count: int = 500
) -> float:
    """Mean processor time of decisions that learn nothing."""
    bandit.refit()
    contexts = [_context(rng) for _ in range(count)]
    begin = time.process_time()
    for context in contexts:
        bandit.decide(context)
    return 1e6 * (time.process_time() - begin) / count


def plain_files() -> int:
    """How many files of submax a decision without a context enters, if it does not learn."""
    bandit = submax.Bandit(list(CHANCES), seed=1)
    bandit.reward(bandit.decide().id, 1.0)
    bandit.refit()
    bandit.decide()
    return len(files_entered(bandit.decide))


def files_entered(decide: Callable[..., Any], rng: np.random.Generator | None = None) -> set[str]:
    """The files of submax whose functions a decision calls."""
    entered: set[str] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and "submax" in frame.f_code.co_filename:
            entered.add(frame.f_code.co_filename)

    context = None if rng is None else _context(rng)
    sys.setprofile(watch)
    decide(context)
    sys.setprofile(None)
    return entered - {__file__}


def saving_claim(bandit: submax.Bandit) -> Claim:
    """Wall time of saving a bandit and loading it again."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        bandit.save(Path(folder) / "bandit.safetensors")
        submax.Bandit.load(Path(folder) / "bandit.safetensors")
        spent = 1e3 * (time.perf_counter() - begin)
    return Claim(
        "save and load it", f"{spent:.0f} ms", f"{LIMIT_SAVING:g} ms", spent <= LIMIT_SAVING
    )


def _uniforms(count: int) -> list[float]:
    return np.random.default_rng(0).random(count).tolist()


def _context(rng: np.random.Generator) -> dict[str, float]:
    return dict(zip(NAMES, rng.normal(size=WIDTH).tolist(), strict=True))


def _claim(what: str, measured: float, limit: float) -> Claim:
    return Claim(what, f"{measured:.0f} µs", f"{limit:g} µs", measured <= limit)


if __name__ == "__main__":
    print_claims(measure())
