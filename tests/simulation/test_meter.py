from concurrent.futures import ThreadPoolExecutor

import pytest

from submax.environments.arms.bernoulli import Bernoulli
from submax.policies.classic.random import Random
from submax.simulation.batch_flush import BatchFlush
from submax.simulation.executors import local_executor
from submax.simulation.lag import Lag
from submax.simulation.meter import Meter, count, install
from submax.simulation.simulate import simulate


@pytest.fixture
def meter():
    installed = Meter()
    install(installed)
    yield installed
    install(None)


def test_it_adds_up(meter):
    assert (meter.decisions, meter.updates) == (0, 0)
    count(100, 2)
    count(50, 0)
    assert (meter.decisions, meter.updates) == (150, 2)


def test_a_process_without_a_meter_counts_nowhere(meter):
    install(None)
    count(100, 2)
    assert (meter.decisions, meter.updates) == (0, 0)


def test_one_installed_later_takes_the_place_of_the_first(meter):
    other = Meter()
    install(other)
    count(3, 1)
    assert (meter.decisions, other.decisions) == (0, 3)


def test_nothing_is_lost_where_many_count_at_once(meter):
    with ThreadPoolExecutor(8) as executor:
        list(executor.map(lambda _: count(3, 1), range(2000)))
    assert (meter.decisions, meter.updates) == (6000, 2000)


def test_the_processes_of_a_pool_count_on_one_meter():
    meter = Meter()
    with local_executor(2, meter) as executor:
        futures = [executor.submit(count, 10, 1) for _ in range(20)]
        for future in futures:
            future.result()
    assert (meter.decisions, meter.updates) == (200, 20)


@pytest.mark.parametrize(
    ("delay", "updates"), [(BatchFlush(1), 30), (BatchFlush(10), 3), (BatchFlush(7), 4),
                           (BatchFlush(31), 0), (Lag(0), 30), (Lag(5), 25)]
)  # fmt: skip
def test_progress_is_called_with_every_decision_and_every_update(delay, updates):
    steps = []
    simulate(
        Bernoulli(3),
        Random(),
        observations=30,
        replicas=4,
        delay=delay,
        progress=lambda *step: steps.append(step),
    )
    assert sum(decisions for decisions, _ in steps) == 30 * 4
    assert sum(update for _, update in steps) == updates * 4
    assert all(decisions > 0 for decisions, _ in steps)


def test_reporting_progress_changes_nothing(meter):
    quiet, counted = (
        simulate(Bernoulli(3), Random(), observations=30, replicas=4, progress=progress)
        for progress in (None, count)
    )
    assert (quiet.actions == counted.actions).all()
    assert (quiet.rewards == counted.rewards).all()
    assert meter.decisions == 120


def test_a_bar_is_shown_on_request(capsys):
    simulate(Bernoulli(3), Random(), observations=30, replicas=4, progress=True)
    shown = capsys.readouterr().out
    assert "Random" in shown
    assert "100%" in shown
