"""Any policy as a scikit-learn classifier."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.core.optional import require_extra
from submax.core.policy import Policy
from submax.core.problem import Feedback, Problem
from submax.core.rewards import Binary, Continuous, Scale
from submax.core.spaces import Arms
from submax.policies import make_policy

require_extra("data", "submax.integrations.scikit_learn", "sklearn")

from sklearn.base import BaseEstimator, ClassifierMixin  # noqa: E402 - the package is checked first
from sklearn.utils import check_random_state  # noqa: E402 - as above
from sklearn.utils.multiclass import check_classification_targets, unique_labels  # noqa: E402
from sklearn.utils.validation import check_is_fitted, validate_data  # noqa: E402 - as above

__all__ = ["BanditClassifier"]

LARGEST_SEED = 2**31 - 1
"""Upper limit of the seeds that are drawn from scikit-learn's random state, an int32."""


class BanditClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A policy π(a | x) that learns from logged decisions, or from labels.

    ``fit(X, y, rewards=…, propensities=…)`` learns from decisions: y is the action that was chosen,
    with its reward and the probability with which it was chosen. ``fit(X, y)`` learns from labels:
    in each row the action y has the reward 1 and every other action the reward 0, as if each of the
    A actions had been chosen once, with probability 1 / A.

    ``predict_proba`` is π(a | x), and ``predict`` its most probable action: to explore, draw from
    ``predict_proba``. ``partial_fit`` goes on learning from more rows.

    ``policy`` is a name, a table or an object, as for `submax.make_policy`. ``scale`` is what a
    reward can be; None stands for `Binary` if all rewards are 0 or 1, else for `Continuous`.
    ``random_state`` is the seed of the policy's random numbers.

    >>> X, y = [[0.0], [0.2], [0.8], [1.0]] * 10, ["low", "low", "high", "high"] * 10
    >>> BanditClassifier(random_state=0).fit(X, y).predict([[0.1], [0.9]]).tolist()
    ['low', 'high']
    """

    def __init__(
        self,
        policy: str | Mapping[str, Any] | Policy[Any] = "rcp-adaptive",
        *,
        scale: Scale | None = None,
        random_state: Any = None,
    ) -> None:
        self.policy = policy
        self.scale = scale
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        rewards: ArrayLike | None = None,
        propensities: ArrayLike | None = None,
    ) -> Self:
        """Learn from scratch: from decisions with rewards, or from labels without rewards."""
        return self._learn(X, y, None, rewards, propensities, anew=True)

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        rewards: ArrayLike | None = None,
        propensities: ArrayLike | None = None,
    ) -> Self:
        """Learn from more rows; the first call needs ``classes``, the list of all actions."""
        anew = not hasattr(self, "classes_")
        if anew and classes is None:
            raise InputError(
                "the first call of partial_fit needs a list of all actions: pass classes=[...]",
                parameter="classes",
            )
        return self._learn(X, y, classes, rewards, propensities, anew=anew)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable action in each context, ``[n]``."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return π(a | x), ``[n, A]``, in the order of ``classes_``."""
        check_is_fitted(self)
        context = validate_data(self, X, dtype=np.float64, reset=False)
        found = self.policy_.probabilities(self.state_, context[None])[0]
        return np.array(np.broadcast_to(found, (len(context), len(self.classes_))))

    def _learn(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None,
        rewards: ArrayLike | None,
        propensities: ArrayLike | None,
        *,
        anew: bool,
    ) -> Self:
        context, actions = validate_data(self, X, y, dtype=np.float64, reset=anew)
        check_classification_targets(actions)
        if anew:
            self.classes_ = unique_labels(actions if classes is None else classes)
            self.policy_ = make_policy(self.policy)
            seed = check_random_state(self.random_state).randint(LARGEST_SEED)
            self.generator_ = np.random.default_rng(seed)
            # The first rewards say on which scale they are.
            self.state_: Any = None
        known = np.isin(actions, self.classes_)
        if not known.all():
            raise InputError(
                f"y has the action {actions[~known][0]!r}, which is not among the classes "
                f"{list(self.classes_)}: call fit again, or the first partial_fit with all "
                "classes",
                parameter="y",
            )
        index = np.searchsorted(self.classes_, actions)
        feedback = self._feedback(context, index, rewards, propensities)
        reward = feedback.reward
        if self.state_ is None:
            scale = self.scale
            if scale is None:
                scale = Binary() if np.isin(reward, (0.0, 1.0)).all() else Continuous()
            problem = Problem(Arms(len(self.classes_)), context.shape[1], scale)
            self.state_ = self.policy_.init(problem, 1, self.generator_)
        fits = self.state_.problem.scale.contains(reward)
        if not fits.all():
            raise InputError(
                f"rewards has {reward[~fits][0]:g}, but the rewards so far were of "
                f"{self.state_.problem.scale}: pass scale=submax.Continuous(), or another scale "
                "that contains all rewards, to BanditClassifier",
                parameter="rewards",
            )
        self.state_ = self.policy_.update(self.state_, feedback, self.generator_)
        return self

    def _feedback(
        self,
        context: Floats,
        index: Integers,
        rewards: ArrayLike | None,
        propensities: ArrayLike | None,
    ) -> Feedback:
        """Feedback on the logged actions, or on every action for labels: ``[n, …] -> [1, n, …]``.

        With labels the action y has the reward 1 and every other action the reward 0.
        """
        if rewards is None:
            if propensities is not None:
                raise InputError(
                    "propensities need rewards: pass rewards=[...], or leave propensities out "
                    "to learn from labels",
                    parameter="propensities",
                )
            count = len(self.classes_)
            chosen = np.tile(np.arange(count), len(index))
            reward = (chosen == np.repeat(index, count)).astype(np.float64)
            context, index = np.repeat(context, count, axis=0), chosen
            log_prob: Floats | None = np.full((1, len(index)), -np.log(count))
        else:
            if propensities is None and self.policy_.traits.needs_propensities:
                raise InputError(
                    f"the policy {self.policy!r:.80} learns from propensities: pass "
                    "propensities=[...], or use another policy, such as rcp-adaptive",
                    parameter="propensities",
                )
            reward, log_prob = checked_column("rewards", rewards, len(index)), None
            if propensities is not None:
                column = checked_column("propensities", propensities, len(index))
                if not ((column > 0) & (column <= 1)).all():
                    raise InputError(
                        "propensities must be the probabilities with which the actions were "
                        f"chosen, above 0 and at most 1, but they are from {column.min():g} to "
                        f"{column.max():g}: check the column",
                        parameter="propensities",
                    )
                log_prob = np.log(column)[None]
        weight = np.ones((1, len(index)))
        return Feedback(context[None], index[None, :, None], reward[None], log_prob, weight)


def checked_column(name: str, given: ArrayLike, rows: int) -> Floats:
    """Return a column as an array, or raise unless it has one finite number for each row."""
    try:
        column = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        column = np.array(np.nan)
    if column.shape != (rows,) or not np.isfinite(column).all():
        raise InputError(
            f"{name} is {given!r:.60}: give a finite number for each of {rows} rows", parameter=name
        )
    return column
