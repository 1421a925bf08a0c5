"""The commands on logs and their options: evaluate, learn and tune."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from submax.cli.main import Command, is_address, main, with_all


class LogPath(click.Path):
    """A path, or the address of a PostgreSQL store, which stays as it was given."""

    def convert(self, value: Any, parameter: Any, context: Any) -> Any:
        """Return the value for the command."""
        return value if is_address(value) else super().convert(value, parameter, context)


LOG = click.argument("log", type=LogPath(path_type=Path), metavar="LOG")
POLICY = (
    "A policy by name (submax policies lists them), by name with parameters, such as "
    "linear-thompson,width=0.5, or as a table in JSON."
)
"""Help of the options that take a policy."""


LOG_OPTIONS = (
    click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="ROLE=NAME",
        help="The column of a role: action, reward, propensity, context, eligible, id, time, "
        "status, cluster (such as a user, whose rows depend on each other), count (of the "
        "decisions that a row stands for), successes (how many of these had the reward 1, in "
        "place of reward), weight (of a row in a sample of a log), session (whose rows follow "
        "each other) or covariate (measured before the decision). Several columns "
        "(also of rewards) are separated by commas, context=age,country, or given by a "
        "pattern, 'context=affinity_*'. Columns with the name of their role are found. Can be "
        "repeated.",
    ),
    click.option(
        "--declare",
        type=click.Path(path_type=Path),
        metavar="FILE.toml",
        help="A file that declares which values are allowed: actions, action_features, context "
        "and rewards, as in submax.open.",
    ),
    click.option(
        "--action-features",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A CSV or Parquet file that describes one action in each row: a column action "
        "(with several slots: slot and choice), and a column for each feature.",
    ),
    click.option(
        "--separator",
        default=",",
        show_default=True,
        metavar="SIGN",
        help="The sign between the values of a CSV file; '\\t' is a tab.",
    ),
    click.option(
        "--decimal",
        default=".",
        show_default=True,
        metavar="SIGN",
        help="The decimal sign of the numbers of a CSV file.",
    ),
    click.option(
        "--skip-bad-rows",
        is_flag=True,
        help="Leave out rows with missing or impossible values, and say how many.",
    ),
    click.option(
        "--bandit",
        metavar="NAME",
        help="If LOG is a store: the bandit whose log is read; needed if there are several.",
    ),
    click.option(
        "--seed", default=0, show_default=True, metavar="S", help="Seed of all random numbers."
    ),
)
"""The options that say what the columns of a log mean."""


def log_options(command: Command) -> Command:
    """Add the options that say what the columns of a log mean."""
    return with_all(command, LOG_OPTIONS)


def with_log_options(*names: str) -> Callable[[Command], Command]:
    """Add those of the options that have these names."""

    def add(command: Command) -> Command:
        by_name = dict(zip(LOG_OPTION_NAMES, LOG_OPTIONS, strict=True))
        return with_all(command, [by_name[name] for name in names])

    return add


LOG_OPTION_NAMES = (
    *("columns", "declare", "action_features", "separator", "decimal"),
    *("skip_bad_rows", "bandit", "seed"),
)
"""The parameters of the options, in their order."""


def split_options(share: float, what: str) -> Callable[[Command], Command]:
    """Add the options that say which rows policies learn from."""

    def add(command: Command) -> Command:
        by = click.option(
            "--by",
            type=click.Choice(["time", "random"]),
            default="time",
            show_default=True,
            help="Which rows these are: the first by time, or random ones.",
        )
        part = click.option("--share", default=share, show_default=True, metavar="X", help=what)
        return part(by(command))

    return add


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
    "action A, always=* is one such policy for each action of the log, columns=prob_* is the "
    "policy whose probability of the action A is the column prob_A, and log=FILE is a model of the "
    "policy that wrote another log; NAME=columns=… and NAME=log=… name it. Can be repeated.",
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
    "together, and the answer says which policies can be the best one.",
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Print the estimates of all estimators, not only the recommended one of each policy.",
)
@click.option(
    "--top",
    default=10,
    show_default=True,
    metavar="N",
    type=click.IntRange(min=1),
    help="Print and draw the N policies with the highest estimates; the files have all of them.",
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
    help="Keep the log in files of a temporary folder and evaluate it in parts, so memory does not "
    "grow with the rows; policies and models are fitted to a random sample of 524,288 rows.",
)
@click.option(
    "--jobs", type=int, metavar="N", help="Processes of --read parts; as many as cores if absent."
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="With --read parts: run on the cluster of this Dask scheduler, whose workers see the "
    "temporary folder (TMPDIR).",
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
def evaluate(context: click.Context, /, log: Path | str, **options: Any) -> None:
    """Estimate what other policies would have earned on a log.

    LOG is a Parquet or CSV file or a file of JSON lines, compressed or not, with one decision in
    each row, a folder or pattern of such files, the export of a bandit, or its store (a file, or
    the address of a PostgreSQL database). Every estimate has a confidence interval, and warnings if
    it should not be trusted.

    With --column slate=NAME the log has ranked lists, a row for each position (the columns
    position, action, reward and propensity), and each --policy is the name of a column: the
    probability of the item at its position, given the items above it.
    """
    from submax.cli.logs.arguments import refuse_unused_options
    from submax.cli.logs.running import run_evaluate

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


@main.command()
@LOG
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="POLICY",
    help=f"{POLICY} @greedy or @temperature=0.5 after the name is a variant, and reward-model is a "
    "regression for each action. Repeated: the best of these. Absent: the best of a small set, the "
    "default, a network, trees, a regression for each action, and the mean of each action.",
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
def learn(log: Path | str, **options: Any) -> None:
    """Learn a policy from a log and write it to a file.

    Without --policy the best of a small set of policies is learned: they learn from 60 % of the
    rows, dr chooses the best on 20 %, and a table reports all of them on the last 20 %. The
    best one then learns from all rows.

    LOG is a Parquet or CSV file or a file of JSON lines, compressed or not, with one decision in
    each row, a folder or pattern of such files, the export of a bandit, or its store. The policy
    can be evaluated by submax evaluate, and served by submax serve STORE --learned FILE.
    """
    from submax.cli.logs.running import run_learn

    run_learn(log, **options)


@main.command()
@LOG
@click.option("--policy", required=True, metavar="POLICY", help=POLICY)
@click.option(
    "--search",
    "searches",
    multiple=True,
    required=True,
    metavar="KEY=VALUES",
    help="Values to try for a parameter: a list, estimator.hidden=16,32,64, or a range, "
    "estimator.smoothing=0.01..10, on a logarithmic scale if it ends in :log. Can be repeated.",
)
@click.option("--trials", default=20, show_default=True, metavar="N", help="Number of trials.")
@click.option(
    "--estimator",
    default="dr",
    show_default=True,
    metavar="NAME",
    help="Off-policy estimator whose value is maximized.",
)
@click.option(
    "--by",
    type=click.Choice(["time", "random"]),
    default="time",
    show_default=True,
    help="How the rows are split: by time or at random.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Let the best policy learn from all rows, and write it to this file.",
)
@log_options
def tune(log: Path | str, **options: Any) -> None:
    """Choose the parameters of a policy on a log; needs submax[tune].

    Every trial learns from one half of the log, and a quarter chooses the best trial. The last
    quarter, which takes no part in the choice, evaluates the best policy.
    """
    from submax.cli.logs.running import run_tune

    run_tune(log, **options)


@main.command()
@LOG
@click.option(
    "--policy",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The file of a learned policy, from submax learn.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("scores.csv"),
    show_default=True,
    help="The CSV file to write.",
)
@click.option(
    "--trust",
    is_flag=True,
    help="Run the Python code of a learned policy whose class is in a file of your own.",
)
@with_log_options("columns", "separator", "decimal")
def score(log: Path | str, **options: Any) -> None:
    """Write what a learned policy would do in each row of a file.

    LOG needs only the columns of the context, and those of id and eligible if there are any: no
    action and no reward. The file has the id, the most likely action, and the probability of each
    action A as prob_A, which submax evaluate reads by --policy 'columns=prob_*'.
    """
    from submax.cli.logs.running import run_score

    run_score(log, **options)
