"""Draws the figures of docs/explanation: ``python <this file>``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import submax
from submax.core.arrays import Floats, Integers
from submax.estimators import Counting
from submax.simulation.figures import figure_style
from submax.statistics.boundary import mixture_boundary

FIGURES = Path(__file__).resolve().parents[1] / "explanation" / "figures"
COLOURS = ("#4878a8", "#e8861e", "#2e9e4f", "#a00000", "#7f7f7f")


def conditioned_figure() -> Figure:
    """From the counts of a uniform log to SubMax, in four panels."""
    values = np.array([0.10, 0.15, 0.20, 0.30, 0.35])
    rng, estimator = np.random.default_rng(3), Counting()
    action = rng.integers(len(values), size=(1, 1000, 1))
    reward = (rng.random((1, 1000)) < values[action[..., 0]]).astype(float)
    feedback = submax.Feedback(np.zeros((1, 1000, 0)), action, reward, None, np.ones((1, 1000)))
    params = estimator.init(submax.Problem(submax.Arms(len(values))), 1, rng)
    params = estimator.fit(params, feedback, rng)
    low, high = estimator.belief(params, np.zeros((1, 1, 0))).prob_of_all()[0, 0]
    difference, kept = high - low, np.maximum(high - low, 0.0)
    figure = Figure(figsize=(9.6, 2.5), layout="constrained")
    truth, chosen, both, submaxed = figure.subplots(1, 4)
    arms = np.arange(1, len(values) + 1)
    truth.bar(arms, values, color=COLOURS[0])
    truth.set_title("the truth: chance of a reward")
    chosen.bar(arms - 0.2, high, width=0.4, color=COLOURS[2], label="rewarded")
    chosen.bar(arms + 0.2, low, width=0.4, color=COLOURS[3], label="not rewarded")
    chosen.set_title("who was chosen among …")
    chosen.legend(fontsize=7)
    both.bar(arms, difference, color=[COLOURS[2 if one > 0 else 3] for one in difference])
    both.axhline(0, color="black", linewidth=0.8)
    both.set_title("rewarded − not rewarded")
    submaxed.bar(arms, kept / kept.sum(), color=COLOURS[2])
    submaxed.set_title("SubMax: the positive part")
    for axes in figure.axes:
        axes.set(xlabel="arm", xticks=arms)
    return figure


class Learner:
    """The default policy for some arms, which decides and learns in batches."""

    def __init__(self, arms: int, width: int, seed: int) -> None:
        self.rng, self.policy = np.random.default_rng(seed), submax.make_policy("rcp-adaptive")
        problem = submax.Problem(submax.Arms(arms), context_width=width)
        self.state: Any = self.policy.init(problem, 1, self.rng)

    def shares(self, context: Floats) -> Floats:
        """The probability of each arm in each context, ``[n, D] -> [n, K]``."""
        return self.policy.probabilities(self.state, context[None])[0]

    def learn(self, context: Floats, chance: Callable[[Integers], Floats]) -> None:
        """Decide in the contexts ``[1, n, D]`` and learn; ``chance`` is that of a reward by arm."""
        action, log_prob = self.policy.act(self.state, context, self.rng)
        self.state = self.policy.record(self.state, action)
        rows = context.shape[:2]
        reward = (self.rng.random(rows) < chance(action[..., 0])).astype(float)
        feedback = submax.Feedback(context, action, reward, log_prob, np.ones(rows))
        self.state = self.policy.update(self.state, feedback, self.rng)


def shares_figure() -> Figure:
    """The probabilities of five arms under the default policy, batch after batch."""
    values, learner, shares = np.array([0.04, 0.06, 0.08, 0.12, 0.14]), Learner(5, 0, 4), []
    for _ in range(60):
        shares.append(learner.shares(np.zeros((1, 0)))[0])
        learner.learn(np.zeros((1, 50, 0)), lambda arm: values[arm])
    figure = Figure(figsize=(6.4, 2.8), layout="constrained")
    axes, decisions = figure.subplots(), 50 * np.arange(len(shares))
    labels = [f"arm {arm + 1}: {value:.0%}" for arm, value in enumerate(values)]
    axes.stackplot(decisions, np.array(shares).T, labels=labels, colors=COLOURS)
    axes.set(xlabel="decisions so far", ylabel="probability of each arm")
    axes.set(xlim=(0, decisions[-1]), ylim=(0, 1))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    return figure


def ages_figure() -> Figure:
    """The probability of three headlines by the age of a visitor, as visits accumulate."""

    def standard(age: Floats) -> Floats:
        """Ages as a live bandit gives them to its policy: with mean 0 and deviation 1."""
        return (age - 49.0) / (62 / 12**0.5)

    learner, ages = Learner(3, 1, 7), np.linspace(18, 80, 63)
    figure = Figure(figsize=(9.6, 2.6), layout="constrained")
    panels = dict(zip((50, 300, 2000), figure.subplots(1, 3, sharey=True), strict=True))
    for visit in range(25, 2001, 25):
        age = learner.rng.uniform(18, 80, (1, 25, 1))
        liked = np.digitize(age[..., 0], (38, 60))
        learner.learn(standard(age), lambda arm, liked=liked: np.where(arm == liked, 0.4, 0.1))
        if visit in panels:
            shares = learner.shares(standard(ages[:, None]))
            for number, name in enumerate(("playful", "bold", "plain")):
                panels[visit].plot(ages, shares[:, number], color=COLOURS[number], label=name)
            panels[visit].set(title=f"after {visit} visits", xlabel="age of the visitor")
            panels[visit].set_ylim(-0.02, 1.02)
    figure.axes[0].set_ylabel("probability of a headline")
    figure.axes[0].legend(fontsize=8)
    return figure


def looks_figure() -> Figure:
    """One experiment without a difference: an interval for one look, and one for all looks."""
    outcomes = np.random.default_rng(38).choice([-1.0, 1.0], 3000)
    decisions = np.arange(20, len(outcomes) + 1)
    means = np.cumsum(outcomes)[decisions - 1] / decisions
    single = 1.96 / np.sqrt(decisions)
    wide = np.array([mixture_boundary(n, 0.05, 0.0, 1000) / n for n in decisions.tolist()])
    figure = Figure(figsize=(6.4, 2.8), layout="constrained")
    axes = figure.subplots()
    axes.fill_between(decisions, means - wide, means + wide, color="#cfe0f0", label="all looks")
    axes.fill_between(decisions, means - single, means + single, color="#f2b26b", label="one look")
    axes.plot(decisions, means, color="black", linewidth=0.8, label="mean difference")
    axes.axhline(0, color="#a00000", linestyle="--", linewidth=1, label="the truth")
    axes.set(xlabel="decisions so far", ylim=(-0.35, 0.35), xlim=(20, len(outcomes)))
    axes.legend(fontsize=8, ncols=2)
    return figure


if __name__ == "__main__":
    for name, figure in {
        "conditioned.png": conditioned_figure,
        "shares.png": shares_figure,
        "ages.png": ages_figure,
        "looks.png": looks_figure,
    }.items():
        with figure_style():
            # Without the version of matplotlib in the file, the same figure has the same bytes.
            figure().savefig(FIGURES / name, dpi=110, metadata={"Software": None})
