"""The probabilities with which the current version chooses, for people who look at a bandit."""

from concurrent.futures import Future
from threading import Lock, Thread

from submax.bandit.active_version import ActiveVersion
from submax.core.arrays import Floats

SECONDS = 1.0
"""How long a caller waits for a policy; a page without probabilities is better than none."""


class CurrentProbabilities:
    """Computes the mean probabilities of a version once, in a thread.

    A policy may take for ever, and a thread cannot be ended: then there are no probabilities, and
    no second thread is started.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._serving: ActiveVersion | None = None
        self._found: Future[Floats | None] = Future()
        self._found.set_result(None)

    def of(self, serving: ActiveVersion, contexts: Floats) -> Floats | None:
        """The mean over encoded contexts (``ActiveVersion.average_probabilities``), if any.

        It is also None if the policy fails or has not answered yet.
        """
        with self._lock:
            if self._serving is not serving and self._found.done():
                self._serving, self._found = serving, _started(serving, contexts)
            found, is_other = self._found, self._serving is not serving
        try:
            return None if is_other else found.result(SECONDS)
        except Exception:
            return None


def _started(serving: ActiveVersion, contexts: Floats) -> "Future[Floats | None]":
    future: Future[Floats | None] = Future()

    def run() -> None:
        try:
            future.set_result(serving.average_probabilities(contexts))
        except Exception as error:
            future.set_exception(error)

    Thread(target=run, name="submax-probabilities", daemon=True).start()
    return future
