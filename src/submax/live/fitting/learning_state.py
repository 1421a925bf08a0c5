"""What the next version is made from: the last model, with everything that learning needs."""

from typing import NamedTuple

from submax.core.serialization import serializable
from submax.schema.model import Model


@serializable("learning-state")
class LearningState(NamedTuple):
    """The model of a version, with everything that further learning needs.

    ``rows`` is the number of rows it was fitted to, and ``scratch_rows`` the number when a model
    was last fitted from scratch.
    """

    version: int
    rows: int
    scratch_rows: int
    model: Model
