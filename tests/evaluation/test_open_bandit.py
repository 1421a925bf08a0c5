"""The example of the Open Bandit Dataset, on the data of the package obp or on a tiny table."""

import csv
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "open_bandit.py"
ROWS, ITEMS = 240, 3


def write_campaigns(folder, rng):
    """Logs of the same layout: a random policy, and one that prefers the last item."""
    for policy, chance in {"random": np.full(ITEMS, 1 / ITEMS), "bts": [0.1, 0.2, 0.7]}.items():
        for campaign in ("all", "men", "women"):
            path = folder / policy / campaign / f"{campaign}.csv"
            path.parent.mkdir(parents=True)
            item = rng.choice(ITEMS, ROWS, p=chance)
            with path.open("w", newline="") as file:
                writer = csv.writer(file)
                heads = ["timestamp", "item_id", "position", "click", "propensity_score"]
                writer.writerow(["", *heads, "user_feature_0"])
                for row, one in enumerate(item):
                    time = f"2019-11-24 00:{row // 60:02}:{row % 60:02}+00:00"
                    click = int(rng.random() < 0.1 + 0.1 * one)
                    writer.writerow([row, time, one, 1 + row % 3, click, chance[one], "x"])


def printed(folder, capsys):
    """The numbers that the script prints for every campaign: value, low and high of each cell."""
    runpy.run_path(str(SCRIPT))["main"](folder)
    lines = [line for line in capsys.readouterr().out.splitlines() if "%" in line]
    cells = re.compile(r"([\d.]+) % \[([\d.]+), ([\d.]+)\]")
    return {line.split()[0]: np.array(cells.findall(line), dtype=float) for line in lines}


def test_the_random_log_is_compared_with_what_the_policy_earned(tmp_path, capsys, seed):
    write_campaigns(tmp_path, np.random.default_rng(seed))
    found = printed(tmp_path, capsys)
    assert list(found) == ["all", "men", "women"]
    with (tmp_path / "bts" / "men" / "men.csv").open() as file:
        clicks = [int(row["click"]) for row in csv.DictReader(file)]
    assert found["men"][1, 0] == pytest.approx(100 * np.mean(clicks), abs=0.005)
    for cells in found.values():
        assert cells.shape == (5, 3)
        assert np.all((cells[:, 1] <= cells[:, 0]) & (cells[:, 0] <= cells[:, 2]))


@pytest.mark.needs("obp")
def test_the_published_logs_agree(capsys):
    folder = runpy.run_path(str(SCRIPT))["installed_folder"]()
    found = printed(folder, capsys)
    for campaign, cells in found.items():
        on_policy, estimates = cells[1, 0], cells[2:]
        covered = (estimates[:, 1] <= on_policy) & (on_policy <= estimates[:, 2])
        assert covered.all(), campaign
    # The numbers of the guide.
    guide = (SCRIPT.parents[1] / "docs" / "how-to" / "log-designs.md").read_text(encoding="utf-8")
    for cells in found.values():
        assert f"{cells[1, 0]:.2f} [{cells[1, 1]:.2f}, {cells[1, 2]:.2f}]" in guide
        assert f"{cells[2, 0]:.2f} [{cells[2, 1]:.2f}, {cells[2, 2]:.2f}]" in guide
