"""Linear algebra in one thread, for a process and for a block."""

import os
import subprocess
import sys

import numpy  # noqa: F401 - loads its library, which OPENBLAS below lists
import pytest
import threadpoolctl

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


THREADS = """
import threadpoolctl

def threads():
    return sorted(one["num_threads"] for one in threadpoolctl.threadpool_info())
"""
BLOCKS = (
    THREADS
    + """
import contextlib
import threading
import numpy as np
from submax.core.running.single_thread import ONE_THREAD

found = [threads()]
inside, end = threading.Event(), threading.Event()

def other():
    with contextlib.suppress(ValueError), ONE_THREAD:
        inside.set()
        end.wait()
        raise ValueError

with ONE_THREAD:
    found.append(threads())
    begun = threading.Thread(target=other)
    begun.start()
    inside.wait()
import scipy.linalg
with ONE_THREAD:
    found.append(threads())
found.append(threads())
end.set()
begun.join()
found.append(threads())
somebody = threadpoolctl.threadpool_limits(1)
with ONE_THREAD:
    somebody.restore_original_limits()
found.append(threads())
print(*found)
"""
)
USES = (
    THREADS
    + """
import numpy as np
import submax
from submax.evaluation import Log, compare
from submax.evaluation.models import reward_model
from submax.models.regression.feature_map import FeatureMap
from submax.models.regression.slot_belief import SlotBelief

found = {}

def record(place, name, what):
    known = getattr(place, name)

    def recording(*args, **kwargs):
        found.setdefault(what, set()).add(tuple(threads()))
        return known(*args, **kwargs)

    setattr(place, name, recording)

record(FeatureMap, "for_raw", "fit")
record(SlotBelief, "_solved", "slots")
record(FeatureMap, "raw", "features")
record(reward_model, "_fitted", "reward model")
for actions in (["a", "b"], {"title": ["a", "b"], "image": ["c", "d"]}):
    bandit = submax.Bandit(actions=actions, context={"x": float}, seed=1)
    for number in range(300):
        decision = bandit.decide({"x": number % 7})
        bandit.reward(decision.id, float(number % 2))
    bandit.refit()
    bandit.decide_many([{"context": {"x": 1.0}}, {"context": {"x": 2.0}}])
table = {"action": ["a", "b"] * 100, "reward": [0.0, 1.0, 1.0, 0.0] * 50}
table |= {"propensity": [0.5] * 200, "x": [float(number % 7) for number in range(200)]}
log = Log.read(table, columns={"context": ["x"]} | {name: name for name in list(table)[:3]})
compare(log, ["random"], estimators=["dr"])
print(dict(sorted(found.items())))
"""
)
OPENBLAS = [
    one
    for one in threadpoolctl.threadpool_info()
    if one["internal_api"] == "openblas" and one["threading_layer"] == "pthreads"
]
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
# Other libraries are left alone, and one core has no second thread: there is nothing to see.
needs_two_threads = pytest.mark.skipif(
    not OPENBLAS or CORES == 1,
    reason="needs OpenBLAS with its own threads, as in the wheels for Linux, and two cores",
)


def printed(script, threads):
    """What a script prints in a process whose libraries have so many threads."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, threads)}
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@needs_two_threads
def test_a_block_has_one_thread_until_the_last_one_ends():
    assert printed(BLOCKS, "2") == "[2] [1] [1, 1] [1, 1] [2, 2] [2, 2]"
    assert printed(BLOCKS, "1") == "[1] [1] [1, 1] [1, 1] [1, 1] [1, 1]"


@needs_two_threads
def test_fits_reward_models_and_several_decisions_use_one_thread():
    # One library of numpy, and one of SciPy.
    what = ("features", "fit", "reward model", "slots")
    assert printed(USES, "2") == str({one: {(1, 1)} for one in what})
