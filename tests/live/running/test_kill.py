"""Processes that are killed while they decide lose nothing that they acknowledged."""

import os
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from forked_command import fork_context
from waiting import wait_until

from submax.live.bandits.open import open_bandit
from submax.live.log.bandits import log_stream
from submax.live.log.records import DECISION, REWARD, DecisionMade, RewardGiven, body_of

SOAK = "SUBMAX_SOAK" in os.environ
KILLS = {"sqlite": 200 if SOAK else 5, "postgres": 50 if SOAK else 2}
THREADS = 4
NAME = "page"

# Each line is written after the answer, in one piece, and so is whole or cut at the end.
CHILD = """
import os, threading
from submax.live.bandits.open import open_bandit

bandit = open_bandit(place, name=name)

def tell(*words):
    os.write(output, (" ".join(map(str, words)) + "\\n").encode())

def work(thread):
    number = 0
    while True:
        number += 1
        decision = bandit.decide(id=f"{run}-{thread}-{number}")
        tell("decision", decision.id, decision.action, decision.propensity, decision.version)
        value = float(number % 3 == 0)
        bandit.reward(decision.id, value)
        tell("reward", decision.id, value)

output = os.open(path, os.O_WRONLY)
for thread in range(threads):
    threading.Thread(target=work, args=(thread,)).start()
"""


@dataclass
class Told:
    """What processes acknowledged before they were killed."""

    decisions: dict = field(default_factory=dict)
    rewards: dict = field(default_factory=dict)

    def listen(self, text):
        for line in text.splitlines(keepends=True):
            if not line.endswith("\n"):
                continue
            kind, identifier, *rest = line.split()
            if kind == "decision":
                self.decisions[identifier] = (rest[0], float(rest[1]))
            else:
                self.rewards[identifier] = float(rest[0])


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.needs("postgresql"))])
def place(request, tmp_path):
    if request.param == "postgres":
        return request.param, request.getfixturevalue("postgres_address")
    return request.param, str(tmp_path / "page.db")


def some_decisions(text):
    """Whether more than ten decisions were told, on however slow a machine."""
    return text.count("decision") > 10


def by_a_version(text):
    """Whether a decision was made by a version that was fitted."""
    whole = [line.split() for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return any(words[0] == "decision" and words[4] != "0" for words in whole)


def run_and_kill(where, run, after, output, enough):
    """A process that works for so long after it told enough, and is killed without warning."""
    output.write_bytes(b"")
    given = {"place": where, "run": run, "name": NAME, "threads": THREADS, "path": str(output)}
    # It is forked from a process that has imported the library, which takes most of a start.
    child = fork_context().Process(target=exec, args=(CHILD, given))
    child.start()
    try:
        wait_until(lambda: enough(output.read_text()) or not child.is_alive())
        time.sleep(after)
        assert child.is_alive(), "the process has ended, and said why on its standard error"
    finally:
        child.kill()
        child.join()
    assert child.exitcode == -signal.SIGKILL
    return output.read_text()


def events_of(bandit):
    events, stream = [], log_stream(bandit.name)
    while page := bandit.store.read(stream, events[-1].position if events else 0):
        events += page
    return events


def check(bandit, told):
    """Everything that was told is there once, as it was told."""
    events = events_of(bandit)
    keys = Counter(event.key for event in events if event.key is not None)
    assert set(keys.values()) <= {1}
    decisions, rewards = {}, {}
    for event in events:
        if event.kind == DECISION:
            made = body_of(event, DecisionMade)
            decisions[event.key[2:]] = (bandit.menu.action(made.action), made.propensity)
        elif event.kind == REWARD:
            rewards[event.about[2:]] = body_of(event, RewardGiven).value
    assert {one: decisions.get(one) for one in told.decisions} == told.decisions
    assert {one: rewards.get(one) for one in told.rewards} == told.rewards
    # One reward comes from each decision, after it was told.
    assert rewards.keys() <= decisions.keys()


@pytest.mark.slow
def test_nothing_that_was_acknowledged_is_lost_when_processes_are_killed(place, tmp_path, seed):
    kind, where = place
    told, rng = Told(), np.random.default_rng(seed)
    open_bandit(
        where,
        name=NAME,
        actions=["A", "B", "C"],
        policy={"kind": "epsilon-greedy", "epsilon": 0.3},
        reward_wait=0.02,
        refit_rows=20,
        background=False,
    ).close()
    for run in range(KILLS[kind]):
        enough = by_a_version if run == KILLS[kind] - 1 else some_decisions
        text = run_and_kill(where, run, rng.uniform(0.02, 0.2), Path(tmp_path / "told"), enough)
        told.listen(text)
        with open_bandit(where, name=NAME, background=False) as bandit:
            bandit.decide(id=f"after-{run}")
            check(bandit, told)
            again = bandit.decide_many([{"id": one} for one in list(told.decisions)[-100:]])
            assert {one.id: (one.action, one.propensity) for one in again}.items() <= (
                told.decisions.items()
            )
            assert bandit.damaged == 0
    assert len(told.decisions) > 10 * KILLS[kind]
    with open_bandit(where, name=NAME, background=False) as bandit:
        assert bandit.version > 0
        # PostgreSQL may take a moment to see that the last leader is gone.
        wait_until(lambda: bandit.store.try_lead(NAME))
        decisions = sum(event.kind == DECISION for event in events_of(bandit))
        wait_until(lambda: bandit.ledger().counts["matured"] == decisions)
        ledger = bandit.ledger()
        assert ledger.counts["decisions"] == len(ledger.rows) == decisions
