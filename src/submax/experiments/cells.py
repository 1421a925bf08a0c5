"""From a specification to the cells of its sweep."""

import dataclasses
import hashlib
import itertools
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from submax._version import __version__
from submax.core.checks import one_of
from submax.core.contracts.environment import Environment
from submax.core.contracts.policy import Policy
from submax.core.errors import InputError, one_line
from submax.core.running.fallback import counted_fallbacks
from submax.environments import ENVIRONMENTS
from submax.experiments.specification import Specification, own_file, policy_name
from submax.policies.specification import PolicySpecification
from submax.simulation import DELAYS
from submax.simulation.batch_flush import BatchFlush
from submax.simulation.cell_result import CellResult, Seconds
from submax.simulation.delay import Delay
from submax.simulation.meter import count
from submax.simulation.simulate import simulate
from submax.simulation.timed import Timed

Labels = dict[str, Any]


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration with one policy, as plain data that any process can run."""

    labels: Labels
    policy_name: str
    environment: dict[str, Any]
    delay: dict[str, Any]
    policy: str | dict[str, Any]
    observations: int
    replicas: int
    seed: int
    points: int
    own_code: str = ""
    version: str = __version__

    @property
    def key(self) -> str:
        """The same for the same work by the same code, in every process and on every machine."""
        return _digest(_portable(msgspec.to_builtins(self)))[:24]

    @property
    def decisions(self) -> int:
        """How many decisions the cell takes."""
        return self.observations * self.replicas


def cells(specification: Specification) -> list[Cell]:
    """Every configuration with every policy; a wrong value anywhere is refused here.

    A cell in an environment that allows fewer decisions than ``observations`` takes all of those.
    """
    policies = dict(named_policies(specification))
    found: list[Cell] = []
    for environment, delay in configurations(specification):
        made = make_environment(environment)
        labels = _labels(made, make_delay(delay))
        observations = _at_most(specification.observations, made)
        for name, policy in policies.items():
            found.append(
                Cell(
                    labels=labels,
                    policy_name=name,
                    environment=environment,
                    delay=delay,
                    policy=policy,
                    observations=observations,
                    replicas=specification.replicas,
                    seed=specification.seed,
                    points=specification.points,
                    own_code=_own_code([environment, delay, policy]),
                )
            )
    for key in specification.reference:
        one_of("key of reference:", key, found[0].labels)
    if len({cell.key for cell in found}) < len(found):
        raise InputError("a list in environment or delay names the same value twice")
    return found


def rehearse(cells: Iterable[Cell]) -> None:
    """Let every policy decide in every environment, so that misfits show at once.

    A policy of the user's own also learns; to train a network twice would take too long.
    """
    # Making an environment may mean reading a table, so each is made once for all its policies.
    for table, group in itertools.groupby(cells, key=lambda cell: cell.environment):
        environment = make_environment(table)
        for cell in {_digest(cell.policy): cell for cell in group}.values():
            _rehearse_policy(cell, environment)


def _rehearse_policy(cell: Cell, environment: Environment[Any]) -> None:
    policy = policy_of(cell.policy)
    delay = BatchFlush(2 if _own_code([cell.policy]) else 5)
    observations = _at_most(4, environment)
    try:
        simulate(environment, policy, observations=observations, replicas=2, delay=delay)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"policy {cell.policy_name!r} fails in {environment}: {one_line(error)}"
        ) from error


def _at_most(observations: int, environment: Environment[Any]) -> int:
    """So many decisions, or as many as the environment allows if that is fewer."""
    most = environment.most_decisions
    return observations if most is None else min(observations, most)


def run_cell(cell: Cell) -> CellResult:
    """Simulate one cell. All policies and delays of one environment meet the same worlds."""
    begin, compiled = time.perf_counter(), _compiling_seconds()
    policy = Timed(policy_of(cell.policy))
    with counted_fallbacks() as fallbacks:
        trace = simulate(
            make_environment(cell.environment),
            policy,
            observations=cell.observations,
            replicas=cell.replicas,
            delay=make_delay(cell.delay),
            seed=seed_of(cell),
            points=cell.points,
            progress=count,
        )
    compiling = _compiling_seconds() - compiled
    seconds = time.perf_counter() - begin
    training = policy.learning - compiling
    spent = Seconds(seconds, policy.deciding, training, compiling)
    return CellResult.of(trace, spent, sum(fallbacks))


def seed_of(cell: Cell) -> list[int]:
    """The same for all policies and delays of one environment."""
    return [cell.seed, int(_digest(_portable(cell.environment))[:16], 16)]


def _compiling_seconds() -> float:
    """What this process spent so far; nothing where no network was trained."""
    module = sys.modules.get("submax.nn.training.training")
    return 0.0 if module is None else float(module.compiling_seconds())


def named_policies(
    specification: Specification,
) -> Iterator[tuple[str, str | dict[str, Any]]]:
    """The policies under the names they have in results; each is built once to check it."""
    seen = set()
    for policy in specification.policies:
        policy_of(policy)
        name = policy_name(policy)
        if not isinstance(name, str) or not name.strip() or len(name) > 100:
            raise InputError(f"a policy's name must be a text of 1 to 100 letters, not {name!r}")
        if name in seen:
            raise InputError(f"two policies are called {name!r}; give one a 'name' of its own")
        seen.add(name)
        yield name, policy


def configurations(
    specification: Specification,
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every combination of the values listed for environment and delay."""
    yield from itertools.product(
        _combinations(specification.environment), _combinations(specification.delay)
    )


def make_environment(table: Mapping[str, Any]) -> Environment[Any]:
    """An environment from its table."""
    return ENVIRONMENTS.build(table, {})


def make_delay(table: Mapping[str, Any]) -> Delay:
    """A delay from its table."""
    return DELAYS.build(table, {})


def policy_of(specification: str | Mapping[str, Any]) -> Policy[Any]:
    """A policy from its name or table; the name it has in results is no parameter."""
    return PolicySpecification.of(specification).build()


def _combinations(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    choices = [value if isinstance(value, list) else [value] for value in table.values()]
    for key, value in table.items():
        if value == []:
            raise InputError(f"{key} must list at least one value, not []")
    for values in itertools.product(*choices):
        yield dict(zip(table, values, strict=True))


def _labels(environment: Environment[Any], delay: Delay) -> Labels:
    """The configuration in words and numbers: the columns of every result."""
    if not dataclasses.is_dataclass(environment):
        raise InputError(f"an environment must be a dataclass, and {environment} is not")
    fields = dataclasses.asdict(environment)
    for name in ("delay", "policy"):
        if name in fields:
            raise InputError(f"an environment's field cannot be called {name!r}: results use it")
    return {**{key: _plain(value) for key, value in fields.items()}, "delay": delay.length}


def _plain(value: Any) -> Any:
    """A number or text that a table can hold."""
    if isinstance(value, tuple):
        return "x".join(map(str, value)) or "none"
    if own_file(value) is not None:
        return Path(value).name
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _own_code(value: Any) -> str:
    """A digest of the user's own files named in a specification; the same text, the same cells."""
    if isinstance(value, Mapping):
        return _own_code([one for key, one in value.items() if key != "name"])
    if isinstance(value, list):
        return "".join(_own_code(one) for one in value)
    path = own_file(value)
    return "" if path is None else hashlib.sha256(path.read_bytes()).hexdigest()


def _portable(value: Any) -> Any:
    """The same with the user's own files by name and content, wherever they lie."""
    if isinstance(value, Mapping):
        return {key: _portable(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_portable(one) for one in value]
    path = own_file(value)
    if path is None:
        return value
    name = str(value)[len(str(path.parent)) + 1 :]
    return [name, hashlib.sha256(path.read_bytes()).hexdigest()]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
