"""A log for which a policy is recommended."""

from dataclasses import replace

import numpy as np

from submax.evaluation.logs.log import Log
from submax.recommendation.log_file import LogFile
from submax.recommendation.observed import Observed
from submax.recommendation.recommendation import Recommendation
from submax.recommendation.snippets import policy_word, python_of

FILE = "policy.safetensors"
"""The file to which the learned policy is written."""
ADDRESS = "http://127.0.0.1:8000"
"""Where ``submax serve`` listens."""
ONLY_IN_PYTHON = "# after the Python lines above, which alone can name this log"


class ObservedLog(Observed):
    """The actions, context and rewards of a log; it does not say when rewards came.

    ``file`` is where the log was read; None if it was given as a ``Log``.
    """

    def __init__(self, log: Log, file: LogFile | None) -> None:
        self.schema, self.values, self._file = log.schema, log.reward, file
        self.mean = float(np.average(log.reward, weights=log.count)) if len(log) else None

    def with_its_code(self, found: Recommendation) -> Recommendation:
        """Return code that evaluates the policies, learns the first from the log and serves it."""
        return replace(found, python=self._python(found), commands=self._commands(found))

    def _python(self, found: Recommendation) -> str:
        read = "# log is the Log for which this was recommended"
        if self._file is not None:
            read = f"log = {self._file.python}"
        lines = [
            "import submax",
            "",
            read,
            f"learned = submax.evaluation.learn(log, {python_of(found.policy)})",
            f"learned.write({python_of(FILE)})",
        ]
        rails = found.settings.get("guard_rails")
        if rails:
            declared = f"learned=learned, guard_rails={python_of(rails)}"
            lines.append(f'bandit = submax.open("bandit.db", {declared})')
        return "\n".join(lines)

    def _commands(self, found: Recommendation) -> str:
        serve = f"submax serve bandit.db --learned {FILE}"
        words = None if self._file is None else self._file.words
        if words is None:
            return f"{serve}   {ONLY_IN_PYTHON}"
        policy, runner_up = policy_word(found.policy), policy_word(found.runner_up)
        lines = [
            f"submax evaluate {words} --policy {policy} --policy {runner_up}",
            f"submax learn {words} --policy {policy} --out {FILE}",
            serve,
        ]
        rails = found.settings.get("guard_rails")
        if rails:
            lines.append(f"submax set {ADDRESS} bandit guard_rails.minimum={rails['minimum']}")
        return "\n".join(lines)
