"""The command that evaluates policies on a log, and its options."""

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
    required=True,
    metavar="POLICY",
    help=f"{POLICY} A file from submax learn is accepted, too; @greedy or @temperature=0.5 after "
    "the name is a variant, reward-model takes the highest predicted reward, always=A takes the "
    "action A, always=* is one such policy for each action of the log, and columns=prob_* is the "
    "policy whose probability of the action A is the column prob_A. Can be repeated.",
)
@click.option(
    "--estimator",
    "estimators",
    multiple=True,
    metavar="NAME",
    help="Off-policy estimator: ips, snips, clipped, dm, dr, sndr, switch-dr, dr-shrinkage, "
    "replay, pseudo-inverse, mips, per-decision or trajectory, or a table in JSON with its "
    "parameters; all usual ones that apply to the log if absent. Can be repeated.",
)
@click.option(
    "--interval",
    type=click.Choice(["gamma", "normal", "bootstrap", "bernstein", "sequential"]),
    default="gamma",
    show_default=True,
    help="Kind of the confidence intervals; gamma also holds for rare rewards, bernstein is valid "
    "for small logs, and wide, and sequential holds at all looks at a growing log together.",
)
@click.option(
    "--reward-model",
    "reward_models",
    multiple=True,
    metavar="NAME",
    help="Model of rewards: bayesian (used if absent), auto (the better of it and boosted trees), "
    "a dotted name such as sklearn.linear_model.Ridge, or a table in JSON with kind and "
    "parameters. If it is repeated, the one with the least held-out error is used.",
)
@click.option(
    "--baseline",
    default="logging policy",
    show_default=True,
    metavar="NAME",
    help="The policy from which differences are computed: the logging policy, one of --policy, or "
    "best: the one with the highest estimate. The intervals of all differences from best hold "
    "together, and a note says which policies can be the best one.",
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Print the estimates of all estimators, not only the recommended one of each policy.",
)
@click.option(
    "--half-width",
    type=float,
    metavar="X",
    help="Say how many rows an interval of this half-width would need.",
)
@click.option(
    "--effect",
    type=float,
    metavar="X",
    help="Say how many rows would show a difference of this size in 8 of 10 logs.",
)
@click.option(
    "--level", default=0.95, show_default=True, metavar="X", help="Level of the intervals."
)
@click.option(
    "--combine",
    "combinations",
    multiple=True,
    metavar="NAME=REWARD:WEIGHT,...",
    help="With several columns of rewards (--column reward=click,buy): one more reward, their "
    "weighted sum, such as profit=click:0.1,buy:20. Can be repeated.",
)
@click.option(
    "--learn-from",
    metavar="REWARD",
    help="With several columns of rewards: the one from which policies learn, by default the "
    "first.",
)
@split_options(0.5, "Share of the rows to learn from; policies are evaluated on the other rows.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("evaluation"),
    show_default=True,
    help="Directory in which to write estimates.csv and a forest plot.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    metavar="FILE.html",
    help="Also write a page with all results, data checks and warnings, which a browser opens "
    "without a network.",
)
@click.option(
    "--read",
    type=click.Choice(["whole", "parts"]),
    default="whole",
    show_default=True,
    help="Read Parquet files in parts and add up sums, so that memory does not grow with the rows; "
    "policies and models are then fitted to a random sample of 524,288 rows.",
)
@click.option(
    "--jobs", type=int, metavar="N", help="Processes of --read parts; as many as cores if absent."
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="With --read parts: run on the cluster of this Dask scheduler, whose workers see the "
    "files.",
)
@click.option(
    "--slice",
    "slices",
    multiple=True,
    metavar="COLUMN",
    help="Also estimate the policies for the rows with each value of a column of the context. Can "
    "be repeated.",
)
@click.option(
    "--trust",
    is_flag=True,
    help="Run the Python code of learned policies whose class is in a file of your own.",
)
@log_options
@click.pass_context
def evaluate(context: click.Context, /, log: Path, **options: Any) -> None:
    """Estimate what other policies would have earned on a log.

    LOG is a Parquet or CSV file or a file of JSON lines, compressed or not, with one decision in
    each row, a folder or pattern of such files, or the export of a bandit. Every estimate has a
    confidence interval, and warnings if it should not be trusted.

    With --column slate=NAME the log has ranked lists, a row for each position (the columns
    position, action, reward and propensity), and each --policy is the name of a column: the
    probability of the item at its position, given the items above it.
    """
    from submax.cli.logs.evaluating import run_evaluate
    from submax.cli.logs.unused_options import refuse_unused_options

    defaults = {one.name: one.get_default(context) for one in context.command.params}
    nothing = (None, (), False)
    refuse_unused_options(
        {
            name: value
            for name, value in options.items()
            if value not in nothing and value != defaults[name]
        }
    )
    run_evaluate(log, **options)
