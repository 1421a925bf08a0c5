from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from submax.experiments.running import offline
from submax.experiments.running.cells import cells
from submax.experiments.running.offline import estimate_cell
from submax.experiments.running.run import run_offline, unfinished
from submax.experiments.specification import load_file


@pytest.fixture
def specification(tmp_path):
    rng = np.random.default_rng(5)
    label = rng.integers(3, size=60)
    rows = [
        f"{x:.3f},{name}" for x, name in zip(label + rng.normal(0, 0.3, 60), label, strict=True)
    ]
    (tmp_path / "rows.csv").write_text("\n".join(["x,label", *rows]))
    path = tmp_path / "tiny.toml"
    path.write_text(
        'experiment = "offline"\nobservations = 400\nreplicas = 2\n'
        'policies = ["random", "linucb", "thompson-1-1"]\n'
        '[environment]\nkind = "classification"\nfile = "rows.csv"\n'
    )
    return load_file(path)


def ran_and_heard(specification, directory, monkeypatch, run):
    """The policies whose cells ran, and the keys that were heard of."""
    ran, heard = [], []

    def kept(cell):
        ran.append(cell.policy_name)
        return run(cell)

    monkeypatch.setattr(offline, "estimate_cell", kept)
    with ThreadPoolExecutor(1) as executor:
        chosen = cells(specification)
        try:
            run_offline(
                specification, chosen, directory, executor, lambda key, _: heard.append(key)
            )
        except RuntimeError as error:
            heard.append(str(error))
    return ran, heard


def test_an_error_in_one_cell_keeps_the_finished_ones_and_a_second_run_goes_on(
    specification, tmp_path, monkeypatch
):
    directory, (first, *others) = tmp_path / "out", cells(specification)

    def broken(cell):
        if cell.policy_name == "linucb":
            raise RuntimeError("broken cell")
        return estimate_cell(cell)

    ran, heard = ran_and_heard(specification, directory, monkeypatch, broken)
    assert ran[:2] == ["random", "linucb"]
    assert heard[-1] == "broken cell"
    left = unfinished(specification, directory, cells(specification))
    assert "linucb" in [cell.policy_name for cell in left]
    assert first not in left
    assert not (directory / "summary.csv").exists()

    ran, heard = ran_and_heard(specification, directory, monkeypatch, estimate_cell)
    assert ran == [cell.policy_name for cell in left]
    assert sorted(heard) == sorted(cell.key for cell in left)
    assert unfinished(specification, directory, others) == []
    assert (directory / "summary.csv").exists()


def test_results_are_the_same_whether_a_run_was_broken_off_or_not(
    specification, tmp_path, monkeypatch
):
    def broken(cell):
        if cell.policy_name == "linucb":
            raise RuntimeError("broken cell")
        return estimate_cell(cell)

    for run in (broken, estimate_cell):
        ran_and_heard(specification, tmp_path / "twice", monkeypatch, run)
    ran_and_heard(specification, tmp_path / "once", monkeypatch, estimate_cell)
    for name in ("estimates.csv", "summary.csv"):
        assert (tmp_path / "twice" / name).read_bytes() == (tmp_path / "once" / name).read_bytes()
