"""Settings in the forms in which they are pasted: TOML, Python, and commands."""

import json
import shlex
from typing import Any

from submax.recommendation.answers import Answers
from submax.recommendation.rule_table import Specification

NAMED = 5
"""Up to this many actions are written out in Python; more are written as a list comprehension."""
IN_A_COMMAND = 20
"""Up to this many actions are written into a command; more are better declared in Python."""
EXPLORED = 0.05
"""The share of decisions that the guard rail of a deterministic policy spreads over all actions."""
SCALES: dict[str, Any] = {
    "ratings": {"kind": "discrete", "values": [1, 2, 3, 4, 5]},
    "numbers": "continuous",
    "counts": "counts",
    "sparse-counts": "counts",
}
"""How rewards are declared that are not 0 and 1."""


def settings_of(answers: Answers, policy: Specification, deterministic: bool) -> dict[str, Any]:
    """Return the declaration of a bandit beside its actions and context, in plain data."""
    found: dict[str, Any] = {"policy": policy}
    if answers.rewards in SCALES:
        found["rewards"] = SCALES[answers.rewards]
    if answers.rewards == "ratings":
        # A visitor who gives no rating has not given the lowest one.
        found["default_reward"] = None
    if answers.batch == 1:
        found["reward_wait"] = 0
    found["refit_rows"] = answers.batch
    if deterministic:
        found["guard_rails"] = {"minimum": float(f"{EXPLORED / answers.actions:.1g}")}
    return found


def actions_of(answers: Answers) -> Any:
    """Return actions with names to be replaced, in plain data."""
    if answers.choose == "number":
        return {"price": [1.0, 10.0]}
    if answers.choose == "arms":
        return _names("action", answers.actions)
    return {f"slot-{n}": _names("choice", size) for n, size in enumerate(answers.sizes, start=1)}


def context_of(answers: Answers) -> dict[str, Any]:
    """Return an example of a context, in plain data; empty if there is none."""
    return {"age": "number", "country": ["de", "fr"]} if answers.context else {}


def python_call(answers: Answers, settings: dict[str, Any]) -> str:
    """Return a call of ``submax.open`` in which only names have to be replaced."""
    words = [f"actions={_python_actions(answers)}"]
    if answers.context:
        words.append('context={"age": float, "country": ["de", "fr"]}')
    words += [f"{key}={python_of(value)}" for key, value in settings.items()]
    lines = ",\n    ".join(words)
    return f'bandit = submax.open(\n    "bandit.db",\n    {lines},\n)'


def server_commands(answers: Answers, settings: dict[str, Any]) -> str:
    """Return the commands that start a server and declare the bandit over HTTP."""
    if sum(answers.sizes) > IN_A_COMMAND:
        return "submax serve bandit.db   # after the Python lines above have declared the bandit"
    body = {"name": "bandit", "actions": actions_of(answers)}
    if answers.context:
        body["context"] = context_of(answers)
    text = json.dumps({**body, **settings})
    address = "http://127.0.0.1:8000/bandits"
    return f"submax serve bandit.db\ncurl --json {shlex.quote(text)} {address}"


def policies_toml(policy: Specification, runner_up: Specification) -> str:
    """Return the policies of an experiment that compares the two."""
    return f"policies = [\n    {_toml(policy)},\n    {_toml(runner_up)},\n]"


def policy_word(policy: Specification) -> str:
    """Return the policy as a word of a command line."""
    return policy if isinstance(policy, str) else shlex.quote(json.dumps(policy))


def python_of(value: Any) -> str:
    """Return plain data as Python with the quotes of the guides.

    >>> print(python_of({"kind": "thompson", "beta": 9.0, "name": None}))
    {"kind": "thompson", "beta": 9.0, "name": None}
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{python_of(k)}: {python_of(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(python_of(one) for one in value) + "]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _names(word: str, count: int) -> list[str]:
    return [f"{word}-{number}" for number in range(1, count + 1)]


def _python_actions(answers: Answers) -> str:
    if answers.choose == "number":
        return '{"price": (1.0, 10.0)}'
    if answers.choose == "arms":
        return _python_names("action", answers.actions)
    slots = (
        f'"slot-{n}": {_python_names("choice", size)}'
        for n, size in enumerate(answers.sizes, start=1)
    )
    return f"{{{', '.join(slots)}}}"


def _python_names(word: str, count: int) -> str:
    if count <= NAMED:
        return json.dumps(_names(word, count))
    return f'[f"{word}-{{n}}" for n in range(1, {count + 1})]'


def _toml(value: Any) -> str:
    """A value in TOML on one line; tables are inline."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    return json.dumps(value)
