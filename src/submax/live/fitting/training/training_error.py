"""A model could not be trained."""

from submax.core.errors import SubmaxError


class TrainingError(SubmaxError, RuntimeError):
    """The policy failed while it was trained, or the process that trains has ended."""

    default_code = "training-failed"
