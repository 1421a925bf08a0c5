"""What is no environment is refused, with the name of the parameter that is wrong."""

import math
from functools import partial

import pytest
from refusals import raises_code

from submax import Bernoulli, Classification, Combinatorial, Contextual, Gaussian, Ratings
from submax.research import Cascade, Dueling, Pricing, SmoothReward

ORDERED = ((0.5, 0.6, 0.9), (0.4, 0.5, 0.7), (0.1, 0.3, 0.5))
PAYMENTS = 0.1, [0.01, 0.1], (0.1,), (-0.1, 0.2), (0.1, math.nan), (0.0, True), (0.2, 0.1)
TABLE = partial(Classification.of, [[1.0], [2.0]], ["a", "b"])
CYCLE = ((0.5, 0.8, 0.3), (0.2, 0.5, 0.9), (0.7, 0.1, 0.5))


@pytest.mark.parametrize(
    ("kind", "given", "parameter"),
    [
        (Bernoulli, {}, "arms"),
        (Bernoulli, {"arms": 3, "means": (0.1, 0.2)}, "arms"),
        (Bernoulli, {"means": (1.2,)}, None),
        (Gaussian, {"means": ()}, "means"),
        (Ratings, {"arms": 3, "values": [1.0, 2.0]}, "values"),
        (Ratings, {"arms": 3, "values": (1.0, math.nan)}, None),
        (Ratings, {"arms": 3, "values": (2.0, 1.0)}, None),
        *((TABLE, {"pays": pays}, None) for pays in PAYMENTS),
        *((Classification, {"file": "sklearn:iris", "pays": pays}, None) for pays in PAYMENTS),
        (Contextual, {"arms": 0}, "arms"),
        (Combinatorial, {"sizes": ()}, None),
        (Combinatorial, {"sizes": [2, 3]}, "sizes"),
        (Combinatorial, {"sizes": (2, 0)}, None),
        (SmoothReward, {"dimensions": 0}, "dimensions"),
        (SmoothReward, {"sizes": [2, 3]}, "sizes"),
        (SmoothReward, {"context": -1}, "context"),
        (Pricing, {"low": -1.0}, "low"),
        (Pricing, {"low": 3.0, "high": 3.0}, "low"),
        (Cascade, {"items": 2, "positions": 3}, "positions"),
        (Dueling, {}, "arms"),
        (Dueling, {"preferences": ORDERED, "arms": 9}, "arms"),
        (Dueling, {"preferences": ((0.5,),)}, "preferences"),
        (Dueling, {"preferences": ((0.5, 0.7), (0.4, 0.5))}, "preferences"),
        (Dueling, {"preferences": ((0.5, 1.7), (-0.7, 0.5))}, "preferences"),
        (Dueling, {"preferences": CYCLE}, "preferences"),
    ],
)
def test_what_is_no_environment_is_refused(kind, given, parameter):
    with raises_code("invalid-input", parameter):
        kind(**given)
