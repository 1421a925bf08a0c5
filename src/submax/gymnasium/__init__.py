"""Environments of submax as Gymnasium environments, and policies in Gymnasium environments."""

from submax.core.optional import require_extra

require_extra("gymnasium", "submax.gymnasium", "gymnasium")

from submax.gymnasium.bandit_env import BanditEnv  # noqa: E402 - the package is checked first
from submax.gymnasium.play import GymnasiumRun, play  # noqa: E402 - as the line before

__all__ = ["BanditEnv", "GymnasiumRun", "play"]
