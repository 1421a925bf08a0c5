"""Policies: how decisions are made and what is learned from rewards."""

from submax.core.optional import lazy_names
from submax.policies.registry import POLICIES as POLICIES
from submax.policies.specification import make_policy as make_policy
from submax.policies.specification import presets as presets

__all__ = ["POLICIES", "make_policy", "presets", *POLICIES.class_names()]
__getattr__, __dir__ = lazy_names(__name__, POLICIES.modules(), __all__)
