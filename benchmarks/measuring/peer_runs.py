"""Other bandit libraries, each in a virtual environment of its own.

Their dependencies conflict with each other and with ours. Each library is installed on demand, with
the running Python, under ``.venv-bench/``, and run by its script in ``peers/``.
"""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parents[1]
ENVIRONMENTS = HERE.parent / ".venv-bench"
ADDITIONAL = {
    # Our script needs numpy, which gittins itself does not require.
    "gittins": ("numpy",),
    "vowpalwabbit": ("numpy",),
    # It imports scipy.special.btdtri, which later versions no longer have.
    "SMPyBandits": ("scipy<1.14",),
}
"""Packages that a peer needs in addition to its own requirement."""
REPLACED_DEPENDENCIES = {
    # It requires versions of PyYAML and others that no longer build, and runs with later ones.
    "obp": (
        "torch",
        "scikit-learn",
        "pandas",
        "matplotlib",
        "seaborn",
        "tqdm",
        "pyyaml",
        "mypy-extensions",
    ),
}
"""Peers that are installed without their declared dependencies, and the packages used instead."""
OTHER_PROBLEMS = ("torch", "vowpalwabbit", "obp", "gittins", "contextualbandits")
"""Peers that do not play the problem of ``throughput.py``."""
TIMEOUT = 600
"""Seconds after which an installation or a run is stopped."""


class PeerUnavailableError(Exception):
    """A peer does not install or run on this machine; the message is one line with the reason."""


class PeerRate(NamedTuple):
    """Decisions per second of one policy of a peer."""

    peer: str
    version: str
    policy: str
    rate: float


def peers() -> dict[str, str]:
    """Name and requirement of every peer, from the extra ``bench`` of the project."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    requirements = project["project"]["optional-dependencies"]["bench"]
    return {requirement.partition(">")[0]: requirement for requirement in requirements}


def bandit_peers() -> list[str]:
    """The peers that play the problem of ``throughput.py``; the others have their own problems."""
    return [peer for peer in peers() if peer not in OTHER_PROBLEMS]


def install(peer: str) -> Path:
    """The Python of the peer's virtual environment, which is created if necessary."""
    folder = ENVIRONMENTS / peer.lower()
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    wanted = [peers()[peer], *ADDITIONAL.get(peer, ()), *REPLACED_DEPENDENCIES.get(peer, ())]
    # This file is written last, so that an interrupted installation is repeated.
    done = folder / "installed.txt"
    if not done.exists() or done.read_text(encoding="utf-8").split() != wanted:
        print(f"installing {' and '.join(wanted)} under {ENVIRONMENTS.name}/ ...", flush=True)
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        install = [str(python), "-m", "pip", "install", "--quiet"]
        if peer in REPLACED_DEPENDENCIES:
            _run([*install, "--no-deps", wanted[0]])
            _run([*install, *wanted[1:]])
        else:
            _run([*install, *wanted])
        done.write_text("\n".join(wanted), encoding="utf-8")
    return python


def run_peer(peer: str, *arguments: str) -> str:
    """Run the peer's script and return what it prints."""
    script = str(HERE / "peers" / f"{peer.lower()}_peer.py")
    return _run([str(install(peer)), script, *arguments])


def ask(peer: str, *arguments: str) -> list[PeerRate]:
    """Let the peer play its problem once with each of its policies."""
    output = run_peer(peer, *arguments)
    # Some peers print warnings of their own on the same stream.
    results = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [
        PeerRate(
            result["peer"],
            result["version"],
            result["policy"],
            result["decisions"] / result["seconds"],
        )
        for result in results
    ]


def _run(command: Sequence[str]) -> str:
    # Our own packages must not shadow those of the peer.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=True
        )
    except subprocess.CalledProcessError as error:
        raise PeerUnavailableError(_last_line(error.stderr)) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerUnavailableError(str(error)) from error
    return done.stdout


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it failed without a message"
