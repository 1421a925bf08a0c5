"""The commands for live bandits: ``submax bandit``, ``submax keys`` and ``submax store``."""

import contextlib
import functools
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from submax.cli.main import STORE_VARIABLE, VariableArgument, VariableOption, main, without_password
from submax.core.errors import InputError
from submax.core.summary import counted

if TYPE_CHECKING:
    from submax.cli.places import StoreClient
    from submax.client.client import Client

    # A bandit or a whole server or store; both have the methods of ``Operations``.
    Found = Client | StoreClient

Table = dict[str, Any]
Answer = tuple[object, Iterable[str]]
"""What a command prints: as JSON, and as lines for people."""
PATH = click.Path(path_type=Path)


def option(names: str, text: str, **options: Any) -> Callable[..., Any]:
    """An option; behind its name may stand that of the argument."""
    return click.option(*names.split(), help=text, **options)


def repeated(names: str, metavar: str, text: str, **options: Any) -> Callable[..., Any]:
    """An option that can be repeated."""
    return option(names, text, multiple=True, metavar=metavar, **options)


JSON = option("--json as_json", "Print the answer as JSON.", is_flag=True)
STORE = option(
    "--store place",
    "A file, or the URL of a PostgreSQL database or of a server, such as http://127.0.0.1:8000.",
    cls=VariableOption,
    envvar=STORE_VARIABLE,
    show_envvar=True,
    required=True,
    metavar="STORE|ADDRESS",
)
SLOT = option("--slot", "The slot of the choice.", metavar="SLOT", default="")
TRUST = option("--trust", "Allow custom policies to run their Python code.", is_flag=True)


def command_on(
    group: click.Group, name: str | None = None, *, of: str = "NAME", about: str | None = None
) -> Callable[[Callable[..., Answer]], click.Command]:
    """Declare a command of a group; it gets what is opened, and returns what is printed.

    It is about the bandit ``NAME``, about the only bandit if ``[NAME]`` may be left out, or, if
    ``of`` is empty, about a whole store or server. ``about`` is its help instead of a docstring.
    """

    def declare(function: Callable[..., Answer]) -> click.Command:
        # The options that all commands have come last in its help.
        own = function.__dict__.pop("__click_params__", [])

        @functools.wraps(function)
        def run(
            place: str, as_json: bool, bandit: str | None = None, trust: bool = False, **given: Any
        ) -> None:
            from submax.cli.places import opened

            with opened(place, bandit, trust=trust, one_is_needed=bool(of)) as found:
                printed(*function(found, **given), as_json)

        STORE(JSON(TRUST(run)))
        run.__dict__["__click_params__"] += own
        if of:
            click.argument("bandit", metavar=of, required=of == "NAME")(run)
        return group.command(name, help=about)(run)

    return declare


def printed(value: object, lines: Iterable[str], as_json: bool) -> None:
    """Print an answer, as JSON or as lines for people."""
    for line in [_json(value)] if as_json else lines:
        click.echo(line)


def _json(value: object) -> str:
    import msgspec

    return msgspec.json.encode(value).decode()


def value_of(text: str) -> Any:
    """The value that a text stands for: JSON if it can be read as such, else the text itself.

    >>> [value_of("0.5"), value_of("null"), value_of("rcp-submax")]
    [0.5, None, 'rcp-submax']
    """
    import msgspec

    try:
        return msgspec.json.decode(text.encode())
    except msgspec.DecodeError:
        return text


def _pairs(texts: Sequence[str], option: str, example: str) -> Iterator[tuple[str, str]]:
    """The two sides of texts such as ``age=31``."""
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"{option} was {text!r:.60}: write NAME=VALUE, as in {example}")
        yield name, value


def _values(texts: Sequence[str], option: str, example: str) -> Table:
    return {name: value_of(value) for name, value in _pairs(texts, option, example)}


def _changes(texts: Sequence[str]) -> Table:
    """Settings such as ``refit_rows=200`` and ``guard_rails.minimum=0.05``, as a table."""
    changes: Table = {}
    for path, value in _pairs(texts, "a setting", "refit_rows=200"):
        table, (*parents, word) = changes, path.split(".")
        for parent in parents:
            table = table.setdefault(parent, {})
            if not isinstance(table, dict):
                raise InputError(
                    f"{parent} was given as a whole and in parts: give it once, or only its parts"
                )
        table[word] = value_of(value)
    return changes


def actions_of(texts: Sequence[str]) -> Any:
    """The actions of ``--actions``: names, or slots with names or with two ends.

    >>> actions_of(["A,B"]), actions_of(["title=A,B", "price=1:9.5"])
    (['A', 'B'], {'title': ['A', 'B'], 'price': (1.0, 9.5)})
    """
    if len(texts) == 1 and "=" not in texts[0]:
        return texts[0].split(",")
    slots: dict[str, Any] = {}
    for name, choices in _pairs(texts, "--actions", "title=A,B or, for a number, price=1:9.5"):
        low, _, high = choices.partition(":")
        slots[name] = choices.split(",")
        with contextlib.suppress(ValueError):
            slots[name] = (float(low), float(high))
    return slots


def context_of(texts: Sequence[str]) -> dict[str, Any]:
    """The fields of ``--context`` of a declaration.

    >>> context_of(["country=de,fr", "age=number"])
    {'country': ['de', 'fr'], 'age': 'number'}
    """
    fields = dict(_pairs(texts, "--context", "country=de,fr or age=number"))
    for name, kind in fields.items():
        if kind != "number" and "," not in kind:
            raise InputError(
                f"--context was '{name}={kind:.60}', a field with a single category: write "
                f"{name}=number for a number, or list all categories, as in country=de,fr"
            )
    return {name: kind if kind == "number" else kind.split(",") for name, kind in fields.items()}


# Bandits


@main.group()
def bandit() -> None:
    """Create, show, change and use bandits.

    Bandits live in a store (a file or a PostgreSQL database) or on a server. Name it with --store,
    with SUBMAX_STORE, or with SUBMAX_STORE_FILE, a file that contains the URL, which keeps the
    password off the command line. The key of a server is read from SUBMAX_KEY or SUBMAX_KEY_FILE.
    While a server has an SQLite file open, make changes through the server.

    The word bandit is optional: submax create, submax status.
    """


ARMS = "The arms; or slots, one option each: --actions title=A,B --actions price=1:9.5."
FIELD = "A context field: age=number, or its categories, country=de,fr. Can be repeated."


@command_on(bandit)
@repeated("--actions", "A,B,...", ARMS, required=True)
@repeated("--context", "FIELD=KIND", FIELD)
@click.argument("settings", nargs=-1, metavar="[SETTING=VALUE...]")
def create(
    found: "Found", actions: Sequence[str], context: Sequence[str], settings: Sequence[str]
) -> Answer:
    """Create a bandit.

    submax bandit create headlines --actions A,B,C --context country=de,fr reward_wait=600
    """
    options = _changes(settings)
    if context:
        options["context"] = context_of(context)
    made = found.create(actions=actions_of(actions), **options)
    wait = made["reward_wait"]
    learns = "its first reward" if wait == 0 else f"{wait:g} seconds (reward_wait)"
    line = f"{found.bandit} is created. It learns from a decision after {learns}."
    return made, [line, *_ignored_context(made)]


@command_on(bandit, "list", of="")
def list_bandits(found: "Found") -> Answer:
    """List the bandits."""
    names = found.bandits()
    return names, names or ["There are no bandits yet: create one with submax create"]


@command_on(bandit, of="[NAME]")
def status(found: "Found") -> Answer:
    """Show decisions, reward rate and probability of each arm, and any problems.

    Reward rates are weighted by 1 / propensity. Their 95 % intervals are valid for a single look.
    """
    details = found.show()
    lines = [details["summary"]]
    if details["held"]:
        release = f"submax publish {found.bandit}"
        lines.append(f"Version {details['version']} is held; to follow new versions: {release}")
    if waiting := details["counts"]["in quarantine"]:
        lines.append(f"In quarantine: {counted(waiting, 'reward')} for unknown decisions.")
    lines += [f"Notice: {one}" for one in details["notices"] if one not in details["summary"]]
    lines += [f"Alarm: {condition['sentence']}" for condition in details["conditions"]]
    return details, lines


def _ignored_context(details: Table) -> list[str]:
    warning = (
        "Warning: the policy ignores the context, so every visitor gets the same "
        "probabilities; the default, rcp-adaptive, uses the context."
    )
    return [warning] if details["context_ignored"] else []


@command_on(bandit, of="[NAME]")
def lift(found: "Found") -> Answer:
    """Show the extra reward per decision, compared with the holdout or the control.

    The 95 % confidence interval is valid however often you look.
    """
    from submax.server.pages.formats import lift_sentence

    reports, lines = found.lift(), []
    unit = "percent" if found.show()["rewards"].get("kind") == "binary" else "number"
    for report in reports:
        lines.append(lift_sentence(report, unit))
        if (ratio := report.sample_ratio) is not None and report.decisions:
            lines.append(
                f"  share of the {report.against}: {100 * ratio.observed:.2f} %, expected "
                f"{100 * ratio.expected:.2f} % (always-valid p-value: {ratio.p_value:.3g})"
            )
        lines += [f"  Note: {sentence}" for sentence in report.cautions]
    return reports, lines


@command_on(bandit, "set")
@click.argument("settings", nargs=-1, required=True, metavar="SETTING=VALUE...")
def set_settings(found: "Found", settings: Sequence[str]) -> Answer:
    """Change settings, the policy or guard rails, all together or not at all.

    For example: refit_rows=200 policy=rcp-submax guard_rails.minimum=0.05. Values are JSON or plain
    text; null restores the default.
    """
    details = found.set(**_changes(settings))
    warned = _ignored_context(details) if any("policy" in one for one in settings) else []
    return details, [f"{found.bandit}: {', '.join(settings)}", *warned]


@command_on(bandit)
@click.argument("choice", metavar="CHOICE")
@SLOT
@option("--ramp", "Decisions over which its probability limit rises to 1.", type=int, metavar="N")
@repeated("--feature features", "NAME=VALUE", "A feature, if choices have any. Can be repeated.")
def add(
    found: "Found", choice: str, slot: str, ramp: int | None, features: Sequence[str]
) -> Answer:
    """Add an arm, or a choice to a slot; it is eligible at once."""
    table = _values(features, "--feature", "size=3")
    done = found.add(choice, slot=slot, ramp=ramp, features=table)
    return done, [f"{found.bandit}: {choice} is added."]


def _declare(verb: str, metavar: str, state: str, about: str) -> None:
    """Declare the command that changes the state of a choice, or of the whole bandit."""

    @click.argument("choice", metavar=metavar, required=metavar == "CHOICE")
    @SLOT
    def change(found: "Found", choice: str | None, slot: str) -> Answer:
        done = getattr(found, verb)(choice, slot=slot)
        return done, [f"{found.bandit}: {choice or 'the bandit'} is {state}."]

    command_on(bandit, verb, about=about)(change)


for _words in (
    ("pause", "[CHOICE]", "paused", "Pause a choice or, without CHOICE, the whole bandit.\n\n"
     "A paused bandit answers with its control, its baseline or at random, and does not learn."),
    ("resume", "[CHOICE]", "active",
     "Resume a choice or, without CHOICE, a paused or archived bandit."),
    ("retire", "CHOICE", "retired", "Make a choice ineligible forever."),
):  # fmt: skip
    _declare(*_words)


@command_on(bandit)
def archive(found: "Found") -> Answer:
    """Archive a bandit: it refuses decisions and rewards, but its log can still be read."""
    return found.archive(), [f"{found.bandit}: the bandit is archived."]


@command_on(bandit)
@option("--yes", "Delete without asking.", is_flag=True)
def delete(found: "Found", yes: bool) -> Answer:
    """Delete a bandit with its decisions, versions and settings.

    This cannot be undone: make a copy first with submax store backup. The name can be reused.
    """
    if not yes:
        decisions = counted(found.show()["counts"].get("decisions", 0), "decision")
        click.confirm(f"Delete {found.bandit} with its {decisions}, forever?", abort=True)
    return found.delete(), [f"{found.bandit}: the bandit and its decisions are deleted."]


@command_on(bandit, of="[NAME]")
def versions(found: "Found") -> Answer:
    """List the versions and show which one is live."""
    known = found.versions()
    return known, _version_lines(known)


def _version_lines(known: Table) -> Iterator[str]:
    from submax.server.keys import time_text

    if not known["versions"]:
        yield "No version has been fitted yet: decisions are uniform."
        return
    held = ", held by an operator" if known["held"] else ""
    yield f"Version {known['deciding']} is live ({len(known['versions']):,} so far){held}."
    for one in known["versions"]:
        mark, policy = "*" if one["version"] == known["deciding"] else " ", one["policy"]
        shown = policy if isinstance(policy, str) else policy.get("name", policy.get("kind", ""))
        number, at = f"{one['version']:>5}", time_text(one["at"])
        yield f"{mark} {number}  {at}  {one['rows']:>9,} rows  {shown}"


@command_on(bandit)
@click.argument("version", type=int, metavar="[VERSION]", required=False)
def publish(found: "Found", version: int | None) -> Answer:
    """Make a version live and hold it; without VERSION, follow the newest one again."""
    done = found.publish(version)
    return done, [f"{found.bandit}: version {done['version']} is live."]


@command_on(bandit, "roll-back")
def roll_back(found: "Found") -> Answer:
    """Go back to the version before the live one, and hold it."""
    done = found.roll_back()
    return done, [f"{found.bandit}: version {done['version']} is live."]


@command_on(bandit, of="[NAME]")
@option("--id identifier", "Id of the decision; generated if absent.", metavar="ID")
@option("--unit", "The visitor or customer to decide for.", metavar="UNIT")
@repeated("--context", "FIELD=VALUE", "A context value. Can be repeated.")
def decide(
    found: "Found", identifier: str | None, unit: str | None, context: Sequence[str]
) -> Answer:
    """Make one decision and print it as JSON."""
    values = _values(context, "--context", "age=31")
    made = found.decide(values or None, id=identifier, unit=unit)
    return made, [_json(made)]


@command_on(bandit)
@click.argument("identifier", metavar="ID")
@click.argument("value", metavar="VALUE")
@option("--name", "The declared reward that VALUE is for.", metavar="NAME")
@option("--slot", "The slot that earned it.", metavar="SLOT")
@option("--key", "Distinguishes several rewards of one decision.", metavar="KEY")
def reward(found: "Found", identifier: str, value: str, **part: str | None) -> Answer:
    """Send the reward of a decision and print its receipt as JSON.

    ID is the id of the decision. VALUE is a number, or a JSON object or list: '{"click": 1}', '[1,
    0]'. Sending the same reward again changes nothing.
    """
    receipt = found.reward(identifier, value_of(value), **part)
    return receipt, [_json(receipt)]


@command_on(bandit, of="[NAME]")
@option("--out", "A .parquet or .csv file; NAME.parquet if absent.", type=PATH, metavar="FILE")
@option("--before", "Only decisions before this date, such as 2030-01-31.", metavar="DATE")
@option("--delete deletes", "Delete the decisions from the store once the file is verified.",
        is_flag=True)  # fmt: skip
def export(found: "Found", out: Path | None, before: str | None, deletes: bool) -> Answer:
    """Write the decisions of a bandit, with their rewards, to a file.

    The file is Parquet, or CSV if its name ends in .csv; a server writes Parquet only. submax
    evaluate, learn and tune read the file, or the store itself. --before and --delete work on a
    store, not through its server.
    """
    from submax.cli.places import StoreClient

    path = out or Path(f"{found.bandit}.parquet")
    if not isinstance(found, StoreClient):
        if before or deletes:
            raise InputError(
                "--before and --delete work on a store, not through a server: give a PostgreSQL "
                "database, or stop the server and give its file"
            )
        size = found.export(path)
        return {"path": str(path), "bytes": size}, [f"{size:,} bytes in {path}"]
    count = found.export(path, before=before, delete=deletes)
    ending = ", deleted from the store" if deletes else ""
    lines = [f"{counted(count, 'decision')} in {path}{ending}"]
    return {"path": str(path), "decisions": count}, lines


@command_on(bandit)
@click.argument("unit", metavar="UNIT")
@option("--anonymous", "Keep decisions and rewards, but forget whose they are.", is_flag=True)
def erase(found: "Found", unit: str, anonymous: bool) -> Answer:
    """Delete the decisions and rewards of a unit, such as a visitor who requests it.

    The audit records the deletion, but not whose data it was. Backups and exported files keep the
    rows.
    """
    count = found.erase(unit, anonymous=anonymous)
    done = "made anonymous" if anonymous else "deleted"
    return {"decisions": count}, [f"{found.bandit}: {counted(count, 'decision')} {done}."]


@command_on(bandit, of="")
@click.argument("bandit", metavar="[NAME]", required=False)
def audit(found: "Found") -> Answer:
    """Print who changed what, newest first; without NAME, for all bandits and keys."""
    from submax.server.keys import time_text

    changes = [one for one in found.audit() if found.bandit in (None, one["subject"])]
    lines = []
    for one in changes:
        who = f"{one['name']} ({one['key']})".strip() if one["key"] else one["name"]
        parts = [time_text(one["at"]), who, one["action"], one["subject"], one["detail"]]
        lines.append("  ".join(filter(None, parts)))
    return changes, lines or ["No changes yet."]


# Keys


@main.group()
def keys() -> None:
    """Add, list and revoke keys of the HTTP interface.

    Once a key exists, every request to the server needs one.
    """


SCOPES = "What the key allows: decide, reward, read or admin. Can be repeated."
EXPIRES = "When the key becomes invalid, such as 2030-01-31 or 2030-01-31T12:00:00Z."
ORIGINS = (
    "Make a browser key for pages of this site, such as https://shop.example. Every visitor can "
    "read it, so it may only decide and reward. Can be repeated."
)


@command_on(keys, "add", of="")
@repeated("--scope scopes", "SCOPE", SCOPES, required=True)
@repeated("--bandit bandits", "NAME", "A bandit that it may use; all if absent. Can be repeated.")
@option("--rate", "Most requests per second; the server's if absent.", type=float, metavar="N")
@option("--name", "A name for lists and the audit.", default="", metavar="TEXT")
@option("--expires", EXPIRES, metavar="DATE")
@repeated("--origin origins", "ORIGIN", ORIGINS)
def add_key(found: "Found", scopes: Sequence[str], **options: Any) -> Answer:
    """Add a key and print it.

    The store keeps only a hash of the key, so it cannot be printed again.
    """
    limits = {word: list(options.pop(word)) or None for word in ("bandits", "origins")}
    made = found.add_key(scopes, **limits, **options)
    note = f"Copy the key now: the store keeps only a hash of it. Its id is {made['id']}."
    click.echo(note, err=True)
    return made, [made["key"]]


@command_on(keys, "list", of="")
def list_keys(found: "Found") -> Answer:
    """List the keys with their expiry and last use, without their secrets."""
    known = found.keys()
    nothing = "There are no keys: the server accepts all requests, and listens on loopback only."
    return known, [_key_line(one) for one in known] or [nothing]


def _key_line(key: Table) -> str:
    from submax.server.keys import time_text

    facts = [", ".join(key["bandits"]) if key["bandits"] else "all bandits"]
    if key["origins"]:
        facts.append(f"for pages of {', '.join(key['origins'])}")
    if key["rate"] is not None:
        facts.append(f"{key['rate']:g} requests a second")
    if key["expires"] is not None:
        facts.append(f"expires {time_text(key['expires'])}")
    facts.append(f"last used {time_text(key['used'])}" if key["used"] else "never used")
    parts = [key["id"], key["name"], ", ".join(key["scopes"]), ", ".join(facts)]
    return "  ".join(filter(None, parts))


@command_on(keys, "revoke", of="")
@click.argument("identifier", metavar="ID")
def revoke_key(found: "Found", identifier: str) -> Answer:
    """Revoke a key: the server refuses it from now on."""
    found.revoke_key(identifier)
    return {"id": identifier}, [f"The key {identifier} is revoked."]


# Stores


@main.group()
def store() -> None:
    """Back up, copy and check stores.

    The word store is optional: submax backup, submax doctor.
    """


@store.command()
@click.argument("place", metavar="STORE")
@click.argument("file", type=PATH, metavar="FILE")
@JSON
def backup(place: str, file: Path, as_json: bool) -> None:
    """Copy a store to a file that can be opened in its place.

    The store may be in use. A PostgreSQL store is copied to a file, too. The copy is checked, and
    kept only if it is intact.
    """
    from submax.bandit.store import open_store

    with open_store(place, read_only=True) as found:
        found.backup(file)
    lines = [f"Copied {without_password(place)} to {file}"]
    printed({"file": str(file), "bytes": file.stat().st_size}, lines, as_json)


def store_argument(name: str, metavar: str) -> Callable[..., Any]:
    """The argument for a store, which may also be named by a variable."""
    options = {"envvar": STORE_VARIABLE, "metavar": metavar, "required": True}
    return click.argument(name, cls=VariableArgument, **options)


@store.command()
@click.argument("source", metavar="FROM")
@store_argument("target", "[TO]")
@JSON
def copy(source: str, target: str, as_json: bool) -> None:
    """Copy a store to a new one, for example from SQLite to PostgreSQL.

    TO defaults to SUBMAX_STORE or SUBMAX_STORE_FILE, so a password need not appear on the command
    line.

    Stop everything that writes to FROM: later decisions are not copied. TO must be empty. The copy
    is checked for damage.
    """
    from submax.bandit.store import copy_store

    rows = copy_store(source, target)
    lines = [f"{count:>12,} rows of {table}" for table, count in rows.items() if count]
    said = f"Copied {without_password(source)} to {without_password(target)}"
    printed(rows, [*lines, said], as_json)


@store.command()
@store_argument("place", "[STORE]")
@JSON
def doctor(place: str, as_json: bool) -> None:
    """Check a store for damage and give advice; STORE defaults to SUBMAX_STORE.

    Runs the database's integrity check, and verifies the checksums of decisions and rewards, the
    hashes of models, and the counts. The exit status is 1 if anything is damaged or missing, and 0
    if there is only advice.
    """
    from submax.bandit.doctor import Finding, examined
    from submax.bandit.store import open_store

    labels = {"ok": "ok    ", "damage": "DAMAGE", "advice": "ADVICE"}
    found: list[Finding] = []
    try:
        with open_store(place, read_only=True) as opened:
            found.extend(examined(opened))
    except InputError as error:
        # Damage because of which a store cannot be read is a finding, too.
        if not isinstance(error.__cause__, sqlite3.DatabaseError):
            raise
        found.append(Finding("damage", str(error)))
    lines = [f"{labels[one.kind]} {one.sentence}" for one in found]
    printed([one._asdict() for one in found], lines, as_json)
    if any(one.kind == "damage" for one in found):
        raise click.exceptions.Exit(1)
