"""A log for which a policy is recommended."""

from dataclasses import replace

import numpy as np

from submax.evaluation.logs.log import Log
from submax.recommendation.observed import Observed
from submax.recommendation.recommendation import Recommendation
from submax.recommendation.snippets import policy_word, python_of


class ObservedLog(Observed):
    """The actions, context and rewards of a log; it does not say when rewards came."""

    def __init__(self, log: Log, path: str) -> None:
        self.schema, self.values, self._path = log.schema, log.reward, path
        self.mean = float(np.average(log.reward, weights=log.count)) if len(log) else None

    def with_its_code(self, found: Recommendation) -> Recommendation:
        """Return code that evaluates the policies, learns the first from the log and serves it."""
        python = (
            "import submax\n\n"
            f"log = submax.evaluation.Log.read({python_of(self._path)})\n"
            f"learned = submax.evaluation.learn(log, {python_of(found.policy)})\n"
            'learned.write("policy.safetensors")'
        )
        policy, runner_up = policy_word(found.policy), policy_word(found.runner_up)
        commands = (
            f"submax evaluate {self._path} --policy {policy} --policy {runner_up}\n"
            f"submax learn {self._path} --policy {policy} --out policy.safetensors\n"
            "submax serve bandit.db --learned policy.safetensors"
        )
        return replace(found, python=python, commands=commands)
