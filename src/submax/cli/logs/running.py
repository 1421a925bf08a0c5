"""Carries out the commands on logs: reads what they are given, and prints and writes results."""

import json
import shlex
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from submax.cli.main import is_address, without_password
from submax.core.checks import one_of, positive
from submax.core.errors import InputError
from submax.core.optional import missing_extra, require_extra
from submax.core.serialization import atomic_write
from submax.evaluation.comparison import Comparison, RewardComparisons, compare, compare_rewards
from submax.evaluation.forest import ESTIMATES, draw_forest
from submax.evaluation.learning import (
    BestPolicy,
    learn,
    learn_best,
    linear_rewards,
    parse_search,
)
from submax.evaluation.learning import tune as tuned_policy
from submax.evaluation.log import By, Log
from submax.evaluation.policies import (
    ALWAYS,
    COLUMNS,
    REWARD_MODEL,
    SUFFIX,
    already_learned,
    check_pattern,
    parsed_variant,
    tempered_table,
)
from submax.evaluation.reading import read_declaration
from submax.evaluation.report import check_report, text_of
from submax.evaluation.scoring import write_scores
from submax.evaluation.sources import TextFormat
from submax.policies import make_policy
from submax.policies.specification import read_value, table_of, with_values
from submax.research.beyond.rankings import Slates, compare_rankings
from submax.schema.schema import Schema
from submax.schema.trained_policy import TrainedPolicy
from submax.simulation.results import read_csv, write_csv

if TYPE_CHECKING:
    from submax.evaluation.learning import Tuned

DIFFERENCES, SLICES = "differences.csv", "slices.csv"
"""The files of the differences between policies, and of the estimates of slices."""
NAME_WIDTH = 30
"""Characters of the name of a policy that are not broken into two lines."""
WIDTH = 110
"""Characters of a line of a table."""
SILENT_SECONDS = 2.0
"""Work that takes longer says what it does."""
SLATE = "slate="
"""Beginning of a --column that says that the log has ranked lists, a row for each position."""
OF_SLATES = {
    *("policies", "estimators", "interval", "level", "seed", "columns"),
    *("out", "every", "half_width", "effect", "top", "report"),
}
"""All parameters that are used if the log has ranked lists."""
OF_PARTS = ("jobs", "scheduler")
"""Parameters that are used only if the log is read in parts."""
OTHER_LOG = "log="
"""``log=other.csv`` is the policy that wrote another log."""
LISTS = ("context", "probability")
"""Roles whose column is always a list, so a pattern can be given."""
READING = (
    *("columns", "declare", "action_features", "skip_bad_rows"),
    *("separator", "decimal", "bandit"),
)
"""Options that say how a log is read."""
SQLITE = b"SQLite format 3\0"
"""The beginning of every SQLite file."""


# What a command is given --------------------------------------------------------------------------


def refuse_unused_options(given: Mapping[str, Any], flags: Mapping[str, str]) -> None:
    """Refuse options that do not go with others.

    ``given`` has the values of those that are not defaults, ``flags`` says how each is written.
    """
    parts = [name for name in OF_PARTS if name in given]
    cases: list[tuple[list[str], str, str]] = []
    if is_of_slates(given.get("columns", ())):
        unused = [name for name in given if name not in OF_SLATES]
        cases.append((unused, "--column slate=…", "it is for logs with one decision in each row"))
    if given.get("read") != "parts":
        cases.append((parts, "--read whole", "it is about the processes of --read parts"))
    elif len(parts) == len(OF_PARTS):
        cases.append((parts, "--scheduler", "the cluster has its own processes"))
    for names, other, reason in cases:
        for name in names:
            raise InputError(
                f"{flags[name]} does not go with {other}, because {reason}: leave one of them out",
                code="unused-option",
            )


def is_of_slates(columns: Sequence[str]) -> bool:
    """Whether the options --column say that the log has ranked lists."""
    return any(one.startswith(SLATE) for one in columns)


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


def policy_table(text: str) -> str | dict[str, Any]:
    """Return a policy by name, or as a table if parameters, a variant or a table were given."""
    found = text_or_table(text)
    variant = parsed_variant(found) if isinstance(found, str) else None
    if variant is not None:
        return tempered_table(make_policy(policy_table(variant[0])), variant[1])
    if isinstance(found, str) and "," in found:
        name, *changes = found.split(",")
        found = with_values(table_of(make_policy(name)), dict(map(_parameter, changes)))
    if isinstance(found, str) and found.endswith(SUFFIX):
        raise InputError(
            f"--policy is {found!r}, a policy that is already learned: give the name of "
            "a policy (submax policies lists them)"
        )
    if isinstance(found, dict):
        found = {key: value for key, value in found.items() if key != "name"}
    # Refuse an unknown name before the log is read.
    make_policy(found)
    return found


def _parameter(text: str) -> tuple[str, Any]:
    key, sign, value = text.partition("=")
    if not sign:
        raise InputError(
            f"a parameter of --policy is {text!r}: write KEY=VALUE, such as "
            "rcp-softmax-submax,estimator.hidden=64"
        )
    return key, read_value(value)


def learnable(text: str) -> str | dict[str, Any]:
    """Return a policy to learn, checked: a table if it has parameters, otherwise its name.

    By their names, a policy and its variant are recognized, so they learn together.
    """
    found = policy_table(text)
    return found if isinstance(text_or_table(text), dict) or "," in text else text


def split_name(text: str) -> tuple[str, str]:
    """Return the name of a candidate, and its text without it.

    >>> split_name("mine=columns=prob_*"), split_name("log=may.csv")
    (('mine', 'columns=prob_*'), ('log=may.csv', 'log=may.csv'))
    """
    for kind in (COLUMNS, OTHER_LOG):
        name, sign, rest = text.partition(f"={kind}")
        if sign and not text.startswith((ALWAYS, "{", COLUMNS, OTHER_LOG)):
            return name, f"{kind}{rest}"
    table = text_or_table(text)
    return text if isinstance(table, str) else str(table.get("name", text)), text


def candidate_of(text: str, trust: bool) -> Any:
    """Return a policy as ``compare`` takes it: a learned one, a table, or the text itself."""
    if text.startswith(COLUMNS):
        check_pattern(text.removeprefix(COLUMNS))
    if text == REWARD_MODEL or text.startswith((ALWAYS, COLUMNS, OTHER_LOG)):
        return text
    try:
        return already_learned(text, trust) or policy_table(text)
    except InputError as error:
        if not str(error).startswith("unknown policy"):
            raise
        raise InputError(
            f"{error}; if {text!r} is an action of the log, {ALWAYS}{text} is the policy that "
            "always takes this action"
        ) from error


def combinations_of(texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the weights of each combination of rewards, such as ``profit=click:0.1,buy:20``.

    >>> combinations_of(["profit=click:0.1,buy:20"])
    {'profit': {'click': 0.1, 'buy': 20.0}}
    """
    found: dict[str, dict[str, float]] = {}
    for text in texts:
        name, sign, parts = text.partition("=")
        try:
            pairs = [one.rsplit(":", 1) for one in parts.split(",")]
            found[name] = {reward: float(weight) for reward, weight in pairs}
        except ValueError:
            sign = ""
        if not sign or not name or "/" in name:
            raise InputError(
                f"--combine is {text!r}: write NAME=REWARD:WEIGHT,REWARD:WEIGHT, such as "
                "profit=click:0.1,buy:20"
            )
    return found


def columns_of(given: Sequence[str]) -> dict[str, Any]:
    """Return the column, or columns, of each role that the options --column name."""
    found: dict[str, Any] = {}
    for text in given:
        role, sign, name = text.partition("=")
        if not sign:
            raise InputError(f"--column is {text!r}: write ROLE=NAME, such as reward=clicked")
        several = "," in name or role in LISTS
        found[role] = None if not name else name.split(",") if several else name
    return found


def check_folder(path: Path) -> None:
    """Refuse a path to which no file can be written, before any work is done."""
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    if path.is_dir() or not folder.is_dir():
        blocking = path if path.is_dir() else folder
        kind = "a folder" if path.is_dir() else "not a folder"
        raise InputError(
            f"cannot write {str(path)!r}, because {str(blocking)!r} is {kind}: give another --out"
        )


def check_policy_file(path: Path) -> None:
    """Refuse a path to which no learned policy can be written: wrong ending, or no folder."""
    if path.suffix != SUFFIX:
        raise InputError(
            f"--out is {path.name!r}, and a learned policy must end in {SUFFIX}: give "
            f"--out {path.with_suffix(SUFFIX)}"
        )
    check_folder(path)
    if not path.parent.is_dir():
        raise InputError(
            f"cannot write {str(path)!r}, because there is no folder "
            f"{str(path.parent)!r}: create it, or give another --out"
        )


# Reading ------------------------------------------------------------------------------------------


def read_log(
    path: Path | str,
    columns: Sequence[str],
    declare: Path | None,
    action_features: Path | None,
    skip_bad_rows: bool,
    separator: str = ",",
    decimal: str = ".",
    bandit: str | None = None,
    **options: Any,
) -> Log:
    """Return the log, opened with the roles of its columns and what a file declares."""
    options |= {"columns": columns_of(columns), "skip_bad_rows": skip_bad_rows}
    options |= {} if declare is None else read_declaration(declare)
    if action_features is not None:
        if "action_features" in options:
            raise InputError(
                f"action features are given in {str(declare)!r} and in --action-features: "
                "leave one out"
            )
        options["action_features"] = action_features
    if (separator, decimal) != (",", "."):
        options |= {"separator": separator.replace("\\t", "\t"), "decimal": decimal}
    with slow(f"reading {without_password(path)}"):
        if is_store(path):
            return log_of_store(path, bandit, options)
        if bandit is not None:
            raise InputError(
                f"--bandit is given, and {str(path)!r} is none: leave --bandit out",
                code="unused-option",
            )
        return Log.read(path, **options)


def is_store(path: str | Path) -> bool:
    """Whether a log is the store of bandits."""
    if is_address(path):
        return True
    if not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


_EXPORTS: list[TemporaryDirectory[str]] = []
"""Folders of exports, which live as long as the process: a log on disk is read again."""


def log_of_store(path: str | Path, bandit: str | None, options: Mapping[str, Any]) -> Log:
    """Return the log of a bandit, read from its export, which says which decisions have matured."""
    from submax.bandit.declaring import bandit_names
    from submax.bandit.export import export
    from submax.bandit.store import open_store
    from submax.cli.places import chosen

    _EXPORTS.append(TemporaryDirectory(prefix="submax-"))
    with open_store(path, read_only=True) as store:
        name = bandit or chosen(bandit_names(store))
        file = Path(_EXPORTS[-1].name) / f"{name}.parquet"
        export(store, name, file)
    return Log.read(file, **options)


def read_with_schema(
    path: Path | str, candidates: Mapping[str, Any], reading: Mapping[str, Any]
) -> Log:
    """Read the log, with the schema of the candidates that are already learned, if any."""
    learned = {name: one for name, one in candidates.items() if isinstance(one, TrainedPolicy)}
    schemas: list[Schema] = [one.schema for one in learned.values()]
    if not schemas:
        return read_log(path, **reading)
    if any(one != schemas[0] for one in schemas):
        raise InputError(
            f"the learned policies {', '.join(learned)} have different actions or "
            "contexts: evaluate them one at a time"
        )
    try:
        return read_log(path, **reading, schema=schemas[0])
    except InputError as error:
        raise InputError(
            f"{error}\n(The log is read with the actions and context of {next(iter(learned))!r}.)"
        ) from error


# Evaluating ---------------------------------------------------------------------------------------


class Output(NamedTuple):
    """The folder of the results, what is printed, and the path of the report, if any."""

    folder: Path
    printing: Mapping[str, Any]
    report: Path | None


def run_evaluate(
    path: Path | str,
    policies: Sequence[str],
    out: Path,
    every: bool,
    half_width: float | None,
    effect: float | None,
    top: int,
    report: Path | None,
    **options: Any,
) -> None:
    """Evaluate policies on a log; print the estimates, write them to files and draw them.

    ``options`` are the other options of the command.
    """
    check_folder(out / ESTIMATES)
    if report is not None:
        check_report(report)
    for name, value in (("--half-width", half_width), ("--effect", effect)):
        if value is not None:
            positive(name, value)
    printing = {"every": every, "half_width": half_width, "effect": effect, "top": top}
    output = Output(out, printing, report)
    if not is_of_slates(options["columns"]):
        _evaluate_log(path, policies, output, **options)
        return
    columns = columns_of(options["columns"])
    slates = Slates.read(path, columns=columns, policies={name: name for name in policies})
    wanted = {name: options[name] for name in ("estimators", "interval", "level", "seed")}
    _print_and_write(compare_rankings(slates, **wanted), (), output)


def _evaluate_log(
    path: Path | str,
    policies: Sequence[str],
    output: Output,
    *,
    trust: bool,
    estimators: Sequence[str],
    reward_models: Sequence[str],
    combinations: Sequence[str],
    learn_from: str | None,
    read: str,
    jobs: int | None,
    scheduler: str | None,
    **options: Any,
) -> None:
    """Evaluate policies on a log with one decision in each row."""
    reading = {name: options.pop(name) for name in READING}
    weights = combinations_of(combinations)
    candidates = {name: candidate_of(one, trust) for name, one in map(split_name, policies)}
    if len(candidates) < len(policies):
        raise InputError(
            "two policies have the same name: give one of them as a table with another name, "
            """--policy '{"name": "other", "kind": ...}'"""
        )
    if read == "parts":
        reading |= {"on_disk": True, "jobs": jobs, "scheduler": scheduler}
    texts = [one for one in candidates.values() if isinstance(one, str)]
    patterns = [one.removeprefix(COLUMNS) for one in texts if one.startswith(COLUMNS)]
    of_other = {**reading, "bandit": None}
    if patterns:
        reading["columns"] = [*reading["columns"], f"probability={','.join(patterns)}"]
    log = read_with_schema(path, candidates, reading)
    print_notes(log.notes)
    for name, one in candidates.items():
        if isinstance(one, str) and one.startswith(OTHER_LOG):
            file = Path(one.removeprefix(OTHER_LOG))
            candidates[name] = other = read_log(file, **of_other, schema=log.schema)
            click.echo(f"Note: {name} is a model of how {len(other)} rows chose their actions")
    options["estimators"] = [text_or_table(one) for one in estimators]
    options["reward_model"] = [text_or_table(one) for one in reward_models] or None
    if not (log.outcome_names or combinations or learn_from):
        found = compare(log, candidates, **options, progress=SlowProgress("evaluating"))
        _print_and_write(found, log.notes, output)
        return
    by_reward = compare_rewards(
        log, candidates, combinations=weights, learn_from=learn_from, **options
    )
    _print_by_reward(by_reward, log.notes, output)


def _print_by_reward(found: RewardComparisons, known: Sequence[str], output: Output) -> None:
    """Print the comparison by each reward, and write the estimates into a folder for each."""
    for reward, comparison in found.comparisons.items():
        click.echo(f"Reward {reward}")
        # report.html becomes report-click.html.
        path = output.report
        page = path and path.with_name(f"{path.stem}-{reward}{path.suffix}")
        of_reward = output._replace(folder=output.folder / reward, report=page)
        _print_and_write(comparison, known, of_reward)
    print_notes(found.notes)
    write_csv(output.folder / ESTIMATES, found.rows())
    click.echo(f"The estimates by all rewards: {output.folder / ESTIMATES}")


def _print_and_write(found: Comparison, known: Sequence[str], output: Output) -> None:
    """Print a comparison without the notes that are already ``known``, and write its numbers."""
    out, report = output.folder, output.report
    out.mkdir(parents=True, exist_ok=True)
    write_estimates(out, found)
    new_notes = [note for note in found.notes if note not in known]
    click.echo(text_of(found._replace(notes=new_notes), **output.printing))
    drawn = missing_extra("plots", "the figure", "matplotlib")
    if drawn:
        drawn = f"{drawn}; then submax plot {out}"
    else:
        drawn = f"figure: {draw_forest(out, found.ranked()[: output.printing['top']])[0]}"
    click.echo(f"All numbers: {out / ESTIMATES}; {drawn}")
    if report is not None:
        found.report(report, shlex.join(["submax", *sys.argv[1:]]))
        click.echo(f"Report: {report}")


def write_estimates(directory: Path, comparison: Comparison) -> None:
    """Write the estimates, the differences and the slices, each into one CSV file."""
    tables = {
        ESTIMATES: comparison.rows(),
        DIFFERENCES: [one.row() for one in comparison.differences],
        SLICES: comparison.slice_rows(),
    }
    for name, rows in tables.items():
        if rows:
            write_csv(directory / name, rows)


def redraw_evaluation(directory: Path, policies: Sequence[str] = ()) -> None:
    """Draw the forest plot in the directory again, of all policies or only of some.

    If there were several rewards, the plot in the folder of each of them is drawn again.
    """
    rows = read_csv(directory / ESTIMATES)
    rewards = list(dict.fromkeys(row["reward"] for row in rows if "reward" in row))
    for reward in rewards:
        redraw_evaluation(directory / reward, policies)
    if rewards:
        return
    known = list(dict.fromkeys(row["policy"] for row in rows[1:]))
    for name in policies:
        one_of(f"policy of {directory}:", name, known)
    for path in draw_forest(directory, policies):
        click.echo(f"Written: {path}")


# Learning -----------------------------------------------------------------------------------------


def run_learn(
    path: Path | str,
    policies: Sequence[str],
    out: Path,
    share: float,
    by: By,
    keep_rows: int,
    seed: int,
    **reading: Any,
) -> None:
    """Learn a policy, or the best of several, write it to a file, and print notes about the log."""
    check_policy_file(out)
    given = [one if one == REWARD_MODEL else learnable(one) for one in policies]
    log = read_log(path, **reading)
    # The model is stored with the policy: a regression for each action, not the one of evaluate.
    wanted = [linear_rewards(log, REWARD_MODEL) if one == REWARD_MODEL else one for one in given]
    best = learn_best(
        log,
        wanted or None,
        share=share,
        by=by,
        seed=seed,
        keep_rows=keep_rows,
        progress=SlowProgress("learning"),
    )
    learned = best.learned
    learned.write(out)
    print_notes(log.notes)
    name = policies[0] if len(policies) == 1 else best.winner
    if log.schema.context.width and not learned.policy.traits.uses_context:
        click.echo(f"Note: {name} ignores the context")
    if learned.origin.estimated_propensities:
        click.echo(f"Note: {learned.origin.estimated_propensities} propensities were estimated")
    print_best(best, with_notes=len(policies) != 1)
    if log.reward.min() == log.reward.max():
        click.echo(
            f"Warning: all rows have the reward {log.reward[0]:g}, so no policy can "
            "learn which action is better: check the column of rewards"
        )
    source = without_password(path)
    click.echo(f"{name} learned from {learned.origin.rows} rows of {source}; written to {out}")
    if learned.origin.rows > len(learned.rows.reward):
        click.echo(f"Note: the file stores the last {len(learned.rows.reward)} rows of the log")


def print_best(best: BestPolicy, with_notes: bool = True) -> None:
    """Print a table of all candidates with the winner marked, notes and warnings."""
    rows = sorted(best.rows(), key=lambda row: float(row["behind"]))
    if rows and best.report is not None:
        logged, lift = best.report.estimates[0], best.report.difference(best.winner)
        held_out = f"{logged.diagnostics.rows} held-out rows"
        click.echo(
            f"{best.winner} minus the log, by {lift.estimator}: {lift.value:+.4g} "
            f"[{lift.interval.low:+.4g}, {lift.interval.high:+.4g}] on the {held_out}"
        )
        click.echo(f"logging policy: {logged.value:.4f} on the {held_out}")
        table = Table(box=None, pad_edge=False, header_style="")
        table.add_column("policy", overflow="fold", min_width=NAME_WIDTH)
        level = f"{best.report.level:.0%} interval"
        for heading in ("value", level, "estimator", "loss vs. winner", "rows"):
            table.add_column(heading, justify="right")
        for one in rows:
            behind = "" if one["winner"] else f"{one['behind']:.4f} ± {one['behind_error']:.4f}"
            table.add_row(
                escape(f"{'*' if one['winner'] else ' '} {one['policy']}"),
                f"{one['value']:.4f}",
                escape(f"[{one['low']:.4f}, {one['high']:.4f}]"),
                str(one["estimator"]),
                behind,
                f"{one['choosing_rows']}",
            )
        Console(width=WIDTH).print(table)
        for one in rows:
            if one["winner"] and one["warnings"]:
                click.echo(f"Warning: {one['policy']}: {one['warnings']}")
    print_notes(best.notes if with_notes else ())
    for sentence in best.warnings:
        click.echo(f"Warning: {sentence}")


def run_tune(
    path: Path | str,
    policy: str,
    searches: Sequence[str],
    trials: int,
    estimator: str,
    by: By,
    out: Path | None,
    seed: int,
    **reading: Any,
) -> None:
    """Search for the best parameters and print them.

    If ``out`` is given, the best policy learns again from all rows and is written to this file.
    """
    require_extra("tune", "tuning", "optuna")
    if out is not None:
        check_policy_file(out)
    specification = policy_table(policy)
    wanted = dict(parse_search(one) for one in searches)
    log = read_log(path, **reading)

    def print_trial(number: int, values: dict[str, Any], value: float) -> None:
        parameters = ", ".join(f"{key}={one}" for key, one in values.items())
        click.echo(f"{number:3d} of {trials}  {value:8.4f}  {parameters}", err=True)

    best: Tuned = tuned_policy(
        log,
        specification,
        wanted,
        estimator=text_or_table(estimator),
        trials=trials,
        by=by,
        seed=seed,
        progress=print_trial,
    )
    click.echo(f"Best: {json.dumps(best.policy)}")
    click.echo(
        f"Its value is {best.chosen_value:.4f} on the rows that chose it. On rows "
        "that took no part in the choice:"
    )
    click.echo(text_of(best.held_out))
    if out is not None:
        learn(log, best.policy, seed=seed).write(out)
        click.echo(f"The best policy learned from all {len(log)} rows; written to {out}")


def run_score(
    path: Path | str,
    policy: Path,
    out: Path,
    trust: bool,
    columns: Sequence[str],
    separator: str,
    decimal: str,
) -> None:
    """Write what a learned policy would do in each row of a file."""
    check_folder(out)
    learned = TrainedPolicy.read(str(policy), trust=trust)
    text = TextFormat(separator.replace("\\t", "\t"), decimal)
    with slow(f"scoring {without_password(path)}"), atomic_write(out) as file:
        rows = write_scores(file, learned, path, columns_of(columns), text)
    click.echo(f"{rows} rows scored by {policy}: {out}")


# Progress and notes -------------------------------------------------------------------------------


def print_notes(notes: Sequence[str]) -> None:
    """Print each note on a line of its own."""
    for note in notes:
        click.echo(f"Note: {note}")


class SlowProgress:
    """Prints to the standard error what is done, once work has taken more than two seconds."""

    def __init__(self, verb: str) -> None:
        self._verb, self._last = verb, time.monotonic()

    def __call__(self, name: str, done: int, total: int) -> None:
        """Print a line if the last one, or the beginning, is some seconds ago."""
        now = time.monotonic()
        if now - self._last > SILENT_SECONDS:
            self._last = now
            click.echo(f"{self._verb} {name} ({done + 1} of {total})", err=True)


@contextmanager
def slow(sentence: str) -> Iterator[None]:
    """Print a sentence to the standard error if what is done inside takes more than two seconds."""
    timer = threading.Timer(SILENT_SECONDS, click.echo, [sentence], {"err": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
