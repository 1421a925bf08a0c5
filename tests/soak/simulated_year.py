"""A year of a bandit in accelerated time, with everything that goes wrong in a year."""

import heapq
import resource
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
from worker import WorkerProcess

from submax.bandit.durable import open_bandit
from submax.testing import ManualClock

NAME = "page"
DAY = 86_400.0
POLICY = "linear-thompson"
"""It looks at the context, draws at random, and decides and learns fast."""
WAIT = DAY / 4
"""The ``reward_wait``: rewards count if they come within six hours."""
BATCH = 200
"""The most decisions or rewards in one command."""
AT_ONCE = 4
"""Commands that may be open at the same time."""
RETRIED = 0.7
"""The share of failed commands that are sent again; a caller may give up instead."""
FATES = {
    "none": 0.30,
    "in time": 0.40,
    "late": 0.05,
    "first": 0.05,
    "repeated": 0.08,
    "two": 0.06,
    "conflict": 0.06,
}
"""What happens to the reward of a decision, with its probability: it never comes, comes within the
wait, after it, before its decision, twice, with a second one under another key, and again with
another value, which must be refused."""
FAULTS = (
    (0.15, "change_choices"),
    (0.20, "kill"),
    (0.30, "lock"),
    (0.40, "jump_ahead"),
    (0.50, "fill_disk"),
    (0.55, "jump_back"),
    (0.60, "kill"),
)
"""What goes wrong in a phase, and after which share of its days."""
NEVER, SENT, ACKNOWLEDGED = 0, 1, 2
"""A decision or reward was never sent; it was sent, and may be stored; it was acknowledged."""
KEYS = ("reward", "second")
"""The keys of rewards: a decision has at most one reward under each."""
FIRST_ROOM = 1 << 14
ROW = np.dtype(
    [
        ("decided", "u1"), ("action", "i2"), ("propensity", "f8"),
        ("rewarded", "u1", len(KEYS)), ("value", "f8", len(KEYS)),
    ]
)  # fmt: skip


class Journal:
    """What a store has acknowledged: a row for each decision, with two places for rewards.

    ``decided`` and ``rewarded`` hold one of the three states above; ``action`` is the number of
    the action in ``actions``.
    """

    def __init__(self):
        self.actions, self.count = {}, 0
        self._keep(np.zeros(FIRST_ROOM, ROW))

    def _keep(self, rows):
        self._rows = rows
        self.decided, self.action, self.propensity, self.rewarded, self.value = (
            rows[name] for name in ROW.names
        )

    def new_decisions(self, count):
        """Return the first of some numbers that no decision has."""
        first, self.count = self.count, self.count + count
        if self.count > len(self.decided):
            self._keep(np.concatenate([self._rows, np.zeros_like(self._rows)]))
        return first

    def send(self, command):
        """A command is about to be sent."""
        if command["do"] == "decide":
            part = self.decided[_numbers(command)]
            part[part == NEVER] = SENT
        for number, key, value in command.get("rewards", ()):
            place = number, KEYS.index(key)
            if self.rewarded[place] == NEVER:
                self.rewarded[place], self.value[place] = SENT, value

    def acknowledge(self, command, answer):
        """A command was answered: what it wrote must be found from now on."""
        if command["do"] == "decide":
            self._acknowledge_decisions(_numbers(command), answer)
        for (number, key, value), status in zip(
            command.get("rewards", ()), answer.get("statuses", ()), strict=True
        ):
            place = number, KEYS.index(key)
            conflicts = self.value[place] != value
            assert (status == "conflict") == conflicts, (number, key, value, status)
            if not conflicts:
                self.rewarded[place] = ACKNOWLEDGED

    def _acknowledge_decisions(self, numbers, answer):
        actions = [self.actions.setdefault(one, len(self.actions)) for one in answer["actions"]]
        known = self.decided[numbers] == ACKNOWLEDGED
        # A decision that is repeated with the same id is the same decision.
        assert (self.action[numbers][known] == np.array(actions)[known]).all()
        assert (self.propensity[numbers][known] == np.array(answer["propensities"])[known]).all()
        self.action[numbers], self.propensity[numbers] = actions, answer["propensities"]
        self.decided[numbers] = ACKNOWLEDGED

    @property
    def events(self):
        """The number of decisions and rewards that were acknowledged."""
        return int((self.decided == ACKNOWLEDGED).sum() + (self.rewarded == ACKNOWLEDGED).sum())


def _numbers(command):
    return slice(command["first"], command["first"] + command["count"])


@dataclass
class SimulatedYear:
    """Drives a worker through phases; ``journal`` has what was acknowledged.

    ``lock_seconds`` is how long another program locks the store, and ``refit_days`` after how many
    days a version is fitted.
    """

    place: object
    seed: int
    lock_seconds: float
    refit_days: int
    journal: Journal = field(default_factory=Journal)
    now: float = 1.7e9
    days: int = 0
    faults: dict = field(default_factory=dict)
    errors: int = 0
    memory: list = field(default_factory=list)

    def __post_init__(self):
        self._rng = np.random.default_rng(self.seed)
        self._numbers = 0
        self._due = []
        open_bandit(
            self.place,
            name=NAME,
            actions=[f"arm-{number}" for number in range(5)],
            context={"x": float, "y": float},
            policy=POLICY,
            reward_wait=WAIT,
            default_reward=0.0,
            # A reward whose decision was never written stays, so that none may be missing.
            quarantine=1000 * DAY,
            background=False,
            clock=ManualClock(self.now),
        ).close()

    def run_phase(self, days, decisions):
        """Run some days; at the end the worker has closed the store."""
        self._worker = WorkerProcess(self.place, NAME)
        faults, samples = list(FAULTS), []
        for day in range(days):
            while faults and day >= faults[0][0] * days:
                name = faults.pop(0)[1]
                self.faults[name] = self.faults.get(name, 0) + 1
                getattr(self, name)()
            self._run_day(decisions * (day + 1) // days - decisions * day // days)
            if day in (int(0.7 * days), days - 1):
                samples.append(self._asked("memory"))
        # The next version has something to learn from.
        self._decide(20)
        self._finish()
        self._take(self._worker.close())
        self.memory.append(samples)

    def _run_day(self, decisions):
        done = 0
        while done < decisions:
            count = min(BATCH, decisions - done)
            self._decide(count)
            done += count
            self.now += DAY * count / decisions
            self._send_due()
        self.days += 1
        if self.days % self.refit_days == 0:
            self._send({"do": "refit"})

    def _decide(self, count):
        first = self.journal.new_decisions(count)
        fates = self._rng.choice(list(FATES), count, p=list(FATES.values()))
        values = (self._rng.random(count) < 0.3).astype(float).tolist()
        delays = self._rng.uniform(0.0, 0.9 * WAIT, (count, 2))
        early = []
        for number, fate, value, (delay, second) in zip(
            range(first, first + count), fates, values, delays.tolist(), strict=True
        ):
            if fate == "first":
                early.append((number, KEYS[0], value))
            elif fate != "none":
                delay += 2 * WAIT if fate == "late" else 0.0
                self._schedule(delay, number, KEYS[0], value)
            if fate in ("repeated", "conflict"):
                again = value if fate == "repeated" else 1.0 - value
                self._schedule(delay + second, number, KEYS[0], again)
            elif fate == "two":
                self._schedule(second, number, KEYS[1], 1.0)
        if early:
            self._send({"do": "reward", "rewards": early})
        self._send({"do": "decide", "first": first, "count": count})

    def _schedule(self, delay, number, key, value):
        heapq.heappush(self._due, (self.now + delay, number, key, value))

    def _send_due(self):
        """Send the rewards whose time has come, in any order."""
        due, values = [], {}
        while self._due and self._due[0][0] <= self.now:
            _, number, key, value = heapq.heappop(self._due)
            # Of two values that are on their way, nobody knows which one is stored.
            if self._is_settled(number, key, value, values):
                due.append((number, key, value))
        self._rng.shuffle(due)
        rewards = [(int(number), str(key), float(value)) for number, key, value in due]
        for begin in range(0, len(rewards), BATCH):
            self._send({"do": "reward", "rewards": rewards[begin : begin + BATCH]})

    def _is_settled(self, number, key, value, values):
        """Whether it is known what becomes of a reward; ``values`` are those sent with it."""
        place = number, KEYS.index(key)
        if self.journal.rewarded[place] == ACKNOWLEDGED:
            return True
        if self.journal.rewarded[place] == SENT:
            return bool(self.journal.value[place] == value)
        return values.setdefault(place, value) == value

    def _send(self, command):
        """Send a command, after some of those before it were answered."""
        while len(self._worker.open) >= AT_ONCE:
            self._take([self._worker.answer()])
        self._numbers += 1
        command = {**command, "number": self._numbers, "at": self.now}
        self.journal.send(command)
        self._worker.send(command)

    def _asked(self, what, **words):
        """Send a command after all others were answered, and return its answer."""
        self._finish()
        self._send({"do": what, **words})
        _, answer = self._worker.answer()
        assert "error" not in answer, answer
        return answer

    def _finish(self):
        while self._worker.open:
            self._take([self._worker.answer()])

    def _take(self, answers):
        """Write down what was acknowledged, and send again what failed."""
        failed = []
        for command, answer in answers:
            if "error" in answer:
                assert "StoreError" in answer["error"], answer
                self.errors += 1
                failed.append(command)
            else:
                self.journal.acknowledge(command, answer)
        self._retry(failed)

    def _retry(self, commands):
        for command in commands:
            if self._rng.random() < RETRIED:
                self._send({key: command[key] for key in command if key not in ("number", "at")})

    def kill(self):
        """Kill the worker while it works, and start another one."""
        for _ in range(AT_ONCE):
            self._decide(20)
        time.sleep(self._rng.uniform(0.0, 0.02))
        worker = self._worker
        answers = worker.kill()
        self._worker = WorkerProcess(self.place, NAME)
        self._take(answers)
        self._retry(list(worker.open.values()))

    def lock(self):
        """Another program holds SQLite's lock while the worker wants to write."""
        self._finish()
        with closing(sqlite3.connect(self.place, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for _ in range(2):
                self._decide(20)
            time.sleep(self.lock_seconds)
            connection.execute("ROLLBACK")
        self._finish()

    def fill_disk(self):
        """The files of the store cannot grow, as on a full disk, and then they can again."""
        self._finish()
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(self._worker.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        errors = self.errors
        self._decide(20)
        while self._worker.open and self.errors == errors:
            command, answer = self._worker.answer()
            assert "error" in answer, "a full disk was not noticed"
            resource.prlimit(self._worker.pid, resource.RLIMIT_FSIZE, unlimited)
            self._take([(command, answer)])
        self._finish()

    def jump_ahead(self):
        """The clock jumps three days ahead."""
        self.now += 3 * DAY

    def jump_back(self):
        """The clock jumps two days back."""
        self.now -= 2 * DAY

    def change_choices(self):
        """A choice is added, one is paused or resumed, and one is retired."""
        number = self.faults["change_choices"]
        self._asked("change", verb="add", choice=f"new-{number}")
        self._asked("change", verb="pause" if number % 2 else "resume", choice="arm-1")
        if number > 1:
            self._asked("change", verb="retire", choice=f"new-{number - 1}")
