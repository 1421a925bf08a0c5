"""Stores whose bandits have as much on their pages as they ever keep."""

import hashlib
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

import submax
from submax.core.arrays import Booleans, Floats, Integers
from submax.live.log.action_tally import ActionTally, ChoiceTally
from submax.live.log.snapshot import Snapshot, snapshot_name
from submax.live.monitoring.rollups.counted_columns import CameRewards
from submax.live.monitoring.rollups.rollups import Rollups
from submax.live.monitoring.rollups.tier import RESOLUTIONS
from submax.live.store.sqlite_store import SQLiteStore

YEAR = 365 * 86_400
LATEST_INTERVALS = 40
"""Intervals of each length, the newest, in which every arm decides; older ones have one arm each,
because no more cells are kept."""


class Decided(NamedTuple):
    """Decisions by columns, as rollups count them."""

    position: Integers
    action: Floats
    propensity: Floats
    version: Integers
    holdout: Booleans
    context: Floats


def fill(path: Path, bandits: int, arms: int) -> None:
    """Write a store with so many bandits, each with a year of minutes of so many arms."""
    store = SQLiteStore(path)
    rollups = full_rollups(arms, time.time()).to_record()
    one = ChoiceTally(5000, 5000, 500.0, 500.0, (5000.0, 5000.0, 500.0, 500.0, 500.0))
    tally = ActionTally([[one] * arms], [])
    names = [f"arm-{arm}" for arm in range(arms)]
    for number in range(bandits):
        name = f"b{number:02}"
        bandit = submax.open(
            store, name=name, actions=names, policy="thompson-1-1", reward_wait=0, background=False
        )
        made = bandit.decide_many([{}] * 200)
        bandit.reward_many([{"id": one.id, "value": 1.0} for one in made])
        bandit.refit()
        bandit.stop()
        blob = store.get_blob(snapshot_name(name))
        assert blob is not None
        snapshot = msgspec.msgpack.decode(blob[32:], type=Snapshot)
        full = msgspec.structs.replace(snapshot, rollups=rollups, tally=tally)
        data = msgspec.msgpack.encode(full)
        store.put_blob(snapshot_name(name), hashlib.sha256(data).digest() + data)
    store.close()


def full_rollups(arms: int, now: float) -> Rollups:
    """Rollups of a year in which all arms decided in the newest intervals of each length."""
    rollups, rng = Rollups(1), np.random.default_rng(1)
    minutes = np.arange(now - YEAR, now, 60.0)
    last = _add(rollups, minutes, rng.integers(arms, size=len(minutes)), 0)
    for resolution in RESOLUTIONS:
        begins = now - resolution.seconds * np.arange(LATEST_INTERVALS)[::-1]
        every = np.tile(np.arange(arms), LATEST_INTERVALS)
        last = _add(rollups, np.repeat(begins, arms), every, last)
    return rollups


def _add(rollups: Rollups, at: Floats, arm: Integers, last: int) -> int:
    """Add decisions after a position, of which some are rewarded; return the last position."""
    count = len(at)
    position = np.arange(last + 1, last + 1 + count)
    decided = Decided(
        position,
        arm[:, None].astype(float),
        np.full(count, 0.1),
        (np.arange(count) * 1000 // count).astype(np.int64),
        np.arange(count) % 10 == 0,
        np.zeros((count, 0), np.float32),
    )
    rollups.decided(at, decided)
    rewarded = np.arange(count) % 8 == 0
    rollups.matured(at, decided, rewarded.astype(float), rewarded, np.full(count, 10.0))
    came = CameRewards(position[rewarded], position[rewarded] + 1, at[rewarded] + 5.0)
    rollups.read(came, last + count)
    return last + count
