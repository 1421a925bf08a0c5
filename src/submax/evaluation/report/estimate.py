"""The value of one policy by one off-policy estimator."""

from typing import Any, NamedTuple

from submax.core.checks import positive
from submax.evaluation.intervals.confidence_interval import ConfidenceInterval
from submax.evaluation.report.diagnosis.diagnostics import Diagnostics

LOGGING_POLICY = "logging policy"
"""The name, in every comparison, of the policy that wrote the log."""
DECISION, SLATE = "decision", "slate"
"""What rewards are counted per. A slate is a ranked list; its reward is the sum over positions."""


class Estimate(NamedTuple):
    """The reward that a policy would have earned per decision (or slate), by one estimator.

    ``threshold`` is the one that the estimator used, if it has one. ``cautions`` are sentences
    about reasons not to trust the ``value`` or its ``interval``. One estimate of each policy is
    ``recommended``.
    """

    policy: str
    estimator: str
    value: float
    interval: ConfidenceInterval
    threshold: float | None
    diagnostics: Diagnostics
    cautions: tuple[str, ...]
    recommended: bool = False

    def rows_needed(self, half_width: float) -> float:
        """Return how many rows a log like this one needs for an interval of this half-width.

        n' = n (h / h')², where h is half of the width of this interval with n rows. If rewards are
        rare, this is an upper bound, because the interval allows for what was not observed.
        """
        positive("the half-width", half_width)
        half = (self.interval.high - self.interval.low) / 2
        return self.diagnostics.rows * (half / half_width) ** 2

    def row(self) -> dict[str, Any]:
        """Return all numbers as a row of a table."""
        return {
            "policy": self.policy,
            "estimator": self.estimator,
            "recommended": self.recommended,
            "value": self.value,
            "low": self.interval.low,
            "high": self.interval.high,
            "threshold": self.threshold,
            **self.diagnostics._asdict(),
            "warnings": " | ".join(self.cautions),
        }
