"""Fits the models of rewards that a caller asks for, and chooses one by its held-out error."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.core.errors import InputError
from submax.evaluation.logs.log import Log
from submax.evaluation.models.fold_model import FoldModel
from submax.evaluation.models.real_parts import polynomial_features
from submax.evaluation.models.reward_model import FOLDS, fitted_models, folds_of
from submax.evaluation.models.reward_template import RewardTemplate
from submax.evaluation.models.supervised_reward_model import SupervisedRewardModel, design

BAYESIAN, AUTO = "bayesian", "auto"
"""Names of reward models: our own regression, and the better of it and boosted trees."""
BOOSTED = {
    "kind": "sklearn.ensemble.HistGradientBoostingRegressor",
    "max_iter": 100,
    "learning_rate": 0.08,
}
"""Boosted trees among which ``auto`` chooses, if scikit-learn is installed."""
MOST_FITTED = 100_000
"""Supervised models are fitted to at most about this many rows: more would take much longer."""


class ModelChoice(NamedTuple):
    """A model of rewards for each fold; its ``name``, and the held-out error of every candidate.

    The error is the root mean squared error of predictions of rows without which the model was
    fitted. There are no errors if there was only one candidate.
    """

    models: list[FoldModel]
    name: str
    errors: dict[str, float]

    def notes(self) -> list[str]:
        """Return a sentence that says which model was used, unless it is the usual one."""
        if not self.errors:
            return [] if self.name == BAYESIAN else [f"the reward model is {self.name}"]
        errors = ", ".join(f"{name} {error:.4g}" for name, error in self.errors.items())
        return [f"the reward model is {self.name}, by its held-out error ({errors})"]


def chosen_models(log: Log, given: Any = None, seed: int = 0) -> ModelChoice:
    """Fit one or several reward models, cross-fitted, and return the one with the least error.

    ``given`` is a name (``bayesian``, ``auto`` or a dotted name), a table of ``kind`` and
    parameters, an object of scikit-learn, or a list of these. None is ``bayesian``.
    """
    # An unfitted model may refuse to be compared or counted, so it is only asked for its type.
    wanted = list(given) if isinstance(given, (list, tuple)) else [given]
    wanted = [BAYESIAN if one is None else one for one in wanted]
    if any(_same(one, AUTO) for one in wanted):
        others = [one for one in wanted if not _same(one, AUTO) and not _same(one, BAYESIAN)]
        wanted = [*_automatic(log), *others]
    fold = folds_of(log)
    found: dict[str, list[FoldModel]] = {}
    for one in wanted:
        name, models = _fitted(log, fold, one, seed)
        if name in found:
            raise InputError(
                f"two reward models are called {name}, and each needs its own name: leave one out",
                parameter="reward_model",
            )
        found[name] = models
    if len(found) == 1:
        ((name, models),) = found.items()
        return ModelChoice(models, name, {})
    errors = {name: _held_out_error(log, fold, models) for name, models in found.items()}
    best = min(errors, key=lambda name: errors[name])
    return ModelChoice(found[best], best, errors)


def _same(given: Any, name: str) -> bool:
    return isinstance(given, str) and given == name


def _automatic(log: Log) -> list[Any]:
    boosted = log.schema.context.width > 0 and find_spec("sklearn") is not None
    return [BAYESIAN, BOOSTED] if boosted else [BAYESIAN]


def _fitted(log: Log, fold: NDArray[np.int8], given: Any, seed: int) -> tuple[str, list[FoldModel]]:
    if _same(given, BAYESIAN):
        return BAYESIAN, list(fitted_models(log))
    template = RewardTemplate.of(given)
    step = -(-len(log) // MOST_FITTED)
    row = np.arange(0, len(log), step)
    context = log.schema.context.encode_rows(log.context[row]).astype(np.float64)
    sizes = tuple(len(slot.choices) for slot in log.schema.menu.slots)
    inputs = design(context, log.action[row], polynomial_features(log, log.action[row]), sizes)
    actions = _listing(log)
    models: list[FoldModel] = []
    for number in range(FOLDS):
        others = fold[row] != number
        count = None if log.count is None else log.count[row][others]
        fitted = template.fitted(inputs[others], log.reward[row][others], seed, count)
        models.append(SupervisedRewardModel(*fitted, actions, sizes))
    return template.name, models


def _listing(log: Log) -> NDArray[Any]:
    """Return all joint actions; none if there are real-valued parts or too many to list."""
    menu = log.schema.menu.revived
    space = menu.space(menu.active)
    return space.listing() if not space.reals and space.size <= 4096 else np.zeros((0, 1))


def _held_out_error(log: Log, fold: NDArray[np.int8], models: Sequence[FoldModel]) -> float:
    total, first = 0.0, 0
    for part in log.parts:
        rows = slice(first, first + len(part.reward))
        error = part.reward - _held_out(log, part, fold[rows], models)
        total += float(error @ (error if log.count is None else log.count[rows] * error))
        first = rows.stop
    return float(np.sqrt(total / max(log.decisions, 1)))


def _held_out(log: Log, part: Any, fold: NDArray[np.int8], models: Sequence[FoldModel]) -> Floats:
    powers = polynomial_features(log, part.action)
    predicted = np.empty(len(part.reward))
    for number, model in enumerate(models):
        mine = np.flatnonzero(fold == number)
        features = model.features(part.context[mine])
        predicted[mine] = model.predict(features, part.action[mine], powers[mine])
    return predicted
