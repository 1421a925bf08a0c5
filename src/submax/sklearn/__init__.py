"""Policies as estimators of scikit-learn; importing ``submax`` alone does not import this part."""

from submax.core.running.extras import require_extra

require_extra("data", "submax.sklearn", "sklearn")

from submax.sklearn.bandit_classifier import BanditClassifier  # noqa: E402 - after the check

__all__ = ["BanditClassifier"]
