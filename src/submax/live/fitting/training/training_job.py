"""What the training process is told to do."""

from typing import Any, NamedTuple

from submax.live.fitting.training.job_part import JobPart
from submax.schema.schema import Schema


class TrainingJob(NamedTuple):
    """Fit a policy to the rows of these ``parts``; the arguments are those of ``Model.fitted``.

    ``policy`` is the data of a ``PolicySpecification``. The parts of the keys ``forgotten`` are no
    longer needed.
    """

    policy: str | dict[str, Any]
    schema: Schema
    seed: int
    decisions: int
    parts: tuple[JobPart, ...] = ()
    forgotten: tuple[str, ...] = ()
