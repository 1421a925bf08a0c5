"""Write docs/results: copy what result directories hold, then write the page from the copies.

``make reproduce`` and ``make docs``; with ``make docs OUT=other`` from another directory. An
experiment that a directory does not hold keeps the results it has.
"""

import csv
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

PAGES = Path(__file__).with_name("results")
FIGURES = {
    "illustration": {"illustration.png": "illustration.png"},
    "bernoulli": {f"varying-{key}.png": f"varying-{key}.png" for key in ("arms", "beta", "delay")},
    "contextual": {"varying-shift.png": "contextual.png"},
    "combinatorial": {
        "panel-*-delay=1000.png": "combinatorial.png",
        "panel-*-regret.png": "combinatorial-regret.png",
    },
    "ablations": {},
    "joint-ablations": {},
}
TABLES = {"summary.csv": "", "statements.csv": "-statements", "calibration.csv": "-calibration"}
Rows = list[dict[str, str]]


def main(results: Path) -> None:
    """Copy figures and tables of every finished experiment, and write the page around them."""
    copy(results, FIGURES)
    (PAGES / "README.md").write_text(page(), encoding="utf-8")


def copy(results: Path, wanted: dict[str, dict[str, str]]) -> None:
    """Copy tables and figures, by the name of their experiment, of those that are finished."""
    PAGES.mkdir(exist_ok=True)
    for name, figures in wanted.items():
        if not (results / name / "summary.csv").is_file():
            continue
        for table, ending in TABLES.items():
            if (results / name / table).is_file():
                shutil.copy(results / name / table, PAGES / f"{name}{ending}.csv")
        for pattern, target in figures.items():
            for figure in (results / name / "figures").glob(pattern):
                shutil.copy(figure, PAGES / target)


def page() -> str:
    """What came out, as Markdown."""
    illustration, bernoulli = read("illustration"), read("bernoulli")
    contextual, combinatorial = read("contextual"), read("combinatorial")
    parts = [
        "# Results",
        "Made by `submax reproduce` and `make docs`; nothing here is typed by hand. The neural "
        "experiments were run on one GPU. "
        "What goes beyond the paper is on [a page](beyond.md) of its own, "
        "contexts of real tables on [another](bakeoff.md).",
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
        "### The paper's statements, section 4.1",
        "Each sentence put to the test: the number on the left should be the lower one. Where "
        "several comparisons belong to a sentence, the one that speaks least for it is shown. The "
        "sentences are about the paper's methods; others in the tables are left out.",
        _statements(read("bernoulli-statements")),
        "## Contextual bandits",
        f"Final regret after {contextual[0]['observations']} observations in batches of 1000, mean "
        f"of {contextual[0]['replicas']} replicas ± standard error ([data](contextual.csv)); 4 "
        "arms, a context of 20 numbers, s the shift of the logits. Hyper-parameters were chosen on "
        "other environments: [tuning](../tuning.md). Here and below, reward-conditioned policies "
        "without a network in their name have the CVAE.",
        _by_shift(contextual),
        "![s varies](contextual.png)",
        _calibration(read("contextual-calibration")),
        "### The paper's statements, section 4.2",
        _statements(read("contextual-statements")),
        "## Joint choices: 32768 actions",
        f"After {combinatorial[0]['observations']} observations in batches of 1000, mean of "
        f"{combinatorial[0]['replicas']} replicas ± standard error ([data](combinatorial.csv)).",
        _final(combinatorial),
        "![Accumulated reward](combinatorial.png)",
        "![Accumulated regret](combinatorial-regret.png)",
        _calibration(read("combinatorial-calibration")),
        "### The paper's statements, section 4.3",
        _statements(read("combinatorial-statements")),
        "## Ablations",
        "What each part of the reward-conditioned policy is worth: SubMax with a CVAE "
        "(modulation, 5 latent draws shared by the levels, retrained from scratch) is the "
        "reference, and each row changes one thing, with the reference's units and steps "
        "([data](ablations.csv), [joint choices](joint-ablations.csv)).",
        _ablations(read("ablations"), read("joint-ablations")),
        "## Cost of a decision",
        "With a trained CVAE, by rejection, against the number of joint actions "
        "(`python benchmarks/run.py --only networks`):",
        "![Cost of a decision](decision-cost.png)",
    ]
    return "\n\n".join(parts) + "\n"


def _illustration(rows: Rows) -> str:
    keys = ("expected_reward", "standard_error")
    body = ((row["policy"], *(f"{float(row[key]):.4f}" for key in keys)) for row in rows)
    return table(("policy", "expected reward", "standard error"), body)


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
    return table((f"K = {arms}", *(f"β={beta} N_b={delay}" for beta, delay in columns)), body)


def _by_shift(rows: Rows) -> str:
    shifts = list(dict.fromkeys(row["shift"] for row in rows))
    by_policy: dict[str, Rows] = {}
    for row in rows:
        by_policy.setdefault(row["policy"], []).append(row)
    best = {
        shift: min(float(row["final_mean"]) for row in rows if row["shift"] == shift)
        for shift in shifts
    }
    body = (
        (policy, *(with_error(row, "final", best[row["shift"]]) for row in group))
        for policy, group in by_policy.items()
    )
    return table(("policy", *(f"s = {shift}" for shift in shifts)), body)


def _final(rows: Rows) -> str:
    most = max(float(row["final_reward_mean"]) for row in rows)
    least = min(float(row["final_mean"]) for row in rows)
    body = (
        (row["policy"], with_error(row, "final_reward", most), with_error(row, "final", least))
        for row in rows
    )
    return table(("policy", "reward", "regret"), body)


def _ablations(contextual: Rows, joint: Rows) -> str:
    columns = [
        [row for row in contextual if row["shift"] == "0"],
        [row for row in contextual if row["shift"] == "-2"],
        joint,
    ]
    best = [min(float(row["final_mean"]) for row in column) for column in columns]
    body = (
        (
            rows[0]["policy"],
            *(with_error(row, "final", low) for row, low in zip(rows, best, strict=True)),
        )
        for rows in zip(*columns, strict=True)
    )
    head = ("change", "regret, s = 0", "regret, s = −2", "regret, joint choices")
    return table(head, body)


def _calibration(rows: Rows) -> str:
    body = (
        (
            row["where"],
            f"{float(row['mean']):.4f}",
            f"{float(row['paper']):.4f}",
            f"{float(row['distance']):+.1f}",
        )
        for row in rows
    )
    head = ("mean reward of random choice", "here", "paper", "standard errors apart")
    return table(head, body)


def with_error(row: dict[str, str], measure: str, best: float) -> str:
    """A mean with its standard error, in bold where it is the best."""
    mean, error = float(row[f"{measure}_mean"]), float(row[f"{measure}_standard_error"])
    return f"{_number(mean, best)} ± {error:.1f}"


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
    return table(("statement", "holds", "closest call"), body)


def _number(value: float, best: float) -> str:
    text = f"{value:.1f}" if value < 100 else f"{value:.0f}"
    return f"**{text}**" if value == best else text


def table(head: tuple[str, ...], body: Iterable[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [head, ("---",) * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def read(name: str) -> Rows:
    """The rows of a copied table."""
    with (PAGES / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
