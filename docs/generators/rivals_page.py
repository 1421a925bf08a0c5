"""Write docs/results/rivals.md from a run of ``benchmarks/policies/rivals.py``.

``python docs/generators/rivals_page.py RESULTS``, also as part of ``make docs``. The tables are
copied to docs/results/rivals. What each method gains and loses is written by hand in the file
docs/results/rivals/remarks.md, which the page ends with, if there is one.
"""

import argparse
import csv
import shutil
from pathlib import Path

import published
from markdown_tables import number, table, with_error

from submax.experiments.specification import load_named, rival_experiments

INTRODUCTION = """# Methods of the related work

The paper places itself among other ways to learn a policy. This page has them side by side with \
the paper's methods and with our default, `rcp-adaptive`, on the same worlds. It is made by \
`python benchmarks/policies/rivals.py --out rivals` and `make docs`. In the first two problems \
every method had 36 candidates on worlds with another seed ([tuning](tuning.md)); for prices \
and tables nothing was tuned. [The list](../reference/policies.md) has the reference of every \
method, and each class says where it departs from its paper.

Numbers are means ± standard errors over the replicas; the best is bold. Seconds are those of all \
replicas together for deciding and training, without compilation. Megabytes are the peak memory of \
a run of 3000 decisions with 4 replicas on a processor, beyond that of random choice. [Rerun every \
result](rerun.md) has commands, dates and machines."""
MEMORY = "memory.csv"


def main(results: Path) -> None:
    """Copy the tables of finished experiments, then write the page from the copies."""
    for name in rival_experiments():
        published.publish(results, name, {})
    folder = published.RESULTS / "rivals"
    if (results.parent / MEMORY).is_file():
        shutil.copy(results.parent / MEMORY, folder / MEMORY)
    if not any(map(published.is_published, rival_experiments())):
        print(
            "The page of rivals is left as it is: there are no results of submax reproduce rivals."
        )
        return
    (published.RESULTS / "rivals.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the page from the published tables."""
    names = filter(published.is_published, rival_experiments())
    parts = [INTRODUCTION, *(section(name) for name in names)]
    remarks = published.RESULTS / "rivals" / "remarks.md"
    if remarks.is_file():
        parts.append(remarks.read_text(encoding="utf-8").strip())
    return "\n\n".join(parts) + "\n"


def section(name: str) -> str:
    """Return the section of one experiment: a table for each of its configurations."""
    specification, rows = load_named(name), published.rows_of(name)
    keys = list(rows[0])
    labels = [key for key in keys[: keys.index("policy")] if len({row[key] for row in rows}) > 1]
    groups: dict[str, published.Rows] = {}
    for row in rows:
        groups.setdefault(", ".join(f"{key} {row[key]}" for key in labels), []).append(row)
    memory = megabytes().get(name, {})
    parts = [f"## {specification.title}", published.provenance(name)]
    for label, group in groups.items():
        parts += [
            *([f"**{label}**"] if label else []),
            compared(group, specification.measure, memory),
        ]
    return "\n\n".join(parts)


def compared(rows: published.Rows, measure: str, memory: dict[str, str]) -> str:
    """Return the table of one configuration, the best policy first."""
    column = "final" if measure == "regret" else "final_reward"
    sign = 1 if measure == "regret" else -1
    rows = sorted(rows, key=lambda row: sign * float(row[f"{column}_mean"]))
    best = float(rows[0][f"{column}_mean"])
    body = (
        (
            f"`{row['policy']}`",
            with_error(row, column, best),
            number(float(row["deciding_seconds"]) + float(row["training_seconds"]), -1.0),
            memory.get(row["policy"], ""),
        )
        for row in rows
    )
    return table(("policy", measure, "seconds", "megabytes"), body)


def megabytes() -> dict[str, dict[str, str]]:
    """Return the memory of every policy, by experiment; nothing if it was not measured."""
    path = published.RESULTS / "rivals" / MEMORY
    found: dict[str, dict[str, str]] = {}
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                found.setdefault(row["experiment"], {})[row["policy"]] = row["megabytes"]
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    main(parser.parse_args().results)
