"""What the commands on logs do."""

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from submax.cli.evaluation_report import print_comparison, write_estimates
from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.core.running.extras import require_extra
from submax.evaluation.learning import learn
from submax.evaluation.logs.log import By, Log
from submax.evaluation.report.candidates import SUFFIX, Candidate
from submax.evaluation.report.comparison import compare
from submax.plots.estimates import ESTIMATES
from submax.plots.forest_figure import draw_forest
from submax.policies import make_policy
from submax.policies.policy_table import read_value, table_of, with_values
from submax.schema.learned import Learned
from submax.schema.schema import Schema

DECLARED = ("actions", "action_features", "context", "rewards")


def run_learn(
    path: Path,
    policy: str,
    out: Path,
    share: float,
    by: By,
    keep_rows: int,
    seed: int,
    **reading: Any,
) -> None:
    """Learn, write, and say what was done."""
    check_policy_file(out)
    specification = _policy(policy)
    log = _log(path, **reading)
    learned = learn(log, specification, share=share, by=by, seed=seed, keep_rows=keep_rows)
    learned.write(out)
    _say_notes(log.notes)
    if log.schema.context.width and not learned.policy.facts.uses_context:
        click.echo(f"Note: {policy} does not look at the context")
    if learned.origin.estimated_propensities:
        click.echo(f"Note: {learned.origin.estimated_propensities} propensities were estimated")
    click.echo(f"{policy} learned from {learned.origin.rows} rows of {path}: {out}")
    if learned.origin.rows > len(learned.rows.reward):
        click.echo(f"Note: the last {len(learned.rows.reward)} rows are kept in it")


def run_evaluate(
    path: Path,
    policies: Sequence[str],
    estimators: Sequence[str],
    interval: str,
    level: float,
    share: float,
    by: By,
    out: Path,
    trust: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Compare, print, write, draw."""
    check_folder(out / ESTIMATES)
    named = {_label(name): _candidate(name, trust) for name in policies}
    if len(named) < len(policies):
        raise InputError("two policies have the same name: give one another, as a table")
    log = _log_of(path, named, reading)
    _say_notes(log.notes)
    found = compare(
        log,
        named,
        estimators=[_table(one) for one in estimators],
        interval=interval,
        level=level,
        share=share,
        by=by,
        seed=seed,
    )
    out.mkdir(parents=True, exist_ok=True)
    write_estimates(out, found)
    figure = draw_forest(out)[0]
    said = [note for note in found.notes if note not in log.notes]
    print_comparison(found._replace(notes=said))
    click.echo(f"All numbers: {out / ESTIMATES}; figure: {figure}")


def run_tune(
    path: Path,
    policy: str,
    searches: Sequence[str],
    trials: int,
    estimator: str,
    by: By,
    out: Path | None,
    seed: int,
    **reading: Any,
) -> None:
    """Try, tell the best, and learn it again from all rows where a file is wanted."""
    from submax.evaluation.tuning import parse_search, tune

    require_extra("tune", "tuning", "optuna")
    if out is not None:
        check_policy_file(out)
    specification = _policy(policy)
    wanted = dict(parse_search(one) for one in searches)
    log = _log(path, **reading)

    def told(number: int, values: dict[str, Any], value: float) -> None:
        shown = ", ".join(f"{key}={one}" for key, one in values.items())
        click.echo(f"{number:3d} of {trials}  {value:8.4f}  {shown}", err=True)

    best = tune(
        log,
        specification,
        wanted,
        estimator=_table(estimator),
        trials=trials,
        by=by,
        seed=seed,
        progress=told,
    )
    click.echo(f"Best: {json.dumps(best.policy)}")
    click.echo(
        f"It was worth {best.chosen_value:.4f} where it was chosen, and where it had no say:"
    )
    print_comparison(best.held_out)
    if out is not None:
        learn(log, best.policy, seed=seed).write(out)
        click.echo(f"Learned from all {len(log)} rows: {out}")


def check_folder(path: Path) -> None:
    """Refuse a file that cannot be written before any work is done."""
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    if path.is_dir() or not folder.is_dir():
        raise InputError(f"cannot write {str(path)!r}: there is something else in its place")


def check_policy_file(path: Path) -> None:
    """The same for a learned policy, which is known by the ending of its file."""
    if path.suffix != SUFFIX:
        raise InputError(f"the file of a learned policy ends in {SUFFIX}, and {path.name!r} not")
    check_folder(path)
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {str(path.parent)!r}")


def _log(
    path: Path,
    columns: Sequence[str],
    declare: Path | None,
    action_features: Path | None,
    skip_bad_rows: bool,
    schema: Schema | None = None,
) -> Log:
    declared = _declared(declare)
    if action_features is not None:
        if "action_features" in declared:
            raise InputError(
                f"action_features stand in {str(declare)!r} and in --action-features: leave one out"
            )
        declared["action_features"] = action_features
    return Log.read(
        path,
        columns=dict(_column(one) for one in columns),
        schema=schema,
        skip_bad_rows=skip_bad_rows,
        **declared,
    )


def _log_of(path: Path, candidates: dict[str, Candidate], reading: dict[str, Any]) -> Log:
    """The log, read as those of policies that were learned before."""
    schema = _schema(candidates)
    try:
        return _log(path, schema=schema, **reading)
    except InputError as error:
        if schema is None:
            raise
        learned = next(name for name, one in candidates.items() if isinstance(one, Learned))
        raise InputError(f"{error}\n(The log is read as that of {learned!r} was.)") from error


def _column(text: str) -> tuple[str, Any]:
    role, sign, name = text.partition("=")
    if not sign:
        raise InputError(f"--column has the form ROLE=NAME, and {text!r} has not")
    if not name:
        return role, None
    return role, name.split(",") if "," in name or role == "context" else name


def _declared(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"cannot read {str(path)!r}: {error}") from error
    for key in table:
        one_of(f"key in {path.name}:", key, DECLARED)
    return table


def _policy(text: str) -> str | dict[str, Any]:
    """A name, a name with parameters, or a table."""
    found = _table(text)
    if isinstance(found, str) and "," in found:
        name, *changes = found.split(",")
        found = with_values(table_of(make_policy(name)), dict(map(_parameter, changes)))
    if isinstance(found, str) and found.endswith(SUFFIX):
        raise InputError(f"{found!r} has been learned already: name a policy")
    if isinstance(found, dict):
        found = {key: value for key, value in found.items() if key != "name"}
    # A name that is not known is refused before the log is read.
    make_policy(found)
    return found


def _parameter(text: str) -> tuple[str, Any]:
    key, sign, value = text.partition("=")
    if not sign:
        raise InputError(f"a parameter has the form KEY=VALUE, and {text!r} has not")
    return key, read_value(value)


def _label(text: str) -> str:
    """The name that a table gives itself, or the text."""
    table = _table(text)
    return text if isinstance(table, str) else str(table.get("name", text))


def _candidate(text: str, trust: bool) -> Candidate:
    return Learned.read(text, trust=trust) if text.endswith(SUFFIX) else _policy(text)


def _table(text: str) -> str | dict[str, Any]:
    """A name as it is, and what begins with a brace as a table."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        table: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise InputError(f"{text!r:.60} is not valid JSON: {error}") from error
    return table


def _schema(candidates: dict[str, Candidate]) -> Schema | None:
    """That of the policies that were learned before: the log is read as theirs was."""
    learned = {name: one for name, one in candidates.items() if isinstance(one, Learned)}
    schemas = [one.schema for one in learned.values()]
    if any(one != schemas[0] for one in schemas):
        raise InputError("the learned policies have different actions or contexts")
    return schemas[0] if schemas else None


def _say_notes(notes: Sequence[str]) -> None:
    for note in notes:
        click.echo(f"Note: {note}")
