"""Policies as scikit-learn estimators. ``import submax`` does not import this package."""

from submax.core.optional import require_extra

require_extra("data", "submax.sklearn", "sklearn")

from submax.sklearn.bandit_classifier import BanditClassifier  # noqa: E402 - after the check

__all__ = ["BanditClassifier"]
