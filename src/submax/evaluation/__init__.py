"""Read logs, learn policies from them, and estimate what other policies would have earned.

>>> from submax.evaluation import Log, compare, learn
"""

from submax.core.optional import require_extra

require_extra("logs", "submax.evaluation", "pyarrow", "duckdb")

# ruff: noqa: E402
from submax.evaluation.comparison import compare, compare_rewards
from submax.evaluation.estimators import make_off_policy
from submax.evaluation.learning import BestPolicy, learn, learn_best, tune
from submax.evaluation.log import Log
from submax.evaluation.report import Comparison
from submax.schema.trained_policy import TrainedPolicy

__all__ = [
    "BestPolicy",
    "Comparison",
    "Log",
    "TrainedPolicy",
    "compare",
    "compare_rewards",
    "learn",
    "learn_best",
    "make_off_policy",
    "tune",
]
