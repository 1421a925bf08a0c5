"""What a comparison remembers about its log, for a report."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from submax.core.arrays import Floats
from submax.evaluation.contracts.counts import mean
from submax.evaluation.logs.log import Log
from submax.evaluation.overview.choice_facts import ChoiceFacts, choice_facts
from submax.evaluation.overview.field_facts import FieldFacts, field_facts
from submax.evaluation.overview.overlap import Overlap
from submax.evaluation.overview.slices import SliceEstimate


class Overview(NamedTuple):
    """The data checks of a log, and what is needed to compute a comparison again.

    ``rows`` were evaluated and ``learned_rows`` were learned from. ``rewards`` and
    ``propensities`` are the lowest, the mean and the highest one; ``estimated`` propensities are
    those that a model estimated. ``overlap`` has the weights of each policy. ``settings`` are the
    arguments of the comparison, and ``digest`` identifies the log: it is a SHA-256 hash of the
    contexts, actions and rewards of all rows.
    """

    rows: int
    learned_rows: int
    reward_kind: str
    rewards: tuple[float, float, float]
    propensities: tuple[float, float, float]
    estimated: int
    choices: Sequence[ChoiceFacts]
    fields: Sequence[FieldFacts]
    settings: Mapping[str, Any]
    digest: str
    overlap: Mapping[str, Overlap] = {}
    slices: Sequence[SliceEstimate] = ()

    @classmethod
    def of(
        cls, log: Log, learned_rows: int, settings: Mapping[str, Any], digest: str
    ) -> "Overview":
        """Return the overview of the evaluated rows of a log, without policies."""
        return cls(
            rows=log.decisions,
            learned_rows=learned_rows,
            reward_kind=str(log.schema.rewards["kind"]),
            rewards=_low_mean_high(log.reward, log.count),
            propensities=_low_mean_high(log.propensity, log.count),
            estimated=int(log.estimated.sum()),
            choices=choice_facts(log),
            fields=field_facts(log),
            settings=settings,
            digest=digest,
        )


def _low_mean_high(values: Floats, count: Floats | None) -> tuple[float, float, float]:
    return float(values.min()), mean(values, count), float(values.max())
