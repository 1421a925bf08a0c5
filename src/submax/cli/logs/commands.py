"""The commands on logs and their options: evaluate, learn and tune."""

from pathlib import Path
from typing import Any

import click
from click import option

from submax.cli.main import Option, is_address, main, with_options


class LogPath(click.Path):
    """A path, or the address of a PostgreSQL store, which stays as it was given."""

    def convert(self, value: Any, parameter: Any, context: Any) -> Any:
        """Return the value for the command."""
        return value if is_address(value) else super().convert(value, parameter, context)


PATH = click.Path(path_type=Path)
LOG = click.argument("log", type=LogPath(path_type=Path), metavar="LOG")
POLICY = (
    "A policy: a name (see submax policies), also with parameters, such as "
    "linear-thompson,width=0.5, or with @greedy or @temperature=0.5 at the end for a variant; or a "
    "JSON object."
)
"""Help of the options that take a policy."""


TEXT_OPTIONS = (
    option(
        "--column", "columns", multiple=True, metavar="ROLE=NAME",
        help="Which column has a role: action, reward, propensity, context, eligible, id, time, "
        "status, cluster (such as a user, whose rows are dependent), count (of the decisions that "
        "a row stands for), successes (how many of these had reward 1; replaces reward), weight "
        "(of a row in a sample of a log), session (whose rows follow each other) or covariate "
        "(measured before the decision). For several columns, separate them by commas, "
        "context=age,country, or use a pattern, 'context=affinity_*'. Columns that are named like "
        "their role need no option. Can be repeated.",
    ),
    option(
        "--separator", metavar="SIGN",
        callback=lambda _context, _option, sign: sign and sign.replace("\\t", "\t"),
        help="Separator of a CSV file ('\\t' for a tab), if it is not detected correctly.",
    ),
    option(
        "--decimal", metavar="SIGN",
        help="Decimal sign of a CSV file (. or ,), if it is not detected correctly.",
    ),
)  # fmt: skip
"""The options that say what the columns of a file mean, and how its numbers are written."""
LOG_OPTIONS = (
    *TEXT_OPTIONS,
    option(
        "--declare", type=PATH, metavar="FILE.toml",
        help="A file that declares the allowed values: actions, action_features, context and "
        "rewards, as in submax.open.",
    ),
    option(
        "--skip-bad-rows", is_flag=True,
        help="Leave out rows with missing or impossible values, and say how many.",
    ),
    option(
        "--bandit", metavar="NAME",
        help="If LOG is a store: the bandit to read; required if there are several.",
    ),
    option("--seed", default=0, metavar="S", help="Seed of all random numbers."),
)  # fmt: skip
"""The options of what reads a log."""


def split_options(share: float, what: str) -> tuple[Option, Option]:
    """The options that say which rows policies learn from."""
    return (
        option("--share", default=share, metavar="X", help=what),
        option(
            "--by", type=click.Choice(["time", "random"]), default="time",
            help="How these rows are chosen: the first by time, or at random.",
        ),
    )  # fmt: skip


EVALUATE_OPTIONS = (
    option(
        "--policy", "policies", multiple=True, metavar="POLICY",
        help=f"{POLICY} Or a file from submax learn; always=A, which always takes action A; "
        "always=*, one such policy for each action of the log; or columns=prob_*, which reads the "
        "probability of each action A from the column prob_A. NAME=POLICY gives it a name. Can be "
        "repeated.",
    ),
    option(
        "--estimator", "estimators", multiple=True, metavar="NAME",
        help="Off-policy estimator: ips, snips, clipped, dm, dr, sndr, switch-dr, dr-shrinkage, "
        "replay, pseudo-inverse, per-decision or trajectory, or a JSON object with its parameters. "
        "By default, all standard estimators that apply to the log. Can be repeated.",
    ),
    option(
        "--interval",
        type=click.Choice(["gamma", "normal", "sequential"]),
        default="gamma",
        help="Kind of confidence interval: gamma is valid for rare rewards, too; sequential stays "
        "valid however often you look at a growing log.",
    ),
    option(
        "--reward-model", default="bayesian", metavar="NAME",
        help="Reward model: bayesian, a dotted name such as sklearn.linear_model.Ridge, or a JSON "
        "object with kind and parameters.",
    ),
    option(
        "--baseline", default="logging policy", metavar="NAME",
        help="The policy to compare with: the logging policy, one of --policy, or best, the one "
        "with the highest estimate. With best, the intervals of all differences hold "
        "simultaneously, and the output says which policies may be the best.",
    ),
    option(
        "--all", "every", is_flag=True,
        help="Print the estimates of all estimators, not only the recommended one of each policy.",
    ),
    option(
        "--top", default=10, metavar="N", type=click.IntRange(min=1),
        help="Print only the N policies with the highest estimates; the files contain all.",
    ),
    option(
        "--effect", metavar="X",
        help="Say how many rows give 80 % power to detect a difference of this size: a number, or "
        "a percentage of what the log earned, such as 10%.",
    ),
    option("--level", default=0.95, metavar="X", help="Level of the intervals."),
    option(
        "--combine", "combinations", multiple=True, metavar="NAME=REWARD:WEIGHT,...",
        help="With several reward columns (--column reward=click,buy): also evaluate their "
        "weighted sum, such as profit=click:0.1,buy:20. Can be repeated.",
    ),
    option(
        "--learn-from", metavar="REWARD",
        help="With several reward columns: the reward that policies learn from; by default the "
        "first.",
    ),
    *split_options(0.5, "Share of the rows to learn from; policies are evaluated on the others."),
    option(
        "--out", type=PATH, default=Path("evaluation"),
        help="Directory for the results: estimates.csv and other files.",
    ),
    option(
        "--report", type=PATH, metavar="FILE.html",
        help="Also write an HTML page with all results, data checks and warnings.",
    ),
    option(
        "--scheduler", metavar="ADDRESS",
        help="Evaluate a log of more than 524,288 rows on the cluster of this Dask scheduler.",
    ),
    option(
        "--slice", "slices", multiple=True, metavar="COLUMN",
        help="Also evaluate the policies separately for each value of a context column. slices.csv "
        "has all estimates; the printed table has those of the best policies. Can be repeated.",
    ),
    option(
        "--trust", is_flag=True,
        help="Allow learned policies with a custom class to run their Python code.",
    ),
)  # fmt: skip


@main.command()
@LOG
@with_options(*EVALUATE_OPTIONS, *LOG_OPTIONS)
def evaluate(log: Path | str, **options: Any) -> None:
    """Estimate what other policies would have earned on a log.

    LOG is a Parquet, CSV or JSON Lines file, compressed or not, with one decision per row; a folder
    or a pattern of such files; the export of a bandit; or its store (a file, or the URL of a
    PostgreSQL database). Every estimate has a confidence interval, and warnings if you should not
    trust it.
    """
    from submax.cli.logs.running import run_evaluate

    run_evaluate(log, **options)


LEARN_OPTIONS = (
    option(
        "--policy", "policies", multiple=True, metavar="POLICY",
        help=f"{POLICY} If repeated, the best one is kept; if absent, the best of a small set: the "
        "default, a network, trees, a regression for each action, and the mean of each action.",
    ),
    option(
        "--out", type=PATH, default=Path("policy.safetensors"),
        help="The file to write; it must end in .safetensors.",
    ),
    *split_options(1.0, "Share of the rows to learn from; evaluate uses the other rows."),
    option(
        "--keep-rows", default=1_000_000, metavar="N",
        help="How many of the last rows to store in the file; a bandit that starts from the "
        "policy continues to learn from them.",
    ),
)  # fmt: skip


@main.command()
@LOG
@with_options(*LEARN_OPTIONS, *LOG_OPTIONS)
def learn(log: Path | str, **options: Any) -> None:
    """Learn a policy from a log and write it to a file.

    Without --policy, the best of a small set is chosen. All candidates learn from 60 % of the rows
    and are compared (by dr) on the next 20 %; those near the best are also compared on other parts
    of these 80 %. A table reports all of them on the last 20 %. The winner learns from all rows.

    LOG is a Parquet, CSV or JSON Lines file, compressed or not, with one decision per row; a folder
    or a pattern of such files; the export of a bandit; or its store. Evaluate the policy with
    submax evaluate, or serve it with submax serve STORE --learned FILE.
    """
    from submax.cli.logs.running import run_learn

    run_learn(log, **options)


TUNE_OPTIONS = (
    option("--policy", required=True, metavar="POLICY", help=POLICY),
    option(
        "--search", "searches", multiple=True, required=True, metavar="KEY=VALUES",
        help="Values to try for a parameter: a list, estimator.hidden=16,32,64, or a range, "
        "estimator.smoothing=0.01..10; append :log for a logarithmic scale. Can be repeated.",
    ),
    option("--trials", default=20, metavar="N", help="Maximum number of combinations to try."),
    option(
        "--out", type=PATH, default=Path("tuned.safetensors"),
        help="The file to write; it must end in .safetensors.",
    ),
    *LEARN_OPTIONS[2:],
)  # fmt: skip


@main.command()
@LOG
@with_options(*TUNE_OPTIONS, *LOG_OPTIONS)
def tune(log: Path | str, policy: str, **options: Any) -> None:
    """Choose the parameters of a policy on a log, and write the best policy to a file.

    Tries all combinations of listed values if there are at most --trials of them; otherwise draws
    parameters at random. The comparison is that of submax learn with several policies.
    """
    from submax.cli.logs.running import run_learn

    run_learn(log, policies=[policy], **options)


SCORE_OPTIONS = (
    option(
        "--policy", required=True, type=PATH, metavar="FILE",
        help="The file of a learned policy, from submax learn.",
    ),
    option(
        "--out", type=PATH, default=Path("scores.csv"),
        help="The CSV file to write.",
    ),
    option(
        "--trust", is_flag=True,
        help="Allow a learned policy with a custom class to run its Python code.",
    ),
)  # fmt: skip


@main.command()
@LOG
@with_options(*SCORE_OPTIONS, *TEXT_OPTIONS)
def score(log: Path | str, **options: Any) -> None:
    """Write what a learned policy would do in each row of a file.

    LOG needs only the context columns, and those of id, user and eligible if there are any; it
    needs no action and no reward. The output has the id, the user, the most likely action, and the
    probability of each action A as prob_A. Joined to a log, these columns can be evaluated: submax
    evaluate --policy 'columns=prob_*'.
    """
    from submax.cli.logs.running import run_score

    run_score(log, **options)
