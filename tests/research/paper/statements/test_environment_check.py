import csv
import math

import numpy as np
import pytest

from submax.research.paper.claims import environment_checks, write_environment_checks
from submax.simulation.compare import Finals


def finals_where(rewards) -> Finals:
    """Accumulated rewards of random choice, by shift."""
    found = {((("shift", shift),), "random"): np.array(values) for shift, values in rewards.items()}
    return Finals({key: {"regret": one, "reward": one} for key, one in found.items()})


def test_the_distance_counts_the_spread_of_both_averages():
    values = [510.0, 490.0, 520.0, 480.0]
    (one,) = environment_checks("section 4.2", finals_where({0: values}), 1000)
    assert (one.where, one.paper) == ("shift=0", 0.501)
    assert one.mean == pytest.approx(0.5)
    deviation = np.std(values, ddof=1) / 1000
    # Four environments here, fifty in the paper, of the same spread.
    assert one.error == pytest.approx(deviation * math.sqrt(1 / 4 + 1 / 50))
    assert one.distance == pytest.approx(-0.001 / one.error)


def test_every_number_of_the_paper_meets_its_own_environment():
    found = environment_checks(
        "section 4.2", finals_where({-4: [18.0, 19.0], 0: [500.0, 502.0], -2: [120.0, 126.0]}), 1000
    )
    numbers = {one.where: (one.paper, one.mean) for one in found}
    assert numbers == {
        "shift=0": (0.501, pytest.approx(0.501)),
        "shift=-2": (0.123, pytest.approx(0.123)),
        "shift=-4": (0.0185, pytest.approx(0.0185)),
    }
    (joint,) = environment_checks("section 4.3", finals_where({-3: [40.0, 60.0]}), 1000)
    assert (joint.where, joint.paper, joint.mean) == ("shift=-3", 0.0483, pytest.approx(0.05))


@pytest.mark.parametrize(
    ("section", "rewards"),
    [("", {0: [1.0, 2.0]}), ("section 4.1", {0: [1.0, 2.0]}), ("section 4.2", {}),
     ("section 4.2", {-3: [1.0, 2.0]}), ("section 4.2", {0: [500.0]})],
)  # fmt: skip
def test_there_is_none_without_a_number_of_the_paper_and_two_replicas(section, rewards):
    assert list(environment_checks(section, finals_where(rewards), 1000)) == []


@pytest.mark.parametrize(("reward", "distance"), [(0.0, -math.inf), (900.0, math.inf)])
def test_replicas_that_earn_the_same_do_not_stop_the_report(reward, distance):
    (one,) = environment_checks("section 4.2", finals_where({0: [reward, reward]}), 1000)
    assert (one.error, one.distance) == (0, distance)


def test_the_file_has_the_numbers(tmp_path):
    write_environment_checks(tmp_path, [])
    assert list(tmp_path.iterdir()) == []
    found = list(environment_checks("section 4.2", finals_where({0: [500.0, 510.0]}), 1000))
    write_environment_checks(tmp_path, found)
    with (tmp_path / "calibration.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["where"] == "shift=0"
    assert float(row["paper"]) == 0.501
    assert float(row["distance"]) == found[0].distance
