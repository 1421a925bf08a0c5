"""The experiments on tables of classification, which have too many tables for one section each."""

import math
from collections.abc import Iterable

import published
from bakeoff_scores import HELD_OUT, RANDOM
from markdown_tables import number, table, with_error
from rivals_differences import differences_of, recommended

from submax.research.paper.statements import DECISIVE_ERRORS

HELP = """One row for each policy, over all {tables} tables. *Share* is its regret divided by that \
of random choice, the mean of all tables. *Ratio* is its regret divided by that of \
`{default}`, the geometric mean of the tables, with two standard errors over the tables on either \
side, on a logarithmic scale. \
{held_out}*Less* and *more* are the numbers of tables on which the policy has less or more regret \
than `{default}`, by more than two standard errors of the difference. Seconds are the sum of all \
tables."""
FAIR = """*Held out* is the ratio on the {count} tables on which nothing about `{default}` was \
chosen ([care was not equal](bakeoff.md)): only there the comparison is fair. """

PLAIN = {
    "sample-average-ucb": "neural-ucb",
    "sample-average-sampling": "neural-ucb",
    "variance-network-ucb": "neural-ucb",
    "doubly-robust-gradient": "policy-gradient",
    "actor-critic": "policy-gradient",
    "preference-optimization": "policy-gradient",
    "advantage-conditioned": "rcp-softmax-submax",
    "bayes-submax": "rcp-softmax-submax",
    "rcp-continual-submax": "rcp-softmax-submax",
}
"""Methods of the related work, and the method that is closest to each without its idea."""
PLAIN_TEXT = """## What each method changes

Each method is close to another one that lacks its idea. The ratio of their regrets, over the \
tables as above, says what the idea does; below 1 it helps. All settings are defaults: the width \
of the bound is 0.1 for `neural-ucb` and `variance-network-ucb`, and 1 for `sample-average-ucb`; \
`rcp-continual-submax` trains 300 steps, and the others as long as held-out rows say."""


def against_plain(names: Iterable[str]) -> str:
    """Return the ratios of regrets between methods and the ones that they change."""
    tables = {name: _by_file(name) for name in names}
    body = [
        (
            f"`{changed}`",
            f"`{plain}`",
            *(_ratio(by_file, by_file, changed, plain) for by_file in tables.values()),
        )
        for changed, plain in PLAIN.items()
    ]
    head = ("method", "compared with", *(f"`{name}`" for name in tables))
    return f"{PLAIN_TEXT}\n\n{table(head, body)}"


def overview(name: str) -> str:
    """Return the table of all policies over all files, with words on its columns."""
    by_file = _by_file(name)
    default, fair = recommended(name), [file for file in by_file if file in HELD_OUT]
    policies = list(next(iter(by_file.values())))
    shares = {one: _share(by_file, one) for one in policies}
    body = [
        (
            f"`{policy}`",
            f"{shares[policy]:.2f}",
            _ratio(by_file, by_file, policy, default),
            *([_ratio(by_file, fair, policy, default)] if fair else []),
            *_counts(name, policy),
            number(sum(_seconds(rows[policy]) for rows in by_file.values()), -1.0),
        )
        for policy in sorted(policies, key=lambda one: shares[one])
    ]
    held_out = FAIR.format(count=len(fair), default=default) if fair else ""
    text = HELP.format(tables=len(by_file), default=default, held_out=held_out)
    ratios = ("ratio", *(["held out"] if fair else []))
    head = ("policy", "share", *ratios, "less", "more", "seconds")
    return f"{text}\n\n{table(head, body)}"


def of_all_tables(name: str) -> str:
    """Return the regret of every policy on every file, in a table that opens on request."""
    by_file = _by_file(name)
    policies = list(next(iter(by_file.values())))
    body = []
    for file, rows in by_file.items():
        best = min(float(row["final_mean"]) for row in rows.values())
        body.append((file, *(with_error(rows[policy], "final", best) for policy in policies)))
    regrets = table(("table", *policies), body)
    return f"<details><summary>Regret on every table</summary>\n\n{regrets}\n\n</details>"


def _by_file(name: str) -> dict[str, dict[str, dict[str, str]]]:
    """Return the rows of the summary by file, without the name of its package, and policy."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for row in published.rows_of(name):
        found.setdefault(row["file"].partition(":")[2], {})[row["policy"]] = row
    return found


def _share(by_file: dict[str, dict[str, dict[str, str]]], policy: str) -> float:
    shares = [_regret(rows[policy]) / _regret(rows[RANDOM]) for rows in by_file.values()]
    return sum(shares) / len(shares)


def _ratio(
    by_file: dict[str, dict[str, dict[str, str]]], files: Iterable[str], policy: str, default: str
) -> str:
    """Return the geometric mean of a policy's regret divided by the default's, with its range."""
    logs = [
        math.log(_regret(by_file[file][policy]) / _regret(by_file[file][default])) for file in files
    ]
    mean = sum(logs) / len(logs)
    variance = sum((one - mean) ** 2 for one in logs) / (len(logs) - 1)
    width = DECISIVE_ERRORS * math.sqrt(variance / len(logs))
    if policy == default:
        return "1"
    return f"{math.exp(mean):.2f} ({math.exp(mean - width):.2f} to {math.exp(mean + width):.2f})"


def _counts(name: str, policy: str) -> tuple[str, str]:
    found = [one for cell, one in differences_of(name).items() if cell[-1] == policy]
    return str(sum(one.is_less for one in found)), str(sum(one.is_more for one in found))


def _regret(row: dict[str, str]) -> float:
    return float(row["final_mean"])


def _seconds(row: dict[str, str]) -> float:
    return float(row["deciding_seconds"]) + float(row["training_seconds"])
