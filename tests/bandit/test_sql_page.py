"""The questions of docs/how-to/sql.md are answered by the statements of the page."""

import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from submax.bandit.durable import open_bandit

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "sql.md"


def test_the_statements_answer_five_questions(tmp_path):
    file = tmp_path / "page.db"
    now = [time.time() - 3 * 3600]
    with open_bandit(
        file, name="page", actions=["A", "B"], background=False, clock=lambda: now[0]
    ) as bandit:
        for place in range(20):
            arm, unit = "AB"[place % 2], f"visitor-{place % 10}"
            made = bandit.decide(id=f"d{place}", eligible=[arm], unit=unit)
            now[0] += 2.0
            if place % 4 == 0:
                bandit.reward(made.id, 1.0)
        now[0] += 4000
        bandit.reward("d1", 1.0)
    statements = re.findall(r'sqlite3 page\.db "\n(.*?)"\n', PAGE.read_text(), re.DOTALL)
    with closing(sqlite3.connect(file)) as connection:
        if sqlite3.sqlite_version_info < (3, 38):
            connection.create_function("unixepoch", 0, time.time)
        rates, visitor, late, probable, shares = (
            connection.execute(one).fetchall() for one in statements
        )
    assert rates == [("A", 10, 0.5), ("B", 10, 0.0)]
    assert [row[1:] for row in visitor] == [("d7", "B", 1.0, None), ("d17", "B", 1.0, None)]
    assert [row[:3] for row in late] == [("B", 1, 1), ("A", 5, 0)]
    assert sorted(probable) == [("A", 1.0, 1.0), ("B", 1.0, 1.0)]
    assert sorted(shares) == [(0, "A", 10, 50.0), (0, "B", 10, 50.0)]
