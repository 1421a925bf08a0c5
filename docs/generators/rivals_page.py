"""Write docs/results/rivals.md from a run of ``submax reproduce rivals``.

``python docs/generators/rivals_page.py RESULTS``, also as part of ``make docs``. The tables are
copied to docs/results/rivals. What each method gains and loses is written by hand in the file
docs/results/rivals/remarks.md, which the page ends with, if there is one. ``--accelerator`` names
the GPU of the run.
"""

import argparse
from pathlib import Path

import published
from markdown_tables import number, table, with_error
from rivals_differences import differences_of, is_paired, publish_differences, recommended
from rivals_tables import against_plain, of_all_tables, overview

from submax.simulation.experiment import experiment_groups, load_named

INTRODUCTION = """# Methods of the related work

The paper places itself among other ways to learn a policy. This page has them side by side with \
the paper's methods and with our default, `rcp-adaptive`, on the same worlds. It is made by \
`submax reproduce rivals` and `make docs`. In the \
contextual and in the combinatorial problem every method has 36 candidates on worlds with another \
seed ([tuning](tuning.md)); for prices and tables the methods of the related work have their \
default settings, and the settings of `rcp-adaptive` were chosen on ten of the 17 tables. \
[The list](../reference/policies.md) has the reference of every method, and each class says where \
it departs from its paper.

Numbers are means ± standard errors over the replicas; the best is bold. The difference is the \
regret of a policy minus that of the policy that submax recommends: `rcp-adaptive`, and for a \
price `fourier-thompson`. {pairs} A difference is decided if it is more than two of its standard \
errors. Seconds are those of all replicas together for deciding and training, without compilation. \
[Rerun every result](rerun.md) has commands, \
dates and machines."""
PAIRS = """It is computed replica by replica, except in {names}, of which only means are \
published: there the two means are treated as independent."""
MISSING = """## Not run yet

`{name}` is not run yet: \
[its tuning](tuning.md#joint-choices-methods-of-the-related-work) is unfinished."""
REGIMES = {
    "bakeoff-dense-rivals": ", the right label pays",
    "bakeoff-rare-rivals": ", rare rewards",
}
"""Ends of titles that two experiments have in common."""


def main(results: Path, accelerator: str = "") -> None:
    """Copy the tables of finished experiments, then write the page from the copies."""
    for name in experiment_groups()["rivals"]:
        published.publish(results, name, {}, accelerator)
        publish_differences(results, name)
    if not any(map(published.is_published, experiment_groups()["rivals"])):
        print(
            "The page of rivals is left as it is: there are no results of submax reproduce rivals."
        )
        return
    (published.RESULTS / "rivals.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the page from the published tables."""
    names = [name for name in experiment_groups()["rivals"] if published.is_published(name)]
    alone = ", ".join(f"`{name}`" for name in names if not is_paired(name))
    pairs = PAIRS.format(names=alone) if alone else "It is computed replica by replica."
    parts = [INTRODUCTION.format(pairs=pairs), *(section(name) for name in names)]
    parts += [
        MISSING.format(name=name) for name in experiment_groups()["rivals"] if name not in names
    ]
    on_tables = [name for name in names if name in REGIMES]
    parts += [against_plain(on_tables)] if on_tables else []
    remarks = published.RESULTS / "rivals" / "remarks.md"
    if remarks.is_file():
        parts.append(remarks.read_text(encoding="utf-8").strip())
    return "\n\n".join(parts) + "\n"


def section(name: str) -> str:
    """Return the section of one experiment: a table for each of its configurations.

    Experiments on files have so many that there is one table with a row for each policy.
    """
    rows = published.rows_of(name)
    title = f"{load_named(name).title}{REGIMES.get(name, '')}"
    parts = [f"## {title}", published.provenance(name)]
    if "file" in rows[0]:
        return "\n\n".join([*parts, overview(name), of_all_tables(name)])
    keys = list(rows[0])
    labels = [key for key in keys[: keys.index("policy")] if len({row[key] for row in rows}) > 1]
    groups: dict[str, published.Rows] = {}
    for row in rows:
        groups.setdefault(", ".join(f"{key} {row[key]}" for key in labels), []).append(row)
    for label, group in groups.items():
        parts += [*([f"**{label}**"] if label else []), compared(name, group)]
    return "\n\n".join(parts)


def compared(name: str, rows: published.Rows) -> str:
    """Return the table of one configuration, the policy with the least regret first."""
    rows = sorted(rows, key=lambda row: float(row["final_mean"]))
    best = float(rows[0]["final_mean"])
    differences = differences_of(name)
    body = (
        (
            f"`{row['policy']}`",
            with_error(row, "final", best),
            str(differences[published.cell(row)]) if row["policy"] != recommended(name) else "",
            number(float(row["deciding_seconds"]) + float(row["training_seconds"]), -1.0),
        )
        for row in rows
    )
    return table(("policy", "regret", "difference", "seconds"), body)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--accelerator", default="", help="the GPU of the run, in words")
    given = parser.parse_args()
    main(given.results, given.accelerator)
