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
from itertools import pairwise
from threading import Lock
from typing import Any, NamedTuple

import msgspec

from submax.bandit.declaring import (
    DeclaredBandit,
    StoredVersion,
    newest_version,
    version_statement,
    versions,
)
from submax.bandit.jobs import JobError, JobRunner, NoProcessError
from submax.bandit.learning import RefitResult, why_nothing_matured
from submax.bandit.settings import Settings
from submax.bandit.store import Store, open_store
from submax.bandit.tables import Statement
from submax.bandit.training_rows import TrainingRows, in_parts, status_sql
from submax.core.errors import ConflictError, Error, InputError, StoreError, one_line
from submax.core.optional import SPANS
from submax.core.policy import Policy
from submax.core.serialization import modules_of, read_state, state_bytes
from submax.policies.specification import PolicySpecification
from submax.schema.actions import ActionSpec
from submax.schema.model import Model, hash_of, most_rows
from submax.schema.rows import Columns

LOG = logging.getLogger("submax")
MIN_FIRST_ROWS = 10
"""Rows for the first version: with one or two rows a policy would favour an action by chance."""
REST_FACTOR = 2.0
"""The pause between two fits, as a multiple of the time that the last fit took, so fitting
takes at most a third of the time."""
MAX_PAUSE_SECONDS = 300.0
"""The longest pause after fits that failed; it doubles with each failure, beginning at 1 second."""
LOOK_SECONDS = 1.0
"""How often a bandit without new rows looks whether decisions have matured."""
FIT_SECONDS = 3600.0
"""A fit that takes longer is broken off: its process may be frozen."""
PART_ROWS = 8192
"""Rows by which a policy is updated at once. Other parts would give other rounding errors."""
SPOOLED_BYTES = 2**26
"""Bytes of rows that are kept in memory during a fit; more are kept in a temporary file."""
SMALL_STATE_BYTES, MAX_STATE_BYTES = 2**20, 2**26
"""A learner's state of up to the first size is written with every version, a larger one when there
are a quarter more rows, and one above the second size never: it is then computed from the rows."""
MAX_LEARNERS = 256
"""The most bandits whose learners a process keeps."""


class TrainingError(JobError):
    """The policy failed while it was trained, or the process that trains has ended."""

    default_code = "training-failed"


class FitRequest(NamedTuple):
    """What a version is to be fitted to: the rows that matured up to the tick ``until``."""

    bandit: int
    settings: Settings
    menu: ActionSpec
    until: float


class FittedVersion(NamedTuple):
    """A version that was fitted, its model, and how many ``new`` rows it learned from.

    ``state`` is that of the learner; None if it is not to be written.
    """

    version: StoredVersion
    model: bytes
    new: int
    state: bytes | None


def is_outdated(newest: StoredVersion | None, settings: Settings, menu: ActionSpec) -> bool:
    """Whether the newest version was fitted for other choices or by another policy."""
    return newest is not None and (newest.active, newest.policy) != (menu.active, settings.policy)


# Fitting, in whatever process


class SpooledRows:
    """Parts of rows that can be iterated over several times; many are in a temporary file."""

    def __init__(self, parts: Iterable[Columns]) -> None:
        self._file = tempfile.SpooledTemporaryFile(SPOOLED_BYTES)  # noqa: SIM115 - closed below
        self.count = 0
        try:
            for part in in_parts(parts, PART_ROWS):
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
        self._file.close()


class BanditLearner:
    """Learns from the rows of one bandit, and keeps the newest model for the next version.

    A version is usually an update of the one before it, with the rows in between. It is fitted
    from scratch, to all rows, if choices or the policy changed, or if ``Model.must_fit`` says so;
    a policy that trains a model on all rows is given those of the last decisions. After a restart
    the model is read from the store with all that learning needs, or computed again from the rows:
    a version records from which one it was made, so the same rows always give the same models.
    """

    def __init__(self, policy: Policy[Any]) -> None:
        self.policy = policy
        self._model: Model | None = None
        # The hash of that model, and the rows of the last one that was written for a restart.
        self._known, self._written_rows = "", 0

    def fit(self, store: Store, request: FitRequest) -> FittedVersion | None:
        bandit, settings, menu, until = request
        newest = newest_version(store, bandit)
        outdated = is_outdated(newest, settings, menu)
        rows = TrainingRows(store, bandit, settings, menu)
        with closing(SpooledRows(rows.learned(newest.cursor if newest else 0.0, until))) as new:
            if not new.count and not outdated:
                return None
            ahead = max(1, new.count) + rows.pending(until)
            if outdated and newest is not None:
                ahead = max(ahead, newest.ahead)
            model = self._learned(store, request, newest, new, ahead)
        data, last = model.to_bytes(), newest.version if newest else 0
        base = last if model.fitted_rows < model.rows else 0
        reason = "new rewards" if base else "fitted anew to all rows"
        if newest is None:
            reason = "first version"
        elif outdated:
            reason = "other choices" if newest.active != model.active else "another policy"
        version = StoredVersion(
            last + 1, 0.0, settings.policy, model.rows, until, settings.seed, model.active, ahead,
            base, reason, hash_of(data),
        )  # fmt: skip
        # A model that cannot be read back must not be published.
        Model.from_bytes(data, version.model, self.policy)
        return FittedVersion(version, data, new.count, self._for_restart(model, version))

    def _for_restart(self, model: Model, version: StoredVersion) -> bytes | None:
        """Keep the model for the next version; what is to be written of it for a restart."""
        if self.policy.traits.trains_models:
            return None
        self._model, self._known = model, version.model
        written = state_bytes(model, {"version": version.version}, for_learning=True)
        small = len(written) <= SMALL_STATE_BYTES or 4 * model.rows >= 5 * self._written_rows
        if len(written) > MAX_STATE_BYTES or not small:
            return None
        self._written_rows = model.rows
        return written

    def _learned(
        self,
        store: Store,
        request: FitRequest,
        newest: StoredVersion | None,
        new: SpooledRows,
        ahead: int,
    ) -> Model:
        """Update the model of the newest version with the new rows, or fit one to all rows."""
        settings, until = request.settings, request.until
        schema, seed = settings.schema(request.menu), settings.seed
        after, rows, model = 0.0, None, None
        if self.policy.traits.trains_models:
            rows = new.count + (newest.rows if newest else 0)
            after = _time_before(store, request.bandit, most_rows(settings.context.width))
        elif newest is not None and not is_outdated(newest, settings, request.menu):
            if self._known != newest.model:
                self._model, self._known = self._restored(store, request, newest), newest.model
            model = self._model
        if model is not None and not model.must_fit(schema, model.rows + new.count):
            return model.updated(schema, self.policy, new, seed, ahead)
        with closing(SpooledRows(_all_rows(store, request, after, until))) as parts:
            return Model.fitted(schema, self.policy, parts, seed, ahead, rows)

    def _restored(self, store: Store, request: FitRequest, newest: StoredVersion) -> Model | None:
        """The model of the newest version, stored or computed from the rows; None if unknown."""
        bandit, settings, menu, _ = request
        known = {one.version: one for one in versions(store, bandit)}
        chain = [newest]
        while chain[-1].base in known:
            chain.append(known[chain[-1].base])
        schema, number, model = settings.schema(menu), *self._stored(store, bandit)
        place = next((at for at, one in enumerate(chain) if one.version == number), None)
        if model is None or place is None or hash_of(model.to_bytes()) != chain[place].model:
            place, first = len(chain) - 1, chain[-1]
            if first.base or not first.cursor:
                # It was learned elsewhere.
                return None
            with closing(SpooledRows(_all_rows(store, request, 0.0, first.cursor))) as parts:
                model = Model.fitted(schema, self.policy, parts, first.seed, first.ahead)
        rows = TrainingRows(store, bandit, settings, menu)
        for before, link in pairwise(chain[place::-1]):
            with closing(SpooledRows(rows.learned(before.cursor, link.cursor))) as parts:
                model = model.updated(schema, self.policy, parts, link.seed, link.ahead)
        if hash_of(model.to_bytes()) == newest.model:
            return model
        LOG.warning(
            "version %d cannot be computed again from its rows, so the next one is fitted to all "
            "rows: rows were deleted, or libraries have other versions",
            newest.version,
        )
        return None

    def _stored(self, store: Store, bandit: int) -> tuple[int, Model | None]:
        """What was written for a restart, and the version that it belongs to."""
        found = store.select("select state, hash from learner where bandit = :n", n=bandit)
        try:
            if not found or hash_of(bytes(found[0][0])) != found[0][1]:
                return 0, None
            model, facts = read_state(bytes(found[0][0]), modules_of(self.policy))
        except InputError:
            return 0, None
        self._written_rows = model.rows
        return facts["version"], model


def _time_before(store: Store, bandit: int, decisions: int) -> float:
    """A time after which a bandit made so many decisions; 0 if it made fewer."""
    sql = "select at from decision where bandit = :n order by at desc limit 1 offset :most"
    found = store.select(sql, n=bandit, most=decisions)
    return float(found[0][0]) if found else 0.0


def _all_rows(store: Store, request: FitRequest, after: float, until: float) -> Iterator[Columns]:
    """The rows between two ticks; from the beginning, those of a trained policy come first."""
    bandit, settings, menu, _ = request
    if not after:
        for part in history_of(store, bandit):
            yield part._replace(context=settings.context.widened(part.context))
    yield from TrainingRows(store, bandit, settings, menu).learned(after, until)


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
                f"part {part} of the bandit's initial rows is damaged: restore a backup of "
                "the store",
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
    if len(LEARNERS) > MAX_LEARNERS:
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

    def step(self, declared: DeclaredBandit) -> bool:
        """Fit a version if it is time, or publish the one that was fitted; whether one was.

        If a fit fails, its error is raised, and the next one waits for a while.
        """
        # While a user waits for ``refit``, the background goes on with other bandits.
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self._declared = declared
            if self._job is not None:
                return self._job.done() and self._collect()
            if declared.settings.status == "archived" or not self._is_time():
                return False
            if not self._store.lead(self._task):
                return False
            if self._fits_here:
                return self._fit_and_publish() is not None
            if not self._jobs.busy:
                self._begun = time.monotonic()
                self._job = self._submitted()
            return False
        finally:
            self._lock.release()

    def refit(self, declared: DeclaredBandit) -> RefitResult:
        """Fit a version now from decisions that have matured; the result says why not, if not."""
        with self._lock:
            self._declared = declared
            if not self._store.lead(self._task):
                raise ConflictError(
                    f"another process fits the versions of {declared.name!r}: call refit there"
                )
            if self._job is not None:
                # What the background fits counts, but further rows may have matured.
                self._collect()
            fitted = self._fit_and_publish()
            if fitted is None:
                return self._nothing_learned()
            number, rows = fitted.version.version, fitted.version.rows
            reason = f"version {number} was fitted from {rows} rows, {fitted.new} of them new"
            return RefitResult(True, number, fitted.new, reason)

    @property
    def _task(self) -> str:
        return f"fit {self._declared.name}"

    @property
    def _fits_here(self) -> bool:
        policy = PolicySpecification(self._declared.settings.policy)
        return self._here is not None or policy.is_object

    def _request(self) -> FitRequest:
        here = self._declared
        return FitRequest(here.n, here.settings, here.menu, self._store.tick(here.n))

    def _submitted(self) -> "Future[FittedVersion | None]":
        return self._jobs.submit(FIT_SECONDS, fit_in_job, self._store.address, self._request())

    def _is_time(self) -> bool:
        now, settings = time.monotonic(), self._declared.settings
        waited = now - self._fitted_at
        pause = min(2.0 ** (self._failures - 1), MAX_PAUSE_SECONDS) if self._failures else 0.0
        if now < self._looks_at or waited < max(REST_FACTOR * self._fit_seconds, pause):
            return False
        newest = newest_version(self._store, self._declared.n)
        if is_outdated(newest, settings, self._declared.menu):
            return True
        here, cursor = self._declared, newest.cursor if newest else 0.0
        rows = TrainingRows(self._store, here.n, settings, here.menu)
        new = rows.count(cursor, self._store.now(here.n), settings.refit_rows)
        if not new:
            self._looks_at = now + LOOK_SECONDS
        fewest = min(settings.refit_rows, MIN_FIRST_ROWS) if newest is None else 1
        waited_enough = waited >= settings.refit_seconds and new >= fewest
        return new >= settings.refit_rows or waited_enough

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
        policy = self._custom or self._declared.settings.build_policy(None)
        if self._here is None or policy != self._here.policy:
            self._here = BanditLearner(policy)
        here: Future[FittedVersion | None] = Future()
        try:
            here.set_result(self._here.fit(self._store, self._request()))
        except Exception as error:
            here.set_exception(error)
        return self._published(here)

    def _collect(self) -> bool:
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
        self._fitted_at = time.monotonic()
        self._fit_seconds = self._fitted_at - self._begun
        if fitted is None:
            self._looks_at = self._fitted_at + LOOK_SECONDS
        else:
            number, rows = fitted.version.version, fitted.version.rows
            LOG.info("%s: version %d from %d rows", self._declared.name, number, rows)
        return fitted

    def _publish(self, fitted: FittedVersion) -> bool:
        """Write a version, which decides from then on unless another one is held.

        False if the bandit was deleted in the meantime: nothing of it is written again.
        """
        bandit = self._declared.n
        version = msgspec.structs.replace(fitted.version, at=self._store.now(bandit))
        if hash_of(fitted.model) != version.model:
            raise InputError("the model of the next version is damaged: check the machine's memory")
        values = {
            "bandit": bandit,
            "number": version.version,
            "at": version.at,
            "old": version.version - self._declared.settings.keep_versions,
        }
        statements = [
            Statement(PUBLISH, values, required=True),
            version_statement(bandit, version, fitted.model),
            *(Statement(sql, values) for sql in (NOTE, FORGET_OLD)),
        ]
        if fitted.state is not None:
            state = {"state": fitted.state, "hash": hash_of(fitted.state)}
            kept = {"bandit": bandit, "cursor": version.cursor, **state}
            statements.append(Statement(KEEP_STATE, kept))
        try:
            self._store.execute(statements)
        except ConflictError as error:
            found = self._store.select("select deleted from bandit where n = :n", n=bandit)
            if not found or found[0][0]:
                return False
            raise ConflictError(
                f"another process wrote version {version.version} first: call refit there"
            ) from error
        return True

    def _nothing_learned(self) -> RefitResult:
        here = self._declared
        sql = (
            f"select {status_sql(here.settings, settled=True)} as status, count(*) from decision d "
            "where d.bandit = :bandit group by status"
        )
        statuses: dict[str, int] = dict(
            self._store.select(sql, bandit=here.n, clock=self._store.now(here.n))
        )
        decisions = sum(statuses.values())
        matured = decisions - statuses.get("pending", 0)
        counts = {**statuses, "decisions": decisions, "matured": matured}
        reason = why_nothing_matured(counts, here.settings, not statuses.get("learned", 0))
        return RefitResult(False, here.published, 0, reason)


PUBLISH = (
    # Fails if the bandit was deleted, and lets one process at a time publish.
    "update bandit set revision = revision + 1, published = case when held = 0 then :number "
    "else published end where n = :bandit and deleted = 0"
)
NOTE = (
    "insert into publication (bandit, at, version, held) select n, :at, published, 0 "
    "from bandit where n = :bandit and published = :number"
)
FORGET_OLD = (
    "update version set model = null where bandit = :bandit and number <= :old "
    "and model is not null and number <> (select published from bandit where n = :bandit)"
)
KEEP_STATE = (
    "insert into learner (bandit, cursor, state, hash) values (:bandit, :cursor, :state, :hash) "
    "on conflict (bandit) do update set cursor = excluded.cursor, state = excluded.state, "
    "hash = excluded.hash"
)
