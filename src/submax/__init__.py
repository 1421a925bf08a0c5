"""submax: bandit decisions by reward-conditioned policies and generalized marginalization."""

import importlib
from typing import TYPE_CHECKING, Any

from submax._version import __version__

if TYPE_CHECKING:
    from submax import plots as plots
    from submax import testing as testing
    from submax.core.arms import Arms as Arms
    from submax.core.errors import InvalidValue as InvalidValue
    from submax.core.errors import MissingExtra as MissingExtra
    from submax.core.feedback import Feedback as Feedback
    from submax.core.problem import Problem as Problem
    from submax.core.slots import Slots as Slots
    from submax.environments.bernoulli import Bernoulli as Bernoulli
    from submax.environments.classification import Classification as Classification
    from submax.environments.combinatorial import Combinatorial as Combinatorial
    from submax.environments.contextual import Contextual as Contextual
    from submax.policies import make_policy as make_policy
    from submax.simulation.batch_flush import BatchFlush as BatchFlush
    from submax.simulation.lag import Lag as Lag
    from submax.simulation.simulate import simulate as simulate

_HOME = {
    "Arms": "submax.core.arms",
    "BatchFlush": "submax.simulation.batch_flush",
    "Bernoulli": "submax.environments.bernoulli",
    "Classification": "submax.environments.classification",
    "Combinatorial": "submax.environments.combinatorial",
    "Contextual": "submax.environments.contextual",
    "Feedback": "submax.core.feedback",
    "InvalidValue": "submax.core.errors",
    "Lag": "submax.simulation.lag",
    "MissingExtra": "submax.core.errors",
    "Problem": "submax.core.problem",
    "Slots": "submax.core.slots",
    "make_policy": "submax.policies",
    "simulate": "submax.simulation.simulate",
}
"""Where each public name lives; it is imported when it is first used, so that starting is fast."""

_PARTS = ("plots", "testing")

__all__ = [*_HOME, *_PARTS, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return importlib.import_module(f"submax.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'submax' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
