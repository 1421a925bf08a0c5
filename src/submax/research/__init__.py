"""Research: the paper's experiments, its rivals, and problems beyond plain decisions."""

from submax.core.optional import lazy_names

_HOME = {
    "Designs": "submax.research.beyond.designs",
    "Adversarial": "submax.research.beyond.adversarial",
    "Cascade": "submax.research.beyond.slates",
    "Dueling": "submax.research.beyond.duels",
    "Pricing": "submax.research.beyond.real_valued",
    "SmoothReward": "submax.research.beyond.real_valued",
    "identify": "submax.research.beyond.identification",
}
__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
