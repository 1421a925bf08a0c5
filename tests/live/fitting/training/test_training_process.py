"""Models are trained in a process of their own, which may fail and end without harm."""

import importlib
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from refusals import raises_code
from waiting import wait_until

from submax.core.errors import InputError
from submax.live.fitting.training.cannot_start_error import CannotStartError
from submax.live.fitting.training.training_error import TrainingError
from submax.live.fitting.training.training_process import TrainingProcess
from submax.live.log.rows.lazy_rows import LazyRows, RowPart
from submax.policies import make_policy


def is_running(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # A process that has ended stays in the table until its parent asks for its status.
    stat = Path(f"/proc/{process}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_models_have_the_same_bytes_as_in_this_process_and_one_process_trains_them(
    shared_training, setup
):
    found, processes = set(), set()
    for _ in range(3):
        found.add(shared_training.train(setup.job(), setup.lazy(None)))
        processes.add(setup.process)
    assert len(processes) == 1
    assert os.getpid() not in processes
    assert found == {setup.fitted_here(make_policy(setup.policy()))}
    assert setup.process == os.getpid()


def test_parts_that_never_change_are_read_once_and_ranges_of_them_can_be_used(
    shared_training, setup
):
    read = []

    def noted(part):
        def read_whole():
            read.append(part.key)
            return part.read_whole()

        return part._replace(read_whole=read_whole)

    for last in (40, 40, 30):
        expected = shared_training.train(setup.job(), setup.lazy(None).last(last))
        rows = LazyRows([noted(part) for part in setup.lazy("a", "b", None).parts])
        assert shared_training.train(setup.job(), rows.last(last)) == expected
    assert read == ["a", "b", None, None, None]


def test_a_process_that_was_killed_between_jobs_is_started_again(training, setup):
    expected = training.train(setup.job(), setup.lazy("a", None))
    killed = setup.process
    os.kill(killed, signal.SIGKILL)
    # Its parent can know that it has ended only after all of its threads have.
    ended = os.WEXITED | os.WNOHANG | os.WNOWAIT
    wait_until(lambda: os.waitid(os.P_PID, killed, ended) is not None)
    assert training.train(setup.job(), setup.lazy("a", None)) == expected
    assert setup.process != killed


def test_an_error_of_the_policy_is_raised_and_the_process_goes_on(shared_training, setup, caplog):
    for how in ("fails by its own error", "fails"):
        with raises_code("training-failed"):
            shared_training.train(setup.job(how), setup.lazy(None))
    assert "in update" in caplog.text
    failed = setup.process
    with raises_code("invalid-input"):
        shared_training.train(setup.job()._replace(policy="rcp-nothing"), setup.lazy(None))
    shared_training.train(setup.job(), setup.lazy(None))
    assert setup.process == failed


def test_warnings_are_passed_on_and_what_is_printed_does_no_harm(shared_training, setup):
    with pytest.warns(UserWarning, match="it hardly learns"):
        shared_training.train(setup.job("warns"), setup.lazy(None))
    assert shared_training.train(setup.job(), setup.lazy(None))


@pytest.mark.parametrize("error", [InputError, PermissionError, EOFError])
def test_rows_that_cannot_be_read_leave_no_half_job_behind(shared_training, setup, error):
    def damaged():
        raise error("a segment of rows")

    expected = shared_training.train(setup.job(), setup.lazy(None))
    first = setup.lazy("b").parts[0]
    with pytest.raises(error):
        shared_training.train(setup.job(), LazyRows([first, RowPart(3, damaged)]))
    assert shared_training.train(setup.job(), setup.lazy(None)) == expected


def test_the_process_ends_if_there_is_nothing_to_do(setup):
    training = TrainingProcess(idle_seconds=0.05)
    expected = training.train(setup.job(), setup.lazy("a", None))
    first = setup.process
    wait_until(lambda: not is_running(first))
    assert training.train(setup.job(), setup.lazy("a", None)) == expected
    assert setup.process != first
    training.close()


def test_closing_breaks_off_a_job_and_refuses_others(training, setup):
    assert not training.busy
    with ThreadPoolExecutor() as pool:
        job = pool.submit(training.train, setup.job("never ends"), setup.lazy(None))
        wait_until(setup.has_begun)
        assert training.busy
        training.close()
        with raises_code("store-unavailable"):
            job.result()
    wait_until(lambda: not is_running(setup.process))
    with raises_code("store-unavailable"):
        training.train(setup.job(), setup.lazy(None))


def test_a_process_that_was_there_and_cannot_be_started_will_be_again(training, setup, monkeypatch):
    training.train(setup.job(), setup.lazy(None))
    os.kill(setup.process, signal.SIGKILL)
    wait_until(lambda: not is_running(setup.process))
    for program in ("true", "no-such-program"):
        monkeypatch.setattr(sys, "executable", program)
        with pytest.raises(TrainingError) as found:
            training.train(setup.job(), setup.lazy(None))
        assert not isinstance(found.value, CannotStartError)


INTERRUPTING = """#!/bin/sh
echo $$ > {0}.new && mv {0}.new {0}
sleep 0.5
kill -INT $PPID
exec sleep 600
"""
"""What seems to be Python, and presses Ctrl-C instead of getting ready."""


@pytest.mark.skipif(sys.platform == "win32", reason="the program is a script of a shell")
def test_an_interrupted_start_leaves_no_process_behind(training, setup, tmp_path, monkeypatch):
    program, process = tmp_path / "python", tmp_path / "started"
    program.write_text(INTERRUPTING.format(process))
    program.chmod(0o700)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", str(program))
        with pytest.raises(KeyboardInterrupt):
            training.train(setup.job(), setup.lazy(None))
    signal.signal(signal.SIGINT, before)
    wait_until(lambda: not is_running(int(process.read_text())))
    assert training.train(setup.job(), setup.lazy(None))


ENDLESS = """
import pickle, sys
from submax.live.fitting.training.training_process import TrainingProcess
job, rows = pickle.load(sys.stdin.buffer)
from submax.live.log.rows.lazy_rows import LazyRows, RowPart
TrainingProcess().train(job, LazyRows([RowPart.of(rows)]))
"""


def test_the_process_ends_with_the_one_that_started_it_even_during_a_job(setup):
    with subprocess.Popen([sys.executable, "-c", ENDLESS], stdin=subprocess.PIPE) as parent:
        pickle.dump((setup.job("never ends"), setup.rows), parent.stdin)
        parent.stdin.flush()
        wait_until(setup.has_begun)
        assert is_running(setup.process)
        parent.kill()
    wait_until(lambda: not is_running(setup.process))


class Imported:
    """Unpickling it imports a module of a name."""

    def __init__(self, name):
        self.name = name

    def __reduce__(self):
        return importlib.import_module, (self.name,)


def test_modules_in_the_current_folder_are_found_if_this_process_finds_them(
    training, setup, tmp_path, monkeypatch
):
    (tmp_path / "queue.py").write_text("raise ImportError('not that of Python')")
    (tmp_path / "in_current_folder.py").write_text("import os; os._exit(7)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    job = setup.job()._replace(schema=Imported("in_current_folder"))
    for folders, status in (([], "status 1"), ([""], "status 7")):
        with monkeypatch.context() as patched:
            patched.setattr(sys, "path", [*sys.path, *folders])
            with raises_code("training-failed") as failed:
                training.train(job, setup.lazy(None))
        assert status in str(failed.value)
    # A job that cannot be read ends the process, and the next one has another.
    assert training.train(setup.job(), setup.lazy(None))


FORK = """
import os, pickle, signal, sys, warnings
from threading import Event, Thread
from submax.live.fitting.training.training_process import shared_training_process
from submax.live.log.rows.lazy_rows import LazyRows, RowPart

def read():
    reading.set()
    assert child_ended.wait(600)
    return rows

def train(part):
    models.append(shared_training_process().train(job, LazyRows([part])))

job, rows = pickle.load(sys.stdin.buffer)
models, reading, child_ended = [], Event(), Event()
thread = Thread(target=train, args=[RowPart(len(rows.reward), read)])
thread.start()
assert reading.wait(300)
# Python warns of forks while there are threads.
warnings.simplefilter("ignore")
child = os.fork()
if child == 0:
    signal.alarm(300)
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
