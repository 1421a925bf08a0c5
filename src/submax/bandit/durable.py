"""A bandit in a store: it decides, receives rewards and learns; what it acknowledged is kept."""

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import cache, partial
from itertools import takewhile
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Generic, TypeVar, Unpack
from weakref import WeakSet

import msgspec
import numpy as np

from submax.bandit import declaring, export
from submax.bandit.active_version import LATE, ActiveVersion
from submax.bandit.arms import ArmStatus, bandit_summary, unknown_notices
from submax.bandit.conditions import Condition, conditions
from submax.bandit.decision import Decision, LiftReport, Receipt
from submax.bandit.declaring import PYTHON, AuditLine, DeclaredBandit, StoredVersion, Who
from submax.bandit.drawing import CheckedRequest, DrawnDecision, Draws, checked_request
from submax.bandit.face import BanditFace
from submax.bandit.jobs import JobRunner
from submax.bandit.learning import RefitResult
from submax.bandit.names import check_bandit, check_identifier
from submax.bandit.pins import StorePins
from submax.bandit.reading import BanditReader, FoundDecision, ListedDecision, advance
from submax.bandit.refit import Refitter
from submax.bandit.rewards import RewardValues, conflicting_reward
from submax.bandit.row_texts import (
    action_text,
    choices_text,
    context_text,
    key_text,
    read_action,
    read_key,
)
from submax.bandit.settings import (
    BanditOptions,
    Declaration,
    Settings,
    check_options,
    custom_policy,
    new_settings,
)
from submax.bandit.store import MEMORY, POSTGRES, Store, open_store, result_of
from submax.bandit.tables import Activated, DecisionRow, RewardRow, Written, WrittenReward
from submax.bandit.training_rows import encoded_contexts
from submax.core.arrays import Floats
from submax.core.errors import ConflictError, InputError, NotFoundError, StoreError, one_line
from submax.core.policy import Policy
from submax.core.processes import in_thread
from submax.core.summary import Summary
from submax.policies.specification import PolicySpecification
from submax.schema.actions import ActionSpec, Change
from submax.schema.model import Model
from submax.schema.trained_policy import TrainedPolicy

LOG = logging.getLogger("submax")
POLL_SECONDS = 0.2
"""Pause between two looks at a store: a change by another process is in force after it."""
SUMMARY_SECONDS = 5.0
"""How often sums for pages are brought up to date in the background."""
MAX_REQUESTS_PER_CALL = 1000
"""The most decisions or rewards in one call. They are written in one transaction, and a larger one
would keep other callers waiting."""
LOOK_SECONDS = 2.0
"""How long a look waits for a policy: a page without its numbers is better than none."""
DAMAGED = "damaged models"
"""The name under which models that cannot be read are counted among the failures of a bandit."""
STEPS = "failed background jobs"
"""The name under which failed steps in the background are counted."""
Answer = TypeVar("Answer")


class Prepared(Generic[Answer]):
    """A call that was checked and drawn, but not written.

    ``start`` writes it and returns a future of the answer, so a server awaits many at once;
    ``result`` waits for the answer.
    """

    def __init__(self, put: Callable[[], "Future[Any]"], answer: Callable[[Any], Answer]) -> None:
        self._put, self._answer = put, answer

    def start(self) -> "Future[Answer]":
        """Write; the future is done when the write is durable."""
        done: Future[Answer] = Future()
        done.set_running_or_notify_cancel()

        def finish(written: "Future[Any]") -> None:
            try:
                done.set_result(self._answer(written.result()))
            except BaseException as error:
                done.set_exception(error)

        self._put().add_done_callback(finish)
        return done

    def result(self) -> Answer:
        """Write, and wait until that is durable."""
        return result_of(self.start())


class DurableBandit(BanditFace):
    """Decide, receive rewards, and learn from them, with a store.

    ``submax.open`` makes it. Every method returns after what it wrote is durable, and calls that
    wait at the same time share one transaction. All methods may be called from any thread.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        *,
        policy: Policy[Any] | None = None,
        background: bool = True,
        trust: bool = False,
        clock: Callable[[], float] = time.time,
        rng: np.random.Generator | None = None,
        jobs: JobRunner | None = None,
    ) -> None:
        """Open a bandit that is declared in a store.

        ``policy`` is its policy, if that was given as an object. If the policy is a class outside
        submax, its code is run only with ``trust`` or if ``policy`` is given. Without
        ``background`` versions are fitted only by ``refit``, and changes by other processes are
        seen after ``follow``. Versions are fitted in the process of ``jobs``; without it, in one
        that all bandits of this process share.
        """
        super().__init__()
        self.store, self.name = store, name
        self._custom, self._lock = policy, Lock()
        self._loaded: tuple[str, Policy[Any], Model] | None = None
        self._declared = declaring.read_bandit(store, name)
        if self._declared.known_policy(policy) is None and not trust:
            raise InputError(
                f"the policy {self.settings.policy!r:.200} of the bandit {name!r} names code "
                "outside submax, which would be run: if you know this code, pass trust=True, or "
                "give the policy again"
            )
        self.read = BanditReader(store, self._declared)
        """Everything else that can be asked of the store, such as series, segments and delays."""
        self._pins = StorePins(store, lambda: self._declared)
        self._draws = Draws(name, self._pins, rng or np.random.default_rng(), clock)
        self._renew(self._declared)
        self._jobs = jobs or shared_jobs()
        self._refitter = Refitter(store, self._declared, self._jobs, policy)
        self._failed_fits, self._reason = 0, ""
        self._summarize_at = 0.0
        # The number of the last row that was summed, and until when rows mature after it.
        self._summarized: tuple[int, float] = (0, -math.inf)
        self._looking = Lock()
        if background:
            FOLLOWER.add(self)
            FITTER.add(self)

    # What is declared now

    @property
    def settings(self) -> Settings:
        return self._declared.settings

    @property
    def menu(self) -> ActionSpec:
        return self._declared.menu

    @property
    def policy(self) -> Policy[Any]:
        return self._policy

    @property
    def active(self) -> ActiveVersion:
        return self._draws.ramped(self._active)

    @property
    def revision(self) -> int:
        """A number that rises with every change of settings, choices or the version."""
        return self._declared.revision

    @property
    def published(self) -> int:
        """The version that was published last; if its model is damaged, an earlier one decides."""
        return self._declared.published

    @property
    def held(self) -> bool:
        """Whether an operator chose the version, so newer ones do not replace it."""
        return self._declared.held

    @property
    def deleted(self) -> bool:
        """Whether the bandit was deleted, here or by another process."""
        return self._declared.deleted

    def follow(self) -> None:
        """Use settings, choices and versions that were changed, here or by another process."""
        with self._lock:
            sql, n = "select revision from bandit where n = :n", self._declared.n
            found = self.store.select(sql, n=n)
            if found and found[0][0] == self._declared.revision:
                return
            declared = declaring.find_bandit(self.store, self.name) if found else None
            if declared is None or declared.n != n:
                declared = msgspec.structs.replace(self._declared, deleted=True)
            self._pins.forget()
            self._renew(declared)

    def _renew(self, declared: DeclaredBandit) -> None:
        """Decide by what is declared now."""
        if not declared.deleted:
            policy = declared.settings.build_policy(self._custom)
            number, decides, model = self._best(declared, policy)
            self._policy, self._rewards = policy, RewardValues(declared.settings)
            self.read.declared = declared
            if declared.settings.guard_rails.burn_in or declared.ramps:
                self._draws.decided = declaring.count_decisions(self.store, declared.n)
            self._active = ActiveVersion(
                declared.settings, declared.menu, decides, model, number, self._failures,
                declared.groups_since, declared.ramps,
            )  # fmt: skip
        self._declared = declared

    def _best(
        self, declared: DeclaredBandit, policy: Policy[Any]
    ) -> tuple[int, Policy[Any], Model]:
        """The published version, or the last one before it whose model is undamaged."""
        earlier = declaring.publications(self.store, declared.n)
        for number in takewhile(bool, dict.fromkeys([declared.published, *reversed(earlier)])):
            try:
                return number, *self._load(declared, number)
            except (InputError, NotFoundError) as error:
                self._failures[DAMAGED] += 1
                LOG.warning("%s: version %d: %s", self.name, number, error)
        schema = declared.settings.schema(declared.menu)
        return 0, policy, Model.fitted(schema, policy, [], declared.settings.seed)

    def _load(self, declared: DeclaredBandit, number: int) -> tuple[Policy[Any], Model]:
        """The policy and the model of a version; the last one that was loaded is kept."""
        data, recorded, specification = declaring.model_of(self.store, declared.n, number)
        if self._loaded is None or self._loaded[0] != recorded:
            policy = PolicySpecification(specification).build(self._custom)
            self._loaded = recorded, policy, Model.from_bytes(data, recorded, policy)
        return self._loaded[1:]

    def _check_answers(self) -> None:
        self._declared.check_exists()
        super()._check_answers()

    # Decisions and rewards

    def _decided(self, **request: Any) -> Decision:
        return self.prepare_decisions([request]).result()[0]

    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        return self.prepare_decisions(requests).result()

    def prepare_decisions(
        self, requests: Iterable[Mapping[str, Any]], *, uniform: bool = False
    ) -> Prepared[list[Decision]]:
        """Check and draw decisions; if one request is invalid, none is drawn.

        With ``uniform`` they are drawn uniformly within the guard rails, and counted as failures:
        this is for callers that could not wait for the policy.
        """
        self._check_answers()
        version = self._active
        checked = [checked_request(version, **request) for request in requests]
        _check_number(len(checked))
        return self._prepared(version, checked, uniform)

    def prepare_together(
        self, requests: Iterable[Mapping[str, Any]], *, uniform: bool = False
    ) -> tuple[list[InputError | None], Prepared[list[Decision]]]:
        """Check and draw the decisions of different callers, which are written at once.

        Return what is wrong with each request, and the decisions for those without an error.
        """
        self._check_answers()
        version = self._active
        errors: list[InputError | None] = []
        valid: list[CheckedRequest] = []
        for request in requests:
            try:
                valid.append(checked_request(version, **request))
                errors.append(None)
            except InputError as error:
                errors.append(error)
        return errors, self._prepared(version, valid, uniform)

    def waits_for_store(self, unit: str | None) -> bool:
        """Whether drawing a decision for a unit may have to wait for the store."""
        return unit is not None and self._draws.must_pin(self.active)

    def _prepared(
        self, version: ActiveVersion, requests: Sequence[CheckedRequest], uniform: bool
    ) -> Prepared[list[Decision]]:
        bandit = self._declared.n
        drawn = self._draws.draw(version, requests, uniform=uniform)
        if uniform:
            self._failures[LATE] += len(drawn)
        rows = [_row(version, *pair) for pair in zip(requests, drawn, strict=True)]

        def answer(written: list[Written]) -> list[Decision]:
            self._draws.decided -= sum(not one.new for one in written)
            return [self._decision(row, new) for row, new in written]

        return Prepared(lambda: self.store.write_decisions(bandit, rows), answer)

    def _decision(self, row: DecisionRow, new: bool) -> Decision:
        action, held_out = read_action(self.menu, row.action), row.assignment == "holdout"
        return Decision(
            row.id, action, row.propensity, row.version, held_out, not new, row.unit, row.paused
        )

    def _rewarded(self, **reward: Any) -> Receipt:
        return self.prepare_reward(**reward).result()

    def reward_many(self, rewards: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        return self.prepare_rewards(rewards).result()

    def prepare_reward(
        self,
        id: str,  # noqa: A002 - as in reward
        value: object,
        *,
        source: str = "",
        **part: str | None,
    ) -> Prepared[Receipt]:
        """Check the arguments of ``reward``; ``source`` is the id of the key that sent it."""
        self._check_answers()
        row = self._reward_row(source, {"id": id, "value": value, **part})

        def answer(written: list[WrittenReward]) -> Receipt:
            if written[0].status == "conflict":
                before = written[0].parts or written[0].value
                raise conflicting_reward(row.id, read_key(row.key), before, row.parts or row.value)
            return Receipt(row.id, written[0].status, written[0].repeated)

        return Prepared(self._put_rewards([row]), answer)

    def prepare_rewards(
        self, rewards: Iterable[Mapping[str, Any]], *, source: str = ""
    ) -> Prepared[list[Receipt]]:
        """Check several rewards; one that conflicts gets the receipt ``conflict``."""
        self._check_answers()
        rows = [self._reward_row(source, reward) for reward in rewards]
        _check_number(len(rows))
        return Prepared(
            self._put_rewards(rows),
            lambda written: [
                Receipt(row.id, one.status, one.repeated)
                for row, one in zip(rows, written, strict=True)
            ],
        )

    def _put_rewards(self, rows: list[RewardRow]) -> Callable[[], "Future[Any]"]:
        n, wait, quarantine = self._declared.n, self.settings.longest_wait, self.settings.quarantine
        return lambda: self.store.write_rewards(n, rows, wait, quarantine)

    def _reward_row(self, source: str, reward: Mapping[str, Any]) -> RewardRow:
        identifier, given = self._rewards.checked_call(**reward)
        parts = None if given.parts is None else msgspec.json.encode(given.parts).decode()
        return RewardRow(identifier, key_text(given.key), given.value, parts, source)

    def activate(self, id: str) -> Receipt:  # noqa: A002 - the same word as in decide
        return self.prepare_activation(id).result()

    def prepare_activation(self, id: str) -> Prepared[Receipt]:  # noqa: A002 - as in decide
        """Check an activation."""
        self._check_answers()
        check_identifier("the id of a decision", id)

        def answer(written: list[Activated]) -> Receipt:
            if written[0].status == "unknown":
                raise NotFoundError(
                    f"there is no decision {id!r} to activate: give the id of a decision of this "
                    "bandit"
                )
            return Receipt(id, written[0].status, written[0].repeated)

        n, wait = self._declared.n, self.settings.longest_wait
        return Prepared(lambda: self.store.activate(n, [id], wait), answer)

    # Changes

    def change(self, change: Change, *, who: Who = PYTHON) -> None:
        self._check_open()
        declaring.change_choice(self.store, self.name, change, who=who)
        self.follow()

    def set_status(self, status: str, *, who: Who = PYTHON) -> Settings:
        verbs = {"active": "resume", "paused": "pause", "archived": "archive"}
        return self.set_by(who, {"status": status}, action=verbs.get(status, "set"), detail="")

    def set(self, **changes: Unpack[BanditOptions]) -> Settings:
        return self.set_by(PYTHON, changes)

    def set_by(
        self,
        who: Who,
        changes: Mapping[str, Any],
        *,
        action: str = "set",
        detail: str | None = None,
    ) -> Settings:
        """Change settings; the audit says ``who`` did it."""
        self._check_open()
        check_options(changes)
        custom = custom_policy(changes) or self._custom
        declaring.change_settings(
            self.store, self.name, changes, custom, who=who, action=action, detail=detail
        )
        if custom is not self._custom:
            self._custom = custom
            self._refitter = Refitter(self.store, self._declared, self._jobs, custom)
        self.follow()
        return self.settings

    def versions(self) -> list[StoredVersion]:
        """All versions, oldest first."""
        return declaring.versions(self.store, self._declared.n)

    def publish(self, version: int | None = None, *, who: Who = PYTHON) -> int:
        """Make a version live and hold it: newer versions are fitted but not used.

        Without a version, the newest one is live, and each later one as soon as it is fitted.
        """
        self._check_open()
        chosen = declaring.publish(self.store, self.name, version, who=who)
        self.follow()
        return chosen

    def roll_back(self, *, who: Who = PYTHON) -> int:
        """Publish the last version before the current one that was published, and hold it."""
        self._check_open()
        chosen = declaring.roll_back(self.store, self.name, who=who)
        self.follow()
        return chosen

    def delete(self, *, who: Who = PYTHON) -> None:
        """Delete the bandit with its decisions, versions and settings, and close it.

        This cannot be undone; ``submax backup`` and ``export`` make copies. The name can be
        declared again.
        """
        self._check_open()
        self.stop()
        declaring.delete_bandit(self.store, self.name, who=who)
        self.follow()
        self.close()

    def audit(self, count: int = 100) -> list[AuditLine]:
        """The last changes of this bandit, newest first."""
        return declaring.audit_lines(self.store, count, self.name)

    # Questions

    def counts(self) -> dict[str, int]:
        return self.read.counts()

    def arms(self) -> list[ArmStatus]:
        return self.read.arms(self._average_probabilities())

    def _average_probabilities(self) -> Floats | None:
        """None if the policy fails, or takes so long that the page would wait for it.

        A thread cannot be ended: while it is stuck, no second one is started.
        """
        if not self._looking.acquire(blocking=False):
            return None
        asked = in_thread(partial(self._average, self.active), "submax-look")
        asked.add_done_callback(lambda _: self._looking.release())
        try:
            return asked.result(LOOK_SECONDS)
        except Exception:
            return None

    def _average(self, active: ActiveVersion) -> Floats | None:
        texts = self.read.recent_contexts() if self.settings.context.width else []
        encoded = encoded_contexts(self.settings.context, texts)
        return active.average_probabilities(encoded.astype(np.float64))

    def lift(self) -> list[LiftReport]:
        return self.read.lift()

    def notices(self) -> list[str]:
        return [*self.read.notices(), *unknown_notices(self._failures)]

    def conditions(self) -> list[Condition]:
        """What is wrong now and deserves an alarm; empty if nothing is."""
        return conditions(self.read, self._failed_fits, self._reason)

    def find_decision(self, id: str) -> FoundDecision | None:  # noqa: A002 - as in decide
        """The decision with this id, with its rewards; None if the store does not have it."""
        self._check_open()
        check_identifier("the id of a decision", id)
        return self.read.find_decision(id)

    def newest_decisions(self, unit: str | None = None, *, limit: int = 25) -> list[ListedDecision]:
        """The newest decisions, newest first, or those of one unit."""
        self._check_open()
        if unit is not None:
            check_identifier("the unit of a decision", unit)
        return self.read.newest_decisions(unit, limit=limit)

    # Data

    def export(self, path: str | Path, *, before: float | None = None, delete: bool = False) -> int:
        """Write decisions to a Parquet or CSV file; return their number.

        ``before`` leaves out decisions that are not older than a Unix time. With ``delete`` they
        are deleted after the file was written and read again.
        """
        return export.export(self.store, self.name, path, before=before, delete=delete)

    def erase(self, unit: str, *, anonymous: bool = False, who: Who = PYTHON) -> int:
        """Delete all decisions and rewards of a unit, or make them anonymous; return how many.

        An anonymous decision keeps its context, action and rewards, and loses the unit. Models
        that learned from the rows stay.
        """
        self._check_open()
        check_identifier("the unit of a decision", unit)
        count = export.erase(self.store, self.name, unit, anonymous=anonymous, who=who)
        self.follow()
        return count

    # Learning, and the end

    def refit(self) -> RefitResult:
        self._check_answers()
        self.follow()
        result = self._refitter.refit(self._declared)
        self.follow()
        return result

    def note_failure(self, error: Exception) -> None:
        """Count and log a step in the background that failed."""
        self._failures[STEPS] += 1
        LOG.warning("%s: a background job failed: %s", self.name, one_line(error))

    def step(self) -> None:
        """Do what the background does: fit a version if it is time, and sum up what is new."""
        if self.deleted:
            return
        try:
            published = self._refitter.step(self._declared)
        except StoreError:
            raise
        except Exception as error:
            self._failed_fits, self._reason = self._failed_fits + 1, one_line(error)
            raise
        if published:
            self._failed_fits = 0
            self.follow()
        if time.monotonic() >= self._summarize_at:
            self._summarize_at = time.monotonic() + SUMMARY_SECONDS
            self.summarize()

    def summarize(self) -> None:
        """Bring the sums for pages up to date, if there is anything new and no other process does.

        Without ``background``, call it now and then if there are many decisions: a look takes as
        long as what is new.
        """
        if self.store.read_only or self.deleted:
            return
        found = self.store.select("select n from counts where bandit = :n", n=self._declared.n)
        last, now = found[0][0] if found else 0, self.store.now(self._declared.n)
        known, until = self._summarized
        if last != known:
            wait = self.settings.longest_wait
            self._summarized = last, now + 2 * SUMMARY_SECONDS + (wait if wait < math.inf else 0.0)
        elif now > until:
            return
        if self.store.lead(f"summary {self.name}"):
            # Another thread may have been first; then its sums are there, and these are left out.
            with suppress(ConflictError):
                advance(self.store, self._declared)

    def stop(self) -> None:
        """Stop what runs in the background; the store stays open."""
        FOLLOWER.remove(self)
        FITTER.remove(self)

    def close(self) -> None:
        """Stop what runs in the background and close the store; a second call does nothing.

        A closed bandit refuses decisions and rewards.
        """
        if self._closed:
            return
        self.stop()
        self._closed = True
        self.store.close()

    def _summary(self) -> Summary:
        if self._closed or self.deleted:
            return Summary([f"Bandit {self.name!r}, {'deleted' if self.deleted else 'closed'}"])
        waiting, counts = self.read.waiting(), self.read.counts()
        notes = [] if waiting is None else [waiting]
        return bandit_summary(
            self.name, self.active, counts, self.read.tallies(), self._failures, notes
        )


def _row(version: ActiveVersion, request: CheckedRequest, decision: DrawnDecision) -> DecisionRow:
    """A drawn decision as the store has it."""
    menu, drawn, group = version.menu, decision.drawn, decision.group
    eligible, probabilities = choices_text(menu, request.eligible, drawn.probabilities)
    row = DecisionRow(
        request.identifier, decision.version, action_text(menu, drawn.row), drawn.propensity,
        request.unit, context_text(request.values), eligible, probabilities,
        0.0 if request.activate else None, decision.paused,
    )  # fmt: skip
    if group is not None:
        row.assignment, row.assigned_since = group.group, group.since
        row.holdout_share, row.control_share = group.holdout_share, group.control_share
    return row


def _check_number(requests: int) -> None:
    if not 0 < requests <= MAX_REQUESTS_PER_CALL:
        raise InputError(
            f"{requests} requests in one call, but 1 to {MAX_REQUESTS_PER_CALL} are "
            "allowed: split them into several calls"
        )


@cache
def shared_jobs() -> JobRunner:
    """The process in which the bandits of this process fit versions, unless they have another."""
    return JobRunner()


class Keeper:
    """A thread that looks after all open bandits of a process.

    Again and again ``function`` is called for those bandits of each store that are ``due``.
    """

    def __init__(
        self,
        name: str,
        function: Callable[[DurableBandit], None],
        due: Callable[[list[DurableBandit]], list[DurableBandit]] = list,
    ) -> None:
        self._name, self._function, self._due = name, function, due
        self._bandits: WeakSet[DurableBandit] = WeakSet()
        self._lock, self._looking = Lock(), Lock()
        self._thread: Thread | None = None

    def add(self, bandit: DurableBandit) -> None:
        """Look after a bandit from now on."""
        with self._lock:
            self._bandits.add(bandit)
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def remove(self, bandit: DurableBandit) -> None:
        """Look after a bandit no longer; a look that is under way is waited for."""
        with self._lock:
            known = bandit in self._bandits
            self._bandits.discard(bandit)
        if known:
            with self._looking:
                return

    def _look(self, bandits: list[DurableBandit]) -> None:
        for bandit in self._due(bandits):
            with self._lock:
                kept = bandit in self._bandits
            if kept:
                try:
                    self._function(bandit)
                except Exception as error:
                    bandit.note_failure(error)

    def _run(self) -> None:
        while True:
            with self._lock:
                stores: dict[int, list[DurableBandit]] = {}
                for bandit in self._bandits:
                    stores.setdefault(id(bandit.store), []).append(bandit)
                if not stores:
                    self._thread = None
                    return
            for bandits in stores.values():
                with self._looking:
                    self._look(bandits)
            # No bandit is kept alive by this thread while it sleeps.
            bandits = []
            stores = {}
            time.sleep(POLL_SECONDS)


def _changed(bandits: list[DurableBandit]) -> list[DurableBandit]:
    """The bandits of one store that were changed; one query asks for all of them."""
    try:
        revisions = dict(bandits[0].store.select("select n, revision from bandit"))
    except Exception as error:
        bandits[0].note_failure(error)
        return []
    return [
        bandit
        for bandit in bandits
        if not bandit.deleted and revisions.get(bandit._declared.n) != bandit.revision
    ]


FOLLOWER = Keeper("submax-follower", DurableBandit.follow, _changed)
FITTER = Keeper("submax-fitter", DurableBandit.step)
"""What takes long, such as fitting a policy that was given as an object, must not keep changes of
other processes from being seen within a second."""


def open_bandit(
    path_or_url: str | Path | Store,
    *,
    name: str | None = None,
    learned: str | Path | TrainedPolicy | None = None,
    background: bool = True,
    trust: bool = False,
    clock: Callable[[], float] | None = None,
    rng: np.random.Generator | None = None,
    **declaration: Unpack[Declaration],
) -> DurableBandit:
    """Open the bandit ``name`` in a store, and declare it if it is new.

    ``path_or_url`` is a file, the URL of a PostgreSQL database, ``":memory:"`` for a store that is
    deleted when the bandit is closed, or a store. The default ``name`` is that of the file.
    ``submax.bandit.settings`` describes all settings of the ``declaration``. If the bandit exists,
    policy, guard rails, ``reward_wait`` and the settings of versions may change, and all others
    must be as declared. Without ``background`` versions are fitted only by ``refit``. If the policy
    of the bandit is a class outside submax, its code is run only with ``trust``, or if the
    ``policy`` is given.

    With ``learned``, a policy learned from a log or its file, a new bandit has the actions, context
    and rewards of the log, starts with the learned policy, and goes on learning from the log's rows
    and its own.

    >>> bandit = open_bandit(":memory:", actions=["A", "B"], reward_wait=60, background=False)
    >>> decision = bandit.decide()
    >>> bandit.reward(decision.id, 1.0).status
    'accepted'
    >>> bandit.close()
    """
    check_options(declaration)
    name = name if name is not None else default_name(path_or_url)
    check_bandit(name)
    trained = None if learned is None else TrainedPolicy.given(learned)
    if is_new_file(path_or_url):
        # Checked before a file is created.
        new_settings(name, declaration, trained)
    store = path_or_url if isinstance(path_or_url, Store) else open_store(path_or_url, clock=clock)
    try:
        declaring.declare(store, name, declaration, trained=trained)
        return DurableBandit(
            store,
            name,
            policy=custom_policy(declaration),
            background=background,
            trust=trust or "policy" in declaration,
            clock=clock or time.time,
            rng=rng,
        )
    except BaseException:
        if store is not path_or_url:
            store.close()
        raise


def is_new_file(path_or_url: object) -> bool:
    """Whether opening a store would create a new file."""
    return _is_file(path_or_url) and not Path(str(path_or_url)).exists()


def default_name(path_or_url: object) -> str:
    """The name of a bandit in a store: that of the file, in characters that names may have."""
    if not _is_file(path_or_url):
        return "default"
    stem = Path(str(path_or_url)).stem.lower()
    allowed = [one if one.isascii() and one.isalnum() else "-" for one in stem]
    return "".join(allowed).strip("-")[:64] or "default"


def _is_file(path_or_url: object) -> bool:
    return isinstance(path_or_url, (str, Path)) and not str(path_or_url).startswith(
        (MEMORY, *POSTGRES)
    )
