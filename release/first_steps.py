"""Take the first steps of a new user with the base of submax, without any extra.

``make release`` runs this file in an empty environment in which only the wheel is installed, and a
test runs it with all other packages hidden. It needs nothing but submax. The exit status is 1 if a
step fails.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import submax

MODULES_AT_START = set(sys.modules)

from click import Group  # noqa: E402 - what importing submax alone brings is looked at first
from click.testing import CliRunner  # noqa: E402 - as above

from submax.cli import main as command_line  # noqa: E402 - as above

HEAVY = (
    *("numpy", "scipy", "click", "rich", "msgspec", "safetensors", "httpx"),
    *("pyarrow", "matplotlib"),
)
EXPERIMENT = """
observations = 60
replicas = 3
policies = ["random", "rcp-submax"]
[environment]
kind = "bernoulli"
arms = 3
"""
STUDY = "results/mine"
MISSING = (
    ("plots", "plot", STUDY),
    ("logs", "evaluate", "visits.csv", "--policy", "random"),
    ("logs", "learn", "visits.csv", "--policy", "ucb1", "--out", "p.safetensors"),
    ("logs", "tune", "visits.csv", "--policy", "ucb1", "--search", "exploration=0.1..1"),
    ("logs", "export", "--store", "page.db", "--out", "page.parquet"),
    ("data", "reproduce", "offline", "--quick"),
    ("neural", "reproduce", "contextual", "--quick"),
    ("server", "serve", "page.db"),
    ("server", "demo"),
    ("plots", "simulate", "mine.toml"),
)
"""Commands that need an extra, which each of them must name."""


def main() -> int:
    """Take all steps in a temporary folder; the first one that fails ends the program."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("mine.toml").write_text(EXPERIMENT)
        Path("visits.csv").write_text("action,reward\na,1\nb,0\n")
        for step in (import_submax, decide, store_decisions, give_help, name_extras):
            step()
            print(f"ok  {(step.__doc__ or '').strip()}")
        os.chdir("/")
    return 0


def import_submax() -> None:
    """Importing submax imports no other package."""
    found = [name for name in HEAVY if name in MODULES_AT_START]
    check(not found, f"import submax imports {found}")
    check("Bandit" in dir(submax), "dir(submax) does not list Bandit")


def decide() -> None:
    """A bandit in memory decides, learns, and is saved and loaded."""
    bandit = submax.Bandit(["A", "B", "C"])
    decision = bandit.decide()
    bandit.reward(decision.id, 1.0)
    bandit.save("bandit.safetensors")
    again = submax.Bandit.load("bandit.safetensors")
    check(again.decide().action in "ABC", "a bandit that was loaded does not decide")
    trace = submax.simulate(
        submax.Bernoulli(3), submax.make_policy("rcp-submax"), observations=50, replicas=2, seed=0
    )
    check(trace.accumulated_regret.shape[0] == 2, "a simulation has another number of replicas")


def store_decisions() -> None:
    """A bandit with a SQLite store decides, learns a version, and is opened again."""
    context: dict[str, Any] = {"age": float, "country": ["de", "fr"]}
    with submax.open("page.db", actions=["A", "B"], context=context, reward_wait=0) as bandit:
        for number in range(20):
            decision = bandit.decide({"age": 30.0 + number, "country": "de"})
            bandit.reward(decision.id, float(number % 2))
        bandit.refit()
        check(bandit.version == 1, f"after a refit the version is {bandit.version}, not 1")
    with submax.open("page.db") as bandit:
        check(bandit.version == 1, "a bandit that was opened again has another version")
        bandit.summarize()


def give_help() -> None:
    """Every command explains itself, and those of policies and stores need no extra."""
    for words in commands(command_line):
        run(*words, "--help")
    run("policies")
    run("bandit", "status", "--store", "page.db")
    run("store", "doctor", "page.db")


def name_extras() -> None:
    """A command that needs an extra names it, with the code missing-extra, and does nothing."""
    for extra, *words in MISSING:
        text = run(*words, status=2)
        check(
            f'pip install "submax[{extra}]"' in text and "(missing-extra)" in text,
            f"submax {' '.join(words)} does not name the extra {extra}: {text}",
        )
    try:
        from submax.simulation.figures import curves
    except submax.MissingExtraError as error:
        check(error.code == "missing-extra", f"the code is {error.code}")
    else:
        check(False, f"{curves} is there without matplotlib")


def commands(group: Group, *before: str) -> list[list[str]]:
    """Return the words of every command, and of every group of commands."""
    found = [[*before]]
    for name, one in group.commands.items():
        found += commands(one, *before, name) if isinstance(one, Group) else [[*before, name]]
    return found


def run(*words: str, status: int = 0) -> str:
    """Run a command, check its exit status, and return all that it printed."""
    done = CliRunner().invoke(command_line, words)
    text = done.output
    check(done.exit_code == status, f"submax {' '.join(words)}: {done.exit_code}, {text}")
    return text


def check(condition: bool, sentence: str) -> None:
    """End the program with a sentence unless the condition holds."""
    if not condition:
        raise SystemExit(sentence)


if __name__ == "__main__":
    sys.exit(main())
