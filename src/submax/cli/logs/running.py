"""Carries out the commands on logs."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from submax.cli.logs.arguments import (
    OTHER_LOG,
    candidate_of,
    check_folder,
    check_policy_file,
    columns_of,
    combinations_of,
    is_columns,
    is_of_slates,
    learnable,
    policy_table,
    read_log,
    read_log_of,
    split_name,
    text_or_table,
)
from submax.cli.logs.printing import (
    PrintOptions,
    SlowProgress,
    print_best,
    print_comparison,
    print_notes,
    slow,
    write_estimates,
)
from submax.cli.main import without_password
from submax.core.checks import positive
from submax.core.errors import InputError
from submax.core.optional import missing_extra, require_extra
from submax.core.serialization import atomic_write
from submax.evaluation.comparison import Comparison, RewardComparisons, compare, compare_rewards
from submax.evaluation.forest import ESTIMATES, draw_forest
from submax.evaluation.learning import learn, learn_best, linear_rewards
from submax.evaluation.log import By
from submax.evaluation.report import check_report
from submax.evaluation.sources import TextFormat
from submax.evaluation.targets import COLUMNS, REWARD_MODEL, PolicyOfLog
from submax.research.beyond.rankings import Slates, compare_rankings
from submax.schema.trained_policy import TrainedPolicy
from submax.simulation.results import write_csv

if TYPE_CHECKING:
    from submax.evaluation.learning import Tuned

READING = (
    *("columns", "declare", "action_features", "skip_bad_rows"),
    *("separator", "decimal", "bandit"),
)
"""Options that say how a log is read."""


class Output(NamedTuple):
    """The folder of the results, what is printed, and the path of the report, if any."""

    folder: Path
    printing: PrintOptions
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
    output = Output(out, PrintOptions(every, half_width, effect, top), report)
    if is_of_slates(options["columns"]):
        _print_and_write(ranked_comparison(path, policies, options), (), output)
    else:
        _evaluate_log(path, policies, output, **options)


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
    pairs = [split_name(one) for one in policies]
    named = {
        name: text if text.startswith(OTHER_LOG) else candidate_of(text, trust)
        for name, text in pairs
    }
    if len(named) < len(policies):
        raise InputError(
            "two policies have the same name: give one of them as a table with another name, "
            """--policy '{"name": "other", "kind": ...}'"""
        )
    if read == "parts":
        reading |= {"on_disk": True, "jobs": jobs, "scheduler": scheduler}
    patterns = [text.removeprefix(COLUMNS) for _, text in pairs if is_columns(text)]
    of_other = {**reading, "bandit": None}
    if patterns:
        reading["columns"] = [*reading["columns"], f"probability={','.join(patterns)}"]
    log = read_log_of(path, named, reading)
    print_notes(log.notes)
    for name, text in pairs:
        if text.startswith(OTHER_LOG):
            other = read_log(Path(text.removeprefix(OTHER_LOG)), **of_other, schema=log.schema)
            named[name] = PolicyOfLog(other, name)
            click.echo(f"Note: {name} is a model of how {len(other)} rows chose their actions")
    options["estimators"] = [text_or_table(one) for one in estimators]
    options["reward_model"] = [text_or_table(one) for one in reward_models] or None
    if log.outcome_names or combinations or learn_from:
        by_reward = compare_rewards(
            log, named, combinations=weights, learn_from=learn_from, **options
        )
        _print_by_reward(by_reward, log.notes, output)
    else:
        found = compare(log, named, **options, progress=SlowProgress("evaluating"))
        _print_and_write(found, log.notes, output)


def ranked_comparison(
    path: Path | str, policies: Sequence[str], options: Mapping[str, Any]
) -> Comparison:
    """Return the comparison of ranking policies whose probabilities are columns of the log."""
    columns = columns_of(options["columns"])
    slates = Slates.read(path, columns=columns, policies={name: name for name in policies})
    wanted = {name: options[name] for name in ("estimators", "interval", "level", "seed")}
    return compare_rankings(slates, **wanted)


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
    print_comparison(found._replace(notes=new_notes), output.printing)
    drawn = _drawn(out, found.ranked()[: output.printing.top])
    click.echo(f"All numbers: {out / ESTIMATES}; {drawn}")
    if report is not None:
        found.report(report, shlex.join(["submax", *sys.argv[1:]]))
        click.echo(f"Report: {report}")


def _drawn(out: Path, policies: Sequence[str]) -> str:
    """Draw the estimates of some policies, and return where the figure is, or what it needs."""
    if sentence := missing_extra("plots", "the figure", "matplotlib"):
        return f"{sentence}; then submax plot {out}"
    return f"figure: {draw_forest(out, policies)[0]}"


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
    from submax.evaluation.learning import parse_search, tune

    require_extra("tune", "tuning", "optuna")
    if out is not None:
        check_policy_file(out)
    specification = policy_table(policy)
    wanted = dict(parse_search(one) for one in searches)
    log = read_log(path, **reading)

    def print_trial(number: int, values: dict[str, Any], value: float) -> None:
        parameters = ", ".join(f"{key}={one}" for key, one in values.items())
        click.echo(f"{number:3d} of {trials}  {value:8.4f}  {parameters}", err=True)

    best = tune(
        log,
        specification,
        wanted,
        estimator=text_or_table(estimator),
        trials=trials,
        by=by,
        seed=seed,
        progress=print_trial,
    )
    _print_tuned(best)
    if out is not None:
        learn(log, best.policy, seed=seed).write(out)
        click.echo(f"The best policy learned from all {len(log)} rows; written to {out}")


def _print_tuned(best: "Tuned") -> None:
    """Print the best policy and what it is worth on rows that took no part in the choice."""
    click.echo(f"Best: {json.dumps(best.policy)}")
    click.echo(
        f"Its value is {best.chosen_value:.4f} on the rows that chose it. On rows "
        "that took no part in the choice:"
    )
    print_comparison(best.held_out)


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
    from submax.evaluation.scoring import write_scores

    check_folder(out)
    learned = TrainedPolicy.read(str(policy), trust=trust)
    text = TextFormat(separator.replace("\\t", "\t"), decimal)
    with slow(f"scoring {without_password(path)}"), atomic_write(out) as file:
        rows = write_scores(file, learned, path, columns_of(columns), text)
    click.echo(f"{rows} rows scored by {policy}: {out}")
