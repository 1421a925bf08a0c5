import csv
import math
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


def written(folder, rows, columns=COLUMNS):
    folder.mkdir(parents=True)
    with (folder / "summary.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
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
    # fourier-thompson is the second policy, with a regret of 49; √2 · 2.5 is 3.5.
    assert (
        found[0] == f"| `{named[-1]}` | **{best:.1f}** ± 2.5 | −{49 - best:.1f} ± 3.5 | 3.8 | 123 |"
    )
    assert found[-2] == "| `fourier-thompson` | 49.0 ± 2.5 |  | 3.8 |  |"
    assert found[-1] == f"| `{named[0]}` | 50.0 ± 2.5 | +1.0 ± 3.5 | 3.8 |  |"
    assert "`pricing-rivals`, of which only means are published" in lines[4]
    assert lines[-1] == "## What each gains"


def test_differences_are_those_of_the_replicas(pages, tmp_path):
    from rivals_differences import Difference, differences_of, publish_differences

    results = tmp_path / "results" / "pricing-rivals"
    results.mkdir(parents=True)
    regrets = {"fourier-thompson": (10, 20, 30), "random": (12, 25, 32)}
    lines = ["delay,policy,replica,regret,reward,late_slope"]
    for policy, values in regrets.items():
        lines += [f"5,{policy},{place},{one}.0,1.0,0.5" for place, one in enumerate(values)]
    (results / "finals.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "rivals" / "pricing-rivals").mkdir(parents=True)
    publish_differences(results.parent, "pricing-rivals")
    found = differences_of("pricing-rivals")
    # The differences 2, 5 and 2 have the mean 3 and the standard deviation √3.
    assert found["5", "random"] == pytest.approx((3.0, 1.0))
    assert found["5", "fourier-thompson"] == (0.0, 0.0)
    assert found["5", "random"].is_more
    assert not found["5", "random"].is_less
    assert not Difference(2.0, 1.0).is_more
    assert Difference(-2.1, 1.0).is_less


def test_tables_are_joined_by_ratios_to_the_default(pages, tmp_path, monkeypatch):
    import rivals_tables

    monkeypatch.setattr(rivals_tables, "HELD_OUT", ("b", "c"))
    regrets = {"a": (100, 10, 20), "b": (100, 10, 80), "c": (100, 20, 20)}
    columns = ["file", *COLUMNS[2:]]
    rows = [
        dict.fromkeys(columns, "1")
        | {"file": f"keel:{file}", "policy": policy, "final_mean": str(regret)}
        for file, of_file in regrets.items()
        for policy, regret in zip(("random", "rcp-adaptive", "neural-ucb"), of_file, strict=True)
    ]
    written(tmp_path / "rivals" / "bakeoff-dense-rivals", rows, columns)
    lines = rivals_tables.overview("bakeoff-dense-rivals", {"neural-ucb": "7"}).splitlines()
    # The logarithms of 2, 8 and 1 to the base 2 are 1, 3 and 0: their mean is 4/3, and the
    # standard error of the mean is √(7/3/3) = 0.88. On b and c: 3 and 0, 1.5 ± 1.5.
    width = 2 * math.sqrt(7 / 9)
    wide = f"{2 ** (4 / 3):.2f} ({2 ** (4 / 3 - width):.2f} to {2 ** (4 / 3 + width):.2f})"
    ratios = f"{wide} | {2**1.5:.2f} ({2**-1.5:.2f} to {2**4.5:.2f})"
    assert lines[-2] == f"| `neural-ucb` | 0.40 | {ratios} | 0 | 2 | 6.0 | 7 |"
    assert lines[-3] == "| `rcp-adaptive` | 0.13 | 1 | 1 | 0 | 0 | 6.0 |  |"
    assert "on the 2 tables" in lines[0]
    monkeypatch.setattr(rivals_tables, "PLAIN", {"neural-ucb": "rcp-adaptive"})
    changes = rivals_tables.against_plain(["bakeoff-dense-rivals"])
    assert changes.splitlines()[-1] == f"| `neural-ucb` | `rcp-adaptive` | {wide} |"
    assert "| c | 100 ± 1.0 | **20.0** ± 1.0 | **20.0** ± 1.0 |" in rivals_tables.of_all_tables(
        "bakeoff-dense-rivals"
    )


def test_without_results_nothing_is_written(pages, tmp_path, capsys):
    (tmp_path / "rivals").mkdir()
    pages.main(tmp_path / "nowhere" / "results")
    assert "left as it is" in capsys.readouterr().out
    assert not (tmp_path / "rivals.md").exists()
