"""Carries out the command that searches for the best parameters of a policy."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from submax.cli.logs.evaluation_report import print_comparison
from submax.cli.logs.given_policies import policy_table, text_or_table
from submax.cli.logs.log_reading import read_log
from submax.cli.logs.output_paths import check_policy_file
from submax.core.optional import require_extra
from submax.evaluation.choosing.learning import learn
from submax.evaluation.logs.log import By

if TYPE_CHECKING:
    from submax.evaluation.choosing.tuning import Tuned


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
    """Search for the best parameters and print them.

    If ``out`` is given, the best policy learns again from all rows and is written to this file.
    """
    from submax.evaluation.choosing.tuning import parse_search, tune

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
    _print_best(best)
    if out is not None:
        learn(log, best.policy, seed=seed).write(out)
        click.echo(f"The best policy learned from all {len(log)} rows; written to {out}")


def _print_best(best: "Tuned") -> None:
    """Print the best policy and what it is worth on rows that took no part in the choice."""
    click.echo(f"Best: {json.dumps(best.policy)}")
    click.echo(
        f"Its value is {best.chosen_value:.4f} on the rows by which it was chosen. On rows that "
        "took no part in the choice:"
    )
    print_comparison(best.held_out)
