"""Decisions and rewards written straight into a store's file, as a bandit would have written them.

Asking a bandit for ten million decisions takes a quarter of an hour. Here processes make the rows
of batches of decisions, and one process writes them.
"""

import os
import sqlite3
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from submax.live.log.records import (
    DECISION,
    REWARD,
    DecisionMade,
    RewardGiven,
    decision_key,
    reward_key,
)
from submax.live.store.event import Event
from submax.live.store.integrity.sealed_event import SealedEvent
from submax.live.store.locks.writer_lock import WriterLock
from submax.live.store.sqlite_format.connection import connected
from submax.live.store.sqlite_format.event_row import INSERT, event_of, stored_row

Row = tuple[object, ...]
DECIDED_IN_A_MILLISECOND = 100
"""Ids begin with a time; as in a real log they grow, and few have the same millisecond."""
WAITING_BATCHES = 4
"""Batches for each process that are made before they are needed; more would fill the memory."""
TRANSACTION_BATCHES = 50
MANY_BATCHES = 50
"""From this many batches on it is worth while to start processes, each of which takes a second."""


class Batch(NamedTuple):
    """Decisions that are made at one time, and rewards of 1 for every ``rewarded``-th of them.

    ``made`` is a decision of the same bandit: the action and the context are drawn anew, everything
    else stays. ``previous`` is the position of the event of the stream before the first one.
    """

    stream: str
    number: int
    position: int
    previous: int
    at: float
    milliseconds: int
    decisions: int
    rewarded: int
    seed: tuple[int, int]
    made: bytes

    @property
    def events(self) -> int:
        """The number of decisions and rewards."""
        return self.decisions + len(range(0, self.decisions, self.rewarded))

    def after(self, decisions: int, seconds: float) -> "Batch":
        """The next batch, of so many decisions, some seconds later."""
        first = self.position + self.events
        passed = self.decisions // DECIDED_IN_A_MILLISECOND
        return self._replace(
            position=first,
            previous=first - 1,
            at=self.at + seconds,
            milliseconds=self.milliseconds + passed,
            decisions=decisions,
            seed=(self.seed[0], self.seed[1] + 1),
        )

    def rows(self) -> list[Row]:
        """The rows of the batch's decisions, and then of its rewards."""
        ids, decided = self._identifiers(), self._bodies()
        events = [
            Event(position, self.at, DECISION, decision_key(one), None, 0, 0.0, body)
            for position, (one, body) in enumerate(zip(ids, decided, strict=True), self.position)
        ]
        body = msgspec.msgpack.encode(RewardGiven(1.0))
        for number in range(0, self.decisions, self.rewarded):
            about, position = events[number], self.position + len(events)
            key = reward_key(ids[number], "reward")
            events.append(
                Event(position, self.at, REWARD, key, about.key, about.position, self.at, body)
            )
        before = [self.previous, *range(self.position, self.position + len(events) - 1)]
        return [
            stored_row(self.number, SealedEvent.of(self.stream, event, previous))
            for event, previous in zip(events, before, strict=True)
        ]

    def _identifiers(self) -> list[str]:
        """UUIDs of version 7, like those of ``new_identifier``."""
        found = []
        for number in range(self.decisions):
            at = f"{self.milliseconds + number // DECIDED_IN_A_MILLISECOND:012x}"
            chance = os.urandom(10).hex()
            found.append(f"{at[:8]}-{at[8:]}-7{chance[:3]}-8{chance[3:6]}-{chance[6:18]}")
        return found

    def _bodies(self) -> list[bytes]:
        rng, made = np.random.default_rng(self.seed), decoded(self.made)
        actions = rng.integers(len(made.eligible[0]), size=self.decisions).tolist()
        contexts = numbers(rng, self.decisions, len(made.context))
        encoder = msgspec.msgpack.Encoder()
        return [
            encoder.encode(msgspec.structs.replace(made, action=[action], context=context))
            for action, context in zip(actions, contexts, strict=True)
        ]


def decoded(body: bytes) -> DecisionMade:
    """The decision in a body."""
    return msgspec.msgpack.decode(body, type=DecisionMade)


def numbers(rng: np.random.Generator, count: int, width: int) -> list[list[float]]:
    """Contexts of some numbers with three decimals, as measured ones often have."""
    rows: list[list[float]] = rng.normal(size=(count, width)).round(3).tolist()
    return rows


def append(
    path: Path, stream: str, sizes: Sequence[int], at: float, seconds: float, rewarded: int
) -> int:
    """Write batches of so many decisions after a stream's last decision; return how many events.

    The first batch is made at the time ``at``, each other one some ``seconds`` after the one before
    it. If the call is interrupted, the file must be thrown away.
    """
    with WriterLock(path), closing(connected(path, "rwc")) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        batches = list(_batches(connection, stream, sizes, at, seconds, rewarded))
        _write(connection, _made(batches))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return sum(batch.events for batch in batches)


def _batches(
    connection: sqlite3.Connection,
    stream: str,
    sizes: Sequence[int],
    at: float,
    seconds: float,
    rewarded: int,
) -> Iterator[Batch]:
    number, previous = connection.execute(
        "SELECT number, last_position FROM streams WHERE name = ?", (stream,)
    ).fetchone()
    (last,) = connection.execute("SELECT max(last_position) FROM streams").fetchone()
    records = connection.execute(
        "SELECT record FROM events WHERE stream = ? ORDER BY place DESC", (number,)
    )
    events = (event_of(record) for (record,) in records)
    made = next(event.body for event in events if event.kind == DECISION)
    now, seed = time.time_ns() // 1_000_000, (last, 0)
    batch = Batch(stream, number, last + 1, previous, at, now, sizes[0], rewarded, seed, made)
    yield batch
    for size in sizes[1:]:
        batch = batch.after(size, seconds)
        yield batch


def _made(batches: Sequence[Batch]) -> Iterator[list[Row]]:
    """The rows of each batch in order; those of many are made by a process on every core."""
    if len(batches) < MANY_BATCHES:
        yield from (batch.rows() for batch in batches)
        return
    processes = len(os.sched_getaffinity(0))
    # A forked process could wait for ever for a lock that a thread of this one held.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting: deque[Future[list[Row]]] = deque()
        for batch in batches:
            waiting.append(pool.submit(batch.rows))
            if len(waiting) > WAITING_BATCHES * processes:
                yield waiting.popleft().result()
        for future in waiting:
            yield future.result()


def _write(connection: sqlite3.Connection, batches: Iterator[list[Row]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for number, rows in enumerate(batches, 1):
        connection.executemany(INSERT, rows)
        if number % TRANSACTION_BATCHES == 0:
            connection.execute("COMMIT")
            connection.execute("BEGIN IMMEDIATE")
    connection.execute("COMMIT")
