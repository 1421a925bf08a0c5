"""Sums by values of the context agree with the log, and are bounded."""

import msgspec
import numpy as np
import pytest

from submax.live.monitoring.rollups import context_sums, field_cells
from submax.live.monitoring.rollups.context_sums import ContextSums, ContextSumsRecord
from submax.schema.context_schema import ContextSchema

SCHEMA = ContextSchema.of({"age": float, "country": [f"c{n}" for n in range(6)]})


@pytest.fixture
def rows(seed):
    rng = np.random.default_rng(seed)
    count = 1500
    values = np.stack([rng.normal(size=count), rng.integers(6, size=count)], axis=1)
    return {
        "context": SCHEMA.encode_rows(values.astype(np.float32)),
        "values": values.astype(np.float32),
        "action": rng.integers(5, size=(count, 1)).astype(float),
        "reward": rng.normal(size=count),
        "weight": 1 / rng.uniform(0.1, 1, size=count),
    }


def counted(rows, steps):
    """The sums after the rows were read in pages of this length; they mature one page later."""
    sums, count = ContextSums.of(SCHEMA, 1), len(rows["reward"])
    for begin in range(0, count + steps, steps):
        now, before = slice(begin, begin + steps), slice(max(begin - steps, 0), begin)
        sums.decided(rows["context"][now], rows["action"][now])
        sums.learned(*(rows[name][before] for name in ("context", "action", "reward", "weight")))
        if begin == 10 * steps:
            data = msgspec.msgpack.encode(sums.to_record())
            sums = ContextSums.restore(msgspec.msgpack.decode(data, type=ContextSumsRecord))
    return sums


def test_sums_agree_with_the_rows(rows):
    sums = counted(rows, 100)
    action, reward, weight = rows["action"][:, 0], rows["reward"], rows["weight"]
    age, country = sums.fields
    assert age.edges == pytest.approx(np.quantile(rows["values"][:1000, 0], [0.2, 0.4, 0.6, 0.8]))
    for number, cells in (
        (0, np.searchsorted(age.edges, rows["values"][:, 0], side="right")),
        (1, np.array([country.values.index(one) for one in rows["values"][:, 1]])),
    ):
        found = sums.sums(number, 0)
        for cell in range(5):
            for place, choice in enumerate(sums.choices[0]):
                here = (cells == cell) & (action == choice)
                w, r = weight[here], reward[here]
                wanted = [here.sum(), here.sum(), r.sum(), w.sum(), (w**2).sum(), (w * r).sum()]
                wanted += [(w**2 * r).sum(), (w**2 * r**2).sum()]
                np.testing.assert_allclose(found[cell, place], wanted, atol=1e-9)


def test_sums_do_not_depend_on_how_the_log_was_read(rows):
    one, other = counted(rows, 7), counted(rows, 700)
    assert msgspec.msgpack.encode(one.to_record()) == msgspec.msgpack.encode(other.to_record())


def test_what_exceeds_the_limits_is_counted_as_other(rows, monkeypatch):
    monkeypatch.setattr(field_cells, "MOST_VALUES", 2)
    monkeypatch.setattr(context_sums, "MOST_CHOICES", 3)
    sums = counted(rows, 100)
    _, country = sums.fields
    found = sums.sums(1, 0)
    assert found.shape == (3, 4, context_sums.COLUMNS)
    assert found[..., 0].sum() == len(rows["reward"])
    others = ~np.isin(rows["values"][:, 1], country.values)
    assert found[2, :, 0].sum() == others.sum()
    unlisted = ~np.isin(rows["action"][:, 0], sums.choices[0])
    assert found[:, 3, 0].sum() == unlisted.sum()


def test_before_edges_are_known_a_view_uses_those_there_are(rows):
    sums = ContextSums.of(SCHEMA, 1)
    sums.decided(rows["context"][:50], rows["action"][:50])
    view = sums.settled()
    assert not sums.is_warm
    assert view.sums(0, 0)[..., 0].sum() == 50
    assert sums.sums(0, 0)[..., 0].sum() == 0
