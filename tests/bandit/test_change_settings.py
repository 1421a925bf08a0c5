from refusals import raises_code

import submax
from submax.bandit.declaring import audit_lines

RAILS = {"control": "B", "control_share": 0.2}


def test_settings_policy_and_guard_rails_are_changed_without_a_restart(opened):
    bandit = opened(guard_rails=RAILS)
    settings = bandit.set(
        refit_rows=7, sticky=60, policy="rcp-submax", guard_rails={"minimum": 0.05}
    )
    assert (settings.refit_rows, settings.sticky, settings.policy) == (7, 60.0, "rcp-submax")
    # Guard rails that are not named stay.
    assert settings.guard_rails == submax.GuardRails(minimum=0.05, **RAILS)
    assert bandit.settings == settings
    assert bandit.set(refit_rows=None).refit_rows == 100
    assert bandit.set(guard_rails={"minimum": None}).guard_rails.minimum == 0.0
    assert bandit.set(guard_rails=submax.GuardRails()).guard_rails == submax.GuardRails()


def test_what_would_change_the_meaning_of_the_log_stays(opened, store):
    bandit = opened()
    for changes in (
        {"rewards": "counts"}, {"combine": "first"}, {"default_reward": None}, {"quarantine": 5.0},
        {"actions": ["A", "B"]},
    ):  # fmt: skip
        for change in (bandit.set, opened):
            with raises_code("invalid-input"):
                change(**changes)
    assert [one.action for one in audit_lines(store)] == ["declare"]


def test_without_a_control_a_paused_bandit_answers_with_the_baseline_or_uniformly(opened):
    bandit = opened(guard_rails={"holdout": 0.1, "baseline": "C"})
    bandit.pause()
    # Uniform, where the baseline is not eligible; the same for the same unit.
    limited = [bandit.decide(eligible=["A", "B"], unit=f"visitor-{n}") for n in range(40)]
    assert {(one.action, one.propensity) for one in limited} == {("A", 0.5), ("B", 0.5)}
    again = [bandit.decide(eligible=["A", "B"], unit=f"visitor-{n}") for n in range(40)]
    assert [one.action for one in again] == [one.action for one in limited]


def test_a_bandit_in_memory_changes_its_policy_and_keeps_what_it_learned(seed, tmp_path):
    bandit = submax.Bandit(["A", "B"], policy="linucb", context={"age": float}, seed=seed)
    for number in range(60):
        decision = bandit.decide({"age": number % 50})
        bandit.reward(decision.id, float(decision.action == "B"))
    bandit.set(policy="rcp-adaptive", guard_rails={"minimum": 0.01})
    assert bandit.settings.policy == "rcp-adaptive"
    shown = [bandit.decide({"age": 30}).action for _ in range(50)]
    assert shown.count("B") > 25
    bandit.save(tmp_path / "bandit.safetensors")
    assert submax.Bandit.load(tmp_path / "bandit.safetensors").settings == bandit.settings
    with raises_code("invalid-input", "refit_rows"):
        bandit.set(refit_rows=3)
