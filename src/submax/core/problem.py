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
        features, choices = self.action_features, self.space.choices
        if features == ():
            return
        slots = isinstance(features, tuple) and len(features) == len(choices)
        if not (slots and all(map(_describes, features, choices))):
            raise InputError(
                f"action_features must be tuples, for each of {len(choices)} slots without rows or "
                f"with a row of equally many numbers for each choice, not {features!r:.80}",
                parameter="action_features",
            )
        for number in (number for rows in features for row in rows for number in row):
            finite("each feature of an action", number)

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
            rows = action.reshape(-1, action.shape[-1])
            outside = next(row for row in rows if not self.space.contains(row)).tolist()
            raise InputError(
                f"the action {outside} is not in {self.space}, whose actions have "
                f"{self.space.slots} parts within their bounds",
                parameter="action",
            )


def _describes(rows: object, count: int) -> bool:
    """Return whether there are no rows, or ``count`` tuples of equal length."""
    return (
        isinstance(rows, tuple)
        and len(rows) in (0, count)
        and all(isinstance(row, tuple) and len(row) == len(rows[0]) for row in rows)
    )


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

        A field that one of the pieces lacks, such as log-probabilities, is missing in the result.
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
            _refuse("weight", "finite and 0 or more in every row")
        # Selecting rows makes a copy, which is avoided in the usual case that no row is absent.
        rows = slice(None) if lowest > 0 else self.weight > 0
        if not problem.space.contains(self.action[rows]):
            _refuse("action", f"in the space {problem.space}")
        if self.context.size and not np.isfinite(self.context[rows]).all():
            _refuse("context", "finite")
        problem.scale.check(self.reward[rows])
        if self.log_prob is not None:
            log_prob = self.log_prob[rows]
            highest = log_prob.max(initial=-np.inf)
            if not (log_prob.min(initial=0.0) > -np.inf and highest < np.inf):
                _refuse("log_prob", "finite")
            if highest > PROBABILITY_TOLERANCE and not problem.space.reals:
                _refuse("log_prob", f"the logarithm of a probability, 0 or less, not {highest:.6g}")

    def _check_shapes(self, problem: Problem) -> None:
        shape, slots = np.shape(self.reward)[:2], problem.space.slots
        last = {"context": (problem.context_width,), "action": (slots,), "slot_reward": (slots,)}
        # The shape of the rewards, which the others must have, is compared first.
        for name in sorted(self._fields, key=lambda name: name != "reward"):
            values = getattr(self, name)
            if values is None and name in ("log_prob", "slot_reward"):
                continue
            if not isinstance(values, np.ndarray):
                _refuse(name, f"a numpy array, not {values!r:.60}")
            whole = name == "action" and not problem.space.reals
            if values.dtype.kind not in ("iu" if whole else "iuf"):
                _refuse(name, f"of {'whole numbers' if whole else 'numbers'}, not {values.dtype}")
            expected = shape + last.get(name, ()) if len(shape) == 2 else ("R", "n")
            if values.shape != expected:
                raise InputError(
                    f"{name} has shape {values.shape}, but this problem needs {expected}",
                    parameter=name,
                )


def _refuse(name: str, wanted: str) -> NoReturn:
    raise InputError(f"{name} must be {wanted}", parameter=name)


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
