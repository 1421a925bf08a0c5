"""Read logs, learn policies from them, and estimate what other policies would have earned.

>>> from submax.evaluation import Log, compare, learn
"""

from typing import TYPE_CHECKING

from submax.core.optional import lazy_names

if TYPE_CHECKING:
    from submax.evaluation.choosing.best_policy import BestPolicy as BestPolicy
    from submax.evaluation.choosing.best_policy import learn_best as learn_best
    from submax.evaluation.choosing.learning import learn as learn
    from submax.evaluation.choosing.tuning import tune as tune
    from submax.evaluation.logs.log import Log as Log
    from submax.evaluation.off_policy import make_off_policy as make_off_policy
    from submax.evaluation.parts.parted_log import PartedLog as PartedLog
    from submax.evaluation.report.comparisons.comparison import Comparison as Comparison
    from submax.evaluation.report.comparisons.comparison import compare as compare
    from submax.evaluation.report.comparisons.reward_comparisons import (
        compare_rewards as compare_rewards,
    )
    from submax.schema.learned import Learned as Learned

_HOME = {
    "BestPolicy": "submax.evaluation.choosing.best_policy",
    "Comparison": "submax.evaluation.report.comparisons.comparison",
    "Learned": "submax.schema.learned",
    "Log": "submax.evaluation.logs.log",
    "PartedLog": "submax.evaluation.parts.parted_log",
    "compare": "submax.evaluation.report.comparisons.comparison",
    "compare_rewards": "submax.evaluation.report.comparisons.reward_comparisons",
    "learn": "submax.evaluation.choosing.learning",
    "learn_best": "submax.evaluation.choosing.best_policy",
    "make_off_policy": "submax.evaluation.off_policy",
    "tune": "submax.evaluation.choosing.tuning",
}
"""The module of each public name; the module is imported when the name is first used."""

__all__ = [
    "BestPolicy",
    "Comparison",
    "Learned",
    "Log",
    "PartedLog",
    "compare",
    "compare_rewards",
    "learn",
    "learn_best",
    "make_off_policy",
    "tune",
]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
