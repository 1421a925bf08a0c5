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
    "A policy by name (submax policies lists them), with parameters, such as "
    "linear-thompson,width=0.5, as a variant, @greedy or @temperature=0.5 after the name, or as a "
    "table in JSON."
)
"""Help of the options that take a policy."""


TEXT_OPTIONS = (
    option(
        "--column", "columns", multiple=True, metavar="ROLE=NAME",
        help="The column of a role: action, reward, propensity, context, eligible, id, time, "
        "status, cluster (such as a user, whose rows depend on each other), count (of the "
        "decisions that a row stands for), successes (how many of these had the reward 1, in "
        "place of reward), weight (of a row in a sample of a log), session (whose rows follow "
        "each other) or covariate (measured before the decision). Several columns (also of "
        "rewards) are separated by commas, context=age,country, or given by a pattern, "
        "'context=affinity_*'. Columns with the name of their role are found. Can be repeated.",
    ),
    option(
        "--separator", metavar="SIGN",
        help="The separator of a CSV file, '\\t' for a tab, if it is not recognized.",
    ),
    option(
        "--decimal", metavar="SIGN",
        help="The decimal sign of a CSV file, . or a comma, if it is not recognized.",
    ),
)  # fmt: skip
"""The options that say what the columns of a file mean, and how its numbers are written."""
LOG_OPTIONS = (
    *TEXT_OPTIONS,
    option(
        "--declare", type=PATH, metavar="FILE.toml",
        help="A file that declares which values are allowed: actions, action_features, context "
        "and rewards, as in submax.open.",
    ),
    option(
        "--skip-bad-rows", is_flag=True,
        help="Leave out rows with missing or impossible values, and say how many.",
    ),
    option(
        "--bandit", metavar="NAME",
        help="If LOG is a store: the bandit whose log is read; needed if there are several.",
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
            help="Which rows these are: the first by time, or random ones.",
        ),
    )  # fmt: skip


EVALUATE_OPTIONS = (
    option(
        "--policy", "policies", multiple=True, metavar="POLICY",
        help=f"{POLICY} A file from submax learn is accepted, too; always=A takes the action A, "
        "always=* is one such policy for each action of the log, and columns=prob_* is the policy "
        "whose probability of the action A is the column prob_A; NAME=columns=… names it. Can be "
        "repeated.",
    ),
    option(
        "--estimator", "estimators", multiple=True, metavar="NAME",
        help="Off-policy estimator: ips, snips, clipped, dm, dr, sndr, switch-dr, dr-shrinkage, "
        "replay, pseudo-inverse, per-decision or trajectory, or a table in JSON with its "
        "parameters; all usual ones that apply to the log if absent. Can be repeated.",
    ),
    option(
        "--interval",
        type=click.Choice(["gamma", "normal", "sequential"]),
        default="gamma",
        help="Kind of the confidence intervals; gamma also holds for rare rewards, and sequential "
        "holds at all looks at a growing log together.",
    ),
    option(
        "--reward-model", default="bayesian", metavar="NAME",
        help="Model of rewards: bayesian, a dotted name such as sklearn.linear_model.Ridge, or a "
        "table in JSON with kind and parameters.",
    ),
    option(
        "--baseline", default="logging policy", metavar="NAME",
        help="The policy from which differences are computed: the logging policy, one of "
        "--policy, or best: the one with the highest estimate. The intervals of all differences "
        "from best hold together, and the answer says which policies can be the best one.",
    ),
    option(
        "--all", "every", is_flag=True,
        help="Print the estimates of all estimators, not only the recommended one of each policy.",
    ),
    option(
        "--top", default=10, metavar="N", type=click.IntRange(min=1),
        help="Print the N policies with the highest estimates; the files have all of them.",
    ),
    option(
        "--effect", metavar="X",
        help="Say how many rows would show a difference of this size in 8 of 10 logs: a number, "
        "or a share of what the log earned, such as 10%.",
    ),
    option("--level", default=0.95, metavar="X", help="Level of the intervals."),
    option(
        "--combine", "combinations", multiple=True, metavar="NAME=REWARD:WEIGHT,...",
        help="With several columns of rewards (--column reward=click,buy): one more reward, their "
        "weighted sum, such as profit=click:0.1,buy:20. Can be repeated.",
    ),
    option(
        "--learn-from", metavar="REWARD",
        help="With several columns of rewards: the one from which policies learn, by default the "
        "first.",
    ),
    *split_options(0.5, "Share of the rows to learn from; policies are evaluated on the others."),
    option(
        "--out", type=PATH, default=Path("evaluation"),
        help="Directory in which to write all numbers, estimates.csv and others.",
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
        help="Also estimate the policies for the rows with each value of a column of the context: "
        "slices.csv has all, and the printed table those of the best policies. Can be repeated.",
    ),
    option(
        "--trust", is_flag=True,
        help="Run the Python code of learned policies whose class is in a file of your own.",
    ),
)  # fmt: skip


@main.command()
@LOG
@with_options(*EVALUATE_OPTIONS, *LOG_OPTIONS)
def evaluate(log: Path | str, **options: Any) -> None:
    """Estimate what other policies would have earned on a log.

    LOG is a Parquet or CSV file or a file of JSON lines, compressed or not, with one decision in
    each row, a folder or pattern of such files, the export of a bandit, or its store (a file, or
    the address of a PostgreSQL database). Every estimate has a confidence interval, and warnings if
    you should not trust it.
    """
    from submax.cli.logs.running import run_evaluate

    run_evaluate(log, **options)


LEARN_OPTIONS = (
    option(
        "--policy", "policies", multiple=True, metavar="POLICY",
        help=f"{POLICY} Repeated: the best of these. Absent: the best of a small set, the default, "
        "a network, trees, a regression for each action, and the mean of each action.",
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

    Without --policy the best of a small set of policies is learned: they learn from 60 % of the
    rows, dr compares them on the next 20 %, and those near the best also on other parts of these
    80 %. A table reports all of them on the last 20 %. The best one then learns from all rows.

    LOG is a Parquet or CSV file or a file of JSON lines, compressed or not, with one decision in
    each row, a folder or pattern of such files, the export of a bandit, or its store. Evaluate it
    with submax evaluate, or serve it with submax serve STORE --learned FILE.
    """
    from submax.cli.logs.running import run_learn

    run_learn(log, **options)


TUNE_OPTIONS = (
    option("--policy", required=True, metavar="POLICY", help=POLICY),
    option(
        "--search", "searches", multiple=True, required=True, metavar="KEY=VALUES",
        help="Values to try for a parameter: a list, estimator.hidden=16,32,64, or a range, "
        "estimator.smoothing=0.01..10, on a logarithmic scale if it ends in :log. Can be repeated.",
    ),
    option("--trials", default=20, metavar="N", help="Most tables of parameters to try."),
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

    All combinations of listed values are tried if they are few; otherwise parameters are drawn at
    random. They are compared as submax learn compares several policies.
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
        help="Run the Python code of a learned policy whose class is in a file of your own.",
    ),
)  # fmt: skip


@main.command()
@LOG
@with_options(*SCORE_OPTIONS, *TEXT_OPTIONS)
def score(log: Path | str, **options: Any) -> None:
    """Write what a learned policy would do in each row of a file.

    LOG needs only the columns of the context, and those of id, user and eligible if there are any:
    no action and no reward. The file has the id, the user, the most likely action, and the
    probability of each action A as prob_A. Joined to the columns of a log, these are a policy that
    submax evaluate reads by --policy 'columns=prob_*'.
    """
    from submax.cli.logs.running import run_score

    run_score(log, **options)
