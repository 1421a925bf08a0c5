"""Carries out the commands on logs: reads what they are given, and prints and writes results."""

import json
import re
import shlex
import sys
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from submax.cli.main import is_address, without_password
from submax.core.checks import one_of, positive
from submax.core.errors import InputError
from submax.core.serialization import atomic_write
from submax.core.summary import Summary, counted
from submax.evaluation.comparison import compare, compare_rewards
from submax.evaluation.learning import BestPolicy, learn_best
from submax.evaluation.log import By, Log
from submax.evaluation.policies import ALWAYS, COLUMNS, SUFFIX, already_learned
from submax.evaluation.report import Comparison, check_report, text_of
from submax.evaluation.scoring import scores
from submax.evaluation.sources import TextFormat
from submax.policies.specification import make_policy, variants
from submax.schema.trained_policy import TrainedPolicy
from submax.simulation.results import ESTIMATES, write_csv

DIFFERENCES, SLICES = "differences.csv", "slices.csv"
"""The files of the differences between policies, and of the estimates of slices."""
WIDEST = 160
"""Characters of the lines of tables, so that names are not cut; a terminal wraps them."""
SILENT_SECONDS = 2.0
"""Work that takes longer says what it does."""
READING = ("columns", "declare", "skip_bad_rows", "separator", "decimal")
"""Options that say how a log is read."""
NAMED = re.compile(r"(?!always=|columns=)([^=,@:{/]+)=(.+)", re.DOTALL)
"""A policy with a name: ``mine=linucb``. The = of ``linucb,alpha=2`` belongs to the policy."""
DECLARED_KEYS = ("actions", "action_features", "context", "rewards")
"""Keys that a declaration may have: the arguments of ``Log.read`` with these names."""
SQLITE = b"SQLite format 3\0"
"""The beginning of every SQLite file."""


# What a command is given --------------------------------------------------------------------------


def text_or_table(text: str) -> str | dict[str, Any]:
    """Return text that begins with a brace as a table, read as JSON, and other text as it is."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        table: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise InputError(
            f"{text!r:.60} begins with a brace and is not valid JSON: {error}"
        ) from error
    return table


def specification(text: str) -> str | dict[str, Any]:
    """Return a policy that has to learn, after refusing an unknown one."""
    if text.startswith((ALWAYS, COLUMNS)):
        raise InputError(f"{text} learns nothing: evaluate it with submax evaluate --policy {text}")
    found = text_or_table(text)
    try:
        make_policy(found)
    except InputError as error:
        if str(error).startswith("unknown policy"):
            hint = f"if {text!r} is an action of the log, {ALWAYS}{text} is the policy that always "
            raise InputError(f"{error}; {hint}takes this action") from error
        if "not a function" in str(error):
            raise InputError(f"{error}; in Python, compare() takes functions, too") from error
        raise
    return found


def named_policies(texts: Sequence[str], trust: bool) -> dict[str, Any]:
    """Return policies by name as ``compare`` takes them: learned ones, tables, or the text."""
    found: dict[str, Any] = {}
    for text in texts:
        match = NAMED.fullmatch(text)
        name, policy = match.groups() if match else (text, text)
        if not policy.startswith((ALWAYS, COLUMNS)):
            policy = already_learned(policy, trust) or specification(policy)
        if isinstance(policy, dict) and not match:
            name = policy.get("name", text)
        if name in found:
            raise InputError(
                f"two policies are called {name!r}: give one of them another name, such as "
                "--policy other=linucb"
            )
        found[name] = policy
    return found


def combinations_of(texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the weights of each combination of rewards, such as ``profit=click:0.1,buy:20``.

    >>> combinations_of(["profit=click:0.1,buy:20"])
    {'profit': {'click': 0.1, 'buy': 20.0}}
    """
    found: dict[str, dict[str, float]] = {}
    for text in texts:
        name, _, parts = text.partition("=")
        try:
            pairs = [one.rsplit(":", 1) for one in parts.split(",")]
            found[name] = {reward: float(weight) for reward, weight in pairs}
        except ValueError as error:
            raise InputError(
                f"--combine is {text!r}: write NAME=REWARD:WEIGHT,REWARD:WEIGHT, such as "
                "profit=click:0.1,buy:20"
            ) from error
    return found


def effect_of(text: str) -> Callable[[float], float]:
    """Return the size of a difference, from what the log earned: ``0.02``, or ``10%`` of it.

    >>> effect_of("10%")(0.5), effect_of("0.02")(0.5)
    (0.05, 0.02)
    """
    try:
        size = float(text.removesuffix("%"))
    except ValueError as error:
        raise InputError(f"--effect is {text!r}: give a number such as 0.02 or 10%") from error
    positive("--effect", size)
    return lambda earned: size / 100 * abs(earned) if text.endswith("%") else size


def columns_of(given: Sequence[str]) -> dict[str, Any]:
    """Return the column, or columns, of each role that the options --column name."""
    found: dict[str, Any] = {}
    for text in given:
        role, sign, name = text.partition("=")
        if not sign:
            raise InputError(f"--column is {text!r}: write ROLE=NAME, such as reward=clicked")
        # A list can have patterns.
        several = "," in name or role in ("context", "probability")
        found[role] = None if not name else name.split(",") if several else name
    return found


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be made, before any work is done."""
    nearest = next(one for one in (folder, *folder.parents) if one.exists())
    if not nearest.is_dir():
        raise InputError(f"cannot write into {str(nearest)!r}, which is a file: give another --out")


# Reading ------------------------------------------------------------------------------------------


def read_log(
    path: Path | str,
    columns: Sequence[str],
    declare: Path | None,
    bandit: str | None,
    **options: Any,
) -> Log:
    """Return the log, opened with the roles of its columns and what a file declares."""
    options["columns"] = columns_of(columns)
    if declare is not None:
        try:
            table = tomllib.loads(declare.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InputError(f"cannot read {str(declare)!r}: {error}") from error
        for key in table:
            one_of(f"key in {declare.name}:", key, DECLARED_KEYS)
        options |= table
    if is_address(path):
        return log_of_store(path, bandit, options)
    if Path(path).is_file():
        with Path(path).open("rb") as file:
            if file.read(len(SQLITE)) == SQLITE:
                return log_of_store(path, bandit, options)
    if bandit is not None:
        raise InputError(
            f"--bandit needs a store, and {str(path)!r} is not one: leave --bandit out",
            code="unused-option",
        )
    return Log.read(path, **options)


def log_of_store(path: str | Path, bandit: str | None, options: Mapping[str, Any]) -> Log:
    """Return the log of a bandit, read from its export, which says which decisions have matured."""
    from submax.bandit.declaring import bandit_names
    from submax.bandit.export import export
    from submax.bandit.store import open_store
    from submax.cli.places import chosen

    with (
        open_store(path, read_only=True) as store,
        TemporaryDirectory(prefix="submax-") as folder,
    ):
        name = bandit or chosen(bandit_names(store))
        one_of("bandit", name, bandit_names(store))
        file = Path(folder) / f"{name}.parquet"
        export(store, name, file)
        try:
            return Log.read(file, **options)
        except InputError as error:
            source = f"the bandit {name!r} of {without_password(path)}"
            error.args = (str(error).replace(str(file), source),)
            raise


# Evaluating ---------------------------------------------------------------------------------------


def run_evaluate(
    path: Path | str,
    policies: Sequence[str],
    out: Path,
    report: Path | None,
    trust: bool,
    combinations: Sequence[str],
    learn_from: str | None,
    bandit: str | None,
    every: bool,
    effect: str | None,
    top: int,
    **options: Any,
) -> None:
    """Evaluate policies on a log; print the estimates, and write them to files.

    ``options`` are those of ``Log.read`` and ``compare``.
    """
    if not policies:
        raise InputError(
            "no policy is named: give one or more, such as --policy rcp-adaptive, or --policy "
            f"'{ALWAYS}*' for each action of the log",
            parameter="policies",
        )
    size = None if effect is None else effect_of(effect)
    check_folder(out)
    if report is not None:
        if report.suffix.lower() not in (".html", ".htm"):
            raise InputError(f"--report is {report.name!r}: a report is a page, so give FILE.html")
        check_report(report)
    weights, candidates = combinations_of(combinations), named_policies(policies, trust)
    reading = {name: options.pop(name) for name in READING}
    texts = [one for one in candidates.values() if isinstance(one, str)]
    patterns = [one.removeprefix(COLUMNS) for one in texts if one.startswith(COLUMNS)]
    if patterns:
        reading["columns"] = [*reading["columns"], f"probability={','.join(patterns)}"]
    schemas = {name: one.schema for name, one in candidates.items() if hasattr(one, "schema")}
    if any(one != next(iter(schemas.values())) for one in schemas.values()):
        raise InputError(
            f"the learned policies {', '.join(schemas)} have different actions or "
            "contexts: evaluate them one at a time"
        )
    reading |= {"schema": next(iter(schemas.values()))} if schemas else {}
    log = read_log(path, bandit=bandit, **reading)
    print_notes(log.notes)
    options["estimators"] = [text_or_table(one) for one in options["estimators"]]
    options["reward_model"] = text_or_table(options["reward_model"])
    printing = {"every": every, "effect": size, "top": top}
    if not (log.outcome_names or combinations or learn_from):
        found = compare(log, candidates, **options, progress=SlowProgress("evaluating"))
        _print_and_write(found, log.notes, out, report, printing)
        return
    by_reward = compare_rewards(
        log, candidates, combinations=weights, learn_from=learn_from, **options
    )
    rows = []
    for reward, comparison in by_reward.items():
        click.echo(f"Reward {reward}")
        # report.html becomes report-click.html.
        page = report and report.with_name(f"{report.stem}-{reward}{report.suffix}")
        _print_and_write(comparison, log.notes, out / reward, page, printing)
        rows += [{"reward": reward, **row} for row in comparison.rows()]
    write_csv(out / ESTIMATES, rows)
    click.echo(f"Estimates for all rewards: {out / ESTIMATES}")


def _print_and_write(
    found: Comparison,
    known: Sequence[str],
    out: Path,
    report: Path | None,
    printing: Mapping[str, Any],
) -> None:
    """Print a comparison without the notes that are already ``known``, and write its numbers."""
    out.mkdir(parents=True, exist_ok=True)
    for file in (ESTIMATES, DIFFERENCES, SLICES):
        if rows := found.rows(Path(file).stem):
            write_csv(out / file, rows)
    new_notes = [note for note in found.notes if note not in known]
    order = [found.policies()[0], *found.ranked()]
    size = printing["effect"]
    effect = size and size(found.estimates[0].value)
    click.echo(text_of(found._replace(notes=new_notes), **{**printing, "effect": effect}))
    if found.slices:
        names = ("slice", "is", "policy", "value", "low", "high", "rows")
        rows = sorted(found.rows("slices"), key=lambda row: order.index(row["policy"]))
        cells = [[_short(row[name]) for name in names] for row in rows]
        click.echo(str(Summary([], names, cells, texts=3, width=WIDEST)))
        click.echo(f"All slices: {out / SLICES}")
    click.echo(f"All numbers: {out / ESTIMATES}")
    if report is not None:
        found.report(report, shlex.join(["submax", *sys.argv[1:]]))
        click.echo(f"Report: {report}")


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# Learning -----------------------------------------------------------------------------------------


def run_learn(
    path: Path | str,
    policies: Sequence[str],
    out: Path,
    share: float,
    by: By,
    keep_rows: int,
    seed: int,
    searches: Sequence[str] = (),
    trials: int = 1,
    **reading: Any,
) -> None:
    """Learn a policy, or the best of several, write it to a file, and print notes about the log.

    The candidates are the policies, or with ``searches`` variants of the only one.
    """
    if out.suffix != SUFFIX:
        raise InputError(
            f"--out is {out.name!r}, and a learned policy must end in {SUFFIX}: give "
            f"--out {out.with_suffix(SUFFIX)}"
        )
    check_folder(out.parent)
    given: list[Any] = [specification(one) for one in policies]
    if searches:
        pairs = [one.partition("=") for one in searches]
        if not all(values for _, _, values in pairs):
            raise InputError(f"--search is {', '.join(searches)}: write KEY=VALUES, as width=0.5,1")
        given = variants(given[0], {key: values for key, _, values in pairs}, trials, seed)
    log = read_log(path, **reading)
    options: dict[str, Any] = {"share": share, "by": by, "seed": seed, "keep_rows": keep_rows}
    best = learn_best(log, given or None, **options, progress=SlowProgress("learning"))
    learned, name = best.learned, policies[0] if len(given) == 1 else best.winner
    out.parent.mkdir(parents=True, exist_ok=True)
    learned.write(out)
    notes = list(log.notes)
    if learned.ignores_context:
        notes.append(f"{name} ignores the context")
    if learned.origin.estimated_propensities:
        notes.append(f"{learned.origin.estimated_propensities} propensities were estimated")
    print_notes(notes)
    print_best(best)
    print_notes(best.notes if len(given) != 1 else best.notes[1:])
    if log.reward.min() == log.reward.max():
        click.echo(
            f"Warning: all rows have the reward {log.reward[0]:g}, so no policy can learn which "
            "action is better: check the column of rewards"
        )
    if searches:
        click.echo(f"Best: {json.dumps(learned.specification)}")
    source = without_password(path)
    click.echo(f"{name} learned from {learned.origin.rows} rows of {source}; written to {out}")
    if learned.origin.rows > len(learned.rows.reward):
        print_notes([f"the file stores the last {len(learned.rows.reward)} rows of the log"])


def print_best(best: BestPolicy) -> None:
    """Print a table of all candidates with the winner marked, and what it earns above the log."""
    if best.report is None:
        return
    logged, lift = best.report.estimates[0], best.report.difference(best.winner)
    held_out = f"{logged.diagnostics.rows} held-out rows"
    sentences = [
        f"{best.winner} minus the log, by {lift.estimator}: {lift.value:+.4g} "
        f"[{lift.interval.low:+.4g}, {lift.interval.high:+.4g}] on the {held_out}",
        f"logging policy: {logged.value:.4f} on the {held_out}",
    ]
    rows = [
        [
            f"{'*' if one['winner'] else ' '} {one['policy']}",
            f"{one['value']:.4f}",
            f"[{one['low']:.4f}, {one['high']:.4f}]",
            one["estimator"],
            "" if one["winner"] else f"{one['behind']:.4f} ± {one['behind_error']:.4f}",
            str(one["choosing_rows"]),
        ]
        for one in sorted(best.rows(), key=lambda row: float(row["behind"]))
    ]
    level = f"{best.report.level:.0%} interval"
    headings = ("policy", "value", level, "estimator", "loss vs. winner", "rows")
    click.echo(str(Summary(sentences, headings, rows, width=WIDEST)))
    for one in best.rows():
        if one["winner"] and one["warnings"]:
            click.echo(f"Warning: {one['policy']}: {one['warnings']}")


def run_score(
    path: Path | str,
    policy: Path,
    out: Path,
    trust: bool,
    columns: Sequence[str],
    separator: str | None,
    decimal: str | None,
) -> None:
    """Write what a learned policy would do in each row of a file."""
    from pyarrow.csv import CSVWriter

    check_folder(out.parent)
    learned = TrainedPolicy.read(str(policy), trust=trust)
    text, rows = TextFormat(separator, decimal), 0
    batches = scores(learned, path, columns_of(columns), text, SlowProgress("scoring"))
    first = next(batches, None)
    if first is None:
        raise InputError("the file has no rows to score: give a file with at least one row")
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(out) as file, CSVWriter(file, first.schema) as writer:
        for batch in chain([first], batches):
            writer.write(batch)
            rows += batch.num_rows
    click.echo(f"{counted(rows, 'row')} scored by {policy}: {out}")


# Progress and notes -------------------------------------------------------------------------------


def print_notes(notes: Sequence[str]) -> None:
    """Print each note on a line of its own."""
    for note in notes:
        click.echo(f"Note: {note}")


class SlowProgress:
    """Prints to the standard error what is done, once work has taken more than two seconds."""

    def __init__(self, verb: str) -> None:
        self._verb, self._last, self._round = verb, time.monotonic(), 0

    def __call__(self, name: str, done: int, total: int) -> None:
        """Print a line if the last one, or the beginning, is some seconds ago."""
        self._round += done == 0
        now = time.monotonic()
        if now - self._last > SILENT_SECONDS:
            self._last = now
            count = f"{done + 1:,} of {total:,}"
            later = f", comparison {self._round}" if self._round > 1 else ""
            text = count if name in ("part", "row") else f"({count}{later})"
            click.echo(f"{self._verb} {name} {text}", err=True)
