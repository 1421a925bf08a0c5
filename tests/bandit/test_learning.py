"""A learner makes the models that a policy would make from all rows, and survives its failures."""

from collections import Counter

import numpy as np
import pytest

from submax.bandit import learning
from submax.bandit.learning import FAILED_UPDATES, Learner, LearningWarning, RecentRows
from submax.core.serialization import state_bytes
from submax.policies import make_policy
from submax.schema.actions import ActionSpec, Change
from submax.schema.context import ContextSchema
from submax.schema.model import Model
from submax.schema.rows import Columns, ContextMoments
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


def test_moments_of_contexts_are_those_of_all_rows_together():
    data = rows(100, width=3)
    parts = [data.rows(slice(0, 7)), data.rows(slice(7, 7)), data.rows(slice(7, 100))]
    moments = ContextMoments.empty(3).after(parts)
    found, kept = moments.standardization([True, False, True]), [True, False, True]
    assert np.allclose(found.mean, np.where(kept, data.context.mean(axis=0), 0.0))
    assert np.allclose(found.scale, np.where(kept, data.context.std(axis=0), 1.0))


def test_other_choices_and_another_policy_are_fitted_from_kept_rows():
    data, before = rows(200), schema()
    learner = Learner(before, make_policy("thompson-1-1"), seed=1, failures=Counter())
    learner.learn(data)
    menu = before.menu.changed(Change("pause", "C"))
    policy = make_policy({"kind": "ucb1"})
    learner.use(Schema(menu=menu), policy, 1)
    assert learner.is_due(0)
    assert learner.learn(Columns.empty(0, 1))
    anew = Model.fitted(Schema(menu=menu), policy, [data], 1, 1)
    assert state_bytes(learner.model, {}) == state_bytes(anew, {})


def test_a_failing_policy_keeps_its_model_and_is_tried_again(monkeypatch):
    policy = make_policy("thompson-1-1")
    failures: Counter[str] = Counter()
    learner = Learner(schema(), policy, seed=1, failures=failures)
    model = learner.model
    with monkeypatch.context() as broken:
        broken.setattr(type(policy), "update", lambda *_: 1 / 0)
        with pytest.warns(LearningWarning, match="ZeroDivisionError"):
            assert not learner.learn(rows(1))
        assert not learner.learn(rows(1))
    assert (learner.model is model, learner.version, failures[FAILED_UPDATES]) == (True, 0, 2)
    assert [learner.is_due(new) for new in (1, 2)] == [False, True]
    assert learner.learn(rows(2))
    assert learner.failure is None


def test_recent_rows_keep_the_last_ones_in_order():
    recent, data = RecentRows(50), rows(400, seed=3)
    for place in range(0, 400, 4):
        recent.add(data.rows(slice(place, place + 4)))
        kept = Columns.joined(recent.parts)
        count = len(kept.reward)
        assert min(50, place + 4) <= count
        assert np.array_equal(kept.reward, data.reward[: place + 4][-count:])
