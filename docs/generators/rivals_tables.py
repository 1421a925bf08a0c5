"""The experiments on tables of classification, which have too many tables for one section each."""

import math
from collections.abc import Iterable

import published
from bakeoff_scores import HELD_OUT, RANDOM
from markdown_tables import number, table, with_error
from rivals_differences import differences_of, recommended

HELP = """One row for each policy, over all {tables} tables. *Share* is its regret divided by that \
of random choice, the mean of all tables. *Ratio* is its regret divided by that of \
`{default}`, the geometric mean of the tables; its standard error is that of the tables. \
{held_out}*Less* and *more* are the numbers of tables on which the policy has less or more regret \
than `{default}`, by more than two standard errors of the difference. Seconds are the sum of all \
tables."""
FAIR = """*Held out* is the ratio on the {count} tables on which nothing about `{default}` was \
chosen ([care was not equal](bakeoff.md)): only there the comparison is fair. """


def overview(name: str, memory: dict[str, str]) -> str:
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
            memory.get(policy, ""),
        )
        for policy in sorted(policies, key=lambda one: shares[one])
    ]
    held_out = FAIR.format(count=len(fair), default=default) if fair else ""
    text = HELP.format(tables=len(by_file), default=default, held_out=held_out)
    ratios = ("ratio", *(["held out"] if fair else []))
    head = ("policy", "share", *ratios, "less", "more", "seconds", "megabytes")
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
    """Return the geometric mean of a policy's regret divided by the default's, and its error."""
    logs = [
        math.log(_regret(by_file[file][policy]) / _regret(by_file[file][default])) for file in files
    ]
    mean = sum(logs) / len(logs)
    variance = sum((one - mean) ** 2 for one in logs) / (len(logs) - 1)
    # The error of a logarithm is that of the ratio relative to the ratio.
    error = math.exp(mean) * math.sqrt(variance / len(logs))
    return "1" if policy == default else f"{math.exp(mean):.2f} ± {error:.2f}"


def _counts(name: str, policy: str) -> tuple[str, str]:
    found = [one for cell, one in differences_of(name).items() if cell[-1] == policy]
    return str(sum(one.is_less for one in found)), str(sum(one.is_more for one in found))


def _regret(row: dict[str, str]) -> float:
    return float(row["final_mean"])


def _seconds(row: dict[str, str]) -> float:
    return float(row["deciding_seconds"]) + float(row["training_seconds"])
