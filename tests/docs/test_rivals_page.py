import csv
from pathlib import Path

import pytest

from submax.experiments.specification import load_named, policy_name

GENERATORS = Path(__file__).parents[2] / "docs" / "generators"
COLUMNS = ["low", "high", "delay", "policy", "replicas", "observations", "final_mean"]
COLUMNS += ["final_standard_error", "deciding_seconds", "training_seconds"]


@pytest.fixture
def pages(monkeypatch, tmp_path):
    """The generator, with a folder of its own for published results."""
    monkeypatch.syspath_prepend(str(GENERATORS))
    import published
    import rivals_page

    monkeypatch.setattr(published, "RESULTS", tmp_path)
    return rivals_page


def written(folder, rows):
    folder.mkdir(parents=True)
    with (folder / "summary.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    specification = '{"seed": 1, "replicas": 2, "observations": 3}'
    run = '{"date": "2026-11-17", "machine": "2 cores"}'
    settings = f'{{"version": "1", "run": {run}, "specification": {specification}}}'
    (folder / "settings.json").write_text(settings, encoding="utf-8")


def test_policies_are_listed_by_regret_with_their_costs(pages, tmp_path):
    named = [policy_name(row) for row in load_named("pricing-rivals").policies]
    rows = [
        dict.fromkeys(COLUMNS, "1")
        | {"policy": name, "final_mean": str(50 - place), "final_standard_error": "2.5"}
        | {"deciding_seconds": "0.5", "training_seconds": "3.25"}
        for place, name in enumerate(named)
    ]
    written(tmp_path / "rivals" / "pricing-rivals", rows)
    memory = f"experiment,policy,megabytes\npricing-rivals,{named[-1]},123\n"
    (tmp_path / "rivals" / "memory.csv").write_text(memory, encoding="utf-8")
    (tmp_path / "rivals" / "remarks.md").write_text("## What each gains\n", encoding="utf-8")
    lines = pages.page().splitlines()
    found = [line for line in lines if line.startswith("| `")]
    assert len(found) == len(named)
    best = 50 - len(named) + 1
    assert found[0] == f"| `{named[-1]}` | **{best:.1f}** ± 2.5 | 3.8 | 123 |"
    assert found[-1].startswith(f"| `{named[0]}` | 50.0 ± 2.5 |")
    assert lines[-1] == "## What each gains"


def test_without_results_nothing_is_written(pages, tmp_path, capsys):
    (tmp_path / "rivals").mkdir()
    pages.main(tmp_path / "nowhere" / "results")
    assert "left as it is" in capsys.readouterr().out
    assert not (tmp_path / "rivals.md").exists()
