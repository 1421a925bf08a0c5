"""The reference of the columns of logs: those that an export has, and those that are read."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
from docs.generators.markdown_tables import table
from docs.generators.reference.meanings import meanings

import submax
from submax.bandit.assignment import GROUPS
from submax.bandit.declaring import read_bandit
from submax.bandit.export import DecisionTables, RewardTables
from submax.bandit.training_rows import STATUSES
from submax.evaluation.columns import ROLES, USUAL

PAGE = Path(__file__).parents[2] / "reference" / "columns.md"
INTRO = """# Columns of logs

## An export

`submax export homepage --out log.parquet` and [`GET /bandits/{name}/export`](http.md#export)
write one row for each decision. `submax evaluate` and `Log.read` understand the file without
being told anything. The names and types of the columns on this page are generated from the code
by `make docs`."""
REWARDS_INTRO = """## An export of rewards

`submax export homepage --rewards rewards.parquet` also writes one row for each reward, as it
came."""
READ_INTRO = """## Any other log

`Log.read` and the commands on logs (`submax evaluate`, `learn`, `tune`) read CSV, Parquet, data
frames and queries. Each column has a role; name the column of a role by `--column ROLE=NAME`,
in Python by `columns={"ROLE": "NAME"}`. Roles with usual names are found without being named.
[Evaluate and learn from logs](../how-to/logs.md) and [logs of other
designs](../how-to/log-designs.md) show all of them."""


def page() -> str:
    """Return the text of the page."""
    words = {"statuses": _listed(STATUSES), "groups": _listed(filter(None, GROUPS))}
    decisions, rewards = _schemas()
    parts = [
        INTRO,
        _columns(decisions, "decision_columns", words),
        REWARDS_INTRO,
        _columns(rewards, "reward_columns", {}),
        READ_INTRO,
        _roles(),
    ]
    return "\n\n".join(parts) + "\n"


def _schemas() -> tuple[pa.Schema, pa.Schema]:
    """Return the columns of decisions and of rewards.

    They are those of a bandit with two fields of context and rewards by name.
    """
    with submax.open(
        ":memory:",
        actions=["A", "B"],
        context={"country": ["fr", "de"], "age": "number"},
        rewards={"click": 1},
        background=False,
    ) as bandit:
        declared = read_bandit(bandit.store, bandit.name)
        tables = DecisionTables(bandit.store, declared), RewardTables(bandit.store, declared)
        return tables[0].schema, tables[1].schema


def _columns(schema: pa.Schema, name: str, words: dict[str, str]) -> str:
    found = meanings(name, schema.names)
    rows = [
        (f"`{field.name}`", f"`{field.type}`", found[field.name].format(**words))
        for field in schema
    ]
    return table(("column", "type", "meaning"), rows)


def _roles() -> str:
    found = meanings("roles", ROLES)
    rows = [(f"`{role}`", _listed(_usual(role)), found[role]) for role in ROLES]
    return table(("role", "usual names", "meaning"), rows)


def _usual(role: str) -> tuple[str, ...]:
    with_beginnings = {"action": ("action", "action_SLOT"), "context": ("context_FIELD",)}
    if role == "propensity":
        return *USUAL[role], "propensity_SLOT"
    return with_beginnings.get(role) or USUAL.get(role, ())


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)
