"""The command that recommends a policy."""

from pathlib import Path
from typing import Any

import click

from submax.cli.commands import main

REWARDS = ("often", "seldom", "rare", "ratings", "numbers", "counts", "sparse-counts")
GOALS = ("earn", "adapt", "explain", "identify")


@main.command()
@click.argument("source", metavar="[LOG|STORE]", required=False)
@click.option(
    "--actions",
    metavar="N|AxB|number",
    help="What is chosen: one of N actions, one choice in each slot of the sizes A, B and so on, "
    "or a number such as a price.",
)
@click.option(
    "--context/--no-context",
    default=None,
    help="Whether something is known before a decision; no if absent.",
)
@click.option(
    "--rewards",
    type=click.Choice(REWARDS),
    help="Rewards 0 and 1 with a mean from 0.2 (often), from 0.03 (seldom) or below (rare); "
    "ratings, numbers, or counts, which are sparse if their mean is below 0.5.",
)
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many decisions are made before their rewards are learned from; 100 if absent.",
)
@click.option(
    "--goal",
    type=click.Choice(GOALS),
    help="earn as much as possible; adapt to a world that changes; explain every decision; "
    "identify the best action, whatever is earned on the way. earn if absent.",
)
@click.option("--bandit", metavar="NAME", help="The bandit of a store that has several.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="ROLE=NAME",
    help="The column of a role in a log, as in submax evaluate. Can be repeated.",
)
@click.option(
    "--declare",
    type=click.Path(path_type=Path),
    metavar="FILE.toml",
    help="A file that declares which values a log may have, as in submax evaluate.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
def recommend(
    source: str | None,
    bandit: str | None,
    columns: tuple[str, ...],
    declare: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Recommend a policy for a problem, with its settings and the reason.

    The problem is described by options, or read from a log or from a store; options take
    precedence over what a log or a store shows. Without a log or a store, questions that no option
    answers are asked in a terminal. Otherwise, and with --json, nothing is asked: context, batch
    and goal have their defaults, which are printed as assumptions, and actions and rewards
    must be given.

    The answer has the policy, the runner-up, the measured results that support the choice, what was
    not tested, and settings to paste. Published results decide, and nothing is run:
    submax evaluate and submax simulate compare policies on your own problem.
    """
    import json

    from submax.cli.recommending.questions import ask, can_ask
    from submax.recommendation.recommend import recommend as find
    from submax.recommendation.unused_options import ANSWERS_ALONE, refuse_unused

    if source is None and not as_json and can_ask():
        refuse_unused(ANSWERS_ALONE, bandit=bandit, columns=columns, declare=declare)
        given = ask(given)
    if columns:
        from submax.cli.logs.log_reading import columns_of

        given["columns"] = columns_of(columns)
    found = find(source, bandit=bandit, declare=declare, **given)
    click.echo(json.dumps(found.as_dict(), indent=1, ensure_ascii=False) if as_json else found)
