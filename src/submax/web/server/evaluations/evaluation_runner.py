"""Runs evaluations, a few at a time, and remembers their results."""

import logging
import os
import secrets
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread, Timer
from typing import Any

import msgspec

from submax.core.errors import NotFoundError, StoreError, SubmaxError
from submax.core.processes import SINGLE_THREAD
from submax.live.log.export import Export
from submax.live.store.store import Store
from submax.schema.names import known_type
from submax.web.server.evaluations.evaluation import Evaluation, Status
from submax.web.server.evaluations.evaluation_job import STEPS, EvaluationJob, JobProgress
from submax.web.server.evaluations.too_many_evaluations_error import TooManyEvaluationsError

LOG = logging.getLogger("submax")
MAX_EVALUATIONS = 1
"""Evaluations at a time. Each takes a core for minutes, and gigabytes if the log is long."""
MOST_REMEMBERED = 20
"""Evaluations of each bandit whose results are remembered, until the server ends."""
LONGEST_SECONDS = 3600.0
"""An evaluation that takes longer is ended."""
MODULE = "submax.web.server.evaluations.evaluation_job"


class EvaluationRunner:
    """Evaluates policies in processes of their own, so that decisions are not slowed down.

    A thread waits for each process and records what the process prints.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock, self._closed = Lock(), False
        self._found: dict[str, Evaluation] = {}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, bandit: str, policies: list[str | dict[str, Any]]) -> Evaluation:
        """Start an evaluation; refused if too many are under way."""
        with self._lock:
            if self._closed:
                raise StoreError("the server stops: try again later")
            if sum(one.status == "running" for one in self._found.values()) >= MAX_EVALUATIONS:
                raise TooManyEvaluationsError(
                    f"{MAX_EVALUATIONS} evaluation is under way, and no more are allowed at a "
                    "time: wait until it has ended, or cancel it"
                )
            number = secrets.token_hex(6)
            made = Evaluation(
                number, bandit, policies, "running", 1, len(STEPS), STEPS[0], time.time(), 0.0
            )
            self._found[number] = made
            self._forget(bandit)
        Thread(target=self._run, args=[made], name="submax-evaluation", daemon=True).start()
        return made

    def of_bandit(self, bandit: str) -> list[Evaluation]:
        """The evaluations of a bandit that are remembered, the newest first."""
        with self._lock:
            found = [one for one in self._found.values() if one.bandit == bandit]
        return [self._aged(one) for one in reversed(found)]

    def remove(self, bandit: str, number: str) -> None:
        """Cancel an evaluation that is under way; forget one that has ended."""
        with self._lock:
            found = self._found.get(number)
            if found is None or found.bandit != bandit:
                raise NotFoundError(
                    f"there is no evaluation {number!r:.40} of {bandit}: GET "
                    f"/bandits/{bandit}/evaluations lists all of them"
                )
            if found.status != "running":
                del self._found[number]
                return
            self._found[number] = _ended(found, "cancelled")
            process = self._running.get(number)
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the evaluations under way, and start no more."""
        with self._lock:
            self._closed = True
            for process in self._running.values():
                process.kill()

    def _forget(self, bandit: str) -> None:
        """Forget the oldest evaluations of a bandit that have ended; called with the lock."""
        ended = [
            one.id
            for one in self._found.values()
            if one.bandit == bandit and one.status != "running"
        ]
        for number in ended[: max(len(ended) - MOST_REMEMBERED + 1, 0)]:
            del self._found[number]

    def _run(self, made: Evaluation) -> None:
        """Evaluate, in a thread of its own; whatever fails is the result of the evaluation."""
        path: Path | None = None
        try:
            if self._store.place is None:
                # Only this process can read a store in memory.
                number, name = tempfile.mkstemp(suffix=".parquet")
                os.close(number)
                path = Path(name)
                Export(self._store, made.bandit).write(path)
            exported = None if path is None else str(path)
            job = EvaluationJob(self._store.place, made.bandit, made.policies, exported)
            self._follow(made, job)
        except SubmaxError as error:
            self._fail(made.id, str(error))
        except Exception:
            LOG.exception("the evaluation %s of %s failed", made.id, made.bandit)
            self._fail(made.id, "the evaluation failed on the server: see the server's log")
        finally:
            if path is not None:
                path.unlink(missing_ok=True)

    def _follow(self, made: Evaluation, job: EvaluationJob) -> None:
        with tempfile.TemporaryFile() as complaints:
            process = self._started(made.id, complaints)
            if process is None:
                return
            timer = Timer(LONGEST_SECONDS, process.kill)
            timer.daemon = True
            timer.start()
            try:
                self._read(made.id, process, job)
            finally:
                timer.cancel()
                with self._lock:
                    self._running.pop(made.id, None)
            complaints.seek(0)
            complaint = complaints.read().decode(errors="replace")
        if self._status(made.id) == "running":
            LOG.error("the evaluation %s of %s ended: %s", made.id, made.bandit, complaint)
            self._fail(
                made.id,
                "the evaluation was ended on the server, which happens if it needs too much memory "
                f"or more than {LONGEST_SECONDS / 3600:g} hour: evaluate a simpler policy",
            )

    def _started(self, number: str, complaints: Any) -> "subprocess.Popen[bytes] | None":
        """The process of an evaluation; None if it was cancelled meanwhile."""
        # The process finds the same modules as this one, takes one core, and leaves the GPU alone.
        environment = {**os.environ, **SINGLE_THREAD, "JAX_PLATFORMS": "cpu"}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        pipe = subprocess.PIPE
        with self._lock:
            if self._closed or self._found[number].status != "running":
                return None
            process = subprocess.Popen(
                [sys.executable, "-m", MODULE],
                stdin=pipe,
                stdout=pipe,
                stderr=complaints,
                env=environment,
            )
            self._running[number] = process
        return process

    def _read(self, number: str, process: "subprocess.Popen[bytes]", job: EvaluationJob) -> None:
        """Send the job, and record each line that the process prints until it ends."""
        if process.stdin is None or process.stdout is None:
            raise StoreError("the evaluation has no pipes: this is a defect of submax")
        # Closing standard input ends the process, so that it stays open meanwhile.
        with process, suppress(BrokenPipeError):
            # The address of a database may contain a password, and arguments can be read by others.
            process.stdin.write(msgspec.json.encode(job) + b"\n")
            process.stdin.flush()
            for line in process.stdout:
                self._record(number, msgspec.json.decode(line, type=known_type(JobProgress)))

    def _record(self, number: str, line: JobProgress) -> None:
        with self._lock:
            found = self._found.get(number)
            if found is None or found.status != "running":
                return
            if line.step:
                doing = STEPS[line.step - 1]
                self._found[number] = msgspec.structs.replace(found, step=line.step, doing=doing)
            elif line.result is not None:
                self._found[number] = _ended(found, "done", result=line.result)
            else:
                self._found[number] = _ended(found, "failed", error=line.error)

    def _fail(self, number: str, sentence: str) -> None:
        self._record(number, JobProgress(error=sentence))

    def _status(self, number: str) -> Status | None:
        with self._lock:
            found = self._found.get(number)
        return None if found is None else found.status

    def _aged(self, one: Evaluation) -> Evaluation:
        if one.status != "running":
            return one
        return msgspec.structs.replace(one, seconds=time.time() - one.started)


def _ended(one: Evaluation, status: Status, **values: Any) -> Evaluation:
    seconds = time.time() - one.started
    return msgspec.structs.replace(one, status=status, seconds=seconds, doing="", **values)
