"""Rankings: what another policy would have earned with lists of items, position by position.

>>> from submax.evaluation.ranking import Slates, compare_rankings
"""

from submax.evaluation.ranking.compare_rankings import compare_rankings as compare_rankings
from submax.evaluation.ranking.independent_positions import (
    IndependentPositions as IndependentPositions,
)
from submax.evaluation.ranking.plackett_luce import PlackettLuce as PlackettLuce
from submax.evaluation.ranking.slates import Slates as Slates
