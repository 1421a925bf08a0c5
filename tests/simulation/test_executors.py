import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from refusals import raises_code

from submax.simulation.runner import (
    SINGLE_THREAD,
    Meter,
    count,
    dask_executor,
    install,
    local_executor,
)


@pytest.fixture
def meter():
    installed = Meter()
    install(installed)
    yield installed
    install(None)


def test_workers_have_one_thread_and_the_users_own_flags_and_count_on_one_meter(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=here")
    meter = Meter()
    with local_executor(2, meter) as executor:
        seen = {name: executor.submit(os.getenv, name).result() for name in SINGLE_THREAD}
        for future in [executor.submit(count, 10, 1) for _ in range(20)]:
            future.result()
    flags = f"--xla_dump_to=here {SINGLE_THREAD['XLA_FLAGS']}"
    assert seen == {**SINGLE_THREAD, "XLA_FLAGS": flags}
    assert SINGLE_THREAD["OMP_NUM_THREADS"] == "1"
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ
    assert os.environ["XLA_FLAGS"] == "--xla_dump_to=here"
    assert (meter.decisions, meter.updates) == (200, 20)


def test_nothing_is_lost_where_many_count_at_once(meter):
    with ThreadPoolExecutor(8) as executor:
        list(executor.map(lambda _: count(3, 1), range(2000)))
    assert (meter.decisions, meter.updates) == (6000, 2000)


def test_no_jobs_are_refused():
    with raises_code("invalid-input", "jobs"), local_executor(0):
        pass


def test_missing_dask_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with raises_code("missing-extra"), dask_executor("tcp://127.0.0.1:1"):
        pass
