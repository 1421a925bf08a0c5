"""Read logs, learn policies from them, and estimate what other policies would have earned.

>>> from submax.evaluation import Log, compare, learn
"""

from typing import TYPE_CHECKING

from submax.core.optional import lazy_names, require_extra

require_extra("logs", "submax.evaluation", "pyarrow", "duckdb")

if TYPE_CHECKING:
    from submax.evaluation.comparison import Comparison as Comparison
    from submax.evaluation.comparison import compare as compare
    from submax.evaluation.comparison import compare_rewards as compare_rewards
    from submax.evaluation.estimators import make_off_policy as make_off_policy
    from submax.evaluation.learning import BestPolicy as BestPolicy
    from submax.evaluation.learning import learn as learn
    from submax.evaluation.learning import learn_best as learn_best
    from submax.evaluation.learning import tune as tune
    from submax.evaluation.log import Log as Log
    from submax.schema.trained_policy import TrainedPolicy as TrainedPolicy

_HOME = {
    "BestPolicy": "submax.evaluation.learning",
    "Comparison": "submax.evaluation.comparison",
    "TrainedPolicy": "submax.schema.trained_policy",
    "Log": "submax.evaluation.log",
    "compare": "submax.evaluation.comparison",
    "compare_rewards": "submax.evaluation.comparison",
    "learn": "submax.evaluation.learning",
    "learn_best": "submax.evaluation.learning",
    "make_off_policy": "submax.evaluation.estimators",
    "tune": "submax.evaluation.learning",
}
"""The module of each public name; the module is imported when the name is first used."""

__all__ = [*_HOME]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
