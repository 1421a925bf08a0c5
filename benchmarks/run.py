"""Run the benchmarks and print every claim beside its limit and what was measured.

The exit status is 1 if a claim does not hold.
"""

import argparse
import importlib
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from measuring import Claim, print_claims, when_and_where

MODULES = {
    "memory": "live.memory",
    "store": "live.store",
    "services": "serving.services",
    "server": "serving.server",
    "throughput": "policies.throughput",
    "sweep": "policies.sweep",
    "adaptive": "policies.adaptive",
    "contexts": "policies.contexts",
    "evaluation": "logs.evaluation",
}


def measure(module: str) -> list[Claim]:
    """Return the claims of one benchmark."""
    claims: list[Claim] = importlib.import_module(module).measure()
    return claims


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=MODULES, nargs="+", help="run only these")
    claims: list[Claim] = []
    for name in parser.parse_args().only or MODULES:
        # Each in a process of its own, so that none has the memory or the packages of another.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            claims += pool.submit(measure, MODULES[name]).result()
    print_claims(claims)
    print(when_and_where())
    return int(any(claim.holds is False for claim in claims))


if __name__ == "__main__":
    sys.exit(main())
