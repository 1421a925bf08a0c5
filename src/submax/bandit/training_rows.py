"""Which decisions have matured, with which reward: the rows that a policy learns from.

The rule exists twice, for many rows at once and as SQL for counts; one test compares both with a
loop over single decisions. A decision matures

- with ``reward_wait`` above 0, when this time is over, with the rewards that were not late;
- with ``reward_wait`` 0, when it is activated and has its reward (all parts of it, if rewards have
  parts), or when ``no_reward_after`` is over.

Rows come in the order of the times at which decisions mature, then of their numbers. Times in the
store never fall, and are whole numbers of ``TICK``, so sums of times are exact. After a
``tick`` of the store no row is written any more with that time or an earlier one. So which rows
matured after one tick and up to another one depends on the stored rows alone, not on when they are
read or in how many steps.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.bandit.rewards import combined_reward
from submax.bandit.row_texts import read_action, read_contexts
from submax.bandit.settings import Settings
from submax.bandit.store import Store
from submax.bandit.tables import (
    DAMAGED,
    DECISION_COLUMNS,
    TICK,
    Table,
    as_table,
    damaged_decisions,
    damaged_rewards,
)
from submax.core.arrays import Booleans, Floats
from submax.core.errors import InputError
from submax.schema.actions import ActionSpec
from submax.schema.context import ContextSchema
from submax.schema.rewards import SLOTS
from submax.schema.rows import Columns

BATCH = 2500
"""About as many decisions are read at once: with more, their rows leave the processor's cache."""
STATUSES = ("pending", "learned", "held out", "never activated", "without reward", "paused")
"""What can become of a decision. The first one is that of a decision that has not matured."""
PENDING, LEARNED, HELD_OUT, NEVER_ACTIVATED, WITHOUT_REWARD, PAUSED = range(len(STATUSES))
PARTS_DECODER = msgspec.json.Decoder(dict[str, float])
ALL_COLUMNS = [
    *(f"d.{name}" for name in DECISION_COLUMNS.split(", ") if name != "bandit"),
    *(f"r.{name}" for name in ["n", "key", "value", "parts", "at", "late", "source", "checksum"]),
]
"""The columns of decisions and of their rewards that are read."""
REWARDS = "left join reward r on r.decision = d.n"
"""SQL for decisions ``d`` with their rewards: a row for each reward, or one without."""

Wholes = NDArray[np.int64]


class Matured(NamedTuple):
    """Decisions and what has become of them; all columns have one entry for each.

    ``table`` has the columns of the table ``decision`` but ``bandit``. ``matures`` is when each
    matures, ``status`` a number of STATUSES. ``reward`` is NaN if there is none; the default reward
    is one, and ``rewarded`` says that it is not the default. A decision that was never activated
    has no default reward. ``parts [n, P]`` are the parts of rewards that came, NaN where one did
    not, and ``late`` counts rewards that were late.
    """

    table: Table
    n: Wholes
    matures: Floats
    status: NDArray[np.uint8]
    reward: Floats
    rewarded: Booleans
    parts: Floats
    late: Wholes

    def rows(self, places: Wholes) -> "Matured":
        """Those at some places, in this order."""
        columns: Any = (column[places] for column in self[1:])
        return Matured(picked(self.table, places), *columns)


def picked(table: Table, places: Wholes) -> Table:
    """Some rows of a table, in this order."""
    each = places.tolist()
    return {
        name: column[places]
        if isinstance(column, np.ndarray)
        else [column[place] for place in each]
        for name, column in table.items()
    }


class Event(NamedTuple):
    """A reason for which decisions may mature: rows with a time that has an index.

    ``wait`` is what is added to the time, which is then compared with parameters of another
    ``name``. ``join`` joins the decision.
    """

    rows: str
    time: str
    name: str = ""
    join: str = ""
    only: str = ""
    wait: float = 0.0

    @property
    def inside(self) -> str:
        """SQL that says whether the time is within the parameters."""
        return (
            f"{self.rows[-1]}.bandit = :bandit and {self.time} > :{self.name}after "
            f"and {self.time} <= :{self.name}until {self.only}"
        )


class TrainingRows:
    """Reads the decisions of a bandit that matured between two ticks of a store.

    Rows whose checksum is wrong raise an error that names them.
    """

    def __init__(
        self, store: Store, bandit: int, settings: Settings, menu: ActionSpec, batch: int = BATCH
    ) -> None:
        self._store, self._bandit, self._settings, self._batch = store, bandit, settings, batch
        self._wait = wait_of(settings)
        self._waits = settings.reward_wait > 0
        rule = self._rule = settings.reward_parts
        self._names = [] if rule is None else rule.names
        self._has_slot_rewards = rule is not None and rule.kind == SLOTS
        self._menu = menu

    def learned(self, after: float, until: float) -> Iterator[Columns]:
        """The rows to learn from that matured after one tick and up to another one, in order."""
        for matured in self.matured(after, until):
            which = matured.status == LEARNED
            if not which.all():
                matured = matured.rows(np.flatnonzero(which))
            if len(matured.reward):
                yield Columns(
                    encoded_contexts(self._settings.context, matured.table["context"]),
                    self._encoded_actions(matured.table["action"]),
                    matured.reward,
                    # Numpy's logarithm may differ between processors in the last bit.
                    np.array([*map(math.log, matured.table["propensity"])]),
                    np.nan_to_num(matured.parts) if self._has_slot_rewards else None,
                )

    def _encoded_actions(self, texts: Sequence[str]) -> Floats:
        menu = self._menu
        encoded = {text: menu.encoded(read_action(menu, text)) for text in set(texts)}
        rows = np.array([encoded[text] for text in texts], np.float64)
        return rows.reshape(-1, len(menu.slots) + len(menu.ranges))

    def matured(self, after: float, until: float) -> Iterator[Matured]:
        """All decisions that matured after one tick and up to another one, in order."""
        while after < until:
            end = self._end_of_batch(after, until)
            found = self.read(self._rows(after, end))
            order = np.lexsort((found.n, found.matures))
            inside = (found.matures > after) & (found.matures <= end)
            places = order[inside[order]]
            if len(places) < len(inside) or (places[1:] < places[:-1]).any():
                found = found.rows(places)
            if len(places):
                yield found
            after = end

    def _rows(self, after: float, until: float) -> list[tuple[Any, ...]]:
        """The decisions that may have matured, with ALL_COLUMNS."""
        select = f"select {', '.join(ALL_COLUMNS)} from"
        rows = [
            row
            for one in self._events()
            for row in self._select(
                f"{select} {one.rows} {one.join} {REWARDS} where {one.inside}", after, until
            )
        ]
        if len({row[0] for row in rows}) < len(rows):
            # A decision may have several rewards, and several reasons to be looked at.
            reward = ALL_COLUMNS.index("r.n")
            different = {(row[0], row[reward]): row for row in rows}
            rows = [row for _, row in sorted(different.items())]
        return rows

    def count(self, after: float, until: float, at_most: int) -> int:
        """The number of rows to learn from between two ticks, or ``at_most`` if there are more."""
        status, before = status_sql(self._settings, ":until"), matured_sql(self._settings, ":after")
        learned = f"not ({before}) and {status} = 'learned'"
        each = " union ".join(
            f"select d.n from {one.rows} {one.join} where {one.inside} and {learned}"
            for one in self._events()
        )
        sql = f"select count(*) from (select n from ({each}) as every limit :at_most) as counted"
        ((count,),) = self._select(sql, after, until, at_most=at_most)
        return int(count)

    def pending(self, clock: float) -> int:
        """The number of decisions that have not matured, and will."""
        if self._wait == math.inf:
            return 0
        done = SETTLED if self._waits else matured_sql(self._settings, ":clock")
        ((count,),) = self._store.select(
            f"select count(*) from decision d where d.bandit = :bandit and d.at > :expired "
            f"and not ({done})",
            bandit=self._bandit,
            expired=clock - self._wait,
            clock=clock,
        )
        return int(count)

    def _events(self) -> list["Event"]:
        """Why decisions may have matured after ``:after`` and up to ``:until``."""
        expired = Event("decision d", "d.at", "expired_", wait=self._wait)
        if self._waits:
            return [expired]
        events = [
            Event("reward q", "q.at", join="join decision d on d.n = q.decision"),
            Event("decision d", "d.at + d.activated", only="and d.activated > 0"),
        ]
        return events if self._wait == math.inf else [*events, expired]

    def _select(self, sql: str, after: float, until: float, **values: Any) -> list[tuple[Any, ...]]:
        named = {
            "bandit": self._bandit,
            "after": after,
            "until": until,
            "expired_after": after - self._wait,
            "expired_until": until - self._wait,
        }
        return self._store.select(sql, **named, **values)

    def _end_of_batch(self, after: float, until: float) -> float:
        """A time up to which about as many decisions may have matured as one batch holds."""
        end = until
        for one in self._events():
            sql = f"select {one.time} from {one.rows} where {one.inside} order by {one.time}"
            found = self._select(f"{sql} limit 1 offset :most", after, until, most=self._batch - 1)
            if found:
                end = min(end, found[0][0] + one.wait)
        return end

    def read(self, rows: list[tuple[Any, ...]]) -> Matured:
        """What becomes of decisions when they mature, from rows of ALL_COLUMNS.

        The rows of a decision are together.
        """
        table = as_table(", ".join(ALL_COLUMNS), rows)
        decisions: Table = {name[2:]: column for name, column in table.items() if name[0] == "d"}
        rewards: Table = {name[2:]: column for name, column in table.items() if name[0] == "r"}
        n = rewards["decision"] = np.array(decisions["n"], np.int64)
        # The places of decisions, and of rewards among them.
        first = np.diff(n, prepend=-1) != 0
        place = np.cumsum(first) - 1
        if not first.all():
            decisions, n = picked(decisions, np.flatnonzero(first)), n[first]
        if None in rewards["n"]:
            has_reward = np.array([one is not None for one in rewards["n"]])
            rewards, place = picked(rewards, np.flatnonzero(has_reward)), place[has_reward]
        decisions |= {"n": n, "at": np.array(decisions["at"])}
        self._check("decision", decisions, damaged_decisions)
        self._check("reward", rewards, damaged_rewards)
        return self._outcomes(decisions, rewards, place)

    def _check(self, name: str, table: Table, damaged: Callable[[Table], list[int]]) -> None:
        """Raise an ``InputError`` that names the first of the damaged rows."""
        places = damaged({**table, "bandit": [self._bandit] * len(table["n"])})
        if places:
            raise InputError(
                f"{len(places)} rows of the table {name} are damaged, the first one with n "
                f"= {table['n'][places[0]]}: run `submax doctor`, and restore a backup",
                code=DAMAGED,
            )

    def _outcomes(self, decisions: Table, rewards: Table, place: Wholes) -> Matured:
        """What becomes of decisions at the times when they mature.

        ``place`` are the places of the decisions of the rewards.
        """
        count = len(decisions["n"])
        late = np.array(rewards["late"], np.bool_)
        reward, complete_at = np.full(count, np.nan), np.full(count, np.inf)
        parts = np.full((count, len(self._names)), np.nan)
        # Those in time, in the order in which they came.
        order = np.lexsort((np.array(rewards["n"], np.int64), place))
        order = order[~late[order]]
        if self._names:
            self._combine_parts(picked(rewards, order), place[order], reward, parts, complete_at)
        else:
            start = np.flatnonzero(np.diff(place[order], prepend=-1))
            which = place[order][start]
            complete_at[which] = np.array(rewards["at"], np.float64)[order][start]
            reward[which] = self._combined(np.array(rewards["value"], np.float64)[order], start)
        # NaN if it was not activated in time: late activations are not stored.
        at = np.array(decisions["at"], np.float64)
        started = at + np.array(decisions["activated"], np.float64)
        matures = at + self._wait
        if not self._waits:
            matures = np.fmin(matures, np.maximum(complete_at, started))
        activated, rewarded = ~np.isnan(started), ~np.isnan(reward)
        default = self._settings.default_reward
        known = np.where(activated & ~rewarded, np.nan if default is None else default, reward)
        status = np.where(np.isnan(known), WITHOUT_REWARD, LEARNED)
        status[np.array(decisions["paused"], np.bool_)] = PAUSED
        status[[group == "holdout" for group in decisions["assignment"]]] = HELD_OUT
        status[~activated] = NEVER_ACTIVATED
        lates = np.bincount(place[late], minlength=count)
        return Matured(
            decisions, decisions["n"], matures, status.astype(np.uint8), known, rewarded, parts,
            lates,
        )  # fmt: skip

    def _combined(self, values: Floats, start: Wholes) -> Floats:
        """The combined values of groups that begin at these places."""
        combine = self._settings.combine
        if combine == "first" or len(start) == len(values):
            return values[start]
        if combine == "last":
            return values[np.append(start[1:], len(values)) - 1]
        combined: Floats = (np.maximum if combine == "max" else np.add).reduceat(values, start)
        return combined

    def _combine_parts(
        self, rewards: Table, place: Wholes, reward: Floats, parts: Floats, complete_at: Floats
    ) -> None:
        """Combine rewards that have parts, into the entries of their decisions."""
        groups: dict[int, list[tuple[float, dict[str, float] | None]]] = {}
        columns = rewards["value"], rewards["parts"], rewards["at"]
        rows = zip(place.tolist(), *columns, strict=True)
        for decision, value, text, at in rows:
            group = groups.setdefault(decision, [])
            group.append((value, None if text is None else PARTS_DECODER.decode(text)))
            came = {name for _, one in group for name in one or ()}
            if len(came) == len(self._names):
                complete_at[decision] = min(complete_at[decision], at)
        for decision, group in groups.items():
            total, known = combined_reward(group, self._settings.combine, self._rule)
            reward[decision] = math.nan if total is None else total
            parts[decision] = [known.get(name, np.nan) for name in self._names]


def wait_of(settings: Settings) -> float:
    """``settings.longest_wait``, rounded up to a whole number of ticks."""
    wait = settings.longest_wait
    return wait if wait == math.inf else math.ceil(wait / TICK) * TICK


def matured_sql(settings: Settings, clock: str = ":clock") -> str:
    """SQL that says whether the decision ``d`` has matured at the time ``clock``."""
    wait = wait_of(settings)
    expired = "" if wait == math.inf else f"d.at + {wait!r} <= {clock}"
    if settings.reward_wait > 0:
        return expired
    # Never null, so it can be negated.
    started = f"d.activated is not null and d.at + d.activated <= {clock}"
    complete = f"{started} and {_rewarded_sql(settings, clock)}"
    return f"({complete})" + (f" or {expired}" if expired else "")


SETTLED = "(d.at <= (select settled from counts c where c.bandit = d.bandit))"
"""SQL that says whether the decision ``d`` had matured when ``reward_wait`` grew."""


def status_sql(settings: Settings, clock: str = ":clock", *, settled: bool = False) -> str:
    """SQL for one of STATUSES: what has become of the decision ``d`` at the time ``clock``.

    With ``settled`` a decision that had matured stays so, although ``reward_wait`` has grown.
    """
    without, matured = "", matured_sql(settings, clock)
    if settled:
        matured = f"{matured} or {SETTLED}"
    if settings.default_reward is None:
        given = "exists (select 1 from reward r where r.decision = d.n and r.late = 0)"
        without = f"when not {given} then 'without reward'"
    return f"""case when not ({matured}) then 'pending'
        when d.activated is null then 'never activated' when d.assignment = 'holdout' then
        'held out' when d.paused = 1 then 'paused' {without} else 'learned' end"""


def _rewarded_sql(settings: Settings, clock: str) -> str:
    """SQL that says whether the decision ``d`` has its reward, or all parts of it."""
    given = f"r.decision = d.n and r.late = 0 and r.at <= {clock}"
    rule = settings.reward_parts
    if rule is None:
        return f"exists (select 1 from reward r where {given})"
    parts = f"select count(distinct p.key) from reward r, json_each(r.parts) p where {given}"
    return f"({parts}) = {len(rule.names)}"


def encoded_contexts(schema: ContextSchema, texts: Sequence[str | None]) -> NDArray[np.float32]:
    """The encoded contexts of decisions, ``[n, D]``.

    A field that was added later has its default in earlier decisions.
    """
    fields = schema.fields
    if not fields:
        return np.zeros((len(texts), 0), np.float32)
    rows = read_contexts(texts)
    if any(len(row) != len(fields) for row in rows):
        rows = [schema.with_missing(row) for row in rows]
    try:
        return schema.encode(rows).astype(np.float32)
    except ValueError as error:
        raise InputError(
            f"a context in the store does not fit the declared fields ({error}): restore a "
            "backup of the store",
            code=DAMAGED,
        ) from error


def in_parts(columns: Iterable[Columns], rows: int) -> Iterator[Columns]:
    """The same rows in parts of exactly ``rows`` rows; the last part may have fewer.

    How rows are cut into batches must not change what is computed from them.
    """
    waiting: list[Columns] = []
    count = 0
    for part in columns:
        waiting.append(part)
        count += len(part.reward)
        if count >= rows:
            joined = Columns.joined(waiting)
            whole = count - count % rows
            for first in range(0, whole, rows):
                yield joined.rows(slice(first, first + rows))
            waiting, count = [joined.rows(slice(whole, None))], count - whole
    if count:
        yield Columns.joined(waiting)
