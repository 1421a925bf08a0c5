"""To be removed: ``Comparison`` is in ``report``."""

from submax.evaluation.report import Comparison as Comparison
