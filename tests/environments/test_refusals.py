"""What is no environment is refused, with the name of the parameter that is wrong."""

import math
from functools import partial

import numpy as np
import pytest
from refusals import raises_code

from submax import Bernoulli, Classification, Combinatorial, Contextual, Gaussian, Ratings
from submax.research import Cascade, Dueling, Pricing, SmoothReward
from submax.research.beyond.designs import Designs

ORDERED = ((0.5, 0.6, 0.9), (0.4, 0.5, 0.7), (0.1, 0.3, 0.5))
PAYMENTS = 0.1, [0.01, 0.1], (0.1,), (-0.1, 0.2), (0.1, math.nan), (0.0, True), (0.2, 0.1)
LABELS = ["a", "b"]
ARRAYS = partial(Classification.of, features=[[1.0], [2.0]], labels=LABELS)
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
        *((ARRAYS, {"pays": pays}, None) for pays in PAYMENTS),
        *((Classification, {"file": "sklearn:iris", "pays": pays}, None) for pays in PAYMENTS),
        (ARRAYS, {"labels": LABELS[:-1]}, "features"),
        (ARRAYS, {"labels": [[label] for label in LABELS]}, "features"),
        (ARRAYS, {"features": [1.0, 2.0]}, "features"),
        (ARRAYS, {"features": [["one"], ["two"]]}, "features"),
        (ARRAYS, {"features": [[1.0, 2.0], [3.0, math.nan]]}, "features"),
        (ARRAYS, {"labels": [0.0, math.nan]}, "labels"),
        (ARRAYS, {"labels": np.array([None, "a"], dtype=object)}, "labels"),
        (ARRAYS, {"labels": [1, 1]}, "labels"),
        (ARRAYS, {"features": np.zeros((0, 2)), "labels": []}, "features"),
        (Designs.of, {"columns": {"x": [1.0, math.nan], "v": [1, 2]}}, "x"),
        (Designs.of, {"columns": {"x": [1, None], "v": [1, 2]}}, "x"),
        (Designs.of, {"columns": {"x": [[1], [2]], "v": [1, 2]}}, "x"),
        (Designs.of, {"columns": {"x": [1, 2], "v": [1.0, math.nan]}}, "v"),
        (Designs.of, {"columns": {"x": [1, 2], "v": [1, 2, 3]}}, "columns"),
        (Designs.of, {"columns": {"x": [1, "a"], "v": [1, 2]}}, "columns"),
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
