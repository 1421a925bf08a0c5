"""Small instances of every built-in class, for the conformance suites of this project."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from submax import Binary, Classification, Continuous, Counts, Discrete
from submax.core.registry import Registry
from submax.policies.registry import PARTS
from submax.research.beyond.adversarial import Adversarial
from submax.research.beyond.designs import Designs

BRIEF = "{ steps = 6, batch = 8, learning_rate = 0.05 }"
TEXT = Path(__file__).with_name("examples.toml").read_text(encoding="utf-8")
EXAMPLES = tomllib.loads(TEXT.replace('"brief"', BRIEF))


def examples_of(registry: Registry[Any]) -> Iterator[Any]:
    """Yield the examples of every built-in class of a registry."""
    for kind in registry.homes:
        yield from examples(registry, kind)


def examples(registry: Registry[Any], kind: str) -> Iterator[Any]:
    """Yield the examples of one built-in class."""
    if kind in TABLES:
        yield from TABLES[kind]()
        return
    for table in EXAMPLES[registry.word].get(kind, [{}]):
        yield registry.build({"kind": kind, **table}, PARTS)


def _adversarial() -> Iterator[Adversarial]:
    """Two arms that are good in turn."""
    yield Adversarial.of(np.tile([[1.0, 0.0], [0.0, 0.5]], (20, 1)))


def _classification() -> Iterator[Classification]:
    """Distinct and repeated features, with and without replacement, labels of all types."""
    rng = np.random.default_rng(0)
    yield Classification.of(rng.standard_normal((100, 3)), rng.integers(4, size=100))
    repeated = rng.integers(3, size=(200, 3)).astype(np.float64)
    labels = rng.choice(["bad", "good"], size=200)
    yield Classification.of(repeated, labels, standardize=False)
    numbers = rng.standard_normal((50, 2))
    yield Classification.of(numbers, rng.integers(3, size=50), replacement=False)
    labels = rng.integers(3, size=200)
    yield Classification.of(repeated, labels, replacement=False, pays=(0.01, 0.1))


def _designs() -> Iterator[Designs]:
    """Three slots, one of them with a single choice, without and with noise."""
    rng = np.random.default_rng(0)
    first, second = np.divmod(np.arange(12), 4)
    columns = {"first": first, "fixed": ["same"] * 12, "second": second}
    yield Designs.of({**columns, "value": rng.standard_normal(12)})
    yield Designs.of({**columns, "value": np.arange(12.0)}, noise=0.5, minimize=True)


TABLES = {
    "adversarial": _adversarial,
    "classification": _classification,
    "designs": _designs,
}
"""Environments that are made from arrays."""

SCALES = [
    Binary(),
    Discrete((-1.0, 0.0, 2.0)),
    Discrete((1.0, 2.0, 3.0, 4.0, 5.0), asked=3),
    Continuous(),
    Continuous(low=-5.0, high=50.0, quantiles=(0.0, 1.0), asked=4, bin_edges=3),
    Counts(),
    Counts(quantiles=(0.0, 1.0), asked=4, bin_edges=2),
]
