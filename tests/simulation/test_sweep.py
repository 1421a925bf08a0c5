import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from submax import BatchedRewards, Bernoulli, make_policy, simulate
from submax.simulation.results import CURVES, CellResult, CellStore, Curve, Seconds
from submax.simulation.runner import sweep


def result(number: int) -> CellResult:
    values = np.arange(6.0).reshape(2, 3) + number
    return CellResult(
        np.arange(1, 4),
        Curve.of(values),
        Curve.of(-values),
        values[:, -1],
        -values[:, -1],
        values[:, -1] / 10,
        Seconds(0.5),
    )


def same(one: CellResult, other: CellResult) -> bool:
    flat = [np.hstack([np.ravel(part) for part in cell]) for cell in (one, other)]
    return bool(np.array_equal(*flat))


@pytest.mark.parametrize("damage", ["cut", "empty", "partial"])
def test_damaged_cells_are_not_finished(tmp_path, damage):
    store = CellStore(tmp_path, CURVES)
    assert not store.finished("a")
    store.write("a", result(3))
    assert same(store.read("a"), result(3))
    assert [file.name for file in tmp_path.iterdir()] == ["a.npz"]
    path = tmp_path / "a.npz"
    whole = path.read_bytes()
    if damage == "partial":
        path.rename(tmp_path / "a.partial")
    else:
        path.write_bytes(whole[: len(whole) // 2] if damage == "cut" else b"")
    assert not store.finished("a")


def test_every_task_runs_once_and_stored_ones_not_at_all(tmp_path):
    store, lock, ran, heard = CellStore(tmp_path, CURVES), threading.Lock(), [], []

    def run(task: int) -> CellResult:
        with lock:
            ran.append(task)
        return result(task)

    tasks = {str(number): number for number in range(20)}
    for number in (3, 7):
        store.write(str(number), result(100 + number))
    with ThreadPoolExecutor(4) as executor:
        sweep(tasks, run, store, executor, lambda key, _: heard.append(key))
    rest = set(range(20)) - {3, 7}
    assert sorted(ran) == sorted(rest)
    assert sorted(map(int, heard)) == sorted(rest)
    assert same(store.read("3"), result(103))
    assert all(same(store.read(str(number)), result(number)) for number in rest)


def test_error_in_one_task_keeps_the_others_and_cancels_the_rest(tmp_path):
    store, ran = CellStore(tmp_path, CURVES), []

    def run(task: int) -> CellResult:
        ran.append(task)
        if task == 2:
            raise RuntimeError("broken cell")
        time.sleep(0.005)
        return result(task)

    tasks = {str(number): number for number in range(1000)}
    with ThreadPoolExecutor(1) as executor, pytest.raises(RuntimeError):
        sweep(tasks, run, store, executor, lambda key, _: None)
    assert store.finished("0")
    assert not store.finished("2")
    assert len(ran) < 1000


def test_cells_under_way_are_stored_when_a_sweep_is_interrupted(tmp_path):
    begun, release = threading.Event(), threading.Event()

    def run(number: int) -> CellResult:
        if number == 1:
            begun.set()
            release.wait(60)
        else:
            # A cell that no thread has taken up yet would be left out, rightly.
            begun.wait(60)
        return result(number)

    def interrupt(key: str, found: CellResult) -> None:
        release.set()
        raise KeyboardInterrupt

    store = CellStore(tmp_path, CURVES)
    with ThreadPoolExecutor(2) as executor, pytest.raises(KeyboardInterrupt):
        sweep({"0": 0, "1": 1}, run, store, executor, interrupt)
    assert store.finished("0")
    assert store.finished("1")


def test_the_late_slope_is_the_regret_per_decision_in_the_last_tenth(seed):
    trace = simulate(
        Bernoulli(4),
        make_policy("rcp-submax"),
        observations=200,
        replicas=3,
        delay=BatchedRewards(20),
        seed=seed,
    )
    late = (trace.steps >= 180).nonzero()[0]
    regret = trace.accumulated_regret[:, late]
    slope = (regret[:, -1] - regret[:, 0]) / (trace.steps[late[-1]] - trace.steps[late[0]])
    assert trace.steps[late[0]] == 180
    np.testing.assert_allclose(CellResult.of(trace, Seconds(0.0)).late_slope, slope)
    single = simulate(Bernoulli(4), make_policy("random"), observations=1, replicas=3)
    np.testing.assert_array_equal(CellResult.of(single, Seconds(0.0)).late_slope, np.zeros(3))


def test_interruption_leaves_what_is_done(tmp_path):
    store = CellStore(tmp_path, CURVES)

    def run(task: int) -> CellResult:
        time.sleep(0.005)
        return result(task)

    def stop(key: str, _: CellResult) -> None:
        raise KeyboardInterrupt

    tasks = {str(number): number for number in range(1000)}
    with ThreadPoolExecutor(1) as executor, pytest.raises(KeyboardInterrupt):
        sweep(tasks, run, store, executor, stop)
    done = [key for key in tasks if store.finished(key)]
    assert 1 <= len(done) < 1000
