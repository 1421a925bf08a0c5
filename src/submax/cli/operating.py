"""Carries out the commands on a bandit, in a store or on a server."""

import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import click
import msgspec

from submax.bandit.decision import Decision, LiftReport, Receipt
from submax.bandit.guard_rails import limits_at
from submax.bandit.lift import lift_reports
from submax.client.client import Client
from submax.client.messages import Call, Server, encoded
from submax.core.checks import one_of
from submax.core.decoding import known_type
from submax.core.errors import InputError
from submax.core.processes import variable_text
from submax.core.summary import Summary, counted, number, percentage
from submax.live.bandits.bandit import LiveBandit
from submax.live.bandits.open import SERVERS, open_store
from submax.live.declaring.change_settings import change_settings
from submax.live.declaring.delete import delete_bandit
from submax.live.declaring.settings_projection import SettingsProjection
from submax.live.log.bandits import bandit_names
from submax.live.log.export import Export
from submax.live.log.ledger import Ledger, ledger_of
from submax.live.log.snapshot import read_snapshot
from submax.live.monitoring.alarms.alarm_log import AlarmLog
from submax.live.operating.arm_status import ArmStatus, arm_statuses, recent_contexts
from submax.live.operating.audit_log import COMMAND_LINE, AuditEntry, AuditLog
from submax.live.operating.current_probabilities import CurrentProbabilities
from submax.live.operating.doctor import Finding, examined
from submax.live.operating.notices import notices
from submax.live.serving.live_state import LiveState
from submax.live.store.store import Store
from submax.policies.specification import PolicySpecification
from submax.web.server.access.key import time_text
from submax.web.server.interface.answers import (
    Audit,
    AuditedChange,
    Bandits,
    KeyDetails,
    KeyMade,
    Keys,
)
from submax.web.server.running.serve_options import KEY

FINDING_LABELS = {"ok": "ok    ", "damage": "DAMAGE", "advice": "ADVICE"}
"""How findings of each kind begin, all with the same width."""


def run_export(place: str, name: str | None, out: Path | None, rewards: Path | None) -> None:
    """Write the Parquet files, and print how much is in them."""
    with opened_for_reading(place) as store:
        chosen = chosen_bandit(bandit_names(store), name)
        path = out or Path(f"{chosen}.parquet")
        export = Export(store, chosen)
        click.echo(f"{export.write(path)} decisions in {path}")
        if rewards is not None:
            click.echo(f"{export.write_rewards(rewards)} rewards in {rewards}")


def run_backup(place: str, file: Path) -> None:
    """Copy the store into a file, and print its path."""
    with opened_for_reading(place) as store:
        store.backup(file)
    # The address of a database may contain a password.
    source = place if "@" not in place else "the database"
    click.echo(f"Copied {source} to {file}")


def run_doctor(place: str) -> None:
    """Print the findings; exit with status 1 if one of them is damage."""
    damaged = False
    for finding in _findings(place):
        damaged = damaged or finding.kind == "damage"
        click.echo(f"{FINDING_LABELS[finding.kind]} {finding.sentence}")
    if damaged:
        raise click.exceptions.Exit(1)


def _findings(place: str) -> Iterator[Finding]:
    """Yield the findings; damage because of which a store cannot be read is a finding, too."""
    try:
        with opened_for_reading(place) as store:
            yield from examined(store)
    except InputError as error:
        if not isinstance(error.__cause__, sqlite3.DatabaseError):
            raise
        yield Finding("damage", str(error))


@contextmanager
def opened_for_reading(place: str) -> Iterator[Store]:
    """Open a store for reading only, so that another process may use it at the same time."""
    store = open_store(place, read_only=True)
    try:
        yield store
    finally:
        store.close()


def chosen_bandit(names: list[str], name: str | None) -> str:
    """The bandit of this name, or the only one if no name is given."""
    if name is not None:
        one_of("bandit", name, names)
        return name
    if len(names) != 1:
        if not names:
            raise InputError("the store has no bandits: check the name of the store")
        listed = ", ".join(names)
        raise InputError(f"the store has several bandits: name one of them with --bandit: {listed}")
    return names[0]


class OperatorOverview(NamedTuple):
    """The status, policy, version, counts and choices of a bandit, and notices about it."""

    name: str
    status: str
    policy: str | dict[str, Any]
    version: int
    counts: Mapping[str, int]
    arms: list[ArmStatus]
    notices: list[str]


class PrintedAlarm(NamedTuple):
    """An alarm in one sentence; ``at`` is its time as a text, in UTC."""

    kind: str
    at: str
    active: bool
    sentence: str


VERBS = {"paused": "pause", "active": "resume", "archived": "archive"}
"""The operation, as the interface and the audit name it, that gives a bandit this status."""


class OperatedBandit(ABC):
    """A bandit that commands look at and change: in a store, or on a server over HTTP.

    Every change of settings and alarms is recorded in the audit.
    """

    name: str

    @abstractmethod
    def overview(self) -> OperatorOverview:
        """The bandit with its choices, counts and notices."""

    @abstractmethod
    def lift(self) -> list[LiftReport]:
        """The lift over the holdout and over the control."""

    @abstractmethod
    def set(self, changes: Mapping[str, Any], detail: str) -> None:
        """Change settings, all or none; ``detail`` is how the audit of a store describes it."""

    @abstractmethod
    def change_status(self, status: str) -> None:
        """Give the bandit one of the statuses of ``VERBS``."""

    @abstractmethod
    def delete(self) -> None:
        """Delete the bandit with its log, for ever."""

    @abstractmethod
    def decide(
        self, context: Mapping[str, Any], identifier: str | None, unit: str | None
    ) -> Decision:
        """Make a decision."""

    @abstractmethod
    def reward(self, identifier: str, value: Any, **which: str | None) -> Receipt:
        """Record a reward; ``which`` has its key, its name and its slot."""

    @abstractmethod
    def alarms(self) -> list[PrintedAlarm]:
        """The last 100 alarms, newest first."""

    @abstractmethod
    def acknowledge_alarms(self) -> int:
        """Say that all alarms were seen; return how many were active."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections of a client, if there are any."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ReadBandit(NamedTuple):
    """A bandit that is only read: its name, its state and its ledger."""

    name: str
    state: LiveState
    ledger: Ledger

    @property
    def projection(self) -> SettingsProjection:
        """The settings, choices and versions."""
        return self.state.projection


@contextmanager
def read_bandit(place: str, name: str | None) -> Iterator[ReadBandit]:
    """Read a bandit, which another process may use; the only one if no name is given."""
    with opened_for_reading(place) as store:
        chosen = chosen_bandit(bandit_names(store), name)
        state = LiveState(store, chosen, None)
        ledger = ledger_of(store, chosen, state.settings)
        if not read_snapshot(store, chosen, ledger, leads=lambda: False):
            # A snapshot that is damaged may have been read in part.
            ledger = ledger_of(store, chosen, state.settings)
        ledger.follow()
        yield ReadBandit(chosen, state, ledger)


@contextmanager
def opened_for_writing(place: str) -> Iterator[Store]:
    """Open a store that exists, so that it can be changed."""
    # Opening a store for writing would create it; a store that does not exist is refused here.
    with opened_for_reading(place):
        pass
    store = open_store(place)
    try:
        yield store
    finally:
        store.close()


class StoredBandit(OperatedBandit):
    """A bandit in the store at ``place``; without a name, the only one of the store.

    Methods that only read also work while another process uses the store. Methods that change
    something open the store for writing, which fails if another process uses an SQLite file.
    """

    def __init__(self, place: str, name: str | None) -> None:
        self._place = place
        if name is None:
            with opened_for_reading(place) as store:
                name = chosen_bandit(bandit_names(store), None)
        self.name = name

    def overview(self) -> OperatorOverview:
        with read_bandit(self._place, self.name) as bandit:
            settings, serving = bandit.projection.settings, bandit.state.serving
            limits = limits_at(bandit.projection.ramps, bandit.ledger.counts["decisions"])
            if limits:
                serving = serving.limited(limits)
            probabilities = CurrentProbabilities().of(serving, recent_contexts(bandit.ledger))
            arms = arm_statuses(serving, bandit.ledger, probabilities)
            return OperatorOverview(
                self.name,
                settings.status,
                settings.policy,
                serving.version,
                bandit.ledger.counts,
                arms,
                notices(bandit.projection, serving, bandit.ledger),
            )

    def lift(self) -> list[LiftReport]:
        with read_bandit(self._place, self.name) as bandit:
            groups, since = bandit.ledger.comparisons.by_group, bandit.projection.groups_since
            return lift_reports(bandit.projection.settings, groups, since)

    def set(self, changes: Mapping[str, Any], detail: str) -> None:
        self._change(changes, "set", detail)

    def change_status(self, status: str) -> None:
        self._change({"status": status}, VERBS[status], "")

    def _change(self, changes: Mapping[str, Any], operation: str, detail: str) -> None:
        with opened_for_writing(self._place) as store:
            change_settings(store, self.name, changes)
            AuditLog(store).write(AuditEntry(operation, self.name, "", COMMAND_LINE, detail))

    def delete(self) -> None:
        with opened_for_writing(self._place) as store:
            delete_bandit(store, self.name)
            AuditLog(store).write(AuditEntry("delete", self.name, "", COMMAND_LINE))

    def decide(
        self, context: Mapping[str, Any], identifier: str | None, unit: str | None
    ) -> Decision:
        with self._opened() as bandit:
            return bandit.decide(context or None, id=identifier, unit=unit)

    def reward(self, identifier: str, value: Any, **which: str | None) -> Receipt:
        with self._opened() as bandit:
            return bandit.reward(identifier, value, **which)

    def alarms(self) -> list[PrintedAlarm]:
        with opened_for_reading(self._place) as store:
            alarms = AlarmLog(store, chosen_bandit(bandit_names(store), self.name)).follow()
        return [
            PrintedAlarm(one.kind, time_text(one.at), one.active, one.sentence)
            for one in reversed(alarms)
        ]

    def acknowledge_alarms(self) -> int:
        with self._opened() as bandit:
            return bandit.acknowledge_alarms(by=COMMAND_LINE)

    def close(self) -> None:
        """Do nothing: every call opens the store and closes it."""

    @contextmanager
    def _opened(self) -> Iterator[LiveBandit]:
        """The bandit, opened so that it can decide and be changed."""
        with (
            opened_for_writing(self._place) as store,
            LiveBandit.of_store(store, self.name, background=False) as bandit,
        ):
            yield bandit


class ServedBandit(OperatedBandit):
    """The bandit ``name`` of the server at an address, which is used over HTTP."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self.name = client, name

    def overview(self) -> OperatorOverview:
        details = self._client.show()
        return OperatorOverview(
            self.name,
            details["status"],
            details["policy"],
            details["version"],
            details["counts"],
            msgspec.convert(details["arms"], known_type(list[ArmStatus])),
            details["notices"],
        )

    def lift(self) -> list[LiftReport]:
        return self._client.lift()

    def set(self, changes: Mapping[str, Any], detail: str) -> None:
        self._client.set(**changes)

    def change_status(self, status: str) -> None:
        change = {
            "paused": self._client.pause,
            "active": self._client.resume,
            "archived": self._client.archive,
        }
        change[status]()

    def delete(self) -> None:
        self._client.delete()

    def decide(
        self, context: Mapping[str, Any], identifier: str | None, unit: str | None
    ) -> Decision:
        return self._client.decide(context or None, id=identifier, unit=unit)

    def reward(self, identifier: str, value: Any, **which: str | None) -> Receipt:
        return self._client.reward(identifier, value, **which)

    def alarms(self) -> list[PrintedAlarm]:
        return [
            PrintedAlarm(one["kind"], one["at"], one["active"], one["sentence"])
            for one in self._client.alarms()
        ]

    def acknowledge_alarms(self) -> int:
        active = sum(one.active for one in self.alarms())
        self._client.acknowledge_alarms()
        return active

    def close(self) -> None:
        self._client.close()


ATTEMPTS = 3
"""How often a request is sent if there is no answer: a person who waits can repeat the command."""


class RemoteServer:
    """The server at an address; the environment has the key that is sent to it."""

    def __init__(self, address: str) -> None:
        _, self.key = variable_text(KEY, os.environ)
        self._address = Server.of(address).url

    def bandit_names(self) -> list[str]:
        """The names of the bandits that the key may see."""
        found: Bandits = self._send("GET", "/bandits", Bandits)
        return found.bandits

    def keys(self) -> list[KeyDetails]:
        """All keys, without their secrets."""
        found: Keys = self._send("GET", "/keys", Keys)
        return found.keys

    def add_key(self, **given: Any) -> tuple[str, str]:
        """Make a key, and return its id and its text; ``given`` are the fields of the request."""
        # Repeated after an answer that was lost, the request would make a second key.
        found: KeyMade = self._send("POST", "/keys", KeyMade, encoded(given), attempts=1)
        return found.id, found.key

    def revoke_key(self, number: str) -> None:
        """Revoke the key with an id."""
        self._send("DELETE", f"/keys/{number}", Keys)

    def changes(self, last: int) -> list[AuditedChange]:
        """The last changes, newest first; at most 1000."""
        found: Audit = self._send("GET", "/audit", Audit)
        return found.changes[:last]

    def _send(
        self, method: str, path: str, kind: Any, body: bytes | None = None, attempts: int = ATTEMPTS
    ) -> Any:
        with Client(self._address, key=self.key, attempts=attempts) as client:
            return client.send(Call(method, path, kind, body))


def operated(place: str, name: str | None) -> OperatedBandit:
    """The bandit of a store or of a server; without a name, the only one there."""
    if not place.startswith(SERVERS):
        return StoredBandit(place, name)
    server = RemoteServer(place)
    if name is None:
        name = chosen_bandit(server.bandit_names(), None)
    client = Client(place, name, key=server.key, attempts=ATTEMPTS)
    return ServedBandit(client, name)


def run_show_alarms(place: str, name: str | None) -> None:
    """Print the alarms, newest first."""
    with operated(place, name) as bandit:
        alarms = bandit.alarms()
    if not alarms:
        click.echo("There were no alarms.")
    for alarm in alarms:
        state = "ACTIVE" if alarm.active else "over  "
        click.echo(f"{state} {alarm.at} {alarm.kind}: {alarm.sentence}")


def run_acknowledge_alarms(place: str, name: str) -> None:
    """Say that all alarms were seen."""
    with operated(place, name) as bandit:
        count = bandit.acknowledge_alarms()
    click.echo(f"{count} alarms of {name} were acknowledged.")


def run_set(place: str, name: str, changes: tuple[str, ...]) -> None:
    """Change settings, and print them."""
    given: dict[str, Any] = {}
    for change in changes:
        _insert_change(given, change)
    with operated(place, name) as bandit:
        bandit.set(given, " ".join(changes))
    click.echo(f"The bandit {name} has new settings: {', '.join(changes)}")


def run_status_change(place: str, name: str, status: str) -> None:
    """Change the status of a bandit, and print it."""
    with operated(place, name) as bandit:
        bandit.change_status(status)
    click.echo(f"The bandit {name} is {status}.")


def run_delete(place: str, name: str, *, yes: bool) -> None:
    """Delete a bandit, after the user has confirmed it."""
    with operated(place, name) as bandit:
        if not yes:
            click.confirm(f"Delete the bandit {name} with its log, for ever?", abort=True)
        bandit.delete()
    click.echo(f"The bandit {name} and its log are deleted.")


def _insert_change(table: dict[str, Any], change: str) -> None:
    """Put a change such as ``guard_rails.minimum=0.05`` into a table."""
    path, equals, text = change.partition("=")
    *parents, word = path.split(".")
    if not equals or not word:
        raise InputError(
            f"{change!r} was given, and a change has the form SETTING=VALUE: give it as in "
            "refit_rows=200"
        )
    for parent in parents:
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise InputError(
                f"{parent} was given as a whole and in parts: give it once, or only its parts"
            )
    table[word] = value_of(text)


def value_of(text: str) -> Any:
    """The value that a text stands for: JSON if it can be read as such, else the text itself.

    >>> [value_of("0.5"), value_of("null"), value_of("rcp-submax")]
    [0.5, None, 'rcp-submax']
    """
    try:
        return msgspec.json.decode(text.encode())
    except msgspec.DecodeError:
        return text


def run_lift(place: str, name: str | None) -> None:
    """Print the lift over the holdout and over the control."""
    with operated(place, name) as bandit:
        reports = bandit.lift()
    for report in reports:
        for line in _lift_lines(report):
            click.echo(line)


def _lift_lines(report: LiftReport) -> list[str]:
    """The lines about one comparison."""
    test = ", A/A test" if report.aa_test else ""
    lines = [
        f"Lift against the {report.against} ({report.action}{test}): {number(report.estimate)} per "
        f"decision, 95 % interval at all times {_lift_interval(report)}",
        f"  mean reward {number(report.mean)} of {report.decisions:,} decisions, "
        f"{number(report.mean_of_group)} of {report.decisions_of_group:,} of the {report.against}",
    ]
    ratio = report.sample_ratio
    if ratio is not None:
        lines.append(
            f"  share of the {report.against}: {ratio.observed:.4g}, expected "
            f"{ratio.expected:.4g}, p-value at all times {ratio.p_value:.3g}"
        )
    lines += [f"  CAUTION {one}" for one in report.cautions]
    if report.alarm:
        lines[-1] = f"  ALARM {report.cautions[-1]}"
    return lines


def _lift_interval(report: LiftReport) -> str:
    if report.low is None or report.high is None:
        return "not known yet"
    return f"{number(report.low)} to {number(report.high)}"


def run_decide(
    place: str,
    name: str | None,
    identifier: str | None,
    unit: str | None,
    context: tuple[str, ...],
) -> None:
    """Make a decision, and print it."""
    table = _context_table(context)
    with operated(place, name) as bandit:
        decision = bandit.decide(table, identifier, unit)
    click.echo(msgspec.json.encode(decision).decode())


def run_reward(
    place: str, bandit_name: str | None, identifier: str, text: str, **which: str | None
) -> None:
    """Record a reward, and print its receipt; ``which`` has its key, its name and its slot."""
    value = value_of(text)
    if isinstance(value, (str, bool)) or value is None:
        raise InputError(
            f"the reward was {text!r:.60}, and a number, or a table or a list of numbers as JSON "
            "is allowed: give one such as 1, or '{\"click\": 1}'"
        )
    with operated(place, bandit_name) as bandit:
        receipt = bandit.reward(identifier, value, **which)
    click.echo(msgspec.json.encode(receipt).decode())


def _context_table(context: tuple[str, ...]) -> dict[str, Any]:
    table = {}
    for one in context:
        field, equals, text = one.partition("=")
        if not equals:
            raise InputError(
                f"{one!r} was given, and a field of a context is FIELD=VALUE: give it as in age=31"
            )
        table[field] = value_of(text)
    return table


STATUS_COUNTS = ("decisions", "learned", "held out", "late rewards")
"""The counts that are printed."""
STATUS_COLUMNS = ["decisions", "share", "learned", "reward rate", "95 % interval", "probability"]


def run_status(place: str, name: str | None) -> None:
    """Print the choices with their numbers, and the notices."""
    with operated(place, name) as bandit:
        found = bandit.overview()
    counts = {word: found.counts.get(word, 0) for word in STATUS_COUNTS}
    sentences = [
        f"Bandit {found.name!r}: {found.status}, {PolicySpecification(found.policy).title}, "
        f"version {found.version}",
        f"{counted(counts['decisions'], 'decision')}, {counts['learned']:,} learned from, "
        f"{counts['held out']:,} held out, {counts['late rewards']:,} late rewards",
    ]
    click.echo(_status_summary(sentences, found.arms))
    for one in found.notices:
        click.echo(f"NOTICE {one}")


def _status_summary(sentences: list[str], arms: list[ArmStatus]) -> Summary:
    if all(arm.slot == "" for arm in arms):
        return Summary(sentences, ["action", *STATUS_COLUMNS], [_status_row(arm) for arm in arms])
    rows = [[arm.slot, *_status_row(arm)] for arm in arms]
    return Summary(sentences, ["slot", "choice", *STATUS_COLUMNS], rows, texts=2)


def _status_row(arm: ArmStatus) -> list[str]:
    name = arm.choice if arm.status == "active" else f"{arm.choice} ({arm.status})"
    between = "–" if arm.low is None else f"{number(arm.low, 3)} to {number(arm.high, 3)}"
    return [
        name,
        f"{arm.decisions:,}",
        percentage(arm.share),
        f"{arm.rows:,}",
        number(arm.reward_rate),
        between,
        percentage(arm.probability),
    ]
