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
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.bandit.rewards import combined_reward
from submax.bandit.row_texts import read_contexts, read_numbers
from submax.bandit.settings import Settings
from submax.bandit.store import Store
from submax.bandit.tables import (
    DAMAGED,
    DECISION_COLUMNS,
    REWARD_COLUMNS,
    TICK,
    damaged_decisions,
    damaged_rewards,
)
from submax.core.arrays import Booleans, Floats
from submax.core.errors import InputError
from submax.schema.actions import ActionSpec, EncodedAction
from submax.schema.context import ContextSchema
from submax.schema.rewards import SLOTS
from submax.schema.rows import Columns

COLUMN_PLACES = {name.strip(): place for place, name in enumerate(DECISION_COLUMNS.split(","))}
ACTIVATED_AT = "at + activated"
"""SQL for when a decision was activated that was not at once; there is an index for it."""
BATCH = 10_000
"""About as many decisions are read at once: a few megabytes."""
STATUSES = ("pending", "learned", "held out", "never activated", "without reward", "paused")
"""What can become of a decision. The first one is that of a decision that has not matured."""
PENDING, LEARNED, HELD_OUT, NEVER_ACTIVATED, WITHOUT_REWARD, PAUSED = range(len(STATUSES))
PARTS_DECODER = msgspec.json.Decoder(dict[str, float])
MAX_CACHED_ACTIONS = 65_536
"""Different joint actions whose indices are cached."""
LOOKED_AT = 64
"""How many numbers say whether numbers repeat."""

Wholes = NDArray[np.int64]


class Matured(NamedTuple):
    """Decisions that matured, in order; all columns have one entry for each.

    ``rows`` are those of the table, with the columns of ``tables.DECISION_COLUMNS``. ``matures`` is
    when each matured, ``status`` a number of STATUSES. ``reward`` is NaN if there is none; the
    default reward is one, and ``rewarded`` says that it is not the default. A decision that was
    never activated has no default reward. ``parts [n, P]`` are the parts of rewards that came, NaN
    where one did not.
    """

    rows: Sequence[tuple[Any, ...]]
    matures: Floats
    status: NDArray[np.uint8]
    reward: Floats
    rewarded: Booleans
    parts: Floats

    def column(self, name: str) -> list[Any]:
        """A column of the table."""
        place = COLUMN_PLACES[name]
        return [row[place] for row in self.rows]


class Rewards(NamedTuple):
    """What the decisions of a batch got: ``reward [n]``, ``parts [n, P]``, ``complete_at [n]``."""

    reward: Floats
    parts: Floats
    complete_at: Floats


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
        self._actions = ActionDecoder(menu)

    def learned(self, after: float, until: float) -> Iterator[Columns]:
        """The rows to learn from that matured after one tick and up to another one, in order."""
        for matured in self.matured(after, until):
            which = np.flatnonzero(matured.status == LEARNED)
            if len(which):
                yield self._columns(matured, which)

    def matured(self, after: float, until: float) -> Iterator[Matured]:
        """All decisions that matured after one tick and up to another one, in order."""
        while after < until:
            end = self._end_of_batch(after, until)
            matured = self._between(after, end)
            if matured.rows:
                yield matured
            after = end

    def count(self, after: float, until: float, at_most: int) -> int:
        """The number of rows to learn from between two ticks, or ``at_most`` if there are more."""
        status, before = status_sql(self._settings, ":until"), matured_sql(self._settings, ":after")
        sql = f"""select count(*) from (select 1 from decision d where {self._candidates()}
            and not ({before}) and {status} = 'learned' limit :at_most) as counted"""
        ((count,),) = self._select(sql, after, until, at_most=at_most)
        return int(count)

    def pending(self, clock: float) -> int:
        """The number of decisions that have not matured, and will."""
        if self._wait == math.inf:
            return 0
        sql = f"""select count(*) from decision d where d.bandit = :bandit and d.at > :expired
            and not ({matured_sql(self._settings, ":clock")})"""
        values = {"bandit": self._bandit, "expired": clock - self._wait}
        if not self._waits:
            values["clock"] = clock
        else:
            sql = "select count(*) from decision where bandit = :bandit and at > :expired"
        ((count,),) = self._store.select(sql, **values)
        return int(count)

    def _events(self) -> list[tuple[str, str, float]]:
        """Where the times are at which decisions may mature: rows, their time, and what is added.

        There is an index for each.
        """
        expired = ("decision", "at", self._wait)
        if self._waits:
            return [expired]
        found = [("reward", "at", 0.0), ("decision", ACTIVATED_AT, 0.0)]
        return found if self._wait == math.inf else [*found, expired]

    def _candidates(self) -> str:
        """SQL for decisions that may have matured after ``:after`` and up to ``:until``."""
        if self._waits:
            return "d.bandit = :bandit and d.at > :expired_after and d.at <= :expired_until"
        found = []
        for table, time, wait in self._events():
            number = "decision" if table == "reward" else "n"
            begin, end = (":expired_after", ":expired_until") if wait else (":after", ":until")
            only = " and activated > 0" if time == ACTIVATED_AT else ""
            found.append(
                f"select {number} from {table} where bandit = :bandit and {time} > {begin} "
                f"and {time} <= {end}{only}"
            )
        return f"d.n in ({' union '.join(found)})"

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
        for table, time, wait in self._events():
            only = " and activated > 0" if time == ACTIVATED_AT else ""
            found = self._store.select(
                f"select {time} from {table} where bandit = :bandit and {time} > :begin{only} "
                f"order by {time} limit 1 offset :batch",
                bandit=self._bandit,
                begin=after - wait,
                batch=self._batch - 1,
            )
            if found:
                end = min(end, found[0][0] + wait)
        return end

    def _between(self, after: float, until: float) -> Matured:
        which = self._candidates()
        # Numbers rise with times, and an index has the order of times.
        order = "d.at, d.n" if self._waits else "d.n"
        rows = self._select(
            f"select {DECISION_COLUMNS} from decision d where {which} order by {order}",
            after,
            until,
        )
        if not rows:
            return self._matured(rows, np.zeros(0), np.zeros(0), self._rewards([], np.zeros(0)))
        columns = ", ".join(f"r.{name.strip()}" for name in REWARD_COLUMNS.split(","))
        tables = "decision d join reward r on r.decision = d.n"
        if not self._waits:
            tables, which = "reward r", which.replace("d.n in", "r.decision in", 1)
        rewards = self._select(f"select {columns} from {tables} where {which}", after, until)
        number, matures, started, given = self._times(rows, rewards)
        inside = np.flatnonzero((matures > after) & (matures <= until))
        places = inside[np.lexsort((number[inside], matures[inside]))]
        if len(places) < len(rows) or (places[1:] < places[:-1]).any():
            rows = [rows[place] for place in places.tolist()]
            given = Rewards(*(column[places] for column in given))
            matures, started = matures[places], started[places]
        return self._matured(rows, matures, started, given)

    def outcomes(
        self, rows: list[tuple[Any, ...]], rewards: list[tuple[Any, ...]], clock: float
    ) -> Matured:
        """What has become of decisions by a time, in the order of their numbers.

        ``rows`` have DECISION_COLUMNS and rising numbers, ``rewards`` are all of theirs. A decision
        that has not matured has the status PENDING, and the reward so far.
        """
        _, matures, started, given = self._times(rows, rewards)
        found = self._matured(rows, matures, started, given)
        pending = ~(matures <= clock)
        return found._replace(
            status=np.where(pending, PENDING, found.status).astype(np.uint8),
            reward=np.where(pending, given.reward, found.reward),
        )

    def _times(
        self, rows: list[tuple[Any, ...]], rewards: list[tuple[Any, ...]]
    ) -> tuple[Wholes, Floats, Floats, Rewards]:
        """The numbers of decisions, when they mature and were activated, and their rewards."""
        check_whole("decision", rows, damaged_decisions(rows))
        check_whole("reward", rewards, damaged_rewards(rewards))
        number = np.array([row[0] for row in rows], np.int64)
        at = np.array([row[COLUMN_PLACES["at"]] for row in rows])
        activated = [row[COLUMN_PLACES["activated"]] for row in rows]
        # NaN if it was not activated in time: late activations are not stored.
        started = at + np.array(activated, np.float64)
        given = self._rewards(rewards, number)
        matures = at + self._wait
        if not self._waits:
            at_reward = np.maximum(given.complete_at, started)
            matures = np.where(at_reward < matures, at_reward, matures)
        return number, matures, started, given

    def _matured(
        self,
        rows: list[tuple[Any, ...]],
        matures: Floats,
        started: Floats,
        given: Rewards,
    ) -> Matured:
        """What becomes of decisions at the times when they mature."""
        default = self._settings.default_reward
        activated, rewarded = ~np.isnan(started), ~np.isnan(given.reward)
        reward = np.where(
            activated & ~rewarded, np.nan if default is None else default, given.reward
        )
        paused = np.array([row[COLUMN_PLACES["paused"]] for row in rows], np.bool_)
        groups = [row[COLUMN_PLACES["assignment"]] for row in rows]
        held_out = np.array([group == "holdout" for group in groups], np.bool_)
        status = np.where(np.isnan(reward), WITHOUT_REWARD, LEARNED)
        status = np.where(paused, PAUSED, status)
        status = np.where(held_out, HELD_OUT, status)
        status = np.where(activated, status, NEVER_ACTIVATED).astype(np.uint8)
        return Matured(rows, matures, status, reward, rewarded, given.parts)

    def _rewards(self, rewards: list[tuple[Any, ...]], numbers: Wholes | Floats) -> Rewards:
        """The combined rewards of decisions, whose numbers are in order."""
        count = len(numbers)
        found = Rewards(
            np.full(count, np.nan),
            np.full((count, len(self._names)), np.nan),
            np.full(count, np.inf),
        )
        if not rewards:
            return found
        number, _, decision, _, value, parts, at, late, _, _ = zip(*rewards, strict=True)
        place = np.searchsorted(numbers, np.array(decision, np.int64))
        order = np.lexsort((np.array(number, np.int64), place))
        order = order[~np.array(late, np.bool_)[order]]
        place = place[order]
        if self._names:
            self._combine_parts(found, order, place, value, parts, at)
            return found
        values = np.array(value, np.float64)[order]
        start = np.flatnonzero(np.diff(place, prepend=-1))
        which = place[start]
        found.complete_at[which] = np.array(at, np.float64)[order][start]
        found.reward[which] = self._combined_values(values, start)
        return found

    def _combined_values(self, values: Floats, start: Wholes) -> Floats:
        """The combined values of groups that begin at these places."""
        combine = self._settings.combine
        if combine == "first" or len(start) == len(values):
            return values[start]
        if combine == "last":
            start = np.append(start[1:], len(values)) - 1
            return values[start]
        combined: Floats = (np.maximum if combine == "max" else np.add).reduceat(values, start)
        return combined

    def _combine_parts(
        self,
        found: Rewards,
        order: Wholes,
        place: Wholes,
        value: Sequence[float],
        parts: Sequence[str | None],
        at: Sequence[float],
    ) -> None:
        groups: dict[int, list[tuple[float, dict[str, float] | None]]] = {}
        for index, decision in zip(order.tolist(), place.tolist(), strict=True):
            text, group = parts[index], groups.setdefault(decision, [])
            group.append((value[index], None if text is None else PARTS_DECODER.decode(text)))
            came = {name for _, one in group for name in one or ()}
            if len(came) == len(self._names) and found.complete_at[decision] == math.inf:
                found.complete_at[decision] = at[index]
        for decision, group in groups.items():
            reward, known = combined_reward(group, self._settings.combine, self._rule)
            found.reward[decision] = math.nan if reward is None else reward
            found.parts[decision] = [known.get(name, np.nan) for name in self._names]

    def _columns(self, matured: Matured, which: Wholes) -> Columns:
        """The learned decisions as columns."""
        rows = matured.rows
        if len(which) < len(rows):
            rows = [rows[place] for place in which.tolist()]
        context, action, propensity = (
            [row[COLUMN_PLACES[name]] for row in rows]
            for name in ("context", "action", "propensity")
        )
        return Columns(
            encoded_contexts(self._settings.context, context),
            self._actions.encoded(action),
            matured.reward[which],
            logarithms(np.array(propensity)),
            np.nan_to_num(matured.parts[which]) if self._has_slot_rewards else None,
        )


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
    # Never null, so that it can be negated.
    started = f"d.activated is not null and d.at + d.activated <= {clock}"
    complete = f"{started} and {_rewarded_sql(settings, clock)}"
    return f"({complete})" + (f" or {expired}" if expired else "")


def status_sql(settings: Settings, clock: str = ":clock") -> str:
    """SQL for one of STATUSES: what has become of the decision ``d`` at the time ``clock``."""
    without = ""
    if settings.default_reward is None:
        given = "exists (select 1 from reward r where r.decision = d.n and r.late = 0)"
        without = f"when not {given} then 'without reward'"
    return f"""case when not ({matured_sql(settings, clock)}) then 'pending'
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
    numbers = None if schema.added else read_numbers(schema, texts)
    if numbers is not None:
        return numbers.astype(np.float32)
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


class ActionDecoder:
    """Encodes actions that are names of arms, or JSON objects of slots."""

    def __init__(self, menu: ActionSpec) -> None:
        self._menu = menu
        self._parts = len(menu.slots) + len(menu.ranges)
        self._known: dict[str, EncodedAction] = {}

    def encoded(self, texts: Sequence[str]) -> Floats:
        """The encoded actions, ``[n, S]``."""
        if len(self._known) > MAX_CACHED_ACTIONS:
            self._known.clear()
        known = self._known
        for text in set(texts):
            if text not in known:
                action: Any = text if self._menu.plain else msgspec.json.decode(text)
                known[text] = self._menu.encoded(action)
        return np.array([known[text] for text in texts], np.float64).reshape(-1, self._parts)


def logarithms(numbers: Floats) -> Floats:
    """The logarithms of numbers above 0, the same on every processor.

    Numpy's logarithm may differ between processors in the last bit. If numbers repeat, as
    propensities of a few choices do, that of each is computed once.

    >>> logarithms(np.array([1.0, 1.0])).tolist()
    [0.0, 0.0]
    """
    if len(np.unique(numbers[:LOOKED_AT])) > LOOKED_AT / 2:
        return np.array([*map(math.log, numbers.tolist())])
    different, place = np.unique(numbers, return_inverse=True)
    return np.array([*map(math.log, different.tolist())])[place]


def check_whole(table: str, rows: Sequence[tuple[Any, ...]], damaged: Sequence[int]) -> None:
    """Raise an ``InputError`` that names the first of the damaged rows, which begin with ``n``."""
    if damaged:
        raise InputError(
            f"{len(damaged)} rows of the table {table} are damaged, the first one with n = "
            f"{rows[damaged[0]][0]}: run `submax doctor`, and restore a backup of the store",
            code=DAMAGED,
        )


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
