import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from submax.core.errors import ConflictError, InputError, NotFoundError
from submax.live.bandits.open import open_bandit
from submax.live.log.bandits import log_stream
from submax.live.log.records import (
    ACTIVATION,
    DECISION,
    REWARD,
    TICK,
    DecisionMade,
    RewardGiven,
    body_of,
)
from submax.testing import ManualClock

pytestmark = pytest.mark.filterwarnings("ignore::submax.bandit.rewards.LateRewardWarning")

WAIT, QUARANTINE = 100.0, 300.0
DAY = 86400.0
IDENTIFIERS = st.sampled_from([f"d{number}" for number in range(10)])
KEYS = st.sampled_from(["click", "order"])
VALUES = st.integers(0, 3).map(float)
NAMES = st.sampled_from("ABCDEF")
STEPS = st.one_of(
    st.integers(1, 60).map(float), st.sampled_from([WAIT, QUARANTINE, DAY, -50.0, -DAY])
)

ACTS = st.one_of(
    st.tuples(st.just("decide"), IDENTIFIERS, st.booleans()),
    st.tuples(st.just("reward"), IDENTIFIERS, KEYS, VALUES),
    st.tuples(st.just("activate"), IDENTIFIERS),
    st.tuples(st.just("wait"), STEPS),
)


@dataclass
class Fact:
    """Something that was acknowledged; a tick is the one thing that nobody asked for."""

    kind: str
    at: float
    identifier: str = ""
    key: str = ""
    value: float = 0.0
    activated: bool = False
    action: str = ""
    propensity: float = 1.0


def elapsed_along(facts):
    total, found = 0.0, []
    for place, fact in enumerate(facts):
        total += max(0.0, fact.at - facts[place - 1].at) if place else 0.0
        found.append(total)
    return found


def sum_of_rewards(facts, elapsed, begin, end):
    """Of the decision at ``begin``; None where none came, or all that came were given up."""
    before, since, found = None, None, None
    for place, fact in enumerate(facts[:end]):
        if place == begin and since is not None and elapsed[begin] - since < QUARANTINE:
            found = before
        if fact.kind != REWARD or fact.identifier != facts[begin].identifier:
            continue
        if place > begin:
            found = (found or 0.0) + fact.value
        elif since is None or elapsed[place] - since >= QUARANTINE:
            before, since = fact.value, elapsed[place]
        else:
            before += fact.value
    return found


def matured(facts, elapsed):
    """Where each decision was made, and where it matured, of those that have."""
    for begin, fact in enumerate(facts):
        later = range(begin + 1, len(facts))
        end = next((at for at in later if elapsed[at] - elapsed[begin] >= WAIT), None)
        if fact.kind == DECISION and end is not None:
            yield begin, end


def late_rewards(facts):
    """How many came when their decision had matured."""
    ends = {facts[begin].identifier: end for begin, end in matured(facts, elapsed_along(facts))}
    return sum(
        fact.kind == REWARD and place >= ends.get(fact.identifier, len(facts))
        for place, fact in enumerate(facts)
    )


def rows_by_the_rule(facts):
    """Action, reward and propensity of every decision that has matured."""
    elapsed, rows = elapsed_along(facts), []
    for begin, end in matured(facts, elapsed):
        fact = facts[begin]
        activated = fact.activated or any(
            one.kind == ACTIVATION and one.identifier == fact.identifier for one in facts[begin:end]
        )
        if activated:
            reward = sum_of_rewards(facts, elapsed, begin, end)
            rows.append((fact.action, reward or 0.0, pytest.approx(fact.propensity)))
    return rows


class LiveBandit(RuleBasedStateMachine):
    """A bandit in a file beside dictionaries of what it acknowledged."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="submax-machine-"))
        self.crashes = 0
        self.clock = ManualClock()
        self.traits = []
        self.decisions, self.rewards, self.activations = {}, {}, set()
        self.status = dict.fromkeys("ABC", "active")
        self.versions = 0

    @property
    def path(self):
        return self.folder / f"{self.crashes}.db"

    def open(self):
        self.bandit = open_bandit(
            self.path,
            name="machine",
            actions=["A", "B", "C"],
            policy={"kind": "epsilon-greedy", "epsilon": 0.5},
            rewards="counts",
            combine="sum",
            reward_wait=WAIT,
            quarantine=QUARANTINE,
            background=False,
            clock=self.clock,
        )

    @initialize()
    def begin(self):
        self.open()

    def active(self):
        return [name for name, status in self.status.items() if status == "active"]

    @rule(acts=st.lists(ACTS, min_size=5, max_size=30))
    def live(self, acts):
        """Several at a time, or most of a run would go by without any."""
        for verb, *arguments in acts:
            getattr(self, verb)(*arguments)

    def decide(self, identifier, activate):
        decision = self.bandit.decide(id=identifier, activate=activate)
        told = (decision.action, decision.propensity)
        if identifier in self.decisions:
            assert decision.repeated
            assert told == self.decisions[identifier]
            return
        assert not decision.repeated
        assert decision.action in self.active()
        self.decisions[identifier] = told
        fact = Fact(DECISION, self.clock.now, identifier, activated=activate)
        self.traits.append(replace(fact, action=decision.action, propensity=decision.propensity))

    def reward(self, identifier, key, value):
        standing = self.rewards.get((identifier, key))
        if standing is not None and standing != value:
            with pytest.raises(ConflictError):
                self.bandit.reward(identifier, value, key=key)
            return
        receipt = self.bandit.reward(identifier, value, key=key)
        assert receipt.repeated == (standing is not None)
        if standing is None:
            assert (receipt.status == "quarantined") == (identifier not in self.decisions)
            self.rewards[identifier, key] = value
            self.traits.append(Fact(REWARD, self.clock.now, identifier, key, value))

    def activate(self, identifier):
        if identifier not in self.decisions:
            with pytest.raises(NotFoundError):
                self.bandit.activate(identifier)
            return
        receipt = self.bandit.activate(identifier)
        assert receipt.repeated == (identifier in self.activations)
        if identifier not in self.activations:
            self.activations.add(identifier)
            self.traits.append(Fact(ACTIVATION, self.clock.now, identifier))

    @rule(name=NAMES)
    def add(self, name):
        if name in self.status:
            with pytest.raises(ConflictError):
                self.bandit.add(name)
        else:
            self.bandit.add(name)
            self.status[name] = "active"

    @rule(name=NAMES, verb=st.sampled_from(["pause", "resume", "retire"]))
    def change(self, name, verb):
        last = self.active() == [name] and verb != "resume"
        if self.status.get(name, "retired") == "retired" or last:
            with pytest.raises(InputError):
                getattr(self.bandit, verb)(name)
        else:
            getattr(self.bandit, verb)(name)
            after = {"pause": "paused", "resume": "active", "retire": "retired"}
            self.status[name] = after[verb]

    def wait(self, step):
        self.clock.now += step

    @rule()
    def refit(self):
        fitted = self.bandit.refit().fitted
        self.check_rows()
        if fitted is not None:
            self.versions += 1
            columns = self.bandit.ledger().rows.columns()
            assert (fitted.version, fitted.rows) == (self.versions, len(columns.reward))
            assert fitted.rows_hash == self.bandit.ledger().rows.hash
            assert self.bandit.version == fitted.version

    @rule()
    def snapshot(self):
        self.bandit.snapshot()

    @rule()
    def reopen(self):
        self.bandit.close()
        self.open()

    @rule()
    def crash(self):
        """Go on from the files as a process that was killed would have left them."""
        left, before = self.path, self.bandit
        self.crashes += 1
        for ending in ("", "-wal"):
            file = left.with_name(left.name + ending)
            if file.exists():
                shutil.copy(file, self.path.with_name(self.path.name + ending))
        before.close()
        self.open()

    @invariant()
    def what_was_acknowledged_is_there_once(self):
        if not hasattr(self, "bandit"):
            return
        read = [fact_of(event, self.bandit.menu) for event in self.events()]
        assert [fact for fact in read if fact.kind != TICK] == self.traits
        names = {choice.name: choice.status for choice in self.bandit.menu.slots[0].choices}
        assert names == self.status
        assert self.bandit.version == self.versions
        assert self.bandit.damaged == 0

    def events(self):
        return self.bandit.store.read(log_stream("machine"))

    def check_rows(self):
        ledger = self.bandit.ledger()
        columns, menu = ledger.rows.columns(), self.bandit.menu
        found = [
            (menu.action(row), reward, propensity)
            for row, reward, propensity in zip(
                columns.action, columns.reward, np.exp(columns.log_prob), strict=True
            )
        ]
        # The model knows what was acknowledged, and of the log only when time was told.
        rest, facts = iter(self.traits), []
        for event in self.events():
            facts.append(Fact(TICK, event.at) if event.kind == TICK else next(rest))
        assert found == rows_by_the_rule(facts)
        assert ledger.counts["late rewards"] == late_rewards(facts)

    def teardown(self):
        if hasattr(self, "bandit"):
            self.clock.now += WAIT
            self.check_rows()
            self.bandit.close()
        shutil.rmtree(self.folder)


def fact_of(event, menu):
    if event.kind == TICK:
        return Fact(TICK, event.at)
    identifier = (event.about or event.key)[2:]
    if event.kind == DECISION:
        made = body_of(event, DecisionMade)
        fact = Fact(DECISION, event.at, identifier, activated=made.activated)
        return replace(fact, action=menu.action(made.action), propensity=made.propensity)
    if event.kind == REWARD:
        key = event.key.split(" ")[2]
        return Fact(REWARD, event.at, identifier, key, body_of(event, RewardGiven).value)
    return Fact(event.kind, event.at, identifier)


EXAMPLES = 400 if "SUBMAX_SOAK" in os.environ else 10
LiveBandit.TestCase.settings = settings(max_examples=EXAMPLES, stateful_step_count=30)
TestLiveBandit = LiveBandit.TestCase
