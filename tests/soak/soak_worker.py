"""The process that is killed: it does what lines of JSON say, and answers each with a line.

A line is answered after everything it asks for is durable. Lines are worked on by some threads at
the same time, as requests of a server are. ``at`` in a line sets the clock of store and bandit.
"""

import json
import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

from process_memory import process_memory

from submax.bandit.durable import open_bandit
from submax.testing import ManualClock

THREADS = 4


def context(number):
    """The context of a decision, which depends on its number alone."""
    return {"x": number * 0.6180339887 % 1.0, "y": number * 0.7548776662 % 1.0}


class SoakWorker:
    """A bandit, and the operations on it."""

    def __init__(self, place, name):
        self.clock = ManualClock()
        self.bandit = open_bandit(place, name=name, background=False, clock=self.clock)

    def handle(self, line):
        """Do what a line says; an error is the answer, too."""
        command = json.loads(line)
        if "at" in command:
            self.clock.now = command["at"]
        try:
            answer = getattr(self, command["do"])(command)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        # One write of a whole line: the reader knows a line that was cut by its missing end.
        os.write(1, (json.dumps({"number": command["number"], **answer}) + "\n").encode())

    def decide(self, command):
        numbers = range(command["first"], command["first"] + command["count"])
        made = self.bandit.decide_many(
            [{"id": f"{number:012d}", "context": context(number)} for number in numbers]
        )
        return {
            "actions": [one.action for one in made],
            "propensities": [one.propensity for one in made],
        }

    def reward(self, command):
        rewards = [
            {"id": f"{number:012d}", "value": value, "key": key}
            for number, key, value in command["rewards"]
        ]
        return {"statuses": [one.status for one in self.bandit.reward_many(rewards)]}

    def refit(self, command):
        return {"version": self.bandit.refit().version}

    def change(self, command):
        getattr(self.bandit, command["verb"])(command["choice"])
        return {}

    def memory(self, command):
        return process_memory()


def main(place, name):
    """Work until the input ends, then close the bandit."""
    warnings.simplefilter("ignore")
    worker = SoakWorker(place, name)
    with ThreadPoolExecutor(THREADS) as pool:
        for line in sys.stdin:
            pool.submit(worker.handle, line)
    worker.bandit.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
