"""Rows become models in memory, and the last ones are kept."""

from collections import Counter

import numpy as np

from submax.bandit import learning
from submax.bandit.learning import Learner
from submax.policies import make_policy
from submax.schema.actions import ActionSpec
from submax.schema.context import ContextSchema
from submax.schema.rows import Columns
from submax.schema.schema import Schema


def rows(count, width=0, seed=0):
    rng = np.random.default_rng(seed)
    return Columns(
        rng.normal(3, 2, (count, width)).astype(np.float32),
        rng.integers(0, 3, (count, 1)).astype(float),
        rng.integers(0, 2, count).astype(float),
        np.full(count, np.log(1 / 3)),
    )


def schema(width=0):
    fields = {f"x{number}": float for number in range(width)}
    return Schema(menu=ActionSpec.of(["A", "B", "C"], None), context=ContextSchema.of(fields))


def taught(learner, data):
    new = 0
    for place in range(len(data.reward)):
        new += 1
        if learner.is_due(new):
            assert learner.learn(data.rows(slice(place + 1 - new, place + 1)))
            new = 0
    return new


def test_numbers_are_standardized_again_only_if_they_have_moved(monkeypatch):
    monkeypatch.setattr(learning, "CONTEXT_LEARN_SHARE", 0.0)
    learner = Learner(
        schema(2), make_policy({"kind": "linear-thompson"}), seed=1, failures=Counter()
    )
    data = rows(300, width=2)
    assert taught(learner, data) == 0
    fitted = learner.model.fitted_rows
    assert 0 < fitted < 150
    assert np.allclose(learner.model.standardization.mean, data.context[:fitted].mean(axis=0))
    away = data._replace(context=10 + data.context)
    assert taught(learner, away) == 0
    fitted = learner.model.fitted_rows
    assert 300 < fitted <= 600
    context = np.concatenate([data.context, away.context])[:fitted]
    assert np.allclose(learner.model.standardization.mean, context.mean(axis=0))
