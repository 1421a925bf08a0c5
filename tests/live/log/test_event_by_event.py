"""What a bandit learns and exports is what reading one event at a time says."""

import math
import os
from collections import Counter
from datetime import UTC, datetime
from unittest import mock
from uuid import UUID

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submax.bandit.assignment import GROUP_RECORD, group_record
from submax.bandit.lift import GroupComparisons
from submax.live.archive.compacting.compaction import Compaction
from submax.live.bandits.open import open_bandit
from submax.live.log.bandits import log_stream
from submax.live.log.export import Export
from submax.live.log.ledger import ledger_of
from submax.live.log.records import (
    ACTIVATION,
    DECISION,
    REWARD,
    DecisionMade,
    RewardGiven,
    body_of,
    identifier_of,
)
from submax.live.log.rows import training_rows
from submax.live.store.memory_store import MemoryStore
from submax.testing import ManualClock

EXAMPLES = 300 if "SUBMAX_SOAK" in os.environ else 60

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


COMBINED = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "max": max,
    "sum": sum,
}


class ElapsedTime:
    """The sum of the steps forward of a clock that may go back."""

    def __init__(self):
        self.elapsed, self.last = 0.0, None

    def would_be(self, at):
        return self.elapsed + (0.0 if self.last is None else max(0.0, at - self.last))

    def advance(self, at):
        self.elapsed, self.last = self.would_be(at), at
        return self.elapsed


class EventByEvent:
    """What a ledger says about a log, computed without pages, columns or buffers.

    ``rows`` are tuples (context, action, reward, log-probability), ``outcomes`` what became of the
    decision at each position, and ``late`` counts the late rewards of the decision at a position.
    """

    def __init__(self, settings, events):
        self.settings, self.events = settings, events
        self.rows, self.outcomes, self.late = [], {}, Counter()
        self.rewards, self.activated, self.waiting = {}, set(), {}
        self.comparisons = GroupComparisons.of(settings)
        self.counts, self.closed, self.settled = Counter(), set(), 0
        self.clock, self.settled_clock, self.next = ElapsedTime(), ElapsedTime(), 0
        self.decisions = {one.key: one for one in events if one.kind == DECISION}
        for event in events:
            self.process(event)

    def process(self, event):
        now = self.clock.advance(event.at)
        self.settle(now, event.position)
        for identifier in [one for one, until in self.waiting.items() if until <= now]:
            del self.waiting[identifier], self.rewards[identifier]
            self.counts["orphans"] += 1
        if event.kind == DECISION:
            self.counts["decisions"] += 1
            self.waiting.pop(identifier_of(event.key), None)
            self.mature_at_reward(event)
        elif event.kind in (REWARD, ACTIVATION):
            self.feedback(event)

    def settle(self, now, before):
        wait = self.settings.longest_wait
        while wait < math.inf and self.next < len(self.events):
            event = self.events[self.next]
            if event.position >= before or self.settled_clock.would_be(event.at) + wait > now:
                return
            self.next += 1
            self.settled_clock.advance(event.at)
            self.settled = event.position
            if event.kind == DECISION and event.position not in self.closed:
                self.mature(event)

    def feedback(self, event):
        identifier, about = identifier_of(event.about), event.about_position
        if about > 0 and (about <= self.settled or about in self.closed):
            self.counts[f"late {event.kind}s"] += 1
            self.late[about] += event.kind == REWARD
            return
        if event.kind == ACTIVATION:
            self.counts["activations"] += 1
            self.activated.add(identifier)
        else:
            self.counts["rewards"] += 1
            value = body_of(event, RewardGiven).value
            self.rewards.setdefault(identifier, []).append(value)
            if about == 0 and identifier not in self.waiting:
                self.waiting[identifier] = self.clock.elapsed + self.settings.quarantine
        if about > 0:
            self.mature_at_reward(self.decisions[event.about])

    def reward_of(self, identifier):
        values = self.rewards.get(identifier)
        return COMBINED[self.settings.combine](values) if values else None

    def mature_at_reward(self, event):
        if self.settings.reward_wait > 0 or identifier_of(event.key) not in self.rewards:
            return
        if identifier_of(event.key) in self.activated or body_of(event, DecisionMade).activated:
            self.closed.add(event.position)
            self.mature(event)

    def mature(self, event):
        made, identifier = body_of(event, DecisionMade), identifier_of(event.key)
        given = self.reward_of(identifier)
        self.rewards.pop(identifier, None)
        activated = made.activated or identifier in self.activated
        self.activated.discard(identifier)
        reward = self.settings.default_reward if given is None else given
        outcome = "learned"
        if not activated:
            outcome, reward = "never activated", given
        elif made.holdout:
            outcome = "held out"
        elif made.paused:
            outcome = "paused"
        elif reward is None:
            outcome = "without reward"
        else:
            self.rows.append((made.context, made.action, reward, math.log(made.propensity)))
            self.counts["by default"] += given is None
        if activated and made.group is not None and reward is not None:
            record = np.array([group_record(made.group)], GROUP_RECORD)
            unit = np.array([made.unit], np.object_)
            self.comparisons.add(record, np.array([reward]), unit)
        self.counts["matured"] += 1
        self.counts[outcome] += 1
        self.outcomes[event.position] = outcome, reward


WAIT, DAY = 100.0, 86400.0


def joined_rewards(events, elapsed, begin, end, quarantine):
    """The rewards of the decision at ``begin`` that count if it matures at ``end``."""
    about = [
        (place, body_of(event, RewardGiven).value)
        for place, event in enumerate(events)
        if event.kind == REWARD and event.about == events[begin].key and place < end
    ]
    kept, since = [], None
    for place, value in about:
        if place > begin:
            continue
        if since is not None and elapsed[place] - since >= quarantine:
            kept, since = [], None
        since = elapsed[place] if since is None else since
        kept.append(value)
    if since is not None and elapsed[begin] - since >= quarantine:
        kept = []
    return kept + [value for place, value in about if place > begin]


def by_the_rule(settings, events):
    """The rows of a log by the documented rule, looking at the whole log for each decision."""
    clock, rows = ElapsedTime(), []
    elapsed = [clock.advance(event.at) for event in events]
    for begin, event in enumerate(events):
        if event.kind != DECISION:
            continue
        later = range(begin + 1, len(events))
        end = next((at for at in later if elapsed[at] - elapsed[begin] >= WAIT), None)
        made = body_of(event, DecisionMade)
        if end is None or made.holdout or made.paused:
            continue
        activated = made.activated or any(
            one.kind == ACTIVATION and one.about == event.key for one in events[begin:end]
        )
        values = joined_rewards(events, elapsed, begin, end, settings.quarantine)
        reward = COMBINED[settings.combine](values) if values else settings.default_reward
        if activated and reward is not None:
            rows.append((*made.action, reward))
    return rows


STEPS = st.one_of(
    st.integers(0, 40).map(float),
    st.sampled_from([0.0, WAIT, 300.0, 4000.0, 3 * DAY, -1.0, -5000.0, -3 * DAY]),
    st.integers(-2 * int(DAY), 2 * int(DAY)).map(float),
)
ACTS = st.tuples(
    st.sampled_from(["decide", "decide", "reward", "reward", "activate", "tick", "pause"]),
    st.integers(0, 9),
    st.booleans(),
)
LOGS = st.lists(st.tuples(STEPS, ACTS), max_size=60)
DECLARED = st.fixed_dictionaries(
    {
        "default_reward": st.sampled_from([0.0, 3.0, None]),
        "waits": st.sampled_from(
            [
                *({"reward_wait": WAIT, "combine": one} for one in ("first", "last", "max", "sum")),
                {"reward_wait": 0},
                {"reward_wait": 0, "no_reward_after": 60},
            ]
        ),
        "context": st.sampled_from([None, {"x": float}, {"x": float, "y": ["u", "v"]}]),
        "guard_rails": st.sampled_from(
            [
                {},
                {"holdout": 0.3, "baseline": "A"},
                {"holdout": 0.2, "baseline": "A", "control": "B", "control_share": 0.4},
            ]
        ),
        "units": st.sampled_from([None, 3]),
    }
)


IDS = [*(f"d{number}" for number in range(5)), *(str(UUID(int=number)) for number in range(5))]


def opened(store, clock, declared):
    return open_bandit(
        store,
        actions=["A", "B", "C"],
        policy={"kind": "random"},
        rewards="counts",
        quarantine=300.0,
        default_reward=declared["default_reward"],
        context=declared["context"],
        guard_rails=declared["guard_rails"],
        sticky=50,
        **declared["waits"],
        background=False,
        clock=clock,
        rng=np.random.default_rng(0),
    )


def context_of(declared):
    return {name: {"x": 0.1, "y": "v"}[name] for name in declared["context"] or ()}


def lived(log, declared, restarts=()):
    """A bandit after a list of acts, some of them about decisions that never come.

    ``restarts`` are the numbers of acts before which it keeps a snapshot and is opened again.
    """
    clock = ManualClock()
    store, decided = MemoryStore(clock), set()
    bandit = opened(store, clock, declared)
    context = context_of(declared)
    for number, (step, (verb, one, flag)) in enumerate(log):
        if number in restarts:
            bandit.ledger()
            bandit.snapshot()
            bandit = opened(store, clock, declared)
        clock.now += step
        if verb == "decide":
            unit = declared["units"] and f"visitor-{number % declared['units']}"
            bandit.decide(context, id=IDS[one], activate=flag, unit=unit)
            decided.add(one)
        elif verb == "pause":
            bandit.set(status="paused" if flag else "active")
        elif verb == "reward":
            bandit.reward(IDS[one], float(number % 7), key=str(number))
        elif verb == "activate" and one in decided:
            bandit.activate(IDS[one])
        elif verb == "tick":
            bandit.ledger()
    return bandit, clock


@settings(max_examples=EXAMPLES)
@given(LOGS, DECLARED)
def test_a_ledger_is_that_of_single_events(log, declared):
    bandit, _ = lived(log, declared)
    ledger = bandit.ledger()
    events = bandit.store.read(log_stream(bandit.name))
    expected = EventByEvent(bandit.settings, events)
    columns, schema = ledger.rows.columns(), bandit.settings.context
    assert columns.context.tolist() == [
        np.array(schema.encode(context), np.float32).tolist() for context, *_ in expected.rows
    ]
    assert list(zip(columns.action.tolist(), columns.reward, columns.log_prob, strict=True)) == [
        (list(map(float, action)), reward, chance) for _, action, reward, chance in expected.rows
    ]
    if bandit.settings.reward_wait > 0:
        rows = zip(columns.action[:, 0], columns.reward, strict=True)
        assert list(rows) == by_the_rule(bandit.settings, events)
    assert +ledger.counts == +expected.counts
    assert ledger.comparisons.by_group == expected.comparisons.by_group
    for index, tally in enumerate(ledger.tally.choices[0]):
        rewards = [row[2] for row in expected.rows if row[1][0] == index]
        assert (tally.rows, tally.reward) == (len(rewards), sum(rewards))


@settings(max_examples=EXAMPLES // 2)
@given(LOGS, DECLARED, st.lists(STEPS, max_size=5))
def test_every_decision_matures_exactly_once_however_the_clock_jumps(log, declared, jumps):
    waits = {"reward_wait": WAIT, "combine": "last"}
    bandit, clock = lived(log, {**declared, "waits": waits})
    for jump in jumps:
        clock.now += jump
        bandit.ledger()
    # A clock that went back has to be seen by the log before it goes on.
    bandit.decide(context_of(declared), id="witness")
    clock.now += WAIT
    counts = dict(bandit.ledger().counts)
    events = bandit.store.read(log_stream(bandit.name))
    decisions = sum(event.kind == DECISION for event in events)
    assert counts["decisions"] == counts["matured"] == decisions
    learned = len(bandit.ledger().rows)
    clock.now += 10 * DAY
    assert len(bandit.ledger().rows) == learned == counts.get("learned", 0)


def state_of(ledger):
    return (+ledger.counts, ledger.rows.columns().hash, ledger.tally)


@settings(max_examples=EXAMPLES // 2)
@given(LOGS, DECLARED, st.sets(st.integers(0, 59), max_size=8), st.integers(1, 5))
def test_a_ledger_depends_on_the_log_alone_and_not_on_how_it_was_read(
    log, declared, restarts, segment
):
    """Restarts with a snapshot after some acts give what reading the whole log at once gives."""
    with mock.patch.object(training_rows, "SEGMENT", segment):
        bandit, _ = lived(log, declared, restarts)
        found = state_of(bandit.ledger())
        at_once = ledger_of(bandit.store, bandit.name, bandit.settings)
        at_once.follow()
        assert found == state_of(at_once)


def row_by_row(bandit, events, expected):
    """The rows of an export, one dictionary for each decision."""
    menu, context = bandit.menu, bandit.settings.context
    for event in events:
        if event.kind != DECISION:
            continue
        made, identifier = body_of(event, DecisionMade), event.key[2:]
        pending = "pending", expected.reward_of(identifier)
        status, reward = expected.outcomes.get(event.position, pending)
        in_time = (
            identifier in expected.activated if status == "pending" else status != "never activated"
        )
        yield {
            "id": identifier,
            "at": datetime.fromtimestamp(event.at, UTC),
            "action": menu.action(made.action),
            "propensity": made.propensity,
            "version": made.version,
            **{
                f"context_{name}": value
                for name, value in zip(context.names, made.context, strict=True)
            },
            "eligible": [
                [slot.choices[index].name for index in indices]
                for slot, indices in zip(menu.slots, made.eligible, strict=True)
            ],
            "probabilities": made.probabilities,
            "activated": made.activated or in_time,
            "holdout": made.holdout,
            "group": made.group and made.group.group,
            "unit": made.unit,
            "status": status,
            "reward": reward,
            "late_rewards": expected.late[event.position],
        }


def rewards_row_by_row(events):
    for event in events:
        if event.kind == REWARD:
            _, identifier, key = event.key.split(" ")
            yield {
                "id": identifier,
                "key": key,
                "at": datetime.fromtimestamp(event.at, UTC),
                "value": body_of(event, RewardGiven).value,
                "known": event.about_position > 0,
                "name": None,
            }


@settings(max_examples=EXAMPLES // 4)
@given(LOGS, DECLARED, st.booleans())
def test_an_export_is_that_of_single_events(tmp_path_factory, log, declared, archived):
    (bandit, _), folder = lived(log, declared), tmp_path_factory.mktemp("export")
    ledger = bandit.ledger()
    events = bandit.store.read(log_stream(bandit.name))
    if archived:
        Compaction(bandit.store, bandit.name, bandit.settings, ledger, math.inf).run()
    export = Export(bandit.store, bandit.name)
    export.write(folder / "log.parquet")
    export.write_rewards(folder / "rewards.parquet")
    expected = EventByEvent(bandit.settings, events)
    rows = pq.read_table(folder / "log.parquet").to_pylist()
    assert rows == list(row_by_row(bandit, events, expected))
    rewards = pq.read_table(folder / "rewards.parquet").to_pylist()
    assert rewards == list(rewards_row_by_row(events))
