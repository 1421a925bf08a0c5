"""Write docs/results/beyond.md, as report_page.py writes the page of the paper's results."""

import sys
from collections.abc import Mapping
from pathlib import Path

from markdown_tables import figure_text, table, with_error
from published import RESULTS, Rows, is_published, provenance, publish, rows_of

FIGURES = {
    "ratings": "varying-arms.png",
    "gaussian": "varying-arms.png",
    "poisson": "all-configurations.png",
    "bump": "all-configurations.png",
    "pricing": "panel.png",
    "drifting": "varying-memory.png",
    "continual": "varying-memory.png",
    "classification": "varying-file.png",
    "offline": "offline.png",
}
"""The figure that is published of each experiment, as figure.png."""
BEYOND = {
    "ratings": (
        "Discrete rewards: ratings from 1 to 5",
        "Arms whose ratings have probabilities drawn from a Dirichlet distribution. Two-level "
        "strategies use the lowest and the highest rating; the linear program and the advantage "
        "use all five.",
        ("arms",),
    ),
    "gaussian": (
        "Continuous rewards: Gaussian arms",
        "Means from N(0, 1), noise of deviation 1. Levels are quantiles of the rewards so far, "
        "from 10 % to 90 %.",
        ("arms",),
    ),
    "poisson": (
        "Counts: Poisson arms",
        "Rates from a Gamma distribution of shape 2 with this mean. Levels are counts that were "
        "observed.",
        ("arms", "mean"),
    ),
    "bump": (
        "Real-valued actions: a moving bump",
        "A smooth bump in the unit box, whose place moves with the context; alone, and together "
        "with two choices (3 × 2). The CVAE was not tuned for it.",
        ("dimensions", "sizes"),
    ),
    "pricing": (
        "Setting a price",
        "Demand falls with the price, the reward is the price where something is sold. The highest "
        "rewards come from the highest prices, which seldom sell. SubMax, which conditions on the "
        "highest level, has more regret than the advantage over all levels, by 539 ± 150. Only "
        "regret is published here, not the prices that were asked.",
        (),
    ),
    "drifting": (
        "Drift: Bernoulli arms",
        "The probabilities drift; after `memory` decisions they have little to do with the first "
        "ones (1000000000: they do not move). Counting all rewards is compared with a window and "
        "with a discount.",
        ("memory",),
    ),
    "continual": (
        "Continual learning: a contextual world that drifts",
        "SubMax with a softmax network, retrained from scratch at every refit (150 steps), or "
        "going on from the last parameters (50 steps).",
        ("memory",),
    ),
    "classification": (
        "Real data: classification as a bandit",
        "A row of a set that comes with scikit-learn is the context, its classes are the arms, and "
        "the right one pays 1: regret counts mistakes. Rewards come in batches of 100.",
        ("file",),
    ),
}


def main(results: Path) -> None:
    """Copy figures and tables of every finished experiment, and write the page around them."""
    for name, figure in FIGURES.items():
        publish(results, name, {figure: "figure.png"})
    (RESULTS / "beyond.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """What came out beyond the paper's experiments, as Markdown."""
    parts = [
        "# Results beyond the paper",
        "Tables and figures are made by `submax reproduce beyond` and `make docs`. Final "
        "regret, mean over the replicas ± standard error, best in bold. The policies have "
        "default or hand-set parameters; no method was tuned for these problems. "
        "[Rerun every result](rerun.md) has commands, dates and machines.",
    ]
    for name, (title, text, keys) in BEYOND.items():
        if is_published(name):
            rows = rows_of(name)
            parts += [f"## {title}", f"{text} {provenance(name)}"]
            drawing = figure_text(title, f"beyond/{name}/figure.png", f"submax reproduce {name}")
            parts += [_by_configuration(rows, keys), drawing]
            if name == "continual":
                parts += ["Seconds of training, all replicas and refits of a run:", _training(rows)]
    if is_published("offline"):
        parts += _offline(rows_of("offline"))
    return "\n\n".join(parts) + "\n"


def _offline(rows: Rows) -> list[str]:
    """What policies learned from logs are worth, and how far each estimator is from that."""
    title = "Real data: learning and evaluating from logs"
    estimators = list(dict.fromkeys(row["estimator"] for row in rows))
    groups: dict[tuple[str, str], Rows] = {}
    for row in rows:
        groups.setdefault((row["file"], row["policy"]), []).append(row)
    text = (
        "The same sets as logs of a uniform policy: learn from the first half of 10000 rows, say "
        "by the second half what the policy is worth, and compare with what it is worth on the "
        "whole set. Root mean squared error of each estimator, and how many of its 95 % intervals "
        "hold the truth. The direct method is as wrong as its model of the rewards. The errors "
        "of the doubly robust `dr` and of the self-normalized `snips` are about equal in these "
        f"logs of a uniform policy: `dr` has the smaller one in {_closer(groups)} of "
        f"{len(groups)} rows. {provenance('offline')}"
    )
    body = (
        (
            file.partition(":")[2],
            policy,
            f"{float(group[0]['logged']):.3f}",
            f"{float(group[0]['truth']):.3f}",
            *(
                f"{float(row['root_mean_squared_error']):.3f} ({float(row['coverage']):.0%})"
                for row in group
            ),
        )
        for (file, policy), group in groups.items()
    )
    heads = ("set", "policy", "log", "worth", *estimators)
    drawing = figure_text(title, "beyond/offline/figure.png", "submax reproduce offline")
    return [f"## {title}", text, table(heads, body), drawing]


def _closer(groups: Mapping[object, Rows]) -> int:
    """In how many rows of the table the error of ``dr`` is smaller than that of ``snips``."""
    errors = [
        {row["estimator"]: float(row["root_mean_squared_error"]) for row in group}
        for group in groups.values()
    ]
    return sum(found["dr"] < found["snips"] for found in errors)


def _by_configuration(rows: Rows, keys: tuple[str, ...]) -> str:
    """Policies against configurations, which differ in these keys."""
    by_policy: dict[str, Rows] = {}
    for row in rows:
        by_policy.setdefault(row["policy"], []).append(row)
    columns = [tuple(row[key] for key in keys) for row in next(iter(by_policy.values()))]
    best = {
        column: min(
            float(row["final_mean"]) for row in rows if tuple(row[key] for key in keys) == column
        )
        for column in columns
    }
    body = (
        (
            policy,
            *(with_error(row, "final", best[tuple(row[key] for key in keys)]) for row in group),
        )
        for policy, group in by_policy.items()
    )
    heads = (
        ", ".join(f"{key} = {value}" for key, value in zip(keys, column, strict=True))
        for column in columns
    )
    return table(("policy", *(head or "regret" for head in heads)), body)


def _training(rows: Rows) -> str:
    spent: dict[str, list[float]] = {}
    for row in rows:
        spent.setdefault(row["policy"], []).append(float(row["training_seconds"]))
    body = ((policy, f"{sum(each) / len(each):.1f}") for policy, each in spent.items() if any(each))
    return table(("policy", "training, seconds"), body)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
