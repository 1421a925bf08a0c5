"""The processor time of a round with a bandit in memory, also beside other libraries."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import submax
from measuring import (
    Claim,
    PeerUnavailableError,
    at_most,
    files_entered,
    install,
    last_line,
    peer_environment,
    print_table,
    seconds,
)
from peers import front_door
from peers.front_door import ACTIONS, LIBRARIES, ROUNDS, ROWS

POLICIES = {
    "the default policy": "rcp-adaptive",
    "Thompson": "thompson-1-1",
    "SubMax": "rcp-submax",
}
WIDTH = 10
NAMES, ARMS = [f"x{number}" for number in range(WIDTH)], [f"arm {number}" for number in range(10)]
CONTEXT = dict.fromkeys(NAMES, float)
FIRST, ALL, DECISIONS = 2_000, 20_000, 500
"""Rounds with a context, of which the first are told apart; decisions alone."""


def measure() -> list[Claim]:
    """Return the claims about a bandit in memory."""
    claims = [
        at_most(f"a round of {name}, 3 actions", spent, 120, "µs")
        for name, policy in POLICIES.items()
        for spent, _ in [front_door.played(*front_door.submax(policy))]
    ]
    plain_bandit = submax.Bandit(list("ABC"), seed=1)
    plain_bandit.reward(plain_bandit.decide().id, 1.0)
    files = files_of_a_decision(plain_bandit, None)
    bandit, rng = submax.Bandit(ARMS, seed=1, context=CONTEXT), np.random.default_rng(0)
    # The first rounds import what is needed later.
    contextual_rounds(submax.Bandit(ARMS, seed=2, context=CONTEXT), 100, np.random.default_rng(2))
    first = contextual_rounds(bandit, FIRST, rng)
    rest = contextual_rounds(bandit, ALL - FIRST, rng)
    bandit.refit()
    drawn = rng.normal(size=(DECISIONS, WIDTH)).tolist()
    contexts = [dict(zip(NAMES, values, strict=True)) for values in drawn]
    alone = seconds(lambda: [bandit.decide(context) for context in contexts]) / DECISIONS
    more_files, what = files_of_a_decision(bandit, contexts[0]), "10 actions and 10 numbers"
    return [
        *claims,
        at_most(f"a round with {what}, the first {FIRST:,}", 1e6 * first / FIRST, 600, "µs"),
        at_most(f"the same over {ALL:,}", 1e6 * (first + rest) / ALL, 300, "µs"),
        at_most(f"a decision with {what}", 1e6 * alone, 120, "µs"),
        at_most("files entered by a decision", files, 12),
        at_most(f"the same with {what}, with those of the policy", more_files, 30),
        at_most("save and load it", 1e3 * saving_seconds(bandit), 1000, "ms"),
    ]


def contextual_rounds(bandit: submax.Bandit, count: int, rng: np.random.Generator) -> float:
    """Processor time of further rounds; each arm's chance depends on one number."""
    contexts, uniforms = rng.normal(size=(count, WIDTH)).tolist(), rng.random(count).tolist()

    def play() -> None:
        for values, uniform in zip(contexts, uniforms, strict=True):
            decision = bandit.decide(dict(zip(NAMES, values, strict=True)))
            seen = values[ARMS.index(str(decision.action))]
            bandit.reward(decision.id, float(uniform < 0.3 + 0.1 * (seen > 0)))

    return seconds(play)


def files_of_a_decision(bandit: submax.Bandit, context: dict[str, float] | None) -> int:
    """How many files of submax have functions that a decision calls, if it does not learn."""
    bandit.refit()
    bandit.decide(context)
    with files_entered() as files:
        bandit.decide(context)
    return len(files)


def saving_seconds(bandit: submax.Bandit) -> float:
    """Processor time of saving a bandit and loading it again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bandit.safetensors"
        return seconds(lambda: (bandit.save(path), submax.Bandit.load(path)))


# Beside other libraries ---------------------------------------------------------------------------

OWN = ("submax", "submax, Thompson", "plain Python")
SCRIPT = Path(__file__).resolve().parents[1] / "peers" / "front_door.py"


def beside_others() -> list[Claim]:
    """Print times of all libraries, the better of two in turn; claim that values of logs agree."""
    best, rewards = dict[str, float](), dict[str, float]()
    for library in [*LIBRARIES] * 2:
        found = in_its_environment("round_of", library)
        if found is not None:
            best[library] = min(found[0], best.get(library, np.inf))
            rewards[library] = found[1]
    rows = [(name, f"{spent:.1f}", f"{rewards[name]:.3f}") for name, spent in best.items()]
    print_table(f"A round, 3 actions, {ROUNDS:,} rounds", ("library", "µs", "mean reward"), rows)
    values = {one: in_its_environment("values_of", one) for one in ("submax", "obp")}
    known = {name: one for name, one in values.items() if one is not None}
    rows = [(name, f"{one[0]:.0f}", *(f"{v:.12f}" for v in one[1:])) for name, one in known.items()]
    title = f"A policy on a log of {ROWS:,} rows and {ACTIONS} actions, with intervals"
    print_table(title, ("library", "ms", "ips", "snips"), rows)
    difference = None
    if len(known) == len(values):
        difference = float(np.ptp(list(known.values()), axis=0)[1:].max())
    return [at_most("ips and snips, from those of Open Bandit Pipeline", difference, 1e-12)]


def in_its_environment(function: str, library: str) -> list[float] | None:
    """Return what a function of the script returns for a library; None if it does not run here."""
    try:
        python = sys.executable if library in OWN else str(install(library))
        command = [python, "-W", "ignore", str(SCRIPT), function, library]
        done = subprocess.run(command, capture_output=True, text=True, env=peer_environment())
        if done.returncode:
            raise PeerUnavailableError(last_line(done.stderr))
    except PeerUnavailableError as error:
        print(f"{library}: {error}", flush=True)
        return None
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found
