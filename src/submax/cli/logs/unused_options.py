"""Refuses options of ``submax evaluate`` that would have no effect."""

from collections.abc import Iterable, Mapping
from typing import Any

from submax.cli.logs.log_reading import columns_of
from submax.core.errors import InputError

SLATE = "slate="
"""Beginning of a --column that says that the log has ranked lists, a row for each position."""
WORDS = {
    "policies": "--policy",
    "estimators": "--estimator",
    "reward_models": "--reward-model",
    "every": "--all",
    "combinations": "--combine",
    "columns": "--column",
    "slices": "--slice",
    "several rewards": "--column reward=A,B",
}
"""Options whose parameters have other names."""
OF_SLATES = {
    *("policies", "estimators", "interval", "level", "seed", "columns"),
    *("out", "every", "half_width", "effect", "report"),
}
"""All parameters that are used if the log has ranked lists."""
OF_PARTS = ("jobs", "scheduler")
"""Parameters that are used only if the log is read in parts."""
NOT_OF_PARTS = ("combinations", "learn_from", "slices")
"""Parameters that are not used if the log is read in parts."""


def refuse_unused_options(given: Mapping[str, Any]) -> None:
    """Refuse options that do not go with others; ``given`` has those that are not defaults."""
    columns, parts = given.get("columns", ()), given.get("read") == "parts"
    if is_of_slates(columns):
        unused = [name for name in given if name not in OF_SLATES]
        _refuse(unused, "--column slate=…", "it is for logs with one decision in each row")
    if parts:
        unused = [name for name in NOT_OF_PARTS if name in given]
        _refuse(unused, "--read parts", "it needs a log that is read as a whole")
        rewards = columns_of(columns).get("reward")
        if isinstance(rewards, list) and len(rewards) > 1:
            _refuse(["several rewards"], "--read parts", "a log in parts has one reward")
    else:
        unused = [name for name in OF_PARTS if name in given]
        _refuse(
            unused,
            "--read whole",
            "it is about the processes that read parts",
            "leave it out, or give --read parts",
        )
    if "jobs" in given and "scheduler" in given:
        _refuse(["jobs"], "--scheduler", "the cluster has its own processes")


def is_of_slates(columns: Iterable[str]) -> bool:
    """Whether the options --column say that the log has ranked lists."""
    return any(one.startswith(SLATE) for one in columns)


def _refuse(
    names: list[str], other: str, reason: str, advice: str = "leave one of the two out"
) -> None:
    """Refuse the first of these options, if there is one."""
    if not names:
        return
    option = WORDS.get(names[0], f"--{names[0].replace('_', '-')}")
    raise InputError(
        f"{option} does not go with {other}, because {reason}: {advice}",
        code="unused-option",
    )
