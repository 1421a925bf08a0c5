"""What a bandit with a store costs: a round, bytes on disk, reading, fitting, and exporting."""

import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from measuring import Claim, at_least, at_most, files_entered, peak_memory, seconds
from submax.bandit.active_version import ActiveVersion
from submax.bandit.declaring import change_choice, declare, find_bandit, read_bandit
from submax.bandit.durable import open_bandit
from submax.bandit.export import export
from submax.bandit.jobs import JobRunner
from submax.bandit.names import new_identifier
from submax.bandit.refit import Refitter, fit_in_job
from submax.bandit.store import Store, open_store, result_of
from submax.bandit.tables import DecisionRow, RewardRow
from submax.bandit.training_rows import TrainingRows
from submax.core.arrays import Floats
from submax.schema.actions import Change
from submax.schema.model import Model

ROWS, NUMBERS, ARMS, AT_ONCE = 1_000_000, 20, 10, 4000
"""Stored decisions, numbers in the context of each, and rows that one call writes."""
CALLERS, ROUNDS = 16, 250
"""Threads that decide and reward, and rounds of each."""
DECISIONS = 5000
"""Decisions whose latency is measured, with and without a fit."""
DECLARED: dict[str, Any] = {
    "actions": [f"arm{arm}" for arm in range(ARMS)],
    "context": {f"x{place}": float for place in range(NUMBERS)},
    "reward_wait": 0,
}
GROUPED = "select action, count(*) from decision where bandit = :bandit group by action"


def measure() -> list[Claim]:
    """Return the claims about bandits with a store."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        claims = rounds(folder / "rounds.db")
        path = folder / "b.db"
        with open_store(path) as store:
            declare(store, "b", DECLARED)
            fill(store)
        size = path.stat().st_size / ROWS
        what = f"a decision with {NUMBERS} numbers and its reward"
        claims.append(at_most(what, size, 400, "bytes"))
        with open_store(path) as store:
            return [*claims, *reading(store, folder), *fitting(store)]


def rounds(path: Path) -> list[Claim]:
    """The processor time of a round, which includes everything that the process does."""
    given: dict[str, Any] = {"policy": "thompson-1-1", "actions": list("ABC"), "background": False}
    with open_bandit(path, **given) as one:

        def caller(seed: int) -> None:
            uniforms = np.random.default_rng(seed).random(ROUNDS).tolist()
            for uniform in uniforms:
                one.reward(one.decide().id, float(uniform < 0.3))

        with ThreadPoolExecutor(CALLERS) as pool:
            begin = time.process_time()
            list(pool.map(caller, range(CALLERS)))
            spent = 1e6 * (time.process_time() - begin) / (CALLERS * ROUNDS)
    with files_entered() as files, open_bandit(path, **given) as one:
        one.decide()
        files.clear()
        one.decide()
        entered = len(files)
    return [
        at_most(f"a durable round on SQLite with {CALLERS} callers", spent, 500, "µs"),
        at_most("files entered by a durable decision", entered, 18),
    ]


def fill(store: Store) -> None:
    """Write decisions with numbers of context, and a reward for each."""
    rng, bandit = np.random.default_rng(0), read_bandit(store, "b").n
    same = str([1 / ARMS] * ARMS).replace(" ", "")
    for first in range(0, ROWS, AT_ONCE):
        count = min(AT_ONCE, ROWS - first)
        contexts = rng.normal(size=(count, NUMBERS)).round(3).tolist()
        # Ids of a millisecond have no order, and decisions rarely share one.
        ids = sorted(new_identifier() for _ in range(count))
        texts = [str(context).replace(" ", "") for context in contexts]
        decisions = [
            DecisionRow(id_, 1, f"arm{place % ARMS}", 1 / ARMS, context=text, probabilities=same)
            for place, (id_, text) in enumerate(zip(ids, texts, strict=True))
        ]
        result_of(store.write_decisions(bandit, decisions))
        values = (rng.random(count) < 0.3).astype(float).tolist()
        rewards = [RewardRow(id_, "", value) for id_, value in zip(ids, values, strict=True)]
        result_of(store.write_rewards(bandit, rewards, float("inf")))


def reading(store: Store, folder: Path) -> list[Claim]:
    """Read all decisions to learn from them, export them, and count them."""
    here = read_bandit(store, "b")
    # In processes that have nothing else in memory.
    rates = []
    for work, argument in ((read_rate, store.tick(here.n)), (export_rate, folder)):
        jobs = JobRunner()
        rates.append(jobs.run(work, store.address, argument))
        jobs.close()
    (rate, memory), (exported, export_memory) = rates
    spent = seconds(lambda: store.select(GROUPED, bandit=here.n))
    return [
        at_least("first read, decisions a second", rate, 200_000),
        at_most("memory of the process that reads", memory, 300, "MB"),
        at_least("export, rows a second", exported, 200_000),
        at_most("memory of the process that exports", export_memory, 300, "MB"),
        at_most("1,000 decisions counted by arm", 1e9 * spent / ROWS, 1000, "µs"),
    ]


def read_rate(address: str, until: float) -> tuple[float, float]:
    """Decisions read per second of processor time, and the peak memory of this process in MB."""
    with open_store(address, read_only=True) as store:
        here = read_bandit(store, "b")
        rows = TrainingRows(store, here.n, here.settings, here.menu)
        begin = time.process_time()
        count = sum(len(part.reward) for part in rows.learned(0.0, until))
        return count / (time.process_time() - begin), peak_memory()


def export_rate(address: str, folder: Path) -> tuple[float, float]:
    """Decisions exported per second of processor time, and the peak memory of this process."""
    with open_store(address, read_only=True) as store:
        begin = time.process_time()
        count = export(store, "b", folder / "b.parquet")
        return count / (time.process_time() - begin), peak_memory()


def fitting(store: Store) -> list[Claim]:
    """Fit a version, and decide while the next one is fitted to all rows."""
    jobs, here = JobRunner(), read_bandit(store, "b")
    policy = here.settings.build_policy(None)
    Refitter(store, here, jobs).refit(here)
    ((data, recorded),) = store.select("select model, hash from version where number = 1")
    model = Model.from_bytes(bytes(data), recorded, policy)
    version = ActiveVersion(here.settings, here.menu, policy, model, 1, Counter())
    decide_times(version)
    alone = np.quantile(decide_times(version), 0.99)
    # For other choices the next version is fitted to all rows.
    change_choice(store, "b", Change("retire", f"arm{ARMS - 1}"))
    changed = find_bandit(store, "b")
    assert changed is not None
    fit = jobs.submit(fit_in_job, store.address, changed, store.tick(here.n))
    during = decide_times(version, lambda: not fit.done())
    ratio = float(np.quantile(during, 0.99) / alone)
    fit.result()
    memory = jobs.run(peak_memory)
    jobs.close()
    return [
        at_most("memory of the process that fits", memory, 300, "MB"),
        at_most("p99 of decisions during a fit, of that without", ratio, 1.5),
    ]


def decide_times(version: ActiveVersion, go_on: Callable[[], bool] | None = None) -> Floats:
    """Milliseconds of single decisions, drawn and not written."""
    rng, times = np.random.default_rng(1), []
    contexts = rng.normal(size=(64, NUMBERS)).tolist()
    for number in range(DECISIONS):
        begin = time.perf_counter()
        version.draw([contexts[number % 64]], version.active, False, rng)
        times.append(1000 * (time.perf_counter() - begin))
        if go_on is not None and not go_on():
            break
    return np.array(times)
