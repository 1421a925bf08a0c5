"""The cells of an experiment: every configuration with every policy."""

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
from submax.core.contracts.context_ignored_warning import ignored_contexts_allowed
from submax.core.contracts.environment import Environment
from submax.core.contracts.policy import Policy
from submax.core.errors import InputError, MissingExtraError, one_line
from submax.core.running.fallback import counted_fallbacks
from submax.environments import ENVIRONMENTS
from submax.experiments.configurations import configurations
from submax.experiments.specification import Specification, own_file, policy_name
from submax.policies.specification import PolicySpecification
from submax.simulation import DELAYS
from submax.simulation.batch_flush import BatchFlush
from submax.simulation.cell_result import CellResult, Seconds
from submax.simulation.delay import Delay
from submax.simulation.meter import count
from submax.simulation.running.timed import Timed
from submax.simulation.simulate import simulate

Labels = dict[str, Any]
"""The columns of a result that describe its configuration, by name."""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration with one policy, as plain data that can be sent to any process.

    ``own_code`` is a digest of the user's own files that the cell uses. ``first_replica`` is above
    0 if the replicas were added to others.
    """

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
    first_replica: int = 0
    version: str = __version__

    @property
    def key(self) -> str:
        """A digest of the cell: equal on every machine for the same work by the same code."""
        return _digest(_portable(msgspec.to_builtins(self)))[:24]

    @property
    def decisions(self) -> int:
        """The number of decisions in all replicas."""
        return self.observations * self.replicas


def cells(specification: Specification) -> list[Cell]:
    """All cells of an experiment; a value that is not allowed anywhere is refused here.

    If an environment allows fewer decisions than ``observations``, its cells take as many as it
    allows.
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
        raise InputError(
            "a list in [environment] or [delay] has the same value twice, and every configuration "
            "must be there once: remove the repeated value"
        )
    return found


def rehearse(cells: Iterable[Cell]) -> list[str]:
    """Let every policy take four decisions in every environment, to find errors before the sweep.

    Return the names of policies that do not look at the context of their environment.

    Policies from the user's own files are also updated twice. Policies of submax are not, because
    the training of a network would take too long.
    """
    ignoring: dict[str, None] = {}
    # Making an environment can mean reading a file, so it is made once for all its policies.
    for table, group in itertools.groupby(cells, key=lambda cell: cell.environment):
        environment = make_environment(table)
        for cell in {_digest(cell.policy): cell for cell in group}.values():
            _rehearse_policy(cell, environment)
            facts = policy_of(cell.policy).facts
            if environment.problem.context_width and facts.learns and not facts.uses_context:
                ignoring[cell.policy_name] = None
    return list(ignoring)


def _rehearse_policy(cell: Cell, environment: Environment[Any]) -> None:
    policy = policy_of(cell.policy)
    delay = BatchFlush(2 if _own_code([cell.policy]) else 5)
    observations = _at_most(4, environment)
    try:
        with ignored_contexts_allowed():
            # Four decisions fill two batches of 2, but no batch of 5.
            simulate(environment, policy, observations=observations, replicas=2, delay=delay)
    except (InputError, MissingExtraError):
        raise
    except Exception as error:
        raise InputError(
            f"policy {cell.policy_name!r} failed in a trial run in {environment}: "
            f"{one_line(error)}; correct the policy, or leave it out of policies"
        ) from error


def _at_most(observations: int, environment: Environment[Any]) -> int:
    """The number of decisions, reduced to what the environment allows."""
    most = environment.most_decisions
    return observations if most is None else min(observations, most)


def run_cell(cell: Cell) -> CellResult:
    """Simulate one cell; all policies and delays of one environment meet the same worlds."""
    begin, compiled = time.perf_counter(), _compiling_seconds()
    policy = Timed(policy_of(cell.policy))
    with counted_fallbacks() as fallbacks, ignored_contexts_allowed():
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
    """The seed of a cell, which is the same for all policies and delays of one environment."""
    seed = [cell.seed, int(_digest(_portable(cell.environment))[:16], 16)]
    return [*seed, cell.first_replica] if cell.first_replica else seed


def _compiling_seconds() -> float:
    """The seconds that this process has spent on compiling networks; 0 if it trained none."""
    module = sys.modules.get("submax.models.nn.training.training")
    return 0.0 if module is None else float(module.compiling_seconds())


def named_policies(
    specification: Specification,
) -> Iterator[tuple[str, str | dict[str, Any]]]:
    """The policies by the names they have in results; each is built once to check it."""
    seen = set()
    for policy in [*specification.policies, *specification.more_policies]:
        policy_of(policy)
        name = policy_name(policy)
        if not isinstance(name, str) or not name.strip() or len(name) > 100:
            raise InputError(
                f"the name of a policy must be a text of 1 to 100 characters, not {name!r}"
            )
        if name in seen:
            raise InputError(
                f"two policies are called {name!r}, and names must be unique: give one of them "
                'another name, such as { name = "mine", kind = ... }'
            )
        seen.add(name)
        yield name, policy


def make_environment(table: Mapping[str, Any]) -> Environment[Any]:
    """An environment from its table."""
    return ENVIRONMENTS.build(table, {})


def make_delay(table: Mapping[str, Any]) -> Delay:
    """A delay from its table."""
    return DELAYS.build(table, {})


def policy_of(specification: str | Mapping[str, Any]) -> Policy[Any]:
    """A policy from the name of a preset or from a table, whose ``name`` is not a parameter."""
    return PolicySpecification.of(specification).build()


def _labels(environment: Environment[Any], delay: Delay) -> Labels:
    """The configuration as columns of a result: the environment's fields and the delay."""
    if not dataclasses.is_dataclass(environment):
        raise InputError(
            f"the environment {environment} must be a dataclass: write @dataclass(frozen=True) "
            "above its class"
        )
    fields = dataclasses.asdict(environment)
    for name in ("delay", "policy"):
        if name in fields:
            raise InputError(
                f"the environment {environment} has a field {name!r}, which is the name of a "
                "column of the results: rename the field"
            )
    # A field that is None, such as given means, is not used, and needs no column.
    used = {key: _plain(value) for key, value in fields.items() if value is not None}
    return {**used, "delay": delay.length}


def _plain(value: Any) -> Any:
    """The value as a number or text for a table."""
    if isinstance(value, tuple):
        return "x".join(str(_plain(one)) for one in value) or "none"
    if own_file(value) is not None:
        return Path(value).name
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _own_code(value: Any) -> str:
    """The digests of the user's own files in a specification; a change of a file changes them."""
    if isinstance(value, Mapping):
        return _own_code([one for key, one in value.items() if key != "name"])
    if isinstance(value, list):
        return "".join(_own_code(one) for one in value)
    path = own_file(value)
    return "" if path is None else hashlib.sha256(path.read_bytes()).hexdigest()


def _portable(value: Any) -> Any:
    """The value with paths of the user's own files replaced by their names and digests."""
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
