"""The rollups of a bandit agree with the rows of its log."""

import numpy as np
import pyarrow.parquet as pq

import submax
from submax.live.log.export import Export
from submax.live.monitoring.rollups.decision_sums import DecisionSums


def test_rollups_agree_with_the_exported_log(seed, tmp_path, clock):
    rng = np.random.default_rng(seed)
    rails = {"holdout": 0.2, "baseline": "A"}
    bandit = submax.open(
        tmp_path / "b.db",
        actions=["A", "B", "C"],
        reward_wait=600,
        default_reward=0.0,
        guard_rails=rails,
        clock=clock,
        background=False,
    )
    for _ in range(40):
        made = bandit.decide_many([{}] * int(rng.integers(1, 8)))
        clock.now += float(rng.uniform(0, 400))
        bandit.reward_many(
            [{"id": one.id, "value": 1.0} for one in made if rng.random() < 0.6]
            or [{"id": made[0].id, "value": 0.0}]
        )
        if rng.random() < 0.3:
            bandit.refit()
    clock.now += 3600
    bandit.refit()
    rollups = bandit.rollups()
    Export(bandit.store, bandit.name).write(tmp_path / "log.parquet")
    log = pq.read_table(tmp_path / "log.parquet").to_pandas()
    bandit.close()
    reward = log["reward"].to_numpy(float)
    weight = 1 / log["propensity"].to_numpy(float)
    sums = DecisionSums.of_table(rollups.tiers[-1].groups.rows.sum(axis=0, keepdims=True))
    assert sums.decisions == sums.matured == len(log)
    np.testing.assert_allclose(sums.reward, reward.sum())
    np.testing.assert_allclose(sums.weight, weight.sum())
    days = rollups.tiers[-1].choices
    for number, name in enumerate(["A", "B", "C"]):
        chosen = (log["action"] == name).to_numpy()
        found = days.rows[days.rest == number].sum(axis=0)
        np.testing.assert_allclose(found, [chosen.sum(), chosen.sum(), reward[chosen].sum()])
    held_out = rollups.versions.rest == 1
    assert rollups.versions.rows[held_out, 0].sum() == log["holdout"].sum()
    for tier in rollups.tiers:
        assert tier.groups.rows[:, 0].sum() == len(log)
    assert rollups.delays.sums.total.sum() > 0
    # They survive a restart.
    with submax.open(tmp_path / "b.db", clock=clock, background=False) as again:
        again.ledger()
        assert again.rollups().to_record() == rollups.to_record()
