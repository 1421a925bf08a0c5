"""The command that learns a policy from a log, and its options."""

from pathlib import Path
from typing import Any

import click

from submax.cli.commands import main
from submax.cli.logs.options import LOG, POLICY, log_options, split_options


@main.command()
@LOG
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="POLICY",
    help=f"{POLICY} @greedy or @temperature=0.5 after the name is a variant. Repeated: the best of "
    "these. Absent: the best of a small set, the default, a network and trees.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("policy.safetensors"),
    show_default=True,
    help="The file to write; it must end in .safetensors.",
)
@split_options(1.0, "Share of the rows to learn from; evaluate uses the other rows.")
@click.option(
    "--keep-rows",
    default=1_000_000,
    show_default=True,
    metavar="N",
    help="How many of the last rows to store in the file; a bandit that starts from the policy "
    "continues to learn from them.",
)
@log_options
def learn(log: Path, **options: Any) -> None:
    """Learn a policy from a log and write it to a file.

    Without --policy the best of a small set of policies is learned: they learn from 60 % of the
    rows, dr chooses the best on 20 %, and a table reports all of them on the last 20 %. The
    best one then learns from all rows.

    LOG is a Parquet or CSV file or a file of JSON lines, compressed or not, with one decision in
    each row, a folder or pattern of such files, or the export of a bandit. The policy can be
    evaluated by submax evaluate, and served by submax serve STORE --learned FILE.
    """
    from submax.cli.logs.learning import run_learn

    run_learn(log, **options)
