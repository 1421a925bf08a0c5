"""When a bandit with a store fits its next version, how, and how the version is published.

A version is fitted in another process (``jobs``), which reads the store by itself and keeps what it
has learned between two fits. The process that decides only asks whether it is time, and writes the
version. A policy that was given as an object cannot be made again elsewhere, so it is fitted here.
"""

import logging
import pickle
import tempfile
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import closing
from itertools import chain
from threading import Lock
from typing import Any, NamedTuple

import msgspec

from submax.bandit.declaring import INSERT_VERSION, DeclaredBandit
from submax.bandit.jobs import JobError, JobRunner, NoProcessError
from submax.bandit.learning import LearnedModel, RecentRows, RefitResult, why_nothing_matured
from submax.bandit.settings import Settings
from submax.bandit.store import Store, open_store
from submax.bandit.tables import TICK, Statement
from submax.bandit.training_rows import TrainingRows, in_parts, status_sql
from submax.core.decoding import known_type
from submax.core.errors import ConflictError, Error, InputError, StoreError, one_line
from submax.core.optional import SPANS
from submax.core.policy import Policy
from submax.core.serialization import modules_of, read_state, state_bytes
from submax.policies.specification import PolicySpecification
from submax.schema.actions import ActionSpec, ChoiceIndices
from submax.schema.model import Model, hash_of
from submax.schema.rows import Columns
from submax.schema.schema import Schema

LOG = logging.getLogger("submax")
MIN_FIRST_ROWS = 10
"""Rows for the first version: with one or two rows a policy would favour an action by chance."""
REST_FACTOR = 2.0
"""The pause between two fits, as a multiple of the time that the last fit took, so that fitting
takes at most a third of the time."""
MAX_PAUSE_SECONDS = 300.0
"""The longest pause after fits that failed; it doubles with each failure, beginning at 1 second."""
LOOK_SECONDS = 1.0
"""How often a bandit without new rows looks whether decisions have matured."""
FIT_SECONDS = 3600.0
"""A fit that takes longer is broken off: its process may be frozen."""
TRAINED_ROWS = 100_000
"""Rows that a policy which trains a model on all rows, such as a network, is given: the last ones.
Training on more takes minutes, and hardly changes a decision."""
TRAINED_NUMBERS = 2**24
"""Numbers in the contexts of these rows, 64 MB as float32: with more than 167 in a context, fewer
rows."""
PART_ROWS = 8192
"""Rows by which a policy is updated at once. Other parts would give other rounding errors."""
SPOOLED_BYTES = 2**26
"""Bytes of rows that are kept in memory during a fit; more are kept in a temporary file."""
SMALL_STATE_BYTES, MAX_STATE_BYTES = 2**20, 2**26
"""A learner's state of up to the first size is written with every version, a larger one when there
are a quarter more rows, and one above the second size never: it is then computed from the rows."""
MAX_LEARNERS, MAX_KEPT_NUMBERS = 256, 2**25
"""The most bandits whose learners a process keeps, and the most numbers in their rows (128 MB)."""


class TrainingError(JobError):
    """The policy failed while it was trained, or the process that trains has ended."""

    default_code = "training-failed"


class FitRequest(NamedTuple):
    """What a version is to be fitted to: the rows that matured up to the tick ``until``."""

    bandit: int
    settings: Settings
    menu: ActionSpec
    until: float

    @property
    def schema(self) -> Schema:
        """The schema of the next model."""
        return self.settings.schema(self.menu)


class VersionRecord(NamedTuple):
    """A row of the table ``version`` without its model."""

    number: int
    rows: int
    cursor: float
    seed: int
    ahead: int
    base: int
    hash: str
    active: ChoiceIndices
    policy: str | dict[str, Any]


class FittedVersion(NamedTuple):
    """A version that was fitted: its record, its model, and how many ``new`` rows it learned from.

    ``state`` is that of the learner; None if it is not to be written.
    """

    record: VersionRecord
    model: bytes
    new: int
    state: bytes | None


VERSIONS = """select number, rows, cursor, seed, ahead, base, hash, active, policy from version
where bandit = :bandit order by number"""


def versions_of(store: Store, bandit: int) -> dict[int, VersionRecord]:
    """All versions of a bandit by number, in order."""
    return {row[0]: _version(row) for row in store.select(VERSIONS, bandit=bandit)}


def newest_version(store: Store, bandit: int) -> VersionRecord | None:
    """The newest version of a bandit, if there is one."""
    found = store.select(f"{VERSIONS} desc limit 1", bandit=bandit)
    return _version(found[0]) if found else None


def _version(row: tuple[Any, ...]) -> VersionRecord:
    active = msgspec.json.decode(row[7], type=known_type(ChoiceIndices))
    return VersionRecord._make([*row[:7], active, msgspec.json.decode(row[8])])


def is_outdated(newest: VersionRecord | None, settings: Settings, menu: ActionSpec) -> bool:
    """Whether the newest version was fitted for other choices or by another policy."""
    if newest is None:
        return False
    return newest.active != menu.active or newest.policy != settings.policy


# Fitting, in whatever process


class SpooledRows:
    """Parts of rows that can be iterated over several times; many are in a temporary file."""

    def __init__(self, parts: Iterable[Columns]) -> None:
        self._file = tempfile.SpooledTemporaryFile(SPOOLED_BYTES)  # noqa: SIM115 - closed below
        self.count = 0
        try:
            for part in parts:
                self.count += len(part.reward)
                pickle.dump(part, self._file, protocol=5)
        except BaseException:
            self.close()
            raise
        self._end = self._file.tell()

    def __iter__(self) -> Iterator[Columns]:
        place = 0
        while place < self._end:
            self._file.seek(place)
            part: Columns = pickle.load(self._file)
            place = self._file.tell()
            yield part

    def close(self) -> None:
        """Delete the temporary file."""
        self._file.close()


class BanditLearner:
    """Learns from the rows of one bandit, and keeps what it has learned for the next version.

    A version is usually an update of the one before it, with the rows in between. It is fitted
    from scratch, to all rows, if choices or the policy changed, if ``LearnedModel.must_fit`` says
    so, and if the policy trains a model on all rows, which is then given the last ones. After a
    restart the state is read from the store, or computed again from the rows: a version records
    from which one it was made, so the same rows always give the same models.
    """

    def __init__(self, policy: Policy[Any]) -> None:
        self.policy = policy
        # The version whose model is the state's, and its hash.
        self._known: tuple[int, str] | None = None
        self._state: LearnedModel | None = None
        self._state_rows = 0
        self._recent: RecentRows | None = None
        self._read_to = 0.0

    @property
    def kept_numbers(self) -> int:
        """How many numbers the rows have that are kept for the next version."""
        parts = [] if self._recent is None else self._recent.parts
        return sum(part.context.size + 3 * part.action.size for part in parts)

    def fit(self, store: Store, request: FitRequest) -> FittedVersion | None:
        """Fit the next version; None if there is nothing new to learn from."""
        newest = newest_version(store, request.bandit)
        outdated = is_outdated(newest, request.settings, request.menu)
        rows = TrainingRows(store, request.bandit, request.settings, request.menu)
        fit = self._train if self.policy.traits.trains_models else self._learn
        cursor = newest.cursor if newest else 0.0
        with closing(SpooledRows(in_parts(rows.learned(cursor, request.until), PART_ROWS))) as new:
            if not new.count and not outdated:
                return None
            ahead = max(1, new.count) + rows.pending(request.until)
            if outdated and newest is not None:
                ahead = max(ahead, newest.ahead)
            state, base = fit(store, request, newest, new, ahead)
        record = VersionRecord(
            newest.number + 1 if newest else 1,
            state.rows,
            request.until,
            request.settings.seed,
            ahead,
            base,
            "",
            state.model.active,
            request.settings.policy,
        )
        return self._fitted(record, state, new.count)

    def _fitted(self, record: VersionRecord, state: LearnedModel, new: int) -> FittedVersion:
        data = state.model.to_bytes()
        record = record._replace(hash=hash_of(data))
        # A model that cannot be read back must not be published.
        Model.from_bytes(data, record.hash, self.policy)
        written = None
        if not self.policy.traits.trains_models:
            self._state, self._known = state, (record.number, record.hash)
            written = state_bytes(state, {"version": record.number}, for_learning=True)
            small = len(written) <= SMALL_STATE_BYTES or 4 * state.rows >= 5 * self._state_rows
            if len(written) > MAX_STATE_BYTES or not small:
                written = None
            else:
                self._state_rows = state.rows
        return FittedVersion(record, data, new, written)

    def _train(
        self,
        store: Store,
        request: FitRequest,
        newest: VersionRecord | None,
        new: SpooledRows,
        ahead: int,
    ) -> tuple[LearnedModel, int]:
        """Let a policy train a model on the last rows."""
        schema, width = request.schema, request.settings.context.width
        most = min(TRAINED_ROWS, TRAINED_NUMBERS // max(1, width))
        cursor = newest.cursor if newest else 0.0
        is_wider = self._recent is not None and any(
            part.context.shape[1] != width for part in self._recent.parts
        )
        if self._recent is None or self._read_to != cursor or is_wider:
            self._recent = RecentRows(most)
            for part in chain(_history(store, request), _rows(store, request, 0, cursor)):
                self._recent.add(part)
        for part in new:
            self._recent.add(part)
        self._read_to = request.until
        count = new.count + (newest.rows if newest else 0)
        parts = self._recent.parts
        kept = [Columns.joined(parts).rows(slice(-most, None))] if parts else []
        seed = request.settings.seed
        return LearnedModel.fitted(schema, self.policy, kept, seed, ahead, count), 0

    def _learn(
        self,
        store: Store,
        request: FitRequest,
        newest: VersionRecord | None,
        new: SpooledRows,
        ahead: int,
    ) -> tuple[LearnedModel, int]:
        """Update the newest version with the new rows, or fit a model to all rows."""
        schema, seed = request.schema, request.settings.seed
        if newest is None:
            rows = chain(_history(store, request), new)
            return self._fit_to(rows, schema, seed, ahead), 0
        state = None
        if not is_outdated(newest, request.settings, request.menu):
            state = self._newest(store, request, newest)
        if state is None or state.must_fit(schema, state.rows + new.count):
            return self._from_scratch(store, request, request.until, seed, ahead), 0
        return state.updated(schema, self.policy, new, seed, ahead), newest.number

    def _from_scratch(
        self, store: Store, request: FitRequest, until: float, seed: int, ahead: int
    ) -> LearnedModel:
        """The model that is fitted to all rows up to a tick."""
        rows = chain(_history(store, request), _rows(store, request, 0.0, until))
        return self._fit_to(rows, request.schema, seed, ahead)

    def _fit_to(
        self, rows: Iterable[Columns], schema: Schema, seed: int, ahead: int
    ) -> LearnedModel:
        with closing(SpooledRows(in_parts(rows, PART_ROWS))) as parts:
            return LearnedModel.fitted(schema, self.policy, parts, seed, ahead)

    def _newest(
        self, store: Store, request: FitRequest, newest: VersionRecord
    ) -> LearnedModel | None:
        """The state of the newest version; None if it cannot be known."""
        if self._known != (newest.number, newest.hash):
            self._state = self._restored(store, request, newest)
            self._known = (newest.number, newest.hash)
        return self._state

    def _restored(
        self, store: Store, request: FitRequest, newest: VersionRecord
    ) -> LearnedModel | None:
        """The state of the newest version, from the store or computed from the rows."""
        links, versions = [newest], versions_of(store, request.bandit)
        while links[-1].base in versions:
            links.append(versions[links[-1].base])
        place, state = self._read(store, request.bandit, links)
        if state is None:
            place, first = len(links) - 1, links[-1]
            if first.base or not first.cursor:
                # It was learned elsewhere.
                return None
            state = self._from_scratch(store, request, first.cursor, first.seed, first.ahead)
        for before, link in zip(links[place:0:-1], links[place - 1 :: -1], strict=False):
            new = _rows(store, request, before.cursor, link.cursor)
            with closing(SpooledRows(in_parts(new, PART_ROWS))) as parts:
                state = state.updated(request.schema, self.policy, parts, link.seed, link.ahead)
        if hash_of(state.model.to_bytes()) == links[0].hash:
            return state
        LOG.warning(
            "version %d cannot be computed again from its rows, so the next one is fitted to all "
            "rows: rows were deleted, or libraries have other versions",
            links[0].number,
        )
        return None

    def _read(
        self, store: Store, bandit: int, links: list[VersionRecord]
    ) -> tuple[int, LearnedModel | None]:
        """The state in the store and its place in ``links``, if it belongs to one of them."""
        found = store.select(
            "select state, hash from learner where bandit = :bandit", bandit=bandit
        )
        try:
            if not found or hash_of(bytes(found[0][0])) != found[0][1]:
                return 0, None
            state, facts = read_state(bytes(found[0][0]), modules_of(self.policy))
        except InputError:
            return 0, None
        for place, link in enumerate(links):
            if link.number == facts.get("version") and isinstance(state, LearnedModel):
                same = hash_of(state.model.to_bytes()) == link.hash
                self._state_rows = state.rows
                return place, state if same else None
        return 0, None


def _rows(store: Store, request: FitRequest, after: float, until: float) -> Iterator[Columns]:
    rows = TrainingRows(store, request.bandit, request.settings, request.menu)
    return rows.learned(after, until)


def _history(store: Store, request: FitRequest) -> Iterator[Columns]:
    """The rows of a trained policy, with the columns that contexts have now."""
    context = request.settings.context
    for part in history_of(store, request.bandit):
        yield part._replace(context=context.widened(part.context))


def history_of(store: Store, bandit: int) -> Iterator[Columns]:
    """The rows of a trained policy from which a bandit was started."""
    parts = store.select(
        "select part from history where bandit = :bandit order by part", bandit=bandit
    )
    for (part,) in parts:
        ((data, recorded),) = store.select(
            "select rows, hash from history where bandit = :bandit and part = :part",
            bandit=bandit,
            part=part,
        )
        columns, _ = read_state(bytes(data))
        if not isinstance(columns, Columns) or columns.hash != recorded:
            raise InputError(
                f"part {part} of the rows that the bandit was started with is damaged: restore a "
                "backup of the store",
                code="damaged-store",
            )
        yield columns


# Fitting in the process for jobs


LEARNERS: OrderedDict[tuple[str, int, bytes], BanditLearner] = OrderedDict()
"""The learners that this process keeps, those that were used last at the end."""
STORES: dict[str, Store] = {}
"""The stores that this process has opened to read them."""


def fit_in_job(address: str, request: FitRequest) -> FittedVersion | None:
    """Fit the next version of a bandit; run by a ``JobRunner``."""
    key = address, request.bandit, msgspec.msgpack.encode(request.settings.policy)
    learner, store = LEARNERS.pop(key, None), STORES.pop(address, None)
    if store is not None and not store.is_there:
        # Another file has its place, such as a backup.
        store.close()
        learner = store = None
    if learner is None:
        learner = BanditLearner(PolicySpecification(request.settings.policy).build())
    store = store or open_store(address, read_only=True)
    try:
        fitted = learner.fit(store, request)
    except BaseException:
        store.close()
        raise
    STORES[address], LEARNERS[key] = store, learner
    while len(LEARNERS) > 1 and (
        len(LEARNERS) > MAX_LEARNERS
        or sum(one.kept_numbers for one in LEARNERS.values()) > MAX_KEPT_NUMBERS
    ):
        LEARNERS.popitem(last=False)
    return fitted


# When to fit, and publishing, in the process that decides


class Refitter:
    """Fits and publishes the versions of one bandit, if this process leads.

    ``step`` is called again and again in the background and does not wait for a fit; ``refit`` is
    called by users, and does. ``policy`` is that of the bandit if it was given as an object.
    """

    def __init__(
        self,
        store: Store,
        declared: DeclaredBandit,
        jobs: JobRunner,
        policy: Policy[Any] | None = None,
    ) -> None:
        self._store, self._jobs, self._custom = store, jobs, policy
        self._declared = declared
        self._here: BanditLearner | None = None
        self._lock = Lock()
        self._job: Future[FittedVersion | None] | None = None
        self._begun = 0.0
        self._fitted_at, self._fit_seconds, self._failures = time.monotonic(), 0.0, 0
        self._looks_at = 0.0
        # Rows that were counted since the newest version, and up to when.
        self._counted, self._counted_from, self._counted_to = 0, -1.0, 0.0

    def step(self, declared: DeclaredBandit) -> bool:
        """Fit a version if it is time, or publish the one that was fitted; whether one was.

        If a fit fails, its error is raised, and the next one waits for a while.
        """
        # While a user waits for ``refit``, the background goes on with other bandits.
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self._declared = declared
            return self._step()
        finally:
            self._lock.release()

    def _step(self) -> bool:
        if self._job is not None:
            return self._job.done() and self._collect()
        if self._declared.settings.status == "archived" or not self._is_time():
            return False
        if not self._store.lead(self._task):
            return False
        if self._fits_here:
            return self._fit_and_publish() is not None
        if not self._jobs.busy:
            self._begun = time.monotonic()
            self._job = self._submitted()
        return False

    def refit(self, declared: DeclaredBandit) -> RefitResult:
        """Fit a version now from decisions that have matured; the result says why not, if not."""
        with self._lock:
            self._declared = declared
            if not self._store.lead(self._task):
                raise ConflictError(
                    f"another process fits the versions of {declared.name!r}, and one process at "
                    "a time may: call refit there"
                )
            if self._job is not None:
                # What the background fits counts, but further rows may have matured.
                self._collect()
            fitted = self._fit_and_publish()
            if fitted is None:
                return self._nothing_learned()
            record = fitted.record
            reason = (
                f"version {record.number} was fitted from {record.rows} rows, {fitted.new} of "
                "them new"
            )
            return RefitResult(True, record.number, fitted.new, reason)

    @property
    def _task(self) -> str:
        return f"fit {self._declared.name}"

    @property
    def _fits_here(self) -> bool:
        return (
            self._here is not None or PolicySpecification(self._declared.settings.policy).is_object
        )

    def _request(self) -> FitRequest:
        declared = self._declared
        return FitRequest(
            declared.n, declared.settings, declared.menu, self._store.tick(declared.n)
        )

    def _submitted(self) -> "Future[FittedVersion | None]":
        return self._jobs.submit(FIT_SECONDS, fit_in_job, self._store.address, self._request())

    def _is_time(self) -> bool:
        """Whether a version is to be fitted now: enough new rows or time, or it is outdated."""
        now, settings = time.monotonic(), self._declared.settings
        waited = now - self._fitted_at
        pause = min(2.0 ** (self._failures - 1), MAX_PAUSE_SECONDS) if self._failures else 0.0
        if now < self._looks_at or waited < max(REST_FACTOR * self._fit_seconds, pause):
            return False
        newest = newest_version(self._store, self._declared.n)
        if is_outdated(newest, settings, self._declared.menu):
            return True
        new = self._new_rows(newest)
        if not new:
            self._looks_at = now + LOOK_SECONDS
        fewest = min(settings.refit_rows, MIN_FIRST_ROWS) if newest is None else 1
        waited_enough = waited >= settings.refit_seconds and new >= fewest
        return new >= settings.refit_rows or waited_enough

    def _new_rows(self, newest: VersionRecord | None) -> int:
        """How many rows matured since the newest version; no more are counted than are needed."""
        declared, cursor = self._declared, 0.0 if newest is None else newest.cursor
        if self._counted_from != cursor:
            self._counted, self._counted_from, self._counted_to = 0, cursor, cursor
        rows = TrainingRows(self._store, declared.n, declared.settings, declared.menu)
        now, most = self._store.now(declared.n), declared.settings.refit_rows
        # Rows of this very moment are counted again next time: there may be more of them.
        closed = max(now - TICK, self._counted_to)
        self._counted += rows.count(self._counted_to, closed, max(0, most - self._counted))
        self._counted_to = closed
        return self._counted + rows.count(closed, now, most)

    def _fit_and_publish(self) -> FittedVersion | None:
        self._begun = time.monotonic()
        if not self._fits_here:
            try:
                return self._published(self._submitted())
            except NoProcessError as error:
                LOG.warning(
                    "%s: versions are fitted in the process that decides: %s",
                    self._declared.name,
                    error,
                )
        if self._here is None or self._custom is None:
            policy = self._declared.settings.build_policy(self._custom)
            if self._here is None or policy != self._here.policy:
                self._here = BanditLearner(policy)
        here: Future[FittedVersion | None] = Future()
        try:
            here.set_result(self._here.fit(self._store, self._request()))
        except Exception as error:
            here.set_exception(error)
        return self._published(here)

    def _collect(self) -> bool:
        """Publish what the job has fitted."""
        job, self._job = self._job, None
        if job is None:
            return False
        try:
            return self._published(job) is not None
        except NoProcessError:
            return self._fit_and_publish() is not None

    def _published(self, job: "Future[FittedVersion | None]") -> FittedVersion | None:
        """Wait for a fit, and publish the version unless there is nothing new."""
        try:
            with SPANS.span("submax.refit", bandit=self._declared.name):
                fitted = job.result()
                if fitted is not None and not self._publish(fitted):
                    fitted = None
        except (StoreError, NoProcessError):
            # The store is away: the fit did not fail.
            raise
        except Exception as error:
            self._failures += 1
            self._fitted_at = time.monotonic()
            if isinstance(error, Error) and not isinstance(error, JobError):
                raise
            raise TrainingError(
                str(error) if isinstance(error, JobError) else one_line(error)
            ) from error
        self._failures = 0
        self._fit_seconds = time.monotonic() - self._begun
        self._fitted_at = time.monotonic()
        self._counted_from = -1.0
        if fitted is not None:
            record = fitted.record
            LOG.info("%s: version %d from %d rows", self._declared.name, record.number, record.rows)
        else:
            self._looks_at = self._fitted_at + LOOK_SECONDS
        return fitted

    def _publish(self, fitted: FittedVersion) -> bool:
        """Write a version, which decides from then on unless another one is held.

        False if the bandit was deleted in the meantime: nothing of it is written again.
        """
        record, bandit = fitted.record, self._declared.n
        if hash_of(fitted.model) != record.hash:
            raise InputError("the model of the next version is damaged: see that memory is whole")
        values = {
            **record._asdict(),
            "bandit": bandit,
            "at": self._store.now(bandit),
            "policy": msgspec.json.encode(record.policy).decode(),
            "active": msgspec.json.encode(record.active).decode(),
            "model": fitted.model,
            "state": fitted.state,
            "state_hash": "" if fitted.state is None else hash_of(fitted.state),
            "old": record.number - self._declared.settings.keep_versions,
        }
        statements = PUBLISH if fitted.state is None else [*PUBLISH, KEEP_STATE]
        try:
            self._store.execute([Statement(sql, values, required) for sql, required in statements])
        except ConflictError as error:
            found = self._store.select("select deleted from bandit where n = :n", n=bandit)
            if not found or found[0][0]:
                return False
            raise ConflictError(
                f"another process wrote version {record.number} first, and one process fits "
                "versions: call refit there"
            ) from error
        return True

    def _nothing_learned(self) -> RefitResult:
        declared, clock = self._declared, self._store.now(self._declared.n)
        statuses = dict(
            self._store.select(
                f"select {status_sql(declared.settings)} as status, count(*) from decision d "
                "where d.bandit = :bandit group by status",
                bandit=declared.n,
                clock=clock,
            )
        )
        decisions = sum(statuses.values())
        counts = {
            **statuses,
            "decisions": decisions,
            "matured": decisions - statuses.get("pending", 0),
        }
        fresh = not statuses.get("learned", 0)
        reason = why_nothing_matured(counts, declared.settings, fresh)
        return RefitResult(False, declared.published, 0, reason)


PUBLISH = [
    # Fails if the bandit was deleted, and lets one process at a time publish.
    (
        "update bandit set revision = revision + 1, published = case when held = 0 then :number "
        "else published end where n = :bandit and deleted = 0",
        True,
    ),
    (f"{INSERT_VERSION} on conflict (bandit, number) do nothing", True),
    (
        "insert into publication (bandit, at, version, held) select n, :at, published, 0 "
        "from bandit where n = :bandit and published = :number",
        False,
    ),
    (
        "update version set model = null where bandit = :bandit and number <= :old "
        "and model is not null and number <> (select published from bandit where n = :bandit)",
        False,
    ),
]
"""The statements that write a version, and whether they must change a row."""
KEEP_STATE = (
    "insert into learner (bandit, cursor, state, hash) values (:bandit, :cursor, :state, "
    ":state_hash) on conflict (bandit) do update set cursor = excluded.cursor, "
    "state = excluded.state, hash = excluded.hash",
    False,
)
