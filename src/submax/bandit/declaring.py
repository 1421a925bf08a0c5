"""Declare bandits in a store and change them: settings, choices, published versions, deletion."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from submax.bandit.guard_rails import Ramp
from submax.bandit.names import check_bandit
from submax.bandit.settings import (
    Settings,
    changed_choices,
    changed_settings,
    check_options,
    custom_policy,
    new_settings,
    specification_of,
    warn_if_context_is_ignored,
)
from submax.bandit.store import Store
from submax.bandit.tables import COLUMNS, Statement
from submax.bandit.training_rows import in_parts, wait_of
from submax.core.decoding import known_type
from submax.core.errors import ConflictError, InputError, NotFoundError
from submax.core.policy import Policy
from submax.core.registry import references_user_code
from submax.core.serialization import state_bytes
from submax.schema.actions import ActionSpec, Change, ChoiceIndices
from submax.schema.model import EXPECTED, hash_of
from submax.schema.trained_policy import TrainedPolicy

PYTHON, COMMAND_LINE, WITHOUT_KEY = "Python", "command line", "without a key"
"""Who changed something, if it was no key."""
Who = str | tuple[str, str]
"""How a change was made; or the name of the key that made it, and the key's id."""
MAX_DETAIL_LENGTH = 300
"""Characters of a change that the audit keeps: a declaration may be long."""
ATTEMPTS = 20
"""How often a change is tried if other processes change the same bandit at the same moment."""
ROWS_IN_PART = 65_536
"""Rows of a trained policy in one row of the table ``history``."""
Record = TypeVar("Record", bound=msgspec.Struct)
Changes = tuple[dict[str, Any], list[Statement]]
"""New values of columns of a bandit, and further statements of the same transaction."""


class StartedFrom(msgspec.Struct, frozen=True):
    """The trained policy that a bandit started from: its number of rows, and hashes.

    ``estimated_propensities`` counts rows whose propensity was estimated when the log was read.
    """

    policy: str | dict[str, Any]
    rows: int
    log: str
    model: str
    estimated_propensities: int = 0


class DeclaredBandit(msgspec.Struct, frozen=True):
    """A row of the table ``bandit``: what is declared now.

    ``menu`` has the actions with their current status. ``published`` is the version that should
    decide; ``held`` if an operator chose it. ``revision`` rises with every change, and
    ``groups_since`` is the revision at which holdout or control last changed.
    """

    n: int
    name: str
    created: float
    settings: Settings
    menu: ActionSpec = msgspec.field(name="actions")
    ramps: tuple[Ramp, ...]
    published: int
    held: bool
    revision: int
    groups_since: int
    deleted: bool
    started_from: StartedFrom | None

    def check_exists(self) -> None:
        """Raise a ``NotFoundError`` if the bandit was deleted."""
        if self.deleted:
            raise NotFoundError(f"the bandit {self.name!r} was deleted: declare a new one")

    @property
    def references_user_code(self) -> bool:
        """Whether the policy is a class of the user's own, whose code would have to be run."""
        return references_user_code(self.settings.policy)

    def known_policy(self, custom: Policy[Any] | None) -> Policy[Any] | None:
        """The policy; None if code of the user would have to be run to make it."""
        if custom is None and self.references_user_code:
            return None
        return self.settings.build_policy(custom)


def _record(kind: type[Record], row: Sequence[Any], *encoded: str) -> Record:
    """A row of a query as a record; the columns that are ``encoded`` are JSON."""
    names = [field.encode_name for field in msgspec.structs.fields(known_type(kind))]
    values = dict(zip(names, row, strict=True))
    for name in encoded:
        values[name] = msgspec.json.decode(values[name] or "null")
    return msgspec.convert(values, known_type(kind), strict=False)


def _insert(table: str, **values: Any) -> Statement:
    names = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    return Statement(f"insert into {table} ({names}) values ({marks})", values)


def bandit_names(store: Store) -> list[str]:
    """The names of all bandits of a store, sorted."""
    return [name for (name,) in store.select("select name from bandit order by name")]


def find_bandit(store: Store, name: str) -> DeclaredBandit | None:
    """The bandit of this name, also if it is being deleted; None if there is none."""
    found = store.select(f"select {COLUMNS['bandit']} from bandit where name = :name", name=name)
    if not found:
        return None
    try:
        return _record(DeclaredBandit, found[0], "settings", "actions", "ramps", "started_from")
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise InputError(
            f"the declaration of the bandit {name!r} is damaged or from a newer submax ({error}): "
            "install a newer submax, or restore a backup"
        ) from error


def read_bandit(store: Store, name: str) -> DeclaredBandit:
    """The bandit of this name; a ``NotFoundError`` if there is none."""
    found = find_bandit(store, name)
    if found is None:
        raise NotFoundError(f"there is no bandit {name!r} in this store: declare its actions")
    found.check_exists()
    return found


def declare(
    store: Store,
    name: str,
    declaration: Mapping[str, Any],
    *,
    trained: TrainedPolicy | None = None,
    new: bool = False,
    who: Who = PYTHON,
) -> DeclaredBandit:
    """Write the declaration of a new bandit, or compare it with that of an existing one.

    Settings of an existing bandit that may change are changed, and others must agree; with ``new``
    an existing bandit is refused. With a ``trained`` policy a new bandit has its schema and policy
    unless the declaration says otherwise, and starts from it; an existing bandit must have started
    from the same one. If anything contradicts, nothing is written.
    """
    check_bandit(name)
    check_options(declaration)
    custom, detail = custom_policy(declaration), _detail(declaration)
    found = find_bandit(store, name)
    if found is None:
        settings = new_settings(name, declaration, trained, bandit_names(store))
        menu = settings.menu if trained is None else trained.schema.menu
        values = {"name": name, "settings": _json(settings), "actions": _json(menu)}
        row = _insert("bandit", created=store.now(0), groups_since=1, **values)
        row = row._replace(sql=f"{row.sql} on conflict (name) do nothing", required=True)
        then = [] if trained is None else _start_statements(store, name, trained)
        with suppress(ConflictError):
            store.execute([row, *then, audit_statement(store, name, who, "declare", detail)])
            warn_if_context_is_ignored(settings, settings.build_policy(custom))
            return read_bandit(store, name)
        # Another process was first: its declaration holds, and this one is compared with it.
        found = read_bandit(store, name)
    if new:
        raise ConflictError(f"a bandit {name!r} already exists: choose another name")
    found.check_exists()
    if trained is not None and found.started_from != _started_from(trained):
        raise ConflictError(
            f"the bandit {name!r} was not started from this learned policy: leave learned out, or "
            "open a bandit with another name"
        )
    if declaration:
        found = change_settings(
            store, name, declaration, custom, who=who, action="declare", again=True
        )
    policy = found.known_policy(custom)
    if policy is not None:
        warn_if_context_is_ignored(found.settings, policy)
    return found


def _new_settings(
    store: Store,
    here: DeclaredBandit,
    changes: Mapping[str, Any],
    custom: Policy[Any] | None,
    *,
    again: bool,
) -> Changes:
    """Change settings, after a check with the policy, unless code had to be run for it.

    ``reward_wait`` may become longer or shorter: rewards keep the mark of being late with which
    they were written. With 0 a decision matures at its reward, which is another order of rows.
    """
    sql = "select 1 from decision where bandit = :bandit limit 1"
    has_decided, before = bool(store.select(sql, bandit=here.n)), here.settings
    free = () if has_decided and before.reward_wait == 0 else ("reward_wait",)
    settings = changed_settings(before, changes, free, again=again)
    if has_decided and before.reward_wait > 0 and settings.reward_wait == 0:
        raise InputError(
            f"reward_wait was {before.reward_wait:g} and cannot become 0, because this bandit has "
            "made decisions: give a value above 0, or open a bandit with another name",
            parameter="reward_wait",
        )
    if settings == before:
        return {}, []
    policy = None
    if custom is not None or "policy" in changes or not here.references_user_code:
        policy = settings.build_policy(custom)
    msgspec.structs.replace(settings, menu=here.menu).check(policy)
    columns: dict[str, Any] = {"settings": _json(settings)}
    if settings.groups != before.groups:
        columns["groups_since"] = here.revision + 1
    # Decisions that wait mature by the new time; those that have matured stay as they are.
    longer = wait_of(settings) - wait_of(before)
    if not math.isfinite(longer) or longer == 0:
        return columns, []
    # Rewards of decisions that have matured are late, also within a longer time. A cursor of 0 is
    # the beginning, before anything was read.
    settled = store.now(here.n) - wait_of(before)
    moved = {"bandit": here.n, "longer": longer}
    return columns, [
        Statement(
            "update counts set settled = :settled where bandit = :bandit and settled < :settled",
            {"bandit": here.n, "settled": settled},
        ),
        Statement(
            "update version set cursor = cursor + :longer where bandit = :bandit and cursor <> 0",
            moved,
        ),
        Statement(
            "update progress set matured = matured + :longer "
            "where bandit = :bandit and matured <> 0",
            moved,
        ),
    ]


def change_settings(
    store: Store,
    name: str,
    changes: Mapping[str, Any],
    custom: Policy[Any] | None = None,
    *,
    who: Who = PYTHON,
    action: str = "set",
    detail: str | None = None,
    again: bool = False,
) -> DeclaredBandit:
    """Change some settings, all or none, as ``changed_settings`` says; others stay as they are.

    ``custom`` is the policy if it was given as an object; ``again`` if the changes are a
    declaration, whose words may say what is known. All processes that have the bandit open use the
    new settings within a second.
    """
    text = _detail(changes) if detail is None else detail

    def changes_of(here: DeclaredBandit) -> Changes:
        columns, then = _new_settings(store, here, changes, custom, again=again)
        # What was set is recorded even if the values are the same.
        if columns or not again:
            then.append(audit_statement(store, name, who, action, text))
        return columns, then

    return _change(store, name, changes_of)


def change_choice(store: Store, name: str, change: Change, *, who: Who = PYTHON) -> None:
    """Add, pause, resume or retire a choice."""

    def changes_of(here: DeclaredBandit) -> Changes:
        decided = count_decisions(store, here.n)
        menu, ramps = changed_choices(here.settings, here.menu, here.ramps, change, decided)
        detail = f"{change.verb} {change.choice}" + (f" of {change.slot}" if change.slot else "")
        columns = {"actions": _json(menu), "ramps": _json(ramps)}
        return columns, [audit_statement(store, name, who, "change", detail)]

    _change(store, name, changes_of)


def count_decisions(store: Store, bandit: int) -> int:
    """The number of decisions that a bandit ever made."""
    found = store.select("select decisions from counts where bandit = :bandit", bandit=bandit)
    return int(found[0][0]) if found else 0


def _change(
    store: Store, name: str, changes_of: Callable[[DeclaredBandit], Changes]
) -> DeclaredBandit:
    """Write what ``changes_of`` the bandit as it is now says, unless another process was faster."""
    for _ in range(ATTEMPTS):
        here = read_bandit(store, name)
        columns, then = changes_of(here)
        if not columns and not then:
            return here
        sets = "".join(f"{column} = :{column}, " for column in columns)
        sql = f"update bandit set {sets}revision = revision + 1 where n = :n and revision = :was"
        values = {**columns, "n": here.n, "was": here.revision}
        with suppress(ConflictError):
            store.execute([Statement(sql, values, required=True), *then])
            return read_bandit(store, name)
    raise ConflictError(
        f"the bandit {name!r} was changed concurrently {ATTEMPTS} times: check it, "
        "and repeat the call if it is still needed"
    )


def delete_bandit(store: Store, name: str, *, who: Who = PYTHON) -> None:
    """Delete a bandit: its decisions, rewards, versions and settings; this cannot be undone.

    Only the line of the audit stays. The name can be declared again. If the process ends on the
    way, the bandit answers no calls, and another call deletes the rest.
    """
    check_bandit(name)
    here = find_bandit(store, name)
    if here is None:
        raise NotFoundError(f"there is no bandit {name!r}: check the name")
    n = {"bandit": here.n}
    store.execute([("update bandit set deleted = 1, revision = revision + 1 where n = :bandit", n)])
    store.delete_decisions(here.n, "n > 0")
    tables = [table for table, columns in COLUMNS.items() if "bandit" in columns.split(", ")]
    store.execute(
        [
            *((f"delete from {table} where bandit = :bandit", n) for table in tables),
            ("delete from bandit where n = :bandit", n),
            audit_statement(store, name, who, "delete", ""),
        ]
    )


def _detail(changes: Mapping[str, Any]) -> str:
    return ", ".join(f"{word}={value!r}" for word, value in changes.items())


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


# Versions


class StoredVersion(msgspec.Struct, frozen=True):
    """A version: what it was fitted to, why, and the hash of its model.

    It learned from the ``rows`` decisions that matured up to the time ``cursor``, with the choices
    ``active``. ``ahead`` decisions were expected before the next version. ``kept``: its model is
    still in the store.
    """

    version: int
    at: float
    policy: str | dict[str, Any]
    rows: int
    cursor: float
    seed: int
    active: ChoiceIndices
    ahead: int
    reason: str
    model: str
    kept: bool = True


def versions(store: Store, bandit: int, last: str = "") -> list[StoredVersion]:
    """All versions of a bandit, oldest first."""
    rows = store.select(
        "select number, at, policy, rows, cursor, seed, active, ahead, reason, hash, "
        "case when model is null then 0 else 1 end from version where bandit = :bandit "
        f"order by number{last}",
        bandit=bandit,
    )
    return [_record(StoredVersion, row, "policy", "active") for row in rows]


def newest_version(store: Store, bandit: int) -> StoredVersion | None:
    """The newest version of a bandit; None if there is none."""
    return next(iter(versions(store, bandit, " desc limit 1")), None)


def version_statement(bandit: int, version: StoredVersion, model: bytes) -> Statement:
    """The statement that writes a version, unless there is one with its number."""
    sql, values, _ = _insert(
        "version", bandit=bandit, number=version.version, at=version.at,
        policy=_json(version.policy), rows=version.rows, cursor=version.cursor, seed=version.seed,
        active=_json(version.active), ahead=version.ahead, reason=version.reason,
        hash=version.model, model=model,
    )  # fmt: skip
    return Statement(f"{sql} on conflict (bandit, number) do nothing", values, required=True)


def publication_statement(
    store: Store, bandit: int, version: int, *, held: bool = False
) -> Statement:
    """The statement that records that a version decides from now on."""
    return _insert("publication", bandit=bandit, at=store.now(0), version=version, held=int(held))


def publications(store: Store, bandit: int) -> list[int]:
    """The versions that began to decide, oldest first."""
    sql = "select version from publication where bandit = :bandit order by n"
    return [version for (version,) in store.select(sql, bandit=bandit)]


def model_of(store: Store, bandit: int, version: int) -> tuple[bytes, str, Any]:
    """The bytes of the model of a version, their hash and the policy's specification.

    A ``NotFoundError`` is raised if there is no such version or its model is gone, and an
    ``InputError`` if the model is damaged.
    """
    sql = "select model, hash, policy from version where bandit = :bandit and number = :number"
    found = store.select(sql, bandit=bandit, number=version)
    # A database takes the text '1' for the number.
    if not found or not isinstance(version, int):
        newest = newest_version(store, bandit)
        last = newest.version if newest else 0
        raise NotFoundError(f"there is no version {version!r}: the newest is {last}")
    data, recorded, policy = found[0]
    if data is None:
        raise NotFoundError(
            f"the model of version {version} is no longer in the store: choose a newer version"
        )
    if hash_of(bytes(data)) != recorded:
        raise InputError(
            f"the model of version {version} is damaged: its hash differs from the recorded one; "
            "choose another version, or restore a backup"
        )
    return bytes(data), recorded, msgspec.json.decode(policy)


def publish(
    store: Store, name: str, version: int | None, *, who: Who = PYTHON, action: str = "publish"
) -> int:
    """Let a version decide and hold it, or let the newest one decide and its successors too."""

    def changes_of(here: DeclaredBandit) -> Changes:
        newest = newest_version(store, here.n) if version is None else None
        chosen, held = version or (newest.version if newest else 0), version is not None
        if chosen:
            model_of(store, here.n, chosen)
        return {"published": chosen, "held": int(held)}, [
            publication_statement(store, here.n, chosen, held=held),
            audit_statement(store, name, who, action, f"version {chosen}"),
        ]

    return _change(store, name, changes_of).published


def roll_back(store: Store, name: str, *, who: Who = PYTHON) -> int:
    """Publish the last version before the current one that was published, and hold it."""
    history = publications(store, read_bandit(store, name).n)
    if not history:
        raise ConflictError("there is no version to go back to: wait until the first is fitted")
    before = max((version for version in history if version < history[-1]), default=0)
    return publish(store, name, before, who=who, action="roll-back")


# Starting from a trained policy


def _start_statements(store: Store, name: str, trained: TrainedPolicy) -> list[Statement]:
    """Make a trained policy the first version, and keep its rows for later versions."""
    started = _started_from(trained)
    version = StoredVersion(
        1, store.now(0), started.policy, started.rows, 0.0, trained.origin.seed,
        trained.model.active, EXPECTED, "learned from a log", started.model,
    )  # fmt: skip
    statements = [
        version_statement(0, version, trained.model.to_bytes()),
        publication_statement(store, 0, 1),
        *(
            _insert("history", bandit=0, part=place, rows=state_bytes(part, {}), hash=part.hash)
            for place, part in enumerate(in_parts([trained.rows], ROWS_IN_PART))
        ),
        Statement(
            "update bandit set published = 1, started_from = :started where n = :bandit",
            {"started": _json(started)},
        ),
    ]
    # The bandit is written by the same transaction, so its number is not known yet.
    of_name = "(select n from bandit where name = :bandit)"
    return [
        one._replace(sql=one.sql.replace(":bandit", of_name), values={**one.values, "bandit": name})
        for one in statements
    ]


def _started_from(trained: TrainedPolicy) -> StartedFrom:
    return StartedFrom(
        policy=specification_of(trained),
        rows=len(trained.rows.reward),
        log=trained.origin.log,
        model=hash_of(trained.model.to_bytes()),
        estimated_propensities=trained.origin.estimated_propensities,
    )


# The audit


class AuditLine(msgspec.Struct, frozen=True):
    """A change: ``action`` was done on ``subject``, a bandit or a key.

    ``key`` is the id of the key that did it, if any; ``name`` is that of the key, or says how the
    change was made. ``detail`` is the beginning of the request.
    """

    at: float
    action: str
    subject: str
    key: str
    name: str
    detail: str


def audit_statement(
    store: Store, subject: str, who: Who, action: str, detail: str = ""
) -> Statement:
    """The statement that records a change."""
    name, key = (who, "") if isinstance(who, str) else who
    return _insert(
        "audit", at=store.now(0), action=action, subject=subject, who=key, name=name,
        detail=detail[:MAX_DETAIL_LENGTH],
    )  # fmt: skip


def audit_lines(store: Store, count: int = 1000, subject: str | None = None) -> list[AuditLine]:
    """The last changes, newest first, of one bandit or of all."""
    rows = store.select(
        "select at, action, subject, who, name, detail from audit "
        "where :every = 1 or subject = :subject order by n desc limit :count",
        count=count,
        every=int(subject is None),
        subject=subject or "",
    )
    return [AuditLine(*row) for row in rows]
