"""Bandits in a store and bandits of a server, with the same methods for commands.

``StoredBandit`` opens a store, and ``Client`` asks a server. Both answer with plain tables, which
``--json`` prints.
"""

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import msgspec

from submax.bandit import declaring, export
from submax.bandit.decision import Decision, LiftReport, Receipt
from submax.bandit.declaration import check_options, new_settings
from submax.bandit.declaring import DeclaredBandit
from submax.bandit.durable import DurableBandit, is_new_file
from submax.bandit.reading import BanditReader
from submax.bandit.rewards import LateRewardWarning
from submax.bandit.store import Store, open_store
from submax.client.client import Client
from submax.client.messages import Server
from submax.core.errors import ContextIgnoredWarning, InputError
from submax.core.processes import variable_text
from submax.policies.epsilon_greedy import Random
from submax.schema.actions import Change, clean_features
from submax.server import messages
from submax.server.keys import Keys, check_key, parsed_time

COMMAND_LINE = "command line"
"""Who made a change, in the audit."""
KEY = "SUBMAX_KEY"
"""The variable with the key of a server."""
SERVERS = ("http://", "https://")
ATTEMPTS = 3
"""How often a request is sent if there is no answer: a person who waits can repeat the command."""
Table = dict[str, Any]


class StoredBandit:
    """A bandit in a store, or, without a name, the whole store.

    Methods that read also work while a server writes to the file. Those that change something open
    the store for writing, which fails if another process has the SQLite file open. Code that a
    stored policy names is run only by ``decide`` and ``reward`` with ``trust``.
    """

    def __init__(self, store: str, name: str | None, *, trust: bool = False) -> None:
        self._store, self._name, self._trust = store, name, trust

    @contextmanager
    def _reading(self) -> Iterator[Store]:
        with open_store(self._store, read_only=True) as store:
            yield store

    @contextmanager
    def _writing(self, *, create: bool = False) -> Iterator[Store]:
        # Opening a store for writing would create it, so one that does not exist is refused here.
        if not create:
            with self._reading():
                pass
        with open_store(self._store) as store, warnings.catch_warnings():
            # The commands say these in their answers.
            for known in (ContextIgnoredWarning, LateRewardWarning):
                warnings.simplefilter("ignore", known)
            yield store

    def _bandit(self, store: Store) -> str:
        """The name; the only bandit of the store if none was given."""
        return chosen(declaring.bandit_names(store), self._name)

    def _changed(self, change: Callable[[Store, str], object]) -> Table:
        """Change the bandit; its name and status afterwards."""
        with self._writing() as store:
            name = self._bandit(store)
            change(store, name)
            declared = declaring.find_bandit(store, name)
        status = "deleted" if declared is None else declared.settings.status
        return {"name": name, "status": status}

    def bandits(self) -> list[str]:
        """The names of all bandits."""
        with self._reading() as store:
            return declaring.bandit_names(store)

    def create(self, /, actions: Any, **options: Any) -> Table:
        """Declare the bandit; a store that does not exist is created."""
        declaration = {"actions": actions, **options}
        check_options(declaration)
        if is_new_file(self._store):
            # Checked before a file is created.
            new_settings(str(self._name), declaration)
        with self._writing(create=True) as store:
            name = str(self._name)
            declared = declaring.declare(store, name, declaration, new=True, who=COMMAND_LINE)
            return _details(store, declared)

    def show(self) -> Table:
        """The bandit with its choices, counts, and notices."""
        with self._reading() as store:
            return _details(store, declaring.read_bandit(store, self._bandit(store)))

    def lift(self) -> list[LiftReport]:
        """The lift over the holdout and over the control."""
        with self._reading() as store:
            return BanditReader.of(store, self._bandit(store)).lift()

    def set(self, /, **changes: Any) -> Table:
        """Change settings, all or none, and return the bandit as ``show`` does."""
        with self._writing() as store:
            name = self._bandit(store)
            return _details(
                store, declaring.change_settings(store, name, changes, who=COMMAND_LINE)
            )

    def add(self, /, choice: str, slot: str = "", **options: Any) -> Table:
        """Add an arm, or a choice to a slot."""
        features = clean_features(choice, options.get("features") or {})
        return self._choice(Change("add", choice, slot, features, options.get("ramp")))

    def pause(self, choice: str | None = None, *, slot: str = "") -> Table:
        """Pause a choice; without one, the whole bandit."""
        return self._status("pause", "paused", choice, slot)

    def resume(self, choice: str | None = None, *, slot: str = "") -> Table:
        """Resume a choice; without one, the whole bandit."""
        return self._status("resume", "active", choice, slot)

    def retire(self, choice: str, *, slot: str = "") -> Table:
        """Make a choice ineligible forever."""
        return self._choice(Change("retire", choice, slot))

    def archive(self) -> Table:
        """Refuse decisions and rewards until ``resume``."""
        return self._status("archive", "archived", None, "")

    def _status(self, verb: Any, status: str, choice: str | None, slot: str) -> Table:
        if choice is not None:
            return self._choice(Change(verb, choice, slot))
        return self._changed(
            lambda store, name: declaring.change_settings(
                store, name, {"status": status}, who=COMMAND_LINE, action=verb, detail=""
            )
        )

    def _choice(self, change: Change) -> Table:
        return self._changed(
            lambda store, name: declaring.change_choice(store, name, change, who=COMMAND_LINE)
        )

    def delete(self) -> Table:
        """Delete the bandit with its decisions; this cannot be undone."""
        return self._changed(
            lambda store, name: declaring.delete_bandit(store, name, who=COMMAND_LINE)
        )

    def versions(self) -> Table:
        """The versions, the one that decides, and whether it is held."""
        with self._reading() as store:
            declared = declaring.read_bandit(store, self._bandit(store))
            versions = declaring.versions(store, declared.n)
        return plain(messages.Versions(versions, declared.published, declared.held))

    def publish(self, version: int | None = None) -> Table:
        """Let a version decide and hold it; without one, the newest and all later ones."""
        with self._writing() as store:
            name = self._bandit(store)
            return {"version": declaring.publish(store, name, version, who=COMMAND_LINE)}

    def roll_back(self) -> Table:
        """Let the version before the current one decide."""
        with self._writing() as store:
            return {"version": declaring.roll_back(store, self._bandit(store), who=COMMAND_LINE)}

    def decide(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,  # noqa: A002 - as in DurableBandit.decide
        unit: str | None = None,
    ) -> Decision:
        """Make a decision."""
        with self._deciding() as bandit:
            return bandit.decide(context, id=id, unit=unit)

    def reward(self, id: str, value: Any, **which: str | None) -> Receipt:  # noqa: A002 - as above
        """Record a reward; ``which`` has its key, its name and its slot."""
        with self._deciding() as bandit:
            return bandit.reward(id, value, **which)

    @contextmanager
    def _deciding(self) -> Iterator[DurableBandit]:
        with self._writing() as store:
            yield DurableBandit(store, self._bandit(store), background=False, trust=self._trust)

    def erase(self, unit: str, *, anonymous: bool = False) -> int:
        """Delete the decisions of a unit, or make them anonymous; return how many."""
        with self._writing() as store:
            return export.erase(
                store, self._bandit(store), unit, anonymous=anonymous, who=COMMAND_LINE
            )

    def export(
        self, path: Path | None, *, before: float | None = None, delete: bool = False
    ) -> Table:
        """Write decisions to a file; with ``delete``, delete them when the file was verified."""
        opened = self._writing() if delete else self._reading()
        with opened as store:
            name = self._bandit(store)
            path = path or Path(f"{name}.parquet")
            options: Any = {"before": before, "delete": delete, "who": COMMAND_LINE}
            return {"path": str(path), "decisions": export.export(store, name, path, **options)}

    def export_rewards(self, path: Path) -> int:
        """Write every reward as it came to a file; return their number."""
        with self._reading() as store:
            return export.export_rewards(store, self._bandit(store), path)

    def audit(self) -> list[Table]:
        """The last 1,000 changes of the whole store, newest first."""
        with self._reading() as store:
            lines = declaring.audit_lines(store)
        return [plain(messages.AuditedChange.of(one)) for one in lines]

    def keys(self) -> list[Table]:
        """All keys, without their secrets."""
        with self._reading() as store:
            found = Keys(store)
            used = found.last_uses()
        return [plain(messages.KeyDetails.of(key, used.get(key.id))) for key in found]

    def add_key(
        self, /, scopes: Sequence[str], *, expires: str | None = None, **options: Any
    ) -> Table:
        """Make a key, and return its ``id`` and its text, ``key``.

        A store that does not exist is created: a server that is started later needs its keys.
        """
        # Checked before a file is created.
        check_key(scopes, **options)
        until = None if expires is None else parsed_time(expires, time.time())
        with self._writing(create=True) as store:
            made = Keys(store).add(scopes, expires=until, who=COMMAND_LINE, **options)
        return {"id": made.id, "key": made.key}

    def revoke_key(self, id: str) -> Any:  # noqa: A002 - as above
        """Revoke a key."""
        with self._writing() as store:
            Keys(store).revoke(id, who=COMMAND_LINE)

    def close(self) -> None:
        """Do nothing: every call opens the store and closes it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def plain(message: msgspec.Struct) -> Table:
    """A message as a server sends it."""
    table: Table = msgspec.to_builtins(message)
    return table


def _details(store: Store, declared: DeclaredBandit) -> Table:
    """A bandit as a server describes it; no code that its policy names is run."""
    if declared.references_user_code:
        unopened: Any = UnopenedBandit(BanditReader(store, declared))
        return {**plain(messages.BanditDetails.of(unopened)), "context_ignored": False}
    return plain(messages.BanditDetails.of(DurableBandit(store, declared.name, background=False)))


class UnopenedBandit:
    """What is known of a bandit without its policy, with the names of a ``DurableBandit``."""

    def __init__(self, reader: BanditReader) -> None:
        declared = reader.declared
        self.name, self.settings, self.menu = declared.name, declared.settings, declared.menu
        self.version, self.held, self.policy = declared.published, declared.held, Random()
        self.failures: dict[str, int] = {}
        self.counts, self.arms = reader.counts, reader.arms
        self.notices, self.conditions = reader.notices, reader.conditions


def chosen(names: Sequence[str], name: str | None) -> str:
    """The name if there is one, or that of the only bandit."""
    if name is not None:
        return name
    if len(names) == 1:
        return names[0]
    if not names:
        raise InputError("the store has no bandits: check its name, or create one")
    raise InputError(f"there are several bandits: name one of them: {', '.join(names)}")


def opened(place: str, name: str | None = None, *, trust: bool = False) -> StoredBandit | Client:
    """A bandit of a store, or of a server; without a name, the whole store or server."""
    if not place.startswith(SERVERS):
        return StoredBandit(place, name, trust=trust)
    address, (_, key) = Server.of(place).url, variable_text(KEY, os.environ)
    return Client(address, name, key=key, attempts=ATTEMPTS)


@contextmanager
def the_bandit(
    place: str, name: str | None, *, trust: bool = False
) -> Iterator[StoredBandit | Client]:
    """Open a bandit; the only one if no name is given."""
    if name is None and place.startswith(SERVERS):
        with opened(place) as server:
            name = chosen(server.bandits(), None)
    with opened(place, name, trust=trust) as bandit:
        yield bandit


def parsed_date(text: str) -> float:
    """The Unix time of a date or time in ISO 8601; without a zone it is in UTC.

    >>> parsed_date("1970-01-02"), parsed_date("1970-01-01T01:00+01:00")
    (86400.0, 0.0)
    """
    try:
        date = datetime.fromisoformat(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"the date was {text!r:.60}, and a date or a time is allowed: give one such as "
            "2030-01-31 or 2030-01-31T12:00:00Z"
        ) from error
