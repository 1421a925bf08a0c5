"""Run the benchmarks and print every claim beside what was measured.

The exit status is 1 if a claim does not hold.
"""

import argparse
import importlib
import sys

from measuring.claim import Claim, print_claims
from measuring.machine import when_and_where

MODULES = {
    "throughput": "policies.throughput",
    "sweep": "policies.whole_sweep",
    "server": "serving.server",
    "memory": "live.memory",
    "learning": "live.durable_learning",
    "store": "live.store",
    "evaluation": "logs.evaluation",
    "adaptive": "policies.adaptive",
    "contexts": "policies.contexts",
    "services": "serving.services",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=MODULES, help="run one benchmark only")
    only = parser.parse_args().only
    claims: list[Claim] = []
    for name in [only] if only else MODULES:
        # Imported only when it runs, because benchmarks need different packages.
        claims += importlib.import_module(MODULES[name]).measure()
    print_claims(claims)
    print(when_and_where())
    return int(any(claim.holds is False for claim in claims))


if __name__ == "__main__":
    sys.exit(main())
