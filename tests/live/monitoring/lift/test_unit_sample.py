import math

from submax.live.monitoring.lift import unit_sample
from submax.live.monitoring.lift.unit_sample import UnitSample


def test_few_units_are_all_counted_once():
    sample = UnitSample()
    units = [f"visitor-{number % 300}" for number in range(900)]
    assert [sample.is_new(unit) for unit in units] == [True] * 300 + [False] * 600


def test_of_many_units_a_sample_is_counted_once_in_bounded_memory(monkeypatch):
    monkeypatch.setattr(unit_sample, "MAX_UNITS", 64)
    sample, counted = UnitSample(), []
    for _ in range(2):
        for number in range(2000):
            if sample.is_new(f"visitor-{number}"):
                counted.append(number)
            assert len(sample.known) <= 64
    assert len(set(counted)) == len(counted)
    assert sample.halvings >= math.log2(2000 / 64)


def test_the_sample_does_not_depend_on_the_group(monkeypatch):
    monkeypatch.setattr(unit_sample, "MAX_UNITS", 256)
    sample = UnitSample()
    chosen = [number % 5 == 0 for number in range(20_000) if sample.is_new(f"visitor-{number}")]
    error = math.sqrt(0.2 * 0.8 / len(chosen))
    assert abs(sum(chosen) / len(chosen) - 0.2) < 4.5 * error
