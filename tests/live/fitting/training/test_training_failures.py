"""Whatever fails in the process that trains models, or on the way to it, is said and ends."""

import importlib
import pickle
import subprocess
import sys
from threading import Timer

import pytest
from refusals import raises_code

from submax.live.fitting.training.worker import Worker


class Reduced:
    """Unpickling it calls a function."""

    def __init__(self, function, *arguments):
        self._call = function, arguments

    def __reduce__(self):
        return self._call


def test_a_job_that_cannot_be_unpickled_ends_the_process(training, setup, caplog):
    job = setup.job()._replace(schema=Reduced(eval, "1 / 0"))
    # Closing ends a wait for an answer that never comes.
    late = Timer(60, training.close)
    late.start()
    with raises_code("training-failed"):
        training.train(job, setup.lazy(None))
    late.cancel()
    assert "ZeroDivisionError" in caplog.text
    assert training.train(setup.job(), setup.lazy(None))


def test_an_error_that_the_policy_defines_is_passed_on_as_text(shared_training, setup):
    with raises_code("training-failed"):
        shared_training.train(setup.job("fails by its own error"), setup.lazy(None))


def test_an_interrupted_start_leaves_no_process_behind(training, setup, monkeypatch):
    def interrupted(worker, seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(Worker, "is_ready", interrupted)
    with pytest.raises(KeyboardInterrupt):
        training.train(setup.job(), setup.lazy(None))
    monkeypatch.undo()
    assert training.train(setup.job(), setup.lazy(None))


def test_modules_in_the_current_folder_do_not_replace_those_of_python(
    training, setup, tmp_path, monkeypatch
):
    (tmp_path / "queue.py").write_text("raise ImportError('not this one')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    assert training.train(setup.job(), setup.lazy(None))


def test_modules_in_the_current_folder_are_found_if_this_process_finds_them(
    training, setup, tmp_path, monkeypatch
):
    (tmp_path / "in_current_folder.py").write_text("import os; os._exit(7)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, ""])
    job = setup.job()._replace(schema=Reduced(importlib.import_module, "in_current_folder"))
    with raises_code("training-failed") as failed:
        training.train(job, setup.lazy(None))
    assert "status 7" in str(failed.value)


FORK = """
import os, pickle, signal, sys, warnings
from threading import Event, Thread
from submax.live.fitting.training.training_process import shared_training_process
from submax.live.log.rows.lazy_rows import LazyRows, RowPart

def read():
    reading.set()
    assert child_ended.wait(100)
    return rows

def train(part):
    models.append(shared_training_process().train(job, LazyRows([part])))

job, rows = pickle.load(sys.stdin.buffer)
models, reading, child_ended = [], Event(), Event()
thread = Thread(target=train, args=[RowPart(len(rows.reward), read)])
thread.start()
assert reading.wait(60)
# Python warns of forks while there are threads.
warnings.simplefilter("ignore")
child = os.fork()
if child == 0:
    signal.alarm(60)
    train(RowPart.of(rows))
    # Not os._exit: an ordinary end writes what is left in buffers.
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
child_ended.set()
thread.join()
sys.stdout.buffer.write(models[0])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the child is forked, and Windows has no fork")
def test_a_child_that_is_forked_during_a_training_can_train(shared_training, setup):
    sent = pickle.dumps((setup.job(), setup.rows))
    found = subprocess.run([sys.executable, "-c", FORK], input=sent, capture_output=True)
    status, _, model = found.stdout.partition(b"\n")
    assert status == b"0", found.stderr.decode()
    # What the child did at its end has not disturbed the training of its parent.
    assert model == shared_training.train(setup.job(), setup.lazy(None))
