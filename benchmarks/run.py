"""Run the benchmarks and print every claim beside what was measured.

The exit status is 1 if a claim does not hold.
"""

import argparse
import importlib
import sys

from claim import Claim, print_claims

MODULES = {
    "throughput": "throughput",
    "thompson": "thompson",
    "sweep": "whole_sweep",
    "networks": "networks",
    "continued": "continued",
    "levels": "linear_program",
    "live": "live",
    "server": "server",
    "memory": "memory",
    "reading": "live_reading",
    "evaluation": "evaluation",
    "adaptive": "adaptive",
    "contexts": "contexts",
    "growth": "growth",
    "services": "services",
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
    return int(any(claim.holds is False for claim in claims))


if __name__ == "__main__":
    sys.exit(main())
