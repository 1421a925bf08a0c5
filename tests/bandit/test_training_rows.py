"""Which decisions are learned from, compared with a loop over single acts."""

import json
import math
import os
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from maturing_rule import COMBINED, PARTS, QUARANTINE, by_the_rule

from submax.bandit.settings import Settings
from submax.bandit.store import open_store, result_of
from submax.bandit.tables import TICK, DecisionRow, RewardRow
from submax.bandit.training_rows import STATUSES, TrainingRows, in_parts, status_sql
from submax.schema.rows import Columns
from submax.testing import ManualClock

EXAMPLES = 400 if "SUBMAX_SOAK" in os.environ else 60
BOTH = ["sqlite", pytest.param("postgres", marks=pytest.mark.needs("postgresql"))]
WAIT, BANDIT = 100.3, 7


STEPS = st.one_of(st.floats(0, 40), st.sampled_from([0.0, 0.1, WAIT, 60.0, 4000.0, -1.0, -500.0]))
ACTS = st.tuples(
    STEPS,
    st.sampled_from(["decide", "decide", "reward", "reward", "activate", "read"]),
    st.integers(0, 3),
    st.integers(0, 30),
)
DECLARED = st.builds(
    lambda waits, default, parts, slots: Settings.of(
        {
            "actions": {"one": ["A", "B"], "two": ["A", "C"]} if slots else ["A", "B"],
            "context": {"x": float, "y": ["u", "v"]},
            "rewards": {"kind": "named", "weights": PARTS, "each": "counts"} if parts else "counts",
            "default_reward": default,
            **waits,
        }
    ),
    st.sampled_from(
        [
            *({"reward_wait": WAIT, "combine": one} for one in COMBINED),
            {"reward_wait": 0},
            {"reward_wait": 0, "no_reward_after": 60.1},
        ]
    ),
    st.sampled_from([0.0, 3.0, None]),
    st.booleans(),
    st.booleans(),
)


class Life:
    """A bandit's acts in a store, and how its reader reads on between them."""

    def __init__(self, declared, store, clock, batch, bandit):
        self.declared, self.store, self.clock, self.bandit = declared, store, clock, bandit
        self.rows = TrainingRows(store, self.bandit, declared, declared.menu, batch)
        self.acts, self.matured, self.columns = [], [], []
        self.read_to = 0.0

    def decide(self, name, choice):
        action = {"one": "AB"[choice % 2], "two": "AC"[choice % 3 % 2]}
        row = DecisionRow(
            name,
            1,
            action["one"] if self.declared.menu.plain else json.dumps(action),
            (1 + choice) / 31,
            context=json.dumps([choice / 3, "uv"[choice % 2]]),
            activated=None if choice % 2 == 0 else 0.0,
            paused=choice % 7 == 0,
            assignment=(None, "bandit", "holdout")[choice % 3],
        )
        (written,) = result_of(self.store.write_decisions(self.bandit, [row]))
        if written.new:
            details = {"activated": row.activated, "assignment": row.assignment}
            self.acts.append(
                ("decide", name, row.at, {**details, "paused": row.paused, "row": row})
            )

    def reward(self, name, choice):
        value, parts = float(choice % 5), None
        if self.declared.reward_parts is not None:
            parts = dict.fromkeys(list(PARTS)[choice % 2 : 1 + choice % 3], value)
            parts = parts or {"buy": value}
            value = self.declared.reward_parts.combined(parts)
        row = RewardRow(name, f"k{choice % 4}", value, parts and json.dumps(parts))
        wait = self.declared.longest_wait
        (written,) = result_of(self.store.write_rewards(self.bandit, [row], wait, QUARANTINE))
        if not written.repeated:
            found = self.store.select(
                "select at from early_reward where bandit = :bandit and id = :id and key = :key",
                bandit=self.bandit,
                id=name,
                key=row.key,
            )
            at = found[0][0] if found else self.store.now(self.bandit)
            self.acts.append(("reward", name, at, (row.key, value, parts)))

    def activate(self, name, choice):
        result_of(self.store.activate(self.bandit, [name], self.declared.longest_wait))
        self.acts.append(("activate", name, self.store.now(self.bandit), None))

    def read(self, name, choice):
        after, until = self.read_to, self.store.tick(self.bandit)
        assert self.store.now(self.bandit) > until >= after
        before = sum(len(one.status) for one in self.matured)
        self.matured += self.rows.matured(after, until)
        new = [one for one in self.matured for one in one.status.tolist()][before:]
        assert self.rows.count(after, until, 1000) == new.count(STATUSES.index("learned"))
        self.columns += self.rows.learned(after, until)
        self.read_to = until


@pytest.fixture(scope="module", params=BOTH)
def opened(request, tmp_path_factory):
    """A store, its clock, and numbers of bandits that it does not have yet."""
    clock, path = ManualClock(), tmp_path_factory.mktemp("rows") / "store.db"
    if request.param == "postgres":
        server = request.getfixturevalue("postgres")
        server.execute("postgres", "create database training_rows")
        path = server.address("training_rows")
    with open_store(path, clock=clock) as store:
        yield store, clock, count(1)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(ACTS, max_size=40), DECLARED, st.integers(1, 5), st.data())
def test_rows_are_those_of_single_acts_however_they_are_read(opened, acts, declared, batch, data):
    store, clock, number = opened
    clock.now = 1.7e9 + 0.3
    life = Life(declared, store, clock, batch, next(number))
    for step, verb, name, choice in acts:
        clock.now += step
        getattr(life, verb)(f"d{name}", choice)
    life.read("", 0)
    expected = by_the_rule(declared, life.acts, life.read_to)
    statuses = dict(
        store.select(
            f"select id, {status_sql(declared)} from decision d where d.bandit = :bandit",
            bandit=life.bandit,
            **({"clock": life.read_to}),
        )
    )
    assert statuses == {name: status for _, _, name, status, *_ in expected}
    waits = [*statuses.values()].count("pending")
    if declared.longest_wait < math.inf:
        assert life.rows.pending(life.read_to) == waits
    expected = [one for one in expected if one[3] != "pending"]
    found = [
        (matures, name, STATUSES[status], None if math.isnan(reward) else reward)
        for one in life.matured
        for matures, name, status, reward in zip(
            one.matures, one.table["id"], one.status, one.reward, strict=True
        )
    ]
    assert [one[1:] for one in found] == [one[2:5] for one in expected]
    assert [one[0] for one in found] == pytest.approx([one[0] for one in expected], abs=TICK)
    check_columns(
        life, [life.acts[n][3]["row"] for _, n, _, status, *_ in expected if status == "learned"]
    )
    again = list(life.rows.learned(0.0, life.read_to))
    size = data.draw(st.integers(1, 5))
    assert [part.hash for part in in_parts(again, size)] == [
        part.hash for part in in_parts(life.columns, size)
    ]


def check_columns(life, rows):
    columns = Columns.joined([Columns.empty(3, len(life.declared.menu.slots)), *life.columns])
    menu, context = life.declared.menu, life.declared.context
    encoded = context.encode([json.loads(row.context) for row in rows])
    assert columns.context.tolist() == encoded.astype(np.float32).reshape(-1, 3).tolist()
    actions = [menu.encoded(row.action if menu.plain else json.loads(row.action)) for row in rows]
    assert columns.action.tolist() == actions
    assert columns.log_prob.tolist() == [math.log(row.propensity) for row in rows]


def test_a_damaged_row_is_named_and_not_learned_from(tmp_path):
    declared = Settings.of({"actions": ["A", "B"], "reward_wait": 0})
    with open_store(tmp_path / "store.db") as store:
        row = DecisionRow("d", 1, "A", 0.5)
        result_of(store.write_decisions(BANDIT, [row]))
        result_of(store.write_rewards(BANDIT, [RewardRow("d", "k", 1.0)], math.inf))
        rows = TrainingRows(store, BANDIT, declared, declared.menu)
        (columns,) = rows.learned(0.0, store.tick(BANDIT))
        assert columns.reward.tolist() == [1.0]
        for change in (
            "update reward set value = 0",
            "update decision set propensity = 0.25",
            "update decision set at = 'x'",
            "update decision set activated = null",
        ):
            store.execute([(change, {})])
            with pytest.raises(ValueError, match="damaged") as caught:
                list(rows.learned(0.0, store.tick(BANDIT)))
            assert caught.value.code == "damaged-store"
            assert str(row.n) in str(caught.value) or change.startswith("update reward")
