import os
import sys

from refusals import raises_code

from submax.simulation.executors import SINGLE_THREAD, dask_executor, local_executor


def test_workers_have_one_thread_and_the_parent_keeps_its_own_settings(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setenv("XLA_FLAGS", SINGLE_THREAD["XLA_FLAGS"])
    with local_executor(1) as executor:
        seen = [executor.submit(os.getenv, name).result() for name in SINGLE_THREAD]
    assert seen == list(SINGLE_THREAD.values())
    assert SINGLE_THREAD["OMP_NUM_THREADS"] == "1"
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def test_workers_keep_the_users_own_flags_of_xla(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=here")
    with local_executor(1) as executor:
        seen = executor.submit(os.getenv, "XLA_FLAGS").result()
    assert seen == f"--xla_dump_to=here {SINGLE_THREAD['XLA_FLAGS']}"
    assert os.environ["XLA_FLAGS"] == "--xla_dump_to=here"


def test_no_jobs_are_refused():
    with raises_code("invalid-input", "jobs"), local_executor(0):
        pass


def test_missing_dask_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        raises_code("missing-extra"),
        dask_executor("tcp://127.0.0.1:1"),
    ):
        pass
