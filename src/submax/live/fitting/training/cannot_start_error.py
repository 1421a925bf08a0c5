"""The training process cannot be started."""

from submax.live.fitting.training.training_error import TrainingError


class CannotStartError(TrainingError):
    """No second process can be started from this one, so that models must be trained here."""
