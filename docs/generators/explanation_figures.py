"""Draws the figures of docs/explanation and of the tutorials: ``python <this file>``."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import submax
from submax.estimators import Counting
from submax.sequential.mixture_boundary import mixture_boundary
from submax.simulation.figures import curves, figure_style

DOCS = Path(__file__).resolve().parents[1]
VALUES = np.array([0.10, 0.15, 0.20, 0.30, 0.35])
"""The chance of a reward of each of five arms."""
CLOSE_VALUES = np.array([0.04, 0.06, 0.08, 0.12, 0.14])
"""Chances that are harder to tell apart."""
COLOURS = ("#4878a8", "#e8861e", "#2e9e4f", "#a00000", "#7f7f7f")
AGES = np.linspace(18, 80, 63)
VISITS = (50, 300, 2000)
"""After how many visits the probabilities by age are drawn."""
REPLICAS = 50
"""Worlds of the figure of regret, as in the tutorial."""
BATCHES = 60
"""Batches of 50 decisions of the figure of shares."""
LOOKS = 3000
"""Decisions of the experiment in which there is nothing to find."""


def main() -> None:
    """Draw all figures into the folders of their pages."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--docs", type=Path, default=DOCS, help="The folder of the pages.")
    draw(parser.parse_args().docs)


def draw(docs: Path) -> None:
    """Draw all figures below a folder."""
    figures = {
        "explanation/figures/conditioned.png": conditioned_figure,
        "explanation/figures/shares.png": shares_figure,
        "explanation/figures/ages.png": ages_figure,
        "explanation/figures/looks.png": looks_figure,
        "tutorials/regret.png": regret_figure,
    }
    for name, figure in figures.items():
        path = docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with figure_style():
            # Without the version of matplotlib in the file, the same figure has the same bytes.
            figure().savefig(path, dpi=110, metadata={"Software": None})


def conditioned_figure() -> Figure:
    """From the counts of a uniform log to SubMax, in four panels."""
    rng = np.random.default_rng(3)
    problem = submax.Problem(submax.Arms(len(VALUES)))
    estimator = Counting()
    action = rng.integers(len(VALUES), size=(1, 1000, 1))
    feedback = _feedback(action, VALUES, rng)
    params = estimator.fit(estimator.init(problem, 1, rng), feedback, rng)
    low, high = estimator.belief(params, np.zeros((1, 1, 0))).prob_of_all()[0, 0]
    difference = high - low
    kept = np.maximum(difference, 0.0)
    figure = Figure(figsize=(9.6, 2.5), layout="constrained")
    panels = figure.subplots(1, 4)
    arms = np.arange(1, len(VALUES) + 1)
    panels[0].bar(arms, VALUES, color=COLOURS[0])
    panels[0].set_title("the truth: chance of a reward")
    panels[1].bar(arms - 0.2, high, width=0.4, color=COLOURS[2], label="rewarded")
    panels[1].bar(arms + 0.2, low, width=0.4, color=COLOURS[3], label="not rewarded")
    panels[1].set_title("who was chosen among …")
    panels[1].legend(fontsize=7)
    panels[2].bar(arms, difference, color=[COLOURS[2 if one > 0 else 3] for one in difference])
    panels[2].axhline(0, color="black", linewidth=0.8)
    panels[2].set_title("rewarded − not rewarded")
    panels[3].bar(arms, kept / kept.sum(), color=COLOURS[2])
    panels[3].set_title("SubMax: the positive part")
    for axes in panels:
        axes.set_xlabel("arm")
        axes.set_xticks(arms)
    return figure


def shares_figure() -> Figure:
    """The probabilities of five arms under the default policy, batch after batch."""
    shares = _shares(submax.make_policy("rcp-adaptive"), batches=BATCHES, size=50)
    figure = Figure(figsize=(6.4, 2.8), layout="constrained")
    axes = figure.subplots()
    decisions = 50 * np.arange(len(shares))
    labels = [f"arm {arm + 1}: {value:.0%}" for arm, value in enumerate(CLOSE_VALUES)]
    axes.stackplot(decisions, shares.T, labels=labels, colors=COLOURS)
    axes.set_xlabel("decisions so far")
    axes.set_ylabel("probability of each arm")
    axes.set_xlim(0, decisions[-1])
    axes.set_ylim(0, 1)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    return figure


def _shares(policy: submax.Policy[Any], batches: int, size: int) -> NDArray[np.float64]:
    """The probability of each arm before each batch, of a policy that learns after each."""
    rng = np.random.default_rng(4)
    state = policy.init(submax.Problem(submax.Arms(len(CLOSE_VALUES))), 1, rng)
    context = np.zeros((1, size, 0))
    shares = []
    for _ in range(batches):
        shares.append(policy.probabilities(state, context[:, :1])[0, 0])
        action, log_prob = policy.act(state, context, rng)
        state = policy.record(state, action)
        feedback = _feedback(action, CLOSE_VALUES, rng)._replace(log_prob=log_prob)
        state = policy.update(state, feedback, rng)
    return np.array(shares)


def _feedback(
    action: NDArray[np.int64], values: NDArray[np.float64], rng: np.random.Generator
) -> submax.Feedback:
    """Rewards of actions without a context."""
    rows = action.shape[:2]
    reward = (rng.random(rows) < values[action[..., 0]]).astype(float)
    return submax.Feedback(np.zeros((*rows, 0)), action, reward, None, np.ones(rows))


def ages_figure() -> Figure:
    """The probability of three headlines by the age of a visitor, as visits accumulate."""
    rng = np.random.default_rng(7)
    policy = submax.make_policy("rcp-adaptive")
    state = policy.init(submax.Problem(submax.Arms(3), context_width=1), 1, rng)
    figure = Figure(figsize=(9.6, 2.6), layout="constrained")
    panels = iter(figure.subplots(1, len(VISITS), sharey=True))
    for visit in range(25, VISITS[-1] + 1, 25):
        age = rng.uniform(18, 80, (1, 25, 1))
        action, log_prob = policy.act(state, _standard(age), rng)
        state = policy.record(state, action)
        liked = np.digitize(age[..., 0], (38, 60))
        reward = (rng.random((1, 25)) < np.where(action[..., 0] == liked, 0.4, 0.1)).astype(float)
        feedback = submax.Feedback(_standard(age), action, reward, log_prob, np.ones((1, 25)))
        state = policy.update(state, feedback, rng)
        if visit in VISITS:
            axes = next(panels)
            shares = policy.probabilities(state, _standard(AGES[None, :, None]))[0]
            for number, name in enumerate(("playful", "bold", "plain")):
                axes.plot(AGES, shares[:, number], color=COLOURS[number], label=name)
            axes.set_title(f"after {visit} visits")
            axes.set_xlabel("age of the visitor")
            axes.set_ylim(-0.02, 1.02)
    figure.axes[0].set_ylabel("probability of a headline")
    figure.axes[0].legend(fontsize=8)
    return figure


def _standard(age: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ages as a live bandit gives them to its policy: with mean 0 and deviation 1."""
    return (age - 49.0) / (62 / 12**0.5)


def looks_figure() -> Figure:
    """One experiment without a difference: an interval for one look, and one for all looks."""
    rng = np.random.default_rng(38)
    outcomes = rng.choice([-1.0, 1.0], LOOKS)
    decisions = np.arange(20, LOOKS + 1)
    means = np.cumsum(outcomes)[decisions - 1] / decisions
    single = 1.96 / np.sqrt(decisions)
    wide = np.array([mixture_boundary(n, 0.05, 0.0, 1000) / n for n in decisions.tolist()])
    figure = Figure(figsize=(6.4, 2.8), layout="constrained")
    axes = figure.subplots()
    axes.fill_between(decisions, means - wide, means + wide, color="#cfe0f0", label="all looks")
    axes.fill_between(decisions, means - single, means + single, color="#f2b26b", label="one look")
    axes.plot(decisions, means, color="black", linewidth=0.8, label="mean difference")
    axes.axhline(0, color="#a00000", linestyle="--", linewidth=1, label="the truth")
    axes.set_xlabel("decisions so far")
    axes.set_ylim(-0.35, 0.35)
    axes.set_xlim(20, LOOKS)
    axes.legend(fontsize=8, ncols=2)
    return figure


def regret_figure() -> Figure:
    """The figure of the tutorial on simulations."""
    world = submax.Bernoulli(arms=10, alpha=1, beta=9)
    traces = {
        name: submax.simulate(
            world,
            submax.make_policy(name),
            observations=2000,
            replicas=REPLICAS,
            delay=submax.BatchedRewards(100),
            seed=1,
        )
        for name in ("random", "ucb1", "thompson-1-1", "rcp-adaptive")
    }
    return curves(traces, title="10 arms, rewards in batches of 100")


if __name__ == "__main__":
    main()
