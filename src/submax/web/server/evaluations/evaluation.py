"""An evaluation that was asked for, as others see it."""

from typing import Any, Literal, TypeAlias

import msgspec

from submax.web.server.evaluations.evaluation_result import EvaluationResult

Status: TypeAlias = Literal["running", "done", "failed", "cancelled"]


class Evaluation(msgspec.Struct, frozen=True):
    """An evaluation of ``policies`` on the log of a ``bandit``.

    ``step`` of ``steps`` is under way, and ``doing`` says what it is. ``started`` is a time in
    seconds since 1970; ``seconds`` is how long the evaluation has taken.
    """

    id: str
    bandit: str
    policies: list[str | dict[str, Any]]
    status: Status
    step: int
    steps: int
    doing: str
    started: float
    seconds: float
    error: str = ""
    result: EvaluationResult | None = None


class Evaluations(msgspec.Struct, frozen=True):
    """The evaluations of the bandit ``name``, the newest first.

    ``policies`` are names of policies that can be evaluated, and ``limit`` is how many evaluations
    are allowed at a time on the whole server.
    """

    name: str
    limit: int
    policies: list[str]
    evaluations: list[Evaluation]
