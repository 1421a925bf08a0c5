"""What a transaction writes: the same statements for SQLite and PostgreSQL, and their outcomes.

Nothing is read between two statements, so a database may be sent all of them at once. The first one
locks the bandit and sets the time of everything that follows. A statement may read the table
``given``, the rows that callers gave: PostgreSQL gets all at once; SQLite executes the statement
for each row, which costs less there than a list as JSON.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

import msgspec

from submax.bandit.tables import (
    ACTIVATED_CHECKSUM,
    DECISION_CHECKSUM,
    DECISION_COLUMNS,
    MAX_EARLY,
    MAX_EARLY_OF_SOURCE,
    REWARD_CHECKSUM,
    REWARD_COLUMNS,
    TICK,
    Activated,
    DecisionRow,
    RewardRow,
    UnitRow,
    Written,
    WrittenReward,
    decision_row,
    reward_content,
)

Row = Mapping[str, Any]
Rows = Callable[[], list[tuple[Any, ...]]]
"""Gives the rows of a statement, after the transaction was committed."""
LONGEST_STEP = 3600.0
"""The clock is trusted to have moved by so many seconds between two writes. A machine that starts
with a wrong clock may move it by years, which did not pass."""
FOREVER = 1e15
"""Seconds that stand for infinity, which JSON does not have."""


class Dialect(NamedTuple):
    """What differs between the databases in statements that write.

    ``number`` is the next number of a row, and ``json`` the type of JSON. ``clock`` is the time of
    a clock in seconds, which ``:now`` may be. ``given`` makes the table of given rows from the
    names of its columns; it has a column ``place`` for their order. ``counted`` adds the counting
    to a statement, if the database does that.
    """

    number: str
    clock: str
    json: str
    given: Callable[[list[str]], str]
    counted: Callable[[str, "Counts"], str] = lambda sql, _: sql


Counts = tuple[tuple[str, str | None], ...]
"""Columns of the table ``counts``, which grow by the number of rows that a statement returns, or by
the sum of one of their columns."""


class Step(NamedTuple):
    """A statement of a transaction.

    ``sql`` may have fields of ``Dialect`` in braces. ``given`` are the columns of the given rows,
    if it reads any, and ``returning`` those that it returns of the rows that it changes. The
    statement changes nothing if ``only_if`` selects nothing.
    """

    sql: str
    given: str = ""
    returning: tuple[str, ...] = ()
    counts: Counts = ()
    only_if: str = ""


@cache
def sql_of(step: Step, dialect: Dialect) -> str:
    """The SQL of a step, with ``:name`` parameters."""
    number, clock, json, given, counted = dialect
    table = given(step.given.split()) if step.given else ""
    sql = step.sql.format(number=number, clock=clock, json=json, given=table)
    if step.returning:
        sql += f" returning {', '.join(step.returning)}"
    return counted(sql, step.counts) if step.counts else sql


Given = Mapping[str, list[Any]]
"""Rows to be written by kind, the keys of WRITERS."""


class Run(Protocol):
    """Executes a step for the bandit of the transaction and the given rows."""

    def __call__(self, step: Step, rows: Sequence[Row] = (), **values: Any) -> Rows: ...


def time_sql(clock: str, at: str, shown: str) -> str:
    """The time of a write, after one at the time ``at`` when the clock showed ``shown``.

    It is the clock's, in whole ticks. If the clock was set back, time goes on at half of its speed
    until the clock has caught up: it never falls and never stands still.
    """
    half = f"floor(({clock} - {shown}) * {0.5 / TICK}) * {TICK!r}"
    return (
        f"case when {clock} >= {at} then {clock} when {clock} <= {shown} then {at} "
        f"when {clock} - {shown} > {LONGEST_STEP} then {at} + {LONGEST_STEP / 2} "
        f"else {at} + {half} end"
    )


READING = f"floor(({{clock}}) / {TICK!r}) * {TICK!r}"
"""SQL for the time of the clock, in whole ticks."""
NOW = Step(f"""select coalesce(
    (select {time_sql("shown.now", "at", "clock")} from counts where bandit = :bandit), shown.now
) from (select {READING} as now) as shown""")
"""The time that a row of a bandit would have that is written now."""
LOCK = Step(
    f"""insert into counts (bandit, n, at, clock) select :bandit, 0, now, now
    from (select {READING} as now) as shown where true
    on conflict (bandit) do update set
        at = {time_sql("excluded.clock", "counts.at", "counts.clock")}, clock = excluded.clock"""
)
"""Locks a bandit until the transaction ends, and sets the time of all that it writes."""
AFTER_TICK = Step(
    f"update counts set at = at + {TICK!r} where bandit = :bandit returning at - {TICK!r}"
)
NUMBERED = Step("update counts set n = {number} where bandit = :bandit")
"""Notes that all rows that were written have lower numbers."""


DECISIONS = Step(
    f"""insert into decision ({DECISION_COLUMNS})
    with numbered as materialized (
        select {{number}} as n, counts.at as now, given.*
        from (select * from {{given}} order by place) as given, counts
        where counts.bandit = :bandit
    )
    select n, :bandit, id, now, version, unit, action, propensity, cast(context as {{json}}),
        cast(eligible as {{json}}), cast(probabilities as {{json}}), activated, paused, assignment,
        assigned_since, holdout_share, control_share, {DECISION_CHECKSUM}
    from numbered where true
    on conflict (bandit, id) do nothing""",
    "id version unit action propensity context eligible probabilities activated paused assignment "
    "assigned_since holdout_share control_share checksum",
    ("id", "n", "at"),
    (("decisions", None),),
)
ANY_EARLY = "select 1 from early_reward where bandit = :bandit limit 1"
EXPIRE_EARLY = Step(
    """delete from early_reward where bandit = :bandit
    and until <= (select at from counts where bandit = :bandit)""",
    returning=("n",),
    counts=(("orphans", None),),
    only_if=ANY_EARLY,
)
EARLY_OF_DECISION = """{given}
    join decision on decision.bandit = :bandit and decision.id = given.id
    join early_reward on early_reward.bandit = :bandit and early_reward.id = given.id"""
TAKE_EARLY = Step(
    f"""insert into reward ({REWARD_COLUMNS})
    with numbered as materialized (
        select {{number}} as n, 0 as late, waiting.* from (
            select decision.n as decision, decision.at as now, key, value, parts, source,
                early_reward.checksum
            from {EARLY_OF_DECISION} order by early_reward.n
        ) as waiting
    )
    select n, :bandit, decision, key, value, parts, now, late, source, {REWARD_CHECKSUM}
    from numbered where true on conflict (decision, key) do nothing""",
    "id",
    ("n",),
    (("rewards", None),),
    ANY_EARLY,
)
FORGET_EARLY = Step(
    f"""delete from early_reward where bandit = :bandit and n in (
        select early_reward.n from {EARLY_OF_DECISION}
    )""",
    "id",
    only_if=ANY_EARLY,
)
GIVEN_REWARD = "id key value parts source checksum wait quarantine"
REWARDS = Step(
    f"""insert into reward ({REWARD_COLUMNS})
    with numbered as materialized (
        select {{number}} as n, known.* from (
            select given.*, decision.n as decision, counts.at as now,
                case when counts.at - decision.at >= wait or decision.at <= counts.settled
                then 1 else 0 end as late
            from {{given}} join counts on counts.bandit = :bandit
            join decision on decision.bandit = :bandit and decision.id = given.id
            order by place
        ) as known
    )
    select n, :bandit, decision, key, value, cast(parts as {{json}}), now, late, source,
        {REWARD_CHECKSUM}
    from numbered where true on conflict (decision, key) do nothing""",
    GIVEN_REWARD,
    ("n", "late"),
    (("rewards", None), ("late_rewards", "late")),
)
EARLY = Step(
    """insert into early_reward (n, bandit, id, key, value, parts, at, until, source, checksum)
    with numbered as materialized (
        select {number} as n, unknown.* from (
            select given.*, counts.at as now
            from {given} join counts on counts.bandit = :bandit
            left join decision on decision.bandit = :bandit and decision.id = given.id
            where decision.n is null order by place
        ) as unknown
    )
    select n, :bandit, id, key, value, cast(parts as {json}), now, now + quarantine, source,
        checksum
    from numbered where true on conflict (bandit, id, key) do nothing""",
    GIVEN_REWARD,
    ("n",),
)


def _limit(of: str, most: int) -> Step:
    """Deletes the oldest early rewards above a limit."""
    return Step(
        f"""delete from early_reward where {of} and (until, n) <= (
            select until, n from early_reward where {of}
            order by until desc, n desc limit 1 offset {most}
        )""",
        returning=("n",),
        counts=(("dropped", None),),
        only_if=ANY_EARLY,
    )


LIMIT_BANDIT = _limit("bandit = :bandit", MAX_EARLY)
LIMIT_SOURCE = _limit("bandit = :bandit and source = :source", MAX_EARLY_OF_SOURCE)
REWARDED = Step(
    """select stored.n, stored.value, stored.parts, stored.late, waiting.n, waiting.value,
        waiting.parts
    from {given}
    left join decision on decision.bandit = :bandit and decision.id = given.id
    left join reward as stored on stored.decision = decision.n and stored.key = given.key
    left join early_reward as waiting on waiting.bandit = :bandit
        and waiting.id = given.id and waiting.key = given.key
    order by place""",
    "id key",
)
"""What is stored under each id and key."""
ACTIVATE = Step(
    f"""update decision set activated = counts.at - decision.at,
        checksum = {ACTIVATED_CHECKSUM}
    from {{given}}, counts where counts.bandit = :bandit and decision.bandit = :bandit
        and decision.id = given.id and decision.activated is null
        and (wait is null or counts.at - decision.at < wait)""",
    "id wait",
    ("decision.id",),
)
ACTIVATED = Step(
    """select decision.n, decision.activated from {given}
    left join decision on decision.bandit = :bandit and decision.id = given.id order by place""",
    "id",
)
GIVEN_UNIT = "unit period version action propensity eligible probabilities"
PIN = Step(
    """insert into unit
    (bandit, unit, period, version, action, propensity, eligible, probabilities, at)
    select :bandit, unit, period, version, action, propensity, cast(eligible as {json}),
        cast(probabilities as {json}), counts.at
    from {given}, counts where counts.bandit = :bandit
    on conflict (bandit, unit, period) do nothing""",
    GIVEN_UNIT,
)
PINNED = Step(
    """select unit.unit, unit.period, unit.version, unit.action, unit.propensity, unit.eligible,
        unit.probabilities, unit.at
    from {given}
    join unit on unit.bandit = :bandit and unit.unit = given.unit and unit.period = given.period
    order by place""",
    GIVEN_UNIT,
)
FIND_DECISION = f"select {DECISION_COLUMNS} from decision where bandit = :bandit and id = :id"


Outcomes = Callable[[], list[Any]]
"""Gives what became of the rows that were given, in order, after the transaction was committed."""
Select = Callable[[str, Mapping[str, Any]], Sequence[Sequence[Any]]]


def write(run: Run, bandit: int, given: Given, select: Select) -> dict[str, Outcomes]:
    """Execute the steps of what is written to a bandit, by kind (see WRITERS).

    The caller commits, and asks for the outcomes then.
    """
    run(LOCK)
    outcomes = {
        kind: writer(run, bandit, given[kind], select)
        for kind, writer in WRITERS.items()
        if kind in given
    }
    run(NUMBERED)
    return outcomes


def _decisions(run: Run, bandit: int, decisions: list[DecisionRow], select: Select) -> Outcomes:
    rows = [{**msgspec.structs.asdict(row), "paused": int(row.paused)} for row in decisions]
    fresh = run(DECISIONS, rows)
    run(EXPIRE_EARLY)
    run(TAKE_EARLY, rows)
    run(FORGET_EARLY, rows)

    def outcomes() -> list[Written]:
        numbers, written = {identifier: (n, at) for identifier, n, at in fresh()}, []
        for row in decisions:
            new = numbers.pop(row.id, None)
            if new is not None:
                row.n, row.at = new
                written.append(Written(row, True))
                continue
            (stored,) = select(FIND_DECISION, {"bandit": bandit, "id": row.id})
            written.append(Written(decision_row(stored), False))
        return written

    return outcomes


def _rewards(
    run: Run, bandit: int, rewards: list[tuple[RewardRow, float, float]], _: Select
) -> Outcomes:
    """Write rewards; the same id and key may come twice in one transaction."""
    different: dict[tuple[str, str], Row] = {}
    for row, wait, quarantine in rewards:
        if (row.id, row.key) not in different:
            different[row.id, row.key] = {
                **msgspec.structs.asdict(row),
                "checksum": reward_content(bandit, row),
                "wait": _finite(wait),
                "quarantine": min(quarantine, FOREVER),
            }
    rows = list(different.values())
    run(EXPIRE_EARLY)
    fresh, early = run(REWARDS, rows), run(EARLY, rows)
    stored = run(REWARDED, rows)
    for source in {row.source for row, _, _ in rewards}:
        run(LIMIT_SOURCE, source=source)
    run(LIMIT_BANDIT)

    def outcomes() -> list[WrittenReward]:
        found, written = dict(zip(different, stored(), strict=True)), []
        # A reward that this transaction moved to its decision was stored before.
        new = {n for n, *_ in (*fresh(), *early())}
        for row, _, _ in rewards:
            n, value, parts, late, *waiting = found[row.id, row.key]
            status: Any = "late" if late else "accepted"
            if n is None:
                (n, value, parts), status = waiting, "quarantined"
            if n not in new and (value, parts) != (row.value, row.parts):
                status = "conflict"
            written.append(WrittenReward(status, n not in new, value, parts))
            new.discard(n)
        return written

    return outcomes


def _activations(
    run: Run, bandit: int, activations: list[tuple[str, float]], _: Select
) -> Outcomes:
    rows = [{"id": each, "wait": _finite(wait)} for each, wait in dict(activations).items()]
    fresh, found = run(ACTIVATE, rows), run(ACTIVATED, rows)

    def outcomes() -> list[Activated]:
        new, written = {identifier for (identifier,) in fresh()}, []
        stored = {row["id"]: each for row, each in zip(rows, found(), strict=True)}
        for identifier, _ in activations:
            decision, activated = stored[identifier]
            status: Any = "late" if activated is None else "accepted"
            repeated = activated is not None and identifier not in new
            written.append(Activated("unknown" if decision is None else status, repeated))
            new.discard(identifier)
        return written

    return outcomes


def _pins(run: Run, bandit: int, pins: list[UnitRow], _: Select) -> Outcomes:
    rows = [msgspec.structs.asdict(row) for row in pins]
    run(PIN, rows)
    pinned = run(PINNED, rows)
    return lambda: [UnitRow(*row) for row in pinned()]


def _finite(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None


WRITERS: dict[str, Callable[[Run, int, list[Any], Select], Outcomes]] = {
    "decisions": _decisions,
    "rewards": _rewards,
    "activations": _activations,
    "pins": _pins,
}
"""How each kind of rows is written: decisions first, so the rewards of the same transaction find
them."""
