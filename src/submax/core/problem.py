"""A bandit problem, the actions that a policy chose, and the feedback from which it learns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, NoReturn, Self

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import Allowed, Checked, finite, instance_of, whole_number
from submax.core.errors import InputError
from submax.core.rewards import Binary, Scale
from submax.core.serialization import serializable
from submax.core.spaces import Choices, Space

BINARY = Binary()
ActionFeatures = tuple[tuple[tuple[float, ...], ...], ...]
"""For each slot, one row of numbers per choice; no rows for a slot without action features."""


@serializable("problem")
@dataclass(frozen=True)
class Problem(Checked):
    """The action space, the width of the context and the scale of the rewards.

    ``action_features`` holds, for each slot, one row of numbers per choice that describes the
    choice: a policy that uses them expects similar rewards of similar choices. A slot without
    action features has an empty tuple; if no slot has any, ``action_features`` itself is empty.
    ``slot_scale`` is the scale of the reward of each slot, if feedback has one for each slot.

    >>> from submax.core.spaces import Arms
    >>> Problem(Arms(3)).scale
    Binary()
    >>> Problem(Arms(3), action_features=(((1.0,), (2.5,), (4.0,)),)).action_features[0][1]
    (2.5,)
    """

    space: Space
    context_width: Annotated[int, Allowed(whole_number, at_least=0)] = 0
    scale: Scale = BINARY
    action_features: ActionFeatures = ()
    slot_scale: Scale | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        instance_of("space", self.space, Space, "Arms(3)")
        instance_of("scale", self.scale, Scale, "Binary()")
        if self.slot_scale is not None:
            instance_of("slot_scale", self.slot_scale, Scale, "Binary()")
        if self.action_features != ():
            self._check_action_features()

    def restricted(self, choices: Choices) -> "Problem":
        """Return the problem with only these choices in each slot.

        >>> from submax.core.spaces import Arms
        >>> Problem(Arms(5)).restricted(((0, 3),)).space
        Arms(count=2)
        """
        features = tuple(
            tuple(rows[choice] for choice in slot) if rows else ()
            for rows, slot in zip(self.action_features, choices, strict=False)
        )
        return replace(self, space=self.space.restricted(choices), action_features=features)

    def check_context(self, context: Floats) -> None:
        """Raise an ``InputError`` unless the context is ``[R, n, D]`` and finite."""
        if context.ndim != 3 or context.shape[-1] != self.context_width:
            raise InputError(
                f"context must have shape [R, n, {self.context_width}], not {list(context.shape)}",
                parameter="context",
            )
        # The sum is a fast test: it is finite if all numbers are, unless it overflows.
        if not np.isfinite(context.sum()) and not np.isfinite(context).all():
            replica, row, column = np.argwhere(~np.isfinite(context))[0]
            raise InputError(
                f"context must be finite, and number {column} of row {row}, replica {replica} is "
                f"{context[replica, row, column]}",
                parameter="context",
            )

    def check_action(self, action: Actions) -> None:
        """Raise an ``InputError`` if an action is not in the action space."""
        if not self.space.contains(action):
            raise InputError(
                f"the action {_first_outside(self.space, action)} is not in {self.space}, whose "
                f"actions have {self.space.slots} parts within their bounds",
                parameter="action",
            )

    def _check_action_features(self) -> None:
        features, choices = self.action_features, self.space.choices
        if not isinstance(features, tuple) or len(features) != len(choices):
            _refuse_features(f"a tuple with rows for each of {len(choices)} slots", features)
        for slot, (rows, count) in enumerate(zip(features, choices, strict=True)):
            if not isinstance(rows, tuple) or len(rows) not in (0, count):
                _refuse_features(f"no rows or {count} for slot {slot}, one for each choice", rows)
            for choice, row in enumerate(rows):
                if not isinstance(row, tuple) or len(row) != len(rows[0]):
                    wanted = f"rows of {len(rows[0])} numbers, as that of choice 0, in slot {slot}"
                    _refuse_features(f"{wanted}, for choice {choice} too", row)
                for number in row:
                    finite(f"a feature of choice {choice} in slot {slot}", number)


def _refuse_features(wanted: str, given: object) -> NoReturn:
    raise InputError(
        f"action_features must have {wanted}, not {given!r:.80}", parameter="action_features"
    )


def _first_outside(space: Space, action: Actions) -> list[float]:
    rows = action.reshape(-1, action.shape[-1])
    return next(row for row in rows if not space.contains(row)).tolist()


PROBABILITY_TOLERANCE = 1e-6
"""Probabilities up to 1 + this, and log-probabilities up to this, count as 1 and 0: rounding."""


@serializable("feedback")
class Feedback(NamedTuple):
    """Decisions with their rewards; every array begins ``[R, n]``.

    ``log_prob`` is the log-probability with which each action was chosen, or None if it was not
    logged. ``slot_reward [R, n, S]`` are the rewards of each slot, NaN if one is unknown; None if
    there is only the reward of the whole action. A row with ``weight`` 0 is absent (padding, or a
    reward that has not arrived): it changes nothing, whatever its other values are.
    """

    context: Floats
    action: Actions
    reward: Floats
    log_prob: Floats | None
    weight: Floats
    slot_reward: Floats | None = None

    def mapped(self, change: Callable[[Any], Any]) -> Self:
        """Return the feedback with every array changed; what is None stays None."""
        parts: Any = (None if part is None else change(part) for part in self)
        return type(self)(*parts)

    def rows(self, rows: Any) -> Self:
        """Return some of the decisions of every replica: a slice, or their numbers."""
        return self.mapped(lambda part: part[:, rows])

    @staticmethod
    def joined(pieces: Sequence["Feedback"]) -> "Feedback":
        """Return the decisions of all pieces, one after the other.

        What one of the pieces does not have, such as log-probabilities, the result does not have.
        """
        if len(pieces) == 1:
            return pieces[0]
        parts: Any = (
            None if any(part is None for part in same) else np.concatenate(same, axis=1)
            for same in zip(*pieces, strict=True)
        )
        return type(pieces[0])(*parts)

    def check(self, problem: Problem) -> None:
        """Raise an ``InputError`` if shapes, actions or rewards do not fit the problem."""
        self._check_shapes(problem)
        # A comparison with NaN is false, so the minimum and the maximum also detect NaN.
        lowest = self.weight.min(initial=np.inf)
        if not (lowest >= 0 and self.weight.max(initial=0.0) < np.inf):
            raise InputError(
                "weight must be finite and 0 or more in every row",
                parameter="weight",
            )
        # Selecting rows makes a copy, which is avoided in the usual case that no row is absent.
        rows = slice(None) if lowest > 0 else self.weight > 0
        if not problem.space.contains(self.action[rows]):
            raise InputError(
                f"an action does not belong to the space {problem.space}", parameter="action"
            )
        if self.context.size and not np.isfinite(self.context[rows]).all():
            raise InputError("context must be finite", parameter="context")
        problem.scale.check(self.reward[rows])
        if self.log_prob is not None:
            self._check_log_prob(problem, self.log_prob[rows])

    def _check_shapes(self, problem: Problem) -> None:
        optional = ("log_prob", "slot_reward")
        for name, values in self._asdict().items():
            if not isinstance(values, np.ndarray) and not (name in optional and values is None):
                raise InputError(
                    f"{name} must be a numpy array, not {values!r:.60}", parameter=name
                )
        shape = self.reward.shape
        expected = {
            "reward": (shape, shape[:2] if len(shape) >= 2 else ("R", "n")),
            "context": (self.context.shape, (*shape, problem.context_width)),
            "action": (self.action.shape, (*shape, problem.space.slots)),
            "weight": (self.weight.shape, shape),
        }
        if self.log_prob is not None:
            expected["log_prob"] = (self.log_prob.shape, shape)
        if self.slot_reward is not None:
            expected["slot_reward"] = (self.slot_reward.shape, (*shape, problem.space.slots))
        for name, (got, wanted) in expected.items():
            if got != wanted:
                raise InputError(
                    f"{name} has shape {got}, but this problem needs {wanted}", parameter=name
                )
        for name, values in self._asdict().items():
            wanted_kinds = "iu" if name == "action" and not problem.space.reals else "iuf"
            if values is not None and values.dtype.kind not in wanted_kinds:
                kind = "whole numbers" if wanted_kinds == "iu" else "numbers"
                raise InputError(f"{name} must hold {kind}, not {values.dtype}", parameter=name)

    def _check_log_prob(self, problem: Problem, log_prob: Floats) -> None:
        highest = log_prob.max(initial=-np.inf)
        if not (log_prob.min(initial=0.0) > -np.inf and highest < np.inf):
            raise InputError("log_prob must be finite", parameter="log_prob")
        if highest > PROBABILITY_TOLERANCE and not problem.space.reals:
            raise InputError(
                f"log_prob must be the logarithm of a probability, 0 or less, not {highest:.6g}",
                parameter="log_prob",
            )


class CheckedFeedback(Feedback):
    """Feedback that a simulation has checked, many decisions at once, so policies need not."""

    __slots__ = ()

    def check(self, problem: Problem) -> None:
        """Do nothing."""


class ChosenActions(NamedTuple):
    """Actions ``[R, n, S]`` that a policy drew, and the log-probability ``[R, n]`` of each.

    ``log_prob`` is None if the policy would have to compute it at extra cost;
    ``Policy.log_prob`` computes it on request.
    """

    action: Actions
    log_prob: Floats | None
