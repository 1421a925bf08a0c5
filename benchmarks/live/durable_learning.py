"""How a durable bandit learns: the first read of its rows, memory, and decisions during a fit.

Run ``python benchmarks/live/durable_learning.py --rows 1000000`` for as many decisions as claimed.
"""

import argparse
import importlib
import resource
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from measuring import Claim, print_claims, when_and_where
from submax.bandit.active_version import ActiveVersion
from submax.bandit.declaring import change_choice, declare, find_bandit
from submax.bandit.jobs import JobRunner
from submax.bandit.refit import FitRequest, Refitter, fit_in_job
from submax.bandit.store import Store, open_store, result_of
from submax.bandit.tables import DecisionRow, RewardRow
from submax.bandit.training_rows import TrainingRows
from submax.core.arrays import Floats
from submax.schema.actions import Change
from submax.schema.model import Model

ROWS, NUMBERS, BATCH = 200_000, 20, 4000
DECLARED = {
    "actions": [f"arm{arm}" for arm in range(10)],
    "context": {f"x{place}": float for place in range(NUMBERS)},
    "reward_wait": 0,
}
DECISIONS = 5000
"""Decisions whose latency is measured, with and without a fit."""


def fill(store: Store, rows: int) -> None:
    """Write decisions with 20 numbers of context, and a reward for each."""
    declared = find_bandit(store, "b")
    assert declared is not None
    rng, bandit = np.random.default_rng(0), declared.n
    probabilities = str([0.1] * 10).replace(" ", "")
    for first in range(0, rows, BATCH):
        contexts = rng.normal(size=(BATCH, NUMBERS)).round(4).tolist()
        decisions = [
            DecisionRow(
                f"{first + place:032x}",
                1,
                f"arm{place % 10}",
                0.1,
                context=str(context).replace(" ", ""),
                probabilities=probabilities,
            )
            for place, context in enumerate(contexts)
        ]
        result_of(store.write_decisions(bandit, decisions))
        values = (rng.random(BATCH) < 0.3).astype(float).tolist()
        rewards = [
            RewardRow(one.id, "reward", value) for one, value in zip(decisions, values, strict=True)
        ]
        result_of(store.write_rewards(bandit, rewards, float("inf")))


def read_rate(address: str, until: float) -> tuple[float, float]:
    """Decisions read per second of processor time, and the peak memory of this process in MB."""
    with open_store(address, read_only=True) as store:
        here = find_bandit(store, "b")
        assert here is not None
        rows = TrainingRows(store, here.n, here.settings, here.menu)
        begin, count = time.process_time(), 0
        for part in rows.learned(0.0, until):
            count += len(part.reward)
        return count / (time.process_time() - begin), peak_memory()


def peak_memory() -> float:
    """The most memory that this process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def decide_times(version: ActiveVersion, until: "Future[Any] | None" = None) -> Floats:
    """Milliseconds of single decisions, drawn and not written."""
    rng, times = np.random.default_rng(1), []
    contexts = rng.normal(size=(64, NUMBERS)).tolist()
    for number in range(DECISIONS):
        begin = time.perf_counter()
        version.draw(contexts[number % 64], version.active, False, rng)
        times.append(1000 * (time.perf_counter() - begin))
        if until is not None and until.done():
            break
    return np.array(times)


def measure(rows: int = ROWS) -> list[Claim]:
    """Fill a store, read it, fit it, and decide meanwhile."""
    jobs = JobRunner()
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "b.db") as store:
        here = declare(store, "b", DECLARED)
        fill(store, rows)
        # The first read is that of another process, which has nothing else in memory.
        read = importlib.import_module("live.durable_learning").read_rate
        rate, memory = jobs.run(read, store.address, store.tick(here.n))
        policy = here.settings.build_policy(None)
        refitter = Refitter(store, here, jobs)
        begin = time.monotonic()
        result = refitter.refit(here)
        seconds = time.monotonic() - begin
        ((data, recorded),) = store.select("select model, hash from version where number = 1")
        model = Model.from_bytes(bytes(data), recorded, policy)
        version = ActiveVersion(here.settings, here.menu, policy, model, 1, Counter())
        decide_times(version)
        alone = np.quantile(decide_times(version), 0.99)
        # For other choices the next version is fitted to all rows.
        change_choice(store, "b", Change("retire", "arm9"))
        until, changed = store.tick(here.n), find_bandit(store, "b")
        assert changed is not None
        request = FitRequest(here.n, changed.settings, changed.menu, until)
        fit = jobs.submit(None, fit_in_job, store.address, request)
        during = decide_times(version, fit)
        fit.result()
        ratio = float(np.quantile(during, 0.99) / alone)
        fit_memory = jobs.run(importlib.import_module("live.durable_learning").peak_memory)
        print(
            f"{rows} decisions: fitted in {seconds:.1f} s ({result.reason}); decide p99 "
            f"{alone:.2f} ms alone, {ratio * alone:.2f} ms in {len(during)} decisions during a fit"
        )
    jobs.close()
    return [
        Claim("first read, decisions a second", f"{rate:,.0f}", "200,000", rate >= 200_000),
        Claim("memory of the process that reads", f"{memory:.0f} MB", "300 MB", memory <= 300),
        Claim(
            "memory of the process that fits", f"{fit_memory:.0f} MB", "300 MB", fit_memory <= 300
        ),
        Claim("decide p99 during a fit, of that without", f"{ratio:.2f}", "1.5", ratio <= 1.5),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="decisions in the store")
    print_claims(measure(parser.parse_args().rows))
    print(when_and_where())


if __name__ == "__main__":
    main()
