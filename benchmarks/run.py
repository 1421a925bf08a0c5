"""Run the benchmarks and print every claim beside its limit and what was measured.

The exit status is 1 if a claim does not hold.
"""

import argparse
import importlib
import sys

from measuring import Claim, alone, print_claims, when_and_where

BENCHMARKS = {
    "memory": "live.memory:measure",
    "peers": "live.memory:beside_others",
    "store": "live.store:measure",
    "services": "serving.services:measure",
    "server": "serving.server:measure",
    "throughput": "policies.speed:throughput",
    "sweep": "policies.speed:sweep",
    "adaptive": "policies.speed:adaptive",
    "contexts": "policies.speed:contexts",
    "evaluation": "logs.evaluation:measure",
}
"""The function that returns the claims of each benchmark."""
GROUPS = {"bandit": ["memory", "store", "server"]}
"""Benchmarks that are run together under one name."""


def measure(place: str) -> list[Claim]:
    """Return the claims of one benchmark."""
    module, _, function = place.partition(":")
    claims: list[Claim] = getattr(importlib.import_module(module), function)()
    return claims


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[*BENCHMARKS, *GROUPS], nargs="+", help="run only these")
    claims: list[Claim] = []
    chosen = parser.parse_args().only or BENCHMARKS
    for name in dict.fromkeys(one for word in chosen for one in GROUPS.get(word, [word])):
        claims += alone(measure, BENCHMARKS[name])
    print_claims(claims)
    print(when_and_where())
    return int(any(claim.holds is False for claim in claims))


if __name__ == "__main__":
    sys.exit(main())
