"""A bandit with a log of every kind of event, in stores with small segments."""

import warnings
from itertools import chain

import numpy as np
import pytest

from submax.bandit.rewards import LateRewardWarning
from submax.live.archive.compacting import compaction, compactor
from submax.live.archive.compacting.compaction import Compaction
from submax.live.archive.compacting.compactor import removed_rows
from submax.live.bandits.open import open_bandit
from submax.live.log import export
from submax.live.log.bandits import log_stream
from submax.live.log.export import Export
from submax.live.log.rows import training_rows
from submax.live.operating.doctor import examined
from submax.live.store.memory_store import MemoryStore
from submax.testing import ManualClock


class Archived:
    """Makes bandits, uses them, and archives their events, in the time of a clock."""

    WAIT, QUARANTINE = 60.0, 30.0

    def __init__(self, clock) -> None:
        self.clock = clock

    def opened(self, place, **options):
        """A bandit whose versions are fitted only when a test says so."""
        options = {
            "name": "page",
            "actions": ["A", "B", "C"],
            "context": {"age": "number", "country": ["de", "fr"]},
            "policy": "linear-thompson",
            "quarantine": self.QUARANTINE,
            "reward_wait": self.WAIT,
            "archive_after": None,
            **options,
        }
        rng = np.random.default_rng(1)
        return open_bandit(place, background=False, clock=self.clock, rng=rng, **options)

    def reopened(self, bandit, place):
        """The same bandit after a restart of its process."""
        bandit.close()
        rng = np.random.default_rng(2)
        return open_bandit(place, name="page", background=False, clock=self.clock, rng=rng)

    def used(self, bandit, seed, steps=60):
        """Let a bandit decide and be rewarded in every way, while time passes."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LateRewardWarning)
            self._use(bandit, np.random.default_rng(seed), steps)
        return bandit

    def _use(self, bandit, rng, steps):
        known = []
        for number in range(steps):
            self.clock.now += float(rng.exponential(5.0))
            context = {"age": float(rng.normal()), "country": str(rng.choice(["de", "fr"]))}
            identifier = f"visit-{number}" if number % 3 else None
            activate = bool(rng.random() < 0.8)
            known.append(bandit.decide(context, id=identifier, activate=activate).id)
            rewarded = known[int(rng.integers(max(0, len(known) - 30), len(known)))]
            bandit.reward(rewarded, float(rng.integers(2)), key=f"k{number}")
            if rng.random() < 0.3:
                bandit.activate(known[int(rng.integers(len(known)))])
            if rng.random() < 0.1:
                bandit.reward(f"unknown-{number}", 1.0)
            if number % 20 == 19:
                bandit.refit()

    def compacted(self, bandit, age=2 * WAIT):
        """Archive all that is older than ``age`` seconds, and return how many events that were."""
        return sum(self.compacting(bandit, age))

    def compacting(self, bandit, age=2 * WAIT):
        """Archive by small steps; after each of them, yield how many events were archived."""
        before = self.clock.now - age
        ledger, count = bandit.ledger(), 0
        moving = Compaction(bandit.store, bandit.name, bandit.settings, ledger, before)
        for _ in chain(moving.steps(), removed_rows(ledger, moving, trains_models=False)):
            archived = sum(segment.events for segment in moving.written)
            yield archived - count
            count = archived

    def in_store(self, store):
        """How many events of the log have not been archived."""
        return len(store.read(log_stream("page")))

    def exported(self, store, folder):
        """The bytes of both files of an export."""
        written = Export(store, "page")
        written.write(folder / "decisions.parquet")
        written.write_rewards(folder / "rewards.parquet")
        return [(folder / f"{one}.parquet").read_bytes() for one in ("decisions", "rewards")]

    def damage(self, store):
        """What the doctor says is damaged."""
        return [one.sentence for one in examined(store, ["page"]) if one.kind == "damage"]


@pytest.fixture
def archived(clock):
    return Archived(clock)


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch):
    make_segments_small(monkeypatch)


def make_segments_small(patch):
    patch.setattr(compaction, "SEGMENT_EVENTS", 20)
    patch.setattr(compaction, "PAGE_EVENTS", 8)
    patch.setattr(compaction, "DELETED_EVENTS", 7)
    patch.setattr(training_rows, "SEGMENT", 8)
    patch.setattr(compactor, "SEGMENT", 8)
    patch.setattr(export, "ROWS_PER_GROUP", 13)


@pytest.fixture(scope="module")
def archived_file(tmp_path_factory, seed):
    """A store in a file with an archive; tests use copies of it."""
    path, archived = tmp_path_factory.mktemp("archived") / "page.db", Archived(ManualClock())
    with pytest.MonkeyPatch.context() as patch:
        make_segments_small(patch)
        with archived.used(archived.opened(path), seed) as bandit:
            bandit.snapshot()
            assert archived.compacted(bandit) > 20
    return path


@pytest.fixture(
    params=[("memory", 0.0), ("SQLite", Archived.WAIT)],
    ids=["memory, matures at the reward", "SQLite, waits"],
)
def kind(request):
    """Each store and each wait once: what is archived depends on them apart from each other."""
    return request.param


@pytest.fixture
def place(kind, tmp_path, clock):
    """A store in memory, or the path of a new store."""
    return MemoryStore(clock) if kind[0] == "memory" else str(tmp_path / "page.db")


@pytest.fixture
def options(kind):
    return {"reward_wait": kind[1]}
