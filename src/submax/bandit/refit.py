"""When a bandit with a store fits its next version, how, and how the version is published.

A version is fitted in another process (``jobs``), which reads the store by itself. The process that
decides only asks whether it is time, and writes the version. A policy that was given as an object
cannot be made again elsewhere, so it is fitted here.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock
from typing import Any, NamedTuple

import msgspec

from submax.bandit.declaring import DeclaredBandit, StoredVersion, newest_version, version_statement
from submax.bandit.jobs import JobError, JobRunner, NoProcessError
from submax.bandit.learning import RefitResult, why_nothing_matured
from submax.bandit.reading import MIN_FIRST_ROWS, BanditReader
from submax.bandit.store import Store, open_store
from submax.bandit.tables import Statement
from submax.bandit.training_rows import TrainingRows, in_parts
from submax.core.errors import ConflictError, Error, InputError, StoreError, one_line
from submax.core.optional import SPANS
from submax.core.policy import Policy
from submax.core.serialization import modules_of, read_state, state_bytes
from submax.policies.specification import PolicySpecification
from submax.schema.model import Model, hash_of, most_rows
from submax.schema.rows import Columns

LOG = logging.getLogger("submax")
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
MAX_STATE_BYTES = 2**22
"""The largest learner's state that is written with a version. After a restart, the version after
one with a larger state is fitted to all rows."""
MODELS: OrderedDict[tuple[str, int, str], Model] = OrderedDict()
"""The models of the newest versions that this process fitted, with all that learning needs, by the
address of the store, the bandit and the hash; those that were used last are at the end."""
MAX_MODELS = 256


class TrainingError(JobError):
    """The policy failed while it was trained, or the process that trains has ended."""

    default_code = "training-failed"


class FittedVersion(NamedTuple):
    """A version, its model, the number of ``new`` rows, and what the next update needs, if kept."""

    version: StoredVersion
    model: bytes
    new: int
    state: bytes | None


def is_outdated(newest: StoredVersion | None, here: DeclaredBandit) -> bool:
    """Whether the newest version was fitted for other choices or by another policy."""
    wanted = here.menu.active, here.settings.policy
    return newest is not None and (newest.active, newest.policy) != wanted


# Fitting, in whatever process


def fit_version(
    store: Store, here: DeclaredBandit, until: float, policy: Policy[Any]
) -> FittedVersion | None:
    """Fit the next version of a bandit to the rows that matured up to the tick ``until``.

    None if there is nothing new to learn from.

    A version is usually an update of the one before it, with the rows in between. It is fitted
    from scratch, to all rows, if choices or the policy changed, if ``Model.must_fit`` says so, or
    if the state of the version before was neither kept nor written; a policy that trains a model
    on all rows is given those of the last decisions.
    """
    settings, newest = here.settings, newest_version(store, here.n)
    schema, seed, outdated = settings.schema(here.menu), settings.seed, is_outdated(newest, here)
    rows = TrainingRows(store, here.n, settings, here.menu)
    new = [*in_parts(rows.learned(newest.cursor if newest else 0.0, until), PART_ROWS)]
    count = sum(len(part.reward) for part in new)
    if not count and not outdated:
        return None
    ahead = max(1, count) + rows.pending(until)
    if outdated and newest is not None:
        ahead = max(ahead, newest.ahead)
    before, reason = None, "fitted anew to all rows"
    if policy.traits.trains_models:
        last = AllRows(store, here, until, most_rows(settings.context.width))
        total = count + (newest.rows if newest else 0)
        model = Model.fitted(schema, policy, last, seed, ahead, total)
    else:
        if newest is not None and not outdated:
            before = _learned_model(store, here.n, newest, policy)
        if before is None or before.must_fit(schema, before.rows + count):
            model = Model.fitted(schema, policy, AllRows(store, here, until), seed, ahead)
        else:
            model, reason = before.updated(schema, policy, new, seed, ahead), "new rewards"
    if newest is None:
        reason = "first version"
    elif outdated:
        reason = "other choices" if newest.active != model.active else "another policy"
    data, number = model.to_bytes(), 1 + (newest.version if newest else 0)
    version = StoredVersion(
        number, 0.0, settings.policy, model.rows, until, seed, model.active, ahead, reason,
        hash_of(data),
    )  # fmt: skip
    # A model that cannot be read back must not be published.
    Model.from_bytes(data, version.model, policy)
    if policy.traits.trains_models:
        return FittedVersion(version, data, count, None)
    MODELS[store.address, here.n, version.model] = model
    if len(MODELS) > MAX_MODELS:
        MODELS.popitem(last=False)
    state = state_bytes(model, {}, for_learning=True)
    return FittedVersion(version, data, count, state if len(state) <= MAX_STATE_BYTES else None)


def _learned_model(
    store: Store, bandit: int, newest: StoredVersion, policy: Policy[Any]
) -> Model | None:
    """The model of the newest version with all that learning needs, if that is known."""
    kept = MODELS.pop((store.address, bandit, newest.model), None)
    if kept is not None:
        return kept
    sql = "select state, hash from learner where bandit = :bandit and version = :version"
    for data, recorded in store.select(sql, bandit=bandit, version=newest.version):
        if hash_of(bytes(data)) == recorded:
            with suppress(InputError):
                model: Model = read_state(bytes(data), modules_of(policy))[0]
                return model
    return None


class AllRows:
    """All rows of a bandit in parts of PART_ROWS; each iteration reads them again.

    The rows of a trained policy come first. With ``decisions``, only the rows of so many last ones.
    """

    def __init__(
        self, store: Store, here: DeclaredBandit, until: float, decisions: int | None = None
    ) -> None:
        self._store, self._here, self._until, self._after = store, here, until, 0.0
        if decisions is not None:
            sql = "select at from decision where bandit = :n order by at desc limit 1 offset :most"
            for (at,) in store.select(sql, n=here.n, most=decisions):
                self._after = float(at)

    def __iter__(self) -> Iterator[Columns]:
        return in_parts(self._read(), PART_ROWS)

    def _read(self) -> Iterator[Columns]:
        store, here = self._store, self._here
        if not self._after:
            for part in history_of(store, here.n):
                yield part._replace(context=here.settings.context.widened(part.context))
        rows = TrainingRows(store, here.n, here.settings, here.menu)
        yield from rows.learned(self._after, self._until)


def history_of(store: Store, bandit: int) -> Iterator[Columns]:
    """The rows of a trained policy from which a bandit was started."""
    numbers = "select part from history where bandit = :bandit order by part"
    rows = "select rows, hash from history where bandit = :bandit and part = :part"
    for (part,) in store.select(numbers, bandit=bandit):
        ((data, recorded),) = store.select(rows, bandit=bandit, part=part)
        columns, _ = read_state(bytes(data))
        if not isinstance(columns, Columns) or columns.hash != recorded:
            raise InputError(
                f"part {part} of the bandit's initial rows is damaged: restore a backup of "
                "the store",
                code="damaged-store",
            )
        yield columns


def fit_in_job(address: str, here: DeclaredBandit, until: float) -> FittedVersion | None:
    """Fit the next version of a bandit; run by a ``JobRunner``."""
    with open_store(address, read_only=True) as store:
        return fit_version(store, here, until, here.settings.build_policy(None))


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
                return self._job.done() and self._collect(self._job)
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
                self._collect(self._job)
            fitted = self._fit_and_publish()
            if fitted is None:
                counts = BanditReader(self._store, declared).counts()
                fresh = not counts.get("learned")
                reason = why_nothing_matured(counts, declared.settings, fresh)
                return RefitResult(False, declared.published, 0, reason)
            number, rows = fitted.version.version, fitted.version.rows
            reason = f"version {number} was fitted from {rows} rows, {fitted.new} of them new"
            return RefitResult(True, number, fitted.new, reason)

    @property
    def _task(self) -> str:
        return f"fit {self._declared.name}"

    @property
    def _fits_here(self) -> bool:
        return PolicySpecification(self._declared.settings.policy).is_object

    def _submitted(self) -> "Future[FittedVersion | None]":
        here, until = self._declared, self._store.tick(self._declared.n)
        return self._jobs.submit(fit_in_job, self._store.address, here, until, seconds=FIT_SECONDS)

    def _is_time(self) -> bool:
        now, here, settings = time.monotonic(), self._declared, self._declared.settings
        waited = now - self._fitted_at
        pause = min(2.0 ** (self._failures - 1), MAX_PAUSE_SECONDS) if self._failures else 0.0
        if now < self._looks_at or waited < max(REST_FACTOR * self._fit_seconds, pause):
            return False
        newest = newest_version(self._store, here.n)
        if is_outdated(newest, here):
            return True
        rows = TrainingRows(self._store, here.n, settings, here.menu)
        cursor = newest.cursor if newest else 0.0
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
                return self._published(self._submitted().result)
            except NoProcessError as error:
                LOG.warning(
                    "%s: versions are fitted in the process that decides: %s",
                    self._declared.name,
                    error,
                )
        here, store = self._declared, self._store
        policy = here.settings.build_policy(self._custom)
        return self._published(lambda: fit_version(store, here, store.tick(here.n), policy))

    def _collect(self, job: "Future[FittedVersion | None]") -> bool:
        self._job = None
        try:
            return self._published(job.result) is not None
        except NoProcessError:
            return self._fit_and_publish() is not None

    def _published(self, fit: Callable[[], FittedVersion | None]) -> FittedVersion | None:
        """Fit, or wait for a fit, and publish the version unless there is nothing new."""
        try:
            with SPANS.span("submax.refit", bandit=self._declared.name):
                fitted = fit()
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
            reason = str(error) if isinstance(error, JobError) else one_line(error)
            raise TrainingError(reason) from error
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
        number, values = version.version, {"bandit": bandit, "number": version.version}
        old = number - self._declared.settings.keep_versions
        statements = [
            Statement(PUBLISH, values, required=True),
            version_statement(bandit, version, fitted.model),
            Statement(NOTE, {**values, "at": version.at}),
            Statement(FORGET_OLD, {"bandit": bandit, "old": old}),
        ]
        if fitted.state is not None:
            state = {"state": fitted.state, "hash": hash_of(fitted.state)}
            statements.append(Statement(KEEP_STATE, {**values, **state}))
        try:
            self._store.execute(statements)
        except ConflictError as error:
            found = self._store.select("select deleted from bandit where n = :n", n=bandit)
            if not found or found[0][0]:
                return False
            raise ConflictError(
                f"another process wrote version {number} first: call refit there"
            ) from error
        return True


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
    "insert into learner (bandit, version, state, hash) values (:bandit, :number, :state, :hash) "
    "on conflict (bandit) do update set version = excluded.version, state = excluded.state, "
    "hash = excluded.hash"
)
