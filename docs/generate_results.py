"""Write docs/results from a result directory: ``make reproduce``, then ``make docs``."""

import csv
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

PAGES = Path(__file__).with_name("results")
FIGURES = (
    "illustration/figures/illustration.png",
    "bernoulli/figures/varying-arms.png",
    "bernoulli/figures/varying-beta.png",
    "bernoulli/figures/varying-delay.png",
)
Rows = list[dict[str, str]]


def main(results: Path) -> None:
    """Copy figures and summaries, and write the page around them."""
    PAGES.mkdir(exist_ok=True)
    for figure in FIGURES:
        shutil.copy(results / figure, PAGES / Path(figure).name)
    for name in ("illustration", "bernoulli"):
        shutil.copy(results / name / "summary.csv", PAGES / f"{name}.csv")
    (PAGES / "README.md").write_text(page(results), encoding="utf-8")


def page(results: Path) -> str:
    """What came out, as Markdown."""
    illustration = _read(results / "illustration" / "summary.csv")
    bernoulli = _read(results / "bernoulli" / "summary.csv")
    parts = [
        "# Results",
        "Made by `make reproduce` and `make docs`; nothing here is typed by hand.",
        "## Illustration",
        "Expected reward of each inference policy after 1000 uniform observations of 10 arms, "
        f"Beta(1, 9), averaged over {illustration[0]['environments']} environments "
        "([data](illustration.csv)); the figure shows the first of them.",
        _illustration(illustration),
        "![Six panels](illustration.png)",
        "## Bernoulli arms with delayed rewards",
        f"Final regret after {bernoulli[0]['observations']} observations, mean of "
        f"{bernoulli[0]['replicas']} replicas ([data with standard errors](bernoulli.csv)). "
        "β is that of the arms' Beta(1, β); delays are batches of N_b.",
        *(_bernoulli(bernoulli, arms) for arms in ("10", "100", "500")),
        "![K varies](varying-arms.png)",
        "![β varies](varying-beta.png)",
        "![N_b varies](varying-delay.png)",
        "## The paper's statements",
        "Section 4.1 of the paper, each sentence put to the test: the number on the left should "
        "be the lower one. Where several comparisons belong to a sentence, the one that speaks "
        "least for it is shown.",
        _statements(_read(results / "bernoulli" / "statements.csv")),
    ]
    return "\n\n".join(parts) + "\n"


def _illustration(rows: Rows) -> str:
    keys = ("expected_reward", "standard_error")
    body = ((row["policy"], *(f"{float(row[key]):.4f}" for key in keys)) for row in rows)
    return _table(("policy", "expected reward", "standard error"), body)


def _bernoulli(rows: Rows, arms: str) -> str:
    chosen = [row for row in rows if row["arms"] == arms]
    columns = list(dict.fromkeys((row["beta"], row["delay"]) for row in chosen))
    values = {
        (row["policy"], row["beta"], row["delay"]): float(row["final_mean"]) for row in chosen
    }
    policies = list(dict.fromkeys(row["policy"] for row in chosen))
    best = {column: min(values[policy, *column] for policy in policies) for column in columns}
    body = (
        (policy, *(_number(values[policy, *column], best[column]) for column in columns))
        for policy in policies
    )
    return _table((f"K = {arms}", *(f"β={beta} N_b={delay}" for beta, delay in columns)), body)


def _statements(rows: Rows) -> str:
    by_text: dict[str, Rows] = {}
    for row in rows:
        by_text.setdefault(row["statement"], []).append(row)
    body = []
    for text, group in by_text.items():
        held = sum(row["holds"] == "True" for row in group)
        closest = next(row for row in group if row["closest"] == "True")
        left, right = float(closest["left_mean"]), float(closest["right_mean"])
        numbers = f"{closest['left']} {left:.4g}, {closest['right']} {right:.4g}"
        body.append((text, f"{held} of {len(group)}", f"{numbers} ({closest['where']})"))
    return _table(("statement", "holds", "closest call"), body)


def _number(value: float, best: float) -> str:
    text = f"{value:.1f}" if value < 100 else f"{value:.0f}"
    return f"**{text}**" if value == best else text


def _table(head: tuple[str, ...], body: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _read(path: Path) -> Rows:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
