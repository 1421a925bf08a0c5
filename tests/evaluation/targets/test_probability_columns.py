"""Policies whose probabilities are columns of the log."""

import numpy as np
import pytest
from click.testing import CliRunner
from refusals import raises_code

from submax.cli import main
from submax.evaluation import Log, compare


@pytest.fixture
def table(seed) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    probability = rng.dirichlet(np.ones(3), size=300)
    given = {
        "action": rng.choice(["A", "B", "C"], 300),
        "reward": rng.integers(2, size=300),
        "propensity": np.full(300, 1 / 3),
        "at": rng.permutation(300),
    }
    # The columns are not in the order of the actions.
    return given | {f"new_{name}": probability[:, n] for n, name in enumerate("CAB")}


def test_it_is_the_array_of_these_columns_in_the_order_of_time(table):
    log = Log.read(table, columns={"probability": "new_*"})
    found = compare(log, ["columns=new_*"], estimators=["ips"])
    order = np.argsort(table["at"])
    array = np.stack([table[f"new_{name}"][order] for name in "ABC"], axis=1)
    expected = compare(log, {"array": array}, estimators=["ips"])
    assert found.find("columns=new_*", "ips").value == expected.find("array", "ips").value
    half = log.rows(np.arange(100))
    assert np.array_equal(half.probability, log.probability[:100])


def test_the_command_line_reads_the_columns_that_a_policy_names(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = zip(*table.values(), strict=True)
    lines = [",".join(table), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    given = ["evaluate", "log.csv", "--policy", "columns=new_*", "--estimator", "ips"]
    done = CliRunner().invoke(main, given, catch_exceptions=False)
    assert done.exit_code == 0
    log = Log.read(table, columns={"probability": "new_*"})
    expected = compare(log, ["columns=new_*"], estimators=["ips"]).estimates[1]
    written = (tmp_path / "evaluation" / "estimates.csv").read_text().splitlines()
    found = [line for line in written if line.startswith("columns=new_*,ips")]
    assert float(found[0].split(",")[3]) == pytest.approx(expected.value)


@pytest.mark.parametrize(
    "policy",
    [
        "columns=new",
        "columns=old_*",
        "columns=ne*",
    ],
)
def test_wrong_columns_are_named(policy, table):
    log = Log.read(table, columns={"probability": "new_*"})
    with raises_code("invalid-input"):
        compare(log, [policy])


def test_probabilities_that_do_not_add_up_are_refused(table):
    table["new_A"] = table["new_A"] + 0.5
    log = Log.read(table, columns={"probability": ["new_*"]})
    with raises_code("invalid-input"):
        compare(log, ["columns=new_*"])
