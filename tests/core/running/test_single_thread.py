import os

from submax.core.running.single_thread import SINGLE_THREAD, prefer_single_thread


def test_what_the_user_asked_for_stays(monkeypatch):
    for name in SINGLE_THREAD:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    prefer_single_thread()
    expected = {**SINGLE_THREAD, "OMP_NUM_THREADS": "3"}
    found = {name: os.environ[name] for name in SINGLE_THREAD}
    for name in SINGLE_THREAD:
        monkeypatch.delenv(name)
    assert found == expected
