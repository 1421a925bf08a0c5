"""The log of a bandit that is extended to more and more decisions."""

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import submax
from load.bulk_rows import append, numbers
from submax.live.declaring.declare import ContextIgnoredWarning
from submax.live.log.bandits import log_stream
from submax.testing import ManualClock

ARMS = [f"arm-{number}" for number in range(10)]
BATCH = 1000
"""Decisions that are written in one transaction."""
REWARDED = 10
"""One decision of this many gets a reward of 1; the others get the default reward 0."""
WAIT_SECONDS = 1000.0
"""The ``reward_wait`` of the bandit: that of a page whose visitors answer within a quarter hour."""
BATCH_SECONDS = 10.0
"""Simulated seconds between two batches: 100 decisions a second."""
KEPT_VERSIONS = 2
"""Models take megabytes, however short the log is, so that few are kept."""
NAME = "bandit"


class GrowingLog:
    """A store in a folder, with the number of its decisions and its time in a file beside it.

    Time is simulated, so that decisions mature without waiting. The context has ``width`` numbers.
    """

    def __init__(self, folder: Path, width: int) -> None:
        self.folder, self.path = folder, folder / "store" / f"{NAME}.db"
        self.names = [f"x{number}" for number in range(width)]
        self.clock, self.decisions = ManualClock(), 0
        self._progress = folder / "progress.json"
        if self._progress.exists():
            state = json.loads(self._progress.read_text(encoding="utf-8"))
            self.decisions, self.clock.now = state["decisions"], state["now"]
        else:
            # A log that was interrupted while it was written is begun again.
            shutil.rmtree(self.path.parent, ignore_errors=True)
            self.path.parent.mkdir(parents=True)
        self._rng = np.random.default_rng(self.decisions)

    def open(self, policy: str | dict[str, Any], *, background: bool = False) -> submax.Bandit:
        """Open the bandit with a policy; it is declared if it is new."""
        with warnings.catch_warnings():
            # While the log is written, decisions are uniform, which is fastest.
            warnings.simplefilter("ignore", ContextIgnoredWarning)
            return submax.open(
                self.path,
                name=NAME,
                actions=ARMS,
                context=dict.fromkeys(self.names, float),
                policy=policy,
                reward_wait=WAIT_SECONDS,
                default_reward=0.0,
                keep_versions=KEPT_VERSIONS,
                clock=self.clock,
                background=background,
            )

    def extend(self, decisions: int) -> int:
        """Write decisions until the log has this many; return the number of new events."""
        events = 0
        if decisions > self.decisions:
            self._progress.unlink(missing_ok=True)
            with self.open("random") as bandit:
                # Version 0 is uniform; the last version would decide more slowly.
                bandit.publish(0)
                events += self.add(bandit, min(BATCH, decisions - self.decisions))
                self.clock.now += BATCH_SECONDS
            events += self._append(decisions - self.decisions)
            self.mature()
        return events

    def _append(self, decisions: int) -> int:
        """Write decisions like the last one, past the bandit; return the number of events."""
        if decisions == 0:
            return 0
        whole, rest = divmod(decisions, BATCH)
        sizes = [BATCH] * whole + ([rest] if rest else [])
        stream, now = log_stream(NAME), self.clock.now
        events = append(self.path, stream, sizes, now, BATCH_SECONDS, REWARDED)
        self.decisions += decisions
        self.clock.now += BATCH_SECONDS * len(sizes)
        return events

    def add(self, bandit: submax.Bandit, decisions: int) -> int:
        """Write some decisions and rewards of a tenth of them; return the number of events."""
        made = bandit.decide_many([{"context": one} for one in self.contexts(decisions)])
        self.decisions += len(made)
        given = [{"id": one.id, "value": 1.0} for one in made[::REWARDED]]
        bandit.reward_many(given)
        return len(made) + len(given)

    def contexts(self, count: int) -> list[dict[str, float]]:
        """Some contexts."""
        rows = numbers(self._rng, count, len(self.names))
        return [dict(zip(self.names, row, strict=True)) for row in rows]

    def mature(self) -> None:
        """Let time pass until every decision is mature, and remember how far the log has come."""
        self.clock.now += 2 * WAIT_SECONDS
        state = {"decisions": self.decisions, "now": self.clock.now}
        self._progress.write_text(json.dumps(state), encoding="utf-8")

    @property
    def bytes(self) -> int:
        """The size of all files of the store."""
        return sum(file.stat().st_size for file in self.path.parent.rglob("*") if file.is_file())
