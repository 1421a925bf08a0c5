"""Models are trained in a process of their own, which may fail and end without harm."""

import importlib
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread

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


def test_parts_that_never_change_are_read_once(shared_training, setup):
    read = []

    def counted(part):
        def read_whole():
            read.append(part.key)
            return part.read_whole()

        return part._replace(read_whole=read_whole)

    def rows(last):
        parts = [*setup.lazy("a", "b", None).parts]
        return LazyRows([counted(part) for part in parts]).last(last)

    expected = shared_training.train(setup.job(), setup.lazy(None))
    assert shared_training.train(setup.job(), rows(40)) == expected
    assert shared_training.train(setup.job(), rows(40)) == expected
    # Of a part that is kept, a range can be used.
    last_rows = LazyRows([RowPart.of(setup.rows)]).last(30)
    assert shared_training.train(setup.job(), rows(30)) == shared_training.train(
        setup.job(), last_rows
    )
    assert read == ["a", "b", None, None, None]


def test_a_crash_is_said_and_the_next_job_is_done(training, setup, caplog):
    with raises_code("training-failed"):
        training.train(setup.job("dies once"), setup.lazy("a", None))
    assert "out of memory" in caplog.text
    died = setup.process
    found = training.train(setup.job("dies once"), setup.lazy("a", None))
    assert setup.process != died
    assert found == setup.fitted_here(make_policy(setup.policy()))


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
    raised = []

    def train():
        with raises_code("store-unavailable") as found:
            training.train(setup.job("never ends"), setup.lazy(None))
        raised.append(found)

    assert not training.busy
    thread = Thread(target=train)
    thread.start()
    wait_until(setup.has_begun)
    assert training.busy
    training.close()
    thread.join()
    assert raised
    wait_until(lambda: not is_running(setup.process))
    with raises_code("store-unavailable"):
        training.train(setup.job(), setup.lazy(None))


def test_a_process_that_cannot_be_started_is_said_so_at_once(training, setup, monkeypatch):
    """In a program with Python inside, ``sys.executable`` is something else."""
    programs = ("true", "no-such-program")
    for program in programs:
        with monkeypatch.context() as patched:
            patched.setattr(sys, "executable", program)
            with raises_code("training-failed"):
                training.train(setup.job(), setup.lazy(None))
    training.train(setup.job(), setup.lazy(None))
    os.kill(setup.process, signal.SIGKILL)
    wait_until(lambda: not is_running(setup.process))
    for program in programs:
        monkeypatch.setattr(sys, "executable", program)
        # It was started before, and will be again.
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


class Reduced:
    """Unpickling it calls a function."""

    def __init__(self, function, *arguments):
        self._call = function, arguments

    def __reduce__(self):
        return self._call


def test_a_job_that_cannot_be_unpickled_ends_the_process(training, setup, caplog):
    job = setup.job()._replace(schema=Reduced(eval, "1 / 0"))
    with raises_code("training-failed"):
        training.train(job, setup.lazy(None))
    assert "ZeroDivisionError" in caplog.text
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
