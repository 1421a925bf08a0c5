"""Linear algebra in one thread, for a process and for a block."""

import os
import subprocess
import sys

import pytest

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


BLOCKS = """
import threading
import threadpoolctl
from submax.core.running.single_thread import ONE_THREAD
import numpy as np

def threads():
    return sorted({one["num_threads"] for one in threadpoolctl.threadpool_info()})

found = [threads()]
inside, end = threading.Event(), threading.Event()

def other():
    with ONE_THREAD:
        inside.set()
        end.wait()

with ONE_THREAD:
    found.append(threads())
    begun = threading.Thread(target=other)
    begun.start()
    inside.wait()
found.append(threads())
end.set()
begun.join()
found.append(threads())
print(found)
"""
FIT = """
import numpy as np
import submax
import threadpoolctl
from submax.models.regression import context_belief, slot_belief

found = []

def recorded(check):
    def recording(*args):
        found.extend(
            one["num_threads"] for one in threadpoolctl.threadpool_info()
            if one["user_api"] == "blas"
        )
        return check(*args)
    return recording

for module in (context_belief, slot_belief):
    module.check_can_learn = recorded(module.check_can_learn)
for actions in (["a", "b"], {"title": ["a", "b"], "image": ["c", "d"]}):
    bandit = submax.Bandit(actions=actions, context={"x": float}, seed=1)
    for number in range(200):
        decision = bandit.decide({"x": number / 200})
        bandit.reward(decision.id, 1.0)
    bandit.refit()
print(len(found) >= 4, set(found))
"""


def printed(script, threads):
    """What a script prints in a process whose libraries have so many threads."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, threads)}
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.cpu_count() == 1,
    reason="other systems have other libraries, and one core has no second thread",
)
def test_a_block_has_one_thread_until_the_last_one_ends():
    assert printed(BLOCKS, "2") == "[[2], [1], [1], [2]]"
    assert printed(BLOCKS, "1") == "[[1], [1], [1], [1]]"


def test_beliefs_learn_in_one_thread():
    assert printed(FIT, "2") == "True {1}"
