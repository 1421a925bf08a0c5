"""The commands for live bandits: ``submax bandit``, ``keys``, ``store``, ``serve`` and ``demo``."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from submax.cli.main import StoreOption, main

JSON = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
STORE = click.option(
    "--store",
    "place",
    cls=StoreOption,
    required=True,
    metavar="STORE|ADDRESS",
    help="A file, the address of a PostgreSQL database, or that of a server such as "
    "http://127.0.0.1:8000; SUBMAX_STORE if absent.",
)
NAME = click.argument("name", metavar="NAME")
ONLY_NAME = click.argument("name", metavar="[NAME]", required=False)
"""The name of a bandit, which may be left out if there is only one."""
SLOT = click.option("--slot", metavar="SLOT", default="", help="The slot of the choice.")
PATH = click.Path(path_type=Path)
Table = dict[str, Any]


def answer(value: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Print an answer, as JSON or as lines for people."""
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(value).decode())
        return
    for line in lines:
        click.echo(line)


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


def pair(text: str, option: str, example: str) -> tuple[str, str]:
    """The two sides of a text such as ``age=31``."""
    from submax.core.errors import InputError

    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(
            f"{option} was {text!r:.60}, and NAME=VALUE is allowed: give it as in {example}"
        )
    return name, value


def changes_of(texts: Sequence[str]) -> Table:
    """Settings such as ``refit_rows=200`` and ``guard_rails.minimum=0.05``, as a table."""
    from submax.core.errors import InputError

    changes: Table = {}
    for text in texts:
        path, value = pair(text, "a setting", "refit_rows=200")
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
    for text in texts:
        name, choices = pair(text, "--actions", "title=A,B or, for a number, price=1:9.5")
        low, colon, high = choices.partition(":")
        try:
            slots[name] = (float(low), float(high)) if colon else choices.split(",")
        except ValueError:
            slots[name] = choices.split(",")
    return slots


def context_of(texts: Sequence[str]) -> dict[str, Any]:
    """The fields of ``--context`` of a declaration.

    >>> context_of(["country=de,fr", "age=number"])
    {'country': ['de', 'fr'], 'age': 'number'}
    """
    pairs = dict(pair(text, "--context", "country=de,fr or age=number") for text in texts)
    return {name: kind if kind == "number" else kind.split(",") for name, kind in pairs.items()}


# Bandits


@main.group()
def bandit() -> None:
    """Create, show, change and use bandits.

    They are in a store (a file or a PostgreSQL database) or on a server: --store says where, or
    SUBMAX_STORE, or SUBMAX_STORE_FILE, which names a file with the address, so a password is on no
    command line. The key of a server is read from SUBMAX_KEY or SUBMAX_KEY_FILE. While a server
    has an SQLite file open, changes must go through the server.

    The word bandit can be left out: submax create, submax status.
    """


@bandit.command()
@NAME
@click.option(
    "--actions",
    multiple=True,
    required=True,
    metavar="A,B,...",
    help="The arms; or, repeated, slots: --actions title=A,B --actions price=1:9.5.",
)
@click.option(
    "--context",
    multiple=True,
    metavar="FIELD=KIND",
    help="A field of the context: age=number, or its categories, country=de,fr. Can be repeated.",
)
@click.argument("settings", nargs=-1, metavar="[SETTING=VALUE...]")
@STORE
@JSON
def create(
    name: str,
    actions: tuple[str, ...],
    context: tuple[str, ...],
    settings: tuple[str, ...],
    place: str,
    as_json: bool,
) -> None:
    """Create a bandit.

    submax bandit create headlines --actions A,B,C --context country=de,fr reward_wait=600
    """
    from submax.cli.places import opened

    options = changes_of(settings)
    if context:
        options["context"] = context_of(context)
    with opened(place, name) as found:
        made = found.create(actions=actions_of(actions), **options)
    wait = made["reward_wait"]
    learns = "its first reward" if wait == 0 else f"{wait:g} seconds (reward_wait)"
    lines = [f"{name} is created. It learns from a decision after {learns}."]
    answer(made, [*lines, *_ignored_context(made)], as_json=as_json)


@bandit.command("list")
@STORE
@JSON
def list_bandits(place: str, as_json: bool) -> None:
    """List the bandits."""
    from submax.cli.places import opened

    with opened(place) as found:
        names = found.bandits()
    answer(names, names or ["There is no bandit yet: submax bandit create"], as_json=as_json)


@bandit.command()
@ONLY_NAME
@STORE
@JSON
def status(name: str | None, place: str, as_json: bool) -> None:
    """Show each arm with its decisions, reward rate and probability, and what is wrong.

    The reward rate has a 95 % interval that is valid for one look, and is weighted by
    1 / propensity.
    """
    from submax.cli.places import the_bandit

    with the_bandit(place, name) as found:
        details = found.show()
    answer(details, _status_lines(details), as_json=as_json)


def _status_lines(details: Table) -> Iterator[str]:
    import msgspec

    from submax.bandit.arms import ArmStatus, arms_summary
    from submax.core.decoding import known_type
    from submax.core.summary import counted
    from submax.policies.specification import PolicySpecification

    counts = details["counts"]
    policy = PolicySpecification(details["policy"]).title
    held = ", held" if details["held"] else ""
    learned, late = counts.get("learned", 0), counts.get("late rewards", 0)
    sentences = [
        f"{details['name']}: {details['status']}, {policy}, version {details['version']}{held}",
        f"{counted(counts.get('decisions', 0), 'decision')}, {learned:,} learned from, "
        f"{counts.get('held out', 0):,} held out, {counted(late, 'late reward')}",
    ]
    arms = msgspec.convert(details["arms"], known_type(list[ArmStatus]))
    yield str(arms_summary(sentences, arms, binary=_is_binary(details)))
    for notice in details["notices"]:
        yield f"Notice: {notice}"
    for condition in details.get("conditions", ()):
        yield f"Alarm: {condition['sentence']}"


def _is_binary(details: Table) -> bool:
    rewards = details["rewards"]
    return isinstance(rewards, Mapping) and rewards.get("kind") == "binary"


def _ignored_context(details: Table) -> list[str]:
    if not details.get("context_ignored"):
        return []
    return [
        "Warning: the policy does not look at the context, so every visitor gets the same "
        "probabilities; the default, rcp-adaptive, does."
    ]


@bandit.command()
@ONLY_NAME
@STORE
@JSON
def lift(name: str | None, place: str, as_json: bool) -> None:
    """Show how much more a decision earns than one of the holdout or of the control.

    The 95 % confidence interval is valid however often you look.
    """
    from submax.cli.places import the_bandit

    with the_bandit(place, name) as found:
        reports, binary = found.lift(), _is_binary(found.show())
    lines = [line for report in reports for line in _lift_lines(report, binary)]
    answer(reports, lines, as_json=as_json)


def _lift_lines(report: Any, binary: bool) -> Iterator[str]:
    """The lines about one comparison: rates in %, other rewards as numbers."""

    def mean(value: float | None, sign: str = "") -> str:
        if value is None:
            return "unknown"
        if not binary:
            return f"{value:{sign}.4g}"
        return f"{100 * value:{sign}.2f}" + ("" if sign else " %")

    test = ", A/A test" if report.aa_test else ""
    points = " percentage points" if binary else ""
    yield (
        f"Lift over the {report.against} ({report.action}{test}): "
        f"{mean(report.estimate, '+')}{points} per decision"
    )
    if report.low is not None and report.high is not None:
        ends = f"{mean(report.low, '+')} to {mean(report.high, '+')}"
        yield f"  95 % confidence interval (always valid): {ends}"
    yield f"  bandit {mean(report.mean)} in {report.decisions:,} decisions"
    yield f"  {report.against} {mean(report.mean_of_group)} in {report.decisions_of_group:,}"
    ratio = report.sample_ratio
    if ratio is not None:
        yield (
            f"  share of the {report.against} {100 * ratio.observed:.2f} %, expected "
            f"{100 * ratio.expected:.2f} % (p-value, always valid: {ratio.p_value:.3g})"
        )
    for place, sentence in enumerate(report.cautions):
        last = report.alarm and place == len(report.cautions) - 1
        yield f"  {'ALARM' if last else 'Note'}: {sentence}"


@bandit.command("set")
@NAME
@click.argument("settings", nargs=-1, required=True, metavar="SETTING=VALUE...")
@STORE
@JSON
def set_settings(name: str, settings: tuple[str, ...], place: str, as_json: bool) -> None:
    """Change settings, the policy or guard rails, all or none.

    refit_rows=200 policy=rcp-submax guard_rails.minimum=0.05. A value is JSON or a text; null
    stands for the default.
    """
    from submax.cli.places import opened

    with opened(place, name) as found:
        details = found.set(**changes_of(settings))
    warned = _ignored_context(details) if any("policy" in one for one in settings) else []
    answer(details, [f"{name}: {', '.join(settings)}", *warned], as_json=as_json)


@bandit.command()
@NAME
@click.argument("choice", metavar="CHOICE")
@SLOT
@click.option("--ramp", type=int, metavar="N", help="Decisions over which its limit rises to 1.")
@click.option(
    "--feature",
    "features",
    multiple=True,
    metavar="NAME=VALUE",
    help="A feature of the choice, if choices have features. Can be repeated.",
)
@STORE
@JSON
def add(
    name: str,
    choice: str,
    slot: str,
    ramp: int | None,
    features: tuple[str, ...],
    place: str,
    as_json: bool,
) -> None:
    """Add an arm, or a choice to a slot; it is eligible at once."""
    options: Table = {"slot": slot} if slot else {}
    if ramp is not None:
        options["ramp"] = ramp
    if features:
        pairs = (pair(one, "--feature", "size=3") for one in features)
        options["features"] = {word: value_of(value) for word, value in pairs}
    _change(place, name, "add", (choice,), as_json, f"{choice} is added", **options)


@bandit.command()
@NAME
@click.argument("choice", metavar="[CHOICE]", required=False)
@SLOT
@STORE
@JSON
def pause(name: str, choice: str | None, slot: str, place: str, as_json: bool) -> None:
    """Pause a choice; without one, the whole bandit.

    A paused bandit answers with its control or baseline, or uniformly, and does not learn.
    """
    said = f"{choice or 'the bandit'} is paused"
    _change(place, name, "pause", (choice,), as_json, said, slot=slot)


@bandit.command()
@NAME
@click.argument("choice", metavar="[CHOICE]", required=False)
@SLOT
@STORE
@JSON
def resume(name: str, choice: str | None, slot: str, place: str, as_json: bool) -> None:
    """Resume a choice; without one, the whole bandit, paused or archived."""
    said = f"{choice or 'the bandit'} is active"
    _change(place, name, "resume", (choice,), as_json, said, slot=slot)


@bandit.command()
@NAME
@click.argument("choice", metavar="CHOICE")
@SLOT
@STORE
@JSON
def retire(name: str, choice: str, slot: str, place: str, as_json: bool) -> None:
    """Make a choice ineligible forever."""
    _change(place, name, "retire", (choice,), as_json, f"{choice} is retired", slot=slot)


@bandit.command()
@NAME
@STORE
@JSON
def archive(name: str, place: str, as_json: bool) -> None:
    """Let a bandit refuse decisions and rewards; its decisions can still be read."""
    _change(place, name, "archive", (), as_json, "the bandit is archived")


@bandit.command()
@NAME
@click.option("--yes", is_flag=True, help="Delete without asking.")
@STORE
@JSON
def delete(name: str, yes: bool, place: str, as_json: bool) -> None:
    """Delete a bandit with its decisions, versions and settings.

    This cannot be undone: make a copy first by submax store backup. The name can be used again.
    """
    from submax.cli.places import opened

    with opened(place, name) as found:
        decisions = found.show()["counts"].get("decisions", 0)
    if not yes:
        click.confirm(f"Delete {name} with its {decisions:,} decisions, forever?", abort=True)
    _change(place, name, "delete", (), as_json, "the bandit and its decisions are deleted")


def _change(
    place: str,
    name: str,
    verb: str,
    arguments: Sequence[str | None],
    as_json: bool,
    said: str,
    **options: Any,
) -> None:
    """Call the method ``verb`` of a bandit, and print what is now true."""
    from submax.cli.places import opened

    with opened(place, name) as found:
        done = getattr(found, verb)(*arguments, **options)
    answer(done, [f"{name}: {said}."], as_json=as_json)


@bandit.command()
@ONLY_NAME
@STORE
@JSON
def versions(name: str | None, place: str, as_json: bool) -> None:
    """List the versions, and say which one is live."""
    from submax.cli.places import the_bandit

    with the_bandit(place, name) as found:
        known = found.versions()
    answer(known, _version_lines(known), as_json=as_json)


def _version_lines(known: Table) -> Iterator[str]:
    from submax.server.keys import time_text

    total = len(known["versions"])
    held = ", held by an operator" if known["held"] else ""
    yield f"Version {known['deciding']} is live ({total:,} so far){held}."
    for one in known["versions"]:
        mark = "*" if one["version"] == known["deciding"] else " "
        when = f"{time_text(one['at'])}  "
        policy = one["policy"]
        shown = policy if isinstance(policy, str) else policy.get("name", policy.get("kind", ""))
        yield f"{mark} {one['version']:>5}  {when}{one['rows']:>9,} rows  {shown}"


@bandit.command()
@NAME
@click.argument("version", type=int, metavar="[VERSION]", required=False)
@STORE
@JSON
def publish(name: str, version: int | None, place: str, as_json: bool) -> None:
    """Let a version decide and hold it; without one, the newest and all later ones."""
    _publish(place, name, as_json, "publish", version)


@bandit.command("roll-back")
@NAME
@STORE
@JSON
def roll_back(name: str, place: str, as_json: bool) -> None:
    """Let the version before the live one decide, and hold it."""
    _publish(place, name, as_json, "roll_back")


def _publish(place: str, name: str, as_json: bool, verb: str, *arguments: int | None) -> None:
    from submax.cli.places import opened

    with opened(place, name) as found:
        done = getattr(found, verb)(*arguments)
    answer(done, [f"{name}: version {done['version']} is live."], as_json=as_json)


@bandit.command()
@ONLY_NAME
@click.option("--id", "identifier", metavar="ID", help="Id of the decision; a new one if absent.")
@click.option("--unit", metavar="UNIT", help="The visitor or customer for whom it is made.")
@click.option(
    "--context", multiple=True, metavar="FIELD=VALUE", help="A value of the context; repeatable."
)
@click.option("--trust", is_flag=True, help="Run the code of a policy of your own.")
@STORE
def decide(
    name: str | None,
    identifier: str | None,
    unit: str | None,
    context: tuple[str, ...],
    trust: bool,
    place: str,
) -> None:
    """Make one decision and print it as JSON."""
    from submax.cli.places import the_bandit

    pairs = (pair(one, "--context", "age=31") for one in context)
    values = {field: value_of(value) for field, value in pairs}
    with the_bandit(place, name, trust=trust) as found:
        made = found.decide(values or None, id=identifier, unit=unit)
    answer(made, [], as_json=True)


@bandit.command()
@NAME
@click.argument("identifier", metavar="ID")
@click.argument("value", metavar="VALUE")
@click.option("--name", "which", metavar="NAME", help="Which of the declared rewards it is.")
@click.option("--slot", metavar="SLOT", help="The slot that earned it.")
@click.option("--key", metavar="KEY", help="Tells several rewards of a decision apart.")
@click.option("--trust", is_flag=True, help="Run the code of a policy of your own.")
@STORE
def reward(
    name: str,
    identifier: str,
    value: str,
    which: str | None,
    slot: str | None,
    key: str | None,
    trust: bool,
    place: str,
) -> None:
    """Send the reward of a decision and print its receipt as JSON.

    ID is that of the decision. VALUE is a number, or a table or a list as JSON: '{"click": 1}',
    '[1, 0]'. The same reward again changes nothing.
    """
    from submax.cli.places import opened
    from submax.core.errors import InputError

    amount = value_of(value)
    if isinstance(amount, (str, bool)) or amount is None:
        raise InputError(
            f"the reward was {value!r:.60}, and a number, or a table or a list of numbers as JSON "
            "is allowed: give one such as 1, or '{\"click\": 1}'"
        )
    with opened(place, name, trust=trust) as found:
        receipt = found.reward(identifier, amount, key=key, name=which, slot=slot)
    answer(receipt, [], as_json=True)


@bandit.command()
@ONLY_NAME
@click.option("--out", type=PATH, metavar="FILE", help="A .parquet or .csv file; NAME.parquet.")
@click.option("--rewards", type=PATH, metavar="FILE", help="Also write every reward, as it came.")
@click.option("--before", metavar="DATE", help="Only decisions before it, such as 2030-01-31.")
@click.option(
    "--delete",
    "deletes",
    is_flag=True,
    help="Delete the decisions from the store after the file was read again and compared.",
)
@STORE
@JSON
def export(
    name: str | None,
    out: Path | None,
    rewards: Path | None,
    before: str | None,
    deletes: bool,
    place: str,
    as_json: bool,
) -> None:
    """Write the decisions of a bandit, with their rewards, to a file.

    submax evaluate, learn and tune read the file, and also read the store itself.
    """
    from submax.cli.places import StoredBandit, parsed_date, the_bandit
    from submax.core.errors import InputError

    until = None if before is None else parsed_date(before)
    with the_bandit(place, name) as found:
        if not isinstance(found, StoredBandit):
            if rewards or before or deletes:
                raise InputError(
                    "--rewards, --before and --delete were given with the address of a server, "
                    "and they work on a store: stop the server, or leave them out"
                )
            path = out or Path(f"{found.bandit}.parquet")
            done: Table = {"path": str(path), "bytes": found.export(path)}
            lines = [f"{done['bytes']:,} bytes in {path}"]
        else:
            done = found.export(out, before=until, delete=deletes)
            ended = ", deleted from the store" if deletes else ""
            lines = [f"{done['decisions']:,} decisions in {done['path']}{ended}"]
            if rewards is not None:
                done |= {"rewards_path": str(rewards), "rewards": found.export_rewards(rewards)}
                lines.append(f"{done['rewards']:,} rewards in {rewards}")
    answer(done, lines, as_json=as_json)


@bandit.command()
@NAME
@click.argument("unit", metavar="UNIT")
@click.option(
    "--anonymous", is_flag=True, help="Keep decisions and rewards, and forget whose they are."
)
@STORE
@JSON
def erase(name: str, unit: str, anonymous: bool, place: str, as_json: bool) -> None:
    """Delete the decisions and rewards of a unit, such as a visitor who asks for it.

    The audit says that it was done, and not for whom. Backups and exported files keep the rows.
    """
    from submax.cli.places import opened
    from submax.core.summary import counted

    with opened(place, name) as found:
        count = found.erase(unit, anonymous=anonymous)
    verb = "made anonymous" if anonymous else "deleted"
    answer({"decisions": count}, [f"{name}: {verb} {counted(count, 'decision')}."], as_json=as_json)


@bandit.command()
@ONLY_NAME
@click.option(
    "--last",
    type=click.IntRange(1, 1000),
    default=100,
    show_default=True,
    metavar="N",
    help="Number of changes to print.",
)
@STORE
@JSON
def audit(name: str | None, last: int, place: str, as_json: bool) -> None:
    """Print who changed what, newest first; without a name, of all bandits and keys."""
    from submax.cli.places import opened

    with opened(place, name) as found:
        changes = [one for one in found.audit() if name in (None, one["subject"])][:last]
    lines = []
    for one in changes:
        who = f"{one['name']} ({one['key']})".strip() if one["key"] else one["name"]
        parts = [one["at"], who, one["operation"], one["subject"], one["detail"]]
        lines.append("  ".join(filter(None, parts)))
    answer(changes, lines or ["No changes yet."], as_json=as_json)


# Keys


@main.group()
def keys() -> None:
    """Add, list and revoke keys of the HTTP interface.

    After the first key was made, every request to a server needs a key.
    """


@keys.command("add")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    metavar="SCOPE",
    help="What the key allows: decide, reward, read or admin. Can be repeated.",
)
@click.option(
    "--bandit",
    "bandits",
    multiple=True,
    metavar="NAME",
    help="A bandit that the key may use; all if absent. Can be repeated.",
)
@click.option(
    "--rate", type=float, metavar="N", help="Most requests per second; the server's if absent."
)
@click.option("--name", default="", metavar="TEXT", help="A name for lists and the audit.")
@click.option(
    "--expires",
    metavar="DATE",
    help="When the key becomes invalid, such as 2030-01-31 or 2030-01-31T12:00:00Z.",
)
@click.option(
    "--browser",
    is_flag=True,
    help="The key is for web pages, where every visitor can read it: it may reward, or decide and "
    "reward, from pages of the sites of --origin or of submax serve --origin.",
)
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="A site whose pages may use a browser key, such as https://shop.example. Can be repeated.",
)
@STORE
@JSON
def add_key(
    scopes: tuple[str, ...],
    bandits: tuple[str, ...],
    rate: float | None,
    name: str,
    expires: str | None,
    browser: bool,
    origins: tuple[str, ...],
    place: str,
    as_json: bool,
) -> None:
    """Add a key and print its text.

    The store has only a hash of the text, so it cannot be printed again.
    """
    from submax.cli.places import StoredBandit, opened

    options: Table = {"rate": rate, "name": name, "expires": expires, "browser": browser}
    if origins:
        options["origins"] = list(origins)
    with opened(place) as found:
        made = found.add_key(scopes, bandits=list(bandits) or None, **options)
        known = found.keys() if isinstance(found, StoredBandit) else []
    administered = not known or any("admin" in key["scopes"] for key in known)
    answer(made, [made["key"]], as_json=as_json)
    if not administered:
        click.echo(
            "Every request needs a key from now on, and no key has the scope admin, which creates "
            "bandits: make one in the same way, with --scope admin.",
            err=True,
        )
    note = f"Copy the key now: the store has only a hash of it. Its id is {made['id']}."
    click.echo(note, err=True)


@keys.command("list")
@STORE
@JSON
def list_keys(place: str, as_json: bool) -> None:
    """List the keys with their expiry and last use, without their secrets."""
    from submax.cli.places import opened

    with opened(place) as found:
        known = found.keys()
    nothing = "There are no keys: the server accepts all requests, and listens on loopback only."
    answer(known, [_key_line(one) for one in known] or [nothing], as_json=as_json)


def _key_line(key: Table) -> str:
    facts = [", ".join(key["bandits"]) if key["bandits"] else "all bandits"]
    if key["browser"]:
        facts.append("for browsers")
    if key["rate"] is not None:
        facts.append(f"{key['rate']:g} requests a second")
    if key["expires"] is not None:
        facts.append(f"expires {key['expires']}")
    facts.append("never used" if key["last_used"] is None else f"last used {key['last_used']}")
    parts = [key["id"], key["name"], ", ".join(key["scopes"]), ", ".join(facts)]
    return "  ".join(filter(None, parts))


@keys.command("revoke")
@click.argument("identifier", metavar="ID")
@STORE
@JSON
def revoke_key(identifier: str, place: str, as_json: bool) -> None:
    """Revoke a key: the server refuses it from now on."""
    from submax.cli.places import opened

    with opened(place) as found:
        found.revoke_key(identifier)
    answer({"id": identifier}, [f"The key {identifier} is revoked."], as_json=as_json)


# Stores


@main.group()
def store() -> None:
    """Back up, copy and check stores.

    The word store can be left out: submax backup, submax doctor.
    """


STORED = click.argument("place", metavar="STORE")


@store.command()
@STORED
@click.argument("file", type=PATH, metavar="FILE")
@JSON
def backup(place: str, file: Path, as_json: bool) -> None:
    """Copy a store to a file that can be opened in its place.

    The store may be in use; a PostgreSQL store becomes a file, too. The copy is searched for
    damage, and is kept only if there is none.
    """
    from submax.bandit.store import open_store
    from submax.cli.main import without_password

    with open_store(place, read_only=True) as found:
        found.backup(file)
    lines = [f"Copied {without_password(place)} to {file}"]
    answer({"file": str(file), "bytes": file.stat().st_size}, lines, as_json=as_json)


@store.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@JSON
def copy(source: str, target: str, as_json: bool) -> None:
    """Copy a store into a new one, as from SQLite to PostgreSQL.

    Stop whatever writes to FROM: later decisions are not copied. TO must be empty. What was
    written is read again and compared.
    """
    from submax.bandit.store import copy_store
    from submax.cli.main import without_password

    rows = copy_store(source, target)
    lines = [f"{count:>12,} rows of {table}" for table, count in rows.items() if count]
    said = f"Copied {without_password(source)} to {without_password(target)}"
    answer(rows, [*lines, said], as_json=as_json)


@store.command()
@STORED
@JSON
def doctor(place: str, as_json: bool) -> None:
    """Check a store for damage, and give advice about it.

    The database checks itself, every decision and reward is compared with its checksum, models
    with their hashes, and counts with each other. The exit status is 1 if anything is damaged or
    missing, and 0 if there is only advice.
    """
    from submax.bandit.doctor import Finding, examined
    from submax.bandit.store import open_store
    from submax.core.errors import InputError

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
    answer([one._asdict() for one in found], lines, as_json=as_json)
    if any(one.kind == "damage" for one in found):
        raise click.exceptions.Exit(1)
