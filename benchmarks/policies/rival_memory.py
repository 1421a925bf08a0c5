"""Measure the peak memory of every policy of the experiments with rivals, each in its own process.

    python benchmarks/policies/rival_memory.py --out memory.csv

A process runs one policy on the processor, with 4 replicas and 3000 decisions in the experiment's
first configuration, and reports its peak resident memory. The memory of random choice in the same
experiment, which is that of Python, JAX and the environment, is subtracted.
"""

import argparse
import csv
import os
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

EXPERIMENTS = (
    "contextual-rivals",
    "combinatorial-rivals",
    "pricing-rivals",
    "bakeoff-dense-rivals",
    "bakeoff-rare-rivals",
)
DECISIONS, REPLICAS = 3000, 4
MEGABYTE = 2**20


def measure(experiment: str, place: int) -> None:
    """Run one policy in this process, and print its name and the peak memory in bytes."""
    import resource
    import warnings

    import jax  # noqa: F401  # random choice must have the memory of JAX, too

    from submax.simulation.experiment import (
        configurations,
        load_named,
        make_delay,
        make_environment,
        policy_name,
        policy_of,
    )
    from submax.simulation.simulate import simulate

    warnings.simplefilter("ignore")
    specification = load_named(experiment)
    environment, delay = configurations(specification)[0]
    row = specification.policies[place]
    simulate(
        make_environment(environment),
        policy_of(row),
        observations=DECISIONS,
        replicas=REPLICAS,
        delay=make_delay(delay),
        seed=7,
    )
    # Linux gives kilobytes, macOS bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    print(f"{policy_name(row)}\t{peak}")


def measured(experiment: str, place: int) -> tuple[str, str, int]:
    """Return experiment, policy and peak memory, from a process of its own."""
    command = [sys.executable, __file__, "--measure", experiment, str(place)]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    name, peak = done.stdout.strip().splitlines()[-1].split("\t")
    return experiment, name, int(peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", choices=EXPERIMENTS, nargs="+", default=EXPERIMENTS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--measure", nargs=2, metavar=("EXPERIMENT", "PLACE"))
    given = parser.parse_args()
    if given.measure:
        measure(given.measure[0], int(given.measure[1]))
        return
    if given.out is None:
        parser.error("--out is missing: name the file to write, such as --out memory.csv")
    write(given.out, given.only, given.jobs)


def write(out: Path, experiments: Iterable[str], jobs: int | None) -> None:
    """Measure all policies of the experiments, and write a row as soon as it is known."""
    from submax.simulation.experiment import load_named

    tasks = [
        (name, place) for name in experiments for place in range(len(load_named(name).policies))
    ]
    base: dict[str, int] = {}
    with ThreadPoolExecutor(jobs) as pool, out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["experiment", "policy", "megabytes"])
        for experiment, name, peak in pool.map(lambda task: measured(*task), tasks):
            # Random choice is the first policy of every experiment.
            least = base.setdefault(experiment, peak)
            writer.writerow([experiment, name, f"{(peak - least) / MEGABYTE:.0f}"])
            file.flush()


if __name__ == "__main__":
    main()
