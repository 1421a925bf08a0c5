"""Facts about strategies that policies rely on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class StrategyFacts:
    """What a policy has to provide for a strategy, beyond the levels and their prior.

    - ``needs_listing``: the strategy reads the probability of every action, so that the actions
      have to be listed. Other strategies also work on actions that are drawn.
    - ``needs_values``: the strategy reads ``table.values``, which may otherwise be NaN.
    - ``needs_sample_sizes``: the strategy reads ``table.sample_sizes``, otherwise None.
    - ``grouped_draws``: decisions of one batch are drawn in groups, see ``draw_grouped``.
    """

    needs_listing: bool = False
    needs_values: bool = False
    needs_sample_sizes: bool = False
    grouped_draws: bool = False
