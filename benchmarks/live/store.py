"""What the tables of a durable store cost: writing, reading, grouping, and bytes on disk."""

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from random import Random
from typing import Any

import msgspec

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import Claim, print_claims
from submax.bandit.names import new_identifier
from submax.bandit.sqlite import SQLiteDatabase
from submax.bandit.store import Store, open_store
from submax.bandit.tables import DecisionRow, RewardRow, Writes, decision_content

ARMS, WIDTH, GROUP, BANDIT = 3, 20, 16, 1
TIMED, STORED, AT_ONCE = 16_000, 300_000, 2_000
"""Rows that are written in groups of 16, decisions in the store that is read, and rows of one
call that fills it."""
READ = """select decision.n, decision.at, version, action, propensity, context, value
from decision left join reward on reward.decision = decision.n
where decision.bandit = :bandit order by decision.n"""
GROUPED = "select action, count(*) from decision where bandit = :bandit group by action"


def measure() -> list[Claim]:
    """Return the claims about the tables."""
    with tempfile.TemporaryDirectory() as folder:
        write = written(Path(folder) / "written.db")
        path = Path(folder) / "read.db"
        with open_store(path) as store:
            fill(store, Random(0))
        size = path.stat().st_size / STORED
        with open_store(path, read_only=True) as store:
            read, growth = streamed(store)
            grouped = best(lambda: store.select(GROUPED, bandit=BANDIT))
    return [
        _at_most("processor time of a decision, in groups of 16", write[0], 30, "µs"),
        _at_most("processor time of a reward, in groups of 16", write[1], 15, "µs"),
        _at_most("the same through futures, a decision and its reward", write[2], 150, "µs"),
        _at_most(f"a decision with {WIDTH} numbers and its reward", size, 400, "bytes"),
        _at_most(f"{STORED:,} decisions by arm", grouped * 1000, 300, "ms"),
        Claim("rows of decisions and rewards read", f"{read:,.0f}/s", "≥ 200,000/s", read >= 2e5),
        _at_most(f"memory of {STORED:,} rows that are streamed", growth, 50, "MB"),
    ]


def decision(rng: Random) -> DecisionRow:
    """A decision with numbers of three digits."""
    context = [round(rng.gauss(0, 1), 3) for _ in range(WIDTH)]
    return DecisionRow(
        new_identifier(),
        1,
        f"arm{rng.randrange(ARMS)}",
        0.333,
        context=msgspec.json.encode(context).decode(),
        probabilities="[0.333,0.333,0.334]",
    )


def written(path: Path) -> tuple[float, float, float]:
    """Microseconds of processor time of a decision, of a reward, and of both through futures."""
    rng = Random(0)
    groups = [[decision(rng) for _ in range(GROUP)] for _ in range(TIMED // GROUP)]
    rewards = [[RewardRow(row.id, "reward", 1.0) for row in rows] for rows in groups]
    database = SQLiteDatabase(path, read_only=False, clock=None)

    def decide() -> None:
        for rows in groups:
            for row in rows:
                row.checksum = decision_content(BANDIT, row)
            database.transact([Writes(BANDIT, decisions=rows)])

    def reward() -> None:
        for rows in rewards:
            database.transact([Writes(BANDIT, rewards=[(row, 60.0, 60.0) for row in rows])])

    seconds = [_processor_time(work) for work in (decide, reward)]
    database.close()
    with open_store(path) as store:

        def both() -> None:
            for rows in groups:
                wait([store.write_decisions(BANDIT + 1, [row]) for row in rows])
                given = [RewardRow(row.id, "reward", 1.0) for row in rows]
                wait([store.write_rewards(BANDIT + 1, [row], 60.0) for row in given])

        seconds.append(_processor_time(both))
    first, second, third = (1e6 * each / TIMED for each in seconds)
    return first, second, third


def wait(futures: list["Future[Any]"]) -> None:
    """Wait for all writes."""
    for future in futures:
        future.result()


def fill(store: Store, rng: Random) -> None:
    """Write decisions, each with its reward."""
    for _ in range(STORED // AT_ONCE):
        rows = [decision(rng) for _ in range(AT_ONCE)]
        store.write_decisions(BANDIT, rows).result()
        rewards = [RewardRow(row.id, "reward", float(rng.randrange(2))) for row in rows]
        store.write_rewards(BANDIT, rewards, 60.0).result()


def streamed(store: Store) -> tuple[float, float]:
    """Rows a second of processor time, and by how many megabytes the process grew."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = best(lambda: sum(len(rows) for rows in store.stream(READ, bandit=BANDIT)))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return STORED / seconds, (after - before) / 1024


def best(work: Callable[[], object], rounds: int = 3) -> float:
    """The least processor time of some calls."""
    return min(_processor_time(work) for _ in range(rounds))


def _processor_time(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def _at_most(what: str, measured: float, limit: float, unit: str) -> Claim:
    return Claim(what, f"{measured:.1f} {unit}", f"≤ {limit:g} {unit}", measured <= limit)


if __name__ == "__main__":
    print_claims(measure())
