import csv
import math
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submax.core.problem import PROBABILITY_TOLERANCE
from submax.evaluation import Log, sources

HEADER = ["id", "action", "reward", "propensity", "context_age", "context_land", "eligible"]
ACTIONS, LANDS = ["A", "B, C", "D"], ["de", "fr"]
DECLARED = {
    "actions": ACTIONS,
    "context": {"age": float, "land": LANDS},
    "rewards": "binary",
}
CELLS = {
    "id": [*map(str, range(6)), "x", ""],
    "action": [*ACTIONS * 3, "Z", "", " A"],
    "reward": [*["0", "1"] * 4, " 1 ", "true", "0.5", "nan", "", "inf", "1e"],
    "propensity": [*["0.5", "1", "1e-3"] * 3, "", "0", "-0.0", "1.0000001", "1.1", "NaN", "x"],
    "context_age": [*["3", "-2.5", "1e30"] * 3, "1e31", "1e400", "", "nan", "3 years"],
    "context_land": [*LANDS * 4, "", "it"],
    "eligible": [*[""] * 5, "A|D", '["A", "B, C"]', '[["D"]]', "[]", "A|Z", "["],
}


EXAMPLES = 200 if "SUBMAX_SOAK" in os.environ else 20


def number(text):
    known = {"true": 1.0, "false": 0.0}
    try:
        value = known.get(text.strip().lower())
        value = float(text) if value is None else value
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def eligible(text):
    if text == "":
        return ACTIONS
    return {"A|D": ["A", "D"], '["A", "B, C"]': ["A", "B, C"], '[["D"]]': ["D"]}.get(text, [])


def usable(row):
    """What the rules say, one row and one value at a time."""
    if len(row) != len(HEADER):
        return False
    cell = dict(zip(HEADER, row, strict=True))
    propensity, age = number(cell["propensity"]), number(cell["context_age"])
    return (
        cell["id"] != ""
        and cell["action"] in eligible(cell["eligible"])
        and number(cell["reward"]) in (0.0, 1.0)
        and (
            cell["propensity"] == ""
            or (propensity is not None and 0 < propensity <= 1 + PROBABILITY_TOLERANCE)
        )
        and age is not None
        and abs(age) <= 1e30
        and cell["context_land"] in LANDS
    )


def oracle(rows):
    kept, seen = [], set()
    for row in rows:
        if usable(row) and row[0] not in seen:
            seen.add(row[0])
            kept.append(row)
    return kept


@st.composite
def tables(draw):
    """Rows that are good but for some cells, and some that have too many or too few of them."""
    rows = []
    for place in range(draw(st.integers(1, 12))):
        row = [f"r{place}", "A", "1", "0.5", "3", "fr", ""]
        for column in draw(st.sets(st.sampled_from(HEADER), max_size=3)):
            row[HEADER.index(column)] = draw(st.sampled_from(CELLS[column]))
        length = draw(st.sampled_from([7] * 12 + [6, 8]))
        rows.append([*row, "?"][:length])
    return rows


@pytest.mark.slow
def test_exactly_the_rows_that_are_good_are_kept_and_the_first_bad_one_is_named(
    tmp_path, mentioned, refused
):
    path = tmp_path / "log.csv"

    @settings(max_examples=EXAMPLES)
    @given(tables())
    def check(rows):
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([HEADER, *rows])
        kept = oracle(rows)
        lost = len(rows) - len(kept)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sources, "BATCH_ROWS", 3)
            if lost:
                bad = [(f"line {line}",) for line, row in enumerate(rows, 2) if not usable(row)]
                refused(path, (lost, len(rows)), *bad[:1], **DECLARED)
            if not kept:
                refused(path, skip_bad_rows=True, **DECLARED)
                return
            log = Log.read(path, skip_bad_rows=True, **DECLARED)
        assert [log.schema.menu.action(row) for row in log.action] == [row[1] for row in kept]
        assert log.reward.tolist() == [number(row[2]) for row in kept]
        known = [number(row[3]) for row in kept]
        assert [None if math.isnan(one) else one for one in log.propensity] == [
            None if one is None else min(one, 1.0) for one in known
        ]
        assert [LANDS[int(place)] for place in log.context[:, 1]] == [row[5] for row in kept]
        assert [
            [ACTIONS[one] for one in log.eligible_sets[place][0]] for place in log.eligible_set
        ] == [eligible(row[6]) for row in kept]
        assert not lost or mentioned(log.notes[:1], lost)

    check()
