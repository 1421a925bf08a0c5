"""A model could not be trained."""

from submax.core.errors import Error


class TrainingError(Error, RuntimeError):
    """The policy failed while it was trained, or the process that trains has ended."""

    default_code = "training-failed"
