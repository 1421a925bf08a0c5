"""What the commands on logs are given: policies, columns, paths and options."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from submax.cli.logs.printing import slow
from submax.cli.main import is_address, without_password
from submax.core.errors import InputError
from submax.evaluation.comparison import SUFFIX, Candidate
from submax.evaluation.log import Log
from submax.evaluation.reading import read_declaration
from submax.evaluation.targets import (
    ALWAYS,
    COLUMNS,
    REWARD_MODEL,
    Sharpened,
    TargetPolicy,
    check_pattern,
    parsed_variant,
    tempered_table,
)
from submax.policies import make_policy
from submax.policies.specification import read_value, table_of, with_values
from submax.schema.schema import Schema
from submax.schema.trained_policy import TrainedPolicy


def policy_table(text: str) -> str | dict[str, Any]:
    """Return a policy by name, or as a table if parameters, a variant or a table were given."""
    variant = parsed_variant(text) if not text.lstrip().startswith("{") else None
    if variant is not None:
        return tempered_table(make_policy(policy_table(variant[0])), variant[1])
    found = text_or_table(text)
    if isinstance(found, str) and "," in found:
        name, *changes = found.split(",")
        found = with_values(table_of(make_policy(name)), dict(map(_parameter, changes)))
    if isinstance(found, str) and found.endswith(SUFFIX):
        raise InputError(
            f"--policy is {found!r}, a policy that is already learned: give the name of "
            "a policy (submax policies lists them)"
        )
    if isinstance(found, dict):
        found = {key: value for key, value in found.items() if key != "name"}
    # Refuse an unknown name before the log is read.
    make_policy(found)
    return found


def learnable(text: str) -> str | dict[str, Any]:
    """Return a policy to learn, checked: a table if it has parameters, otherwise its name.

    By their names, a policy and its variant are recognized, so that they learn together.
    """
    found = policy_table(text)
    return found if isinstance(text_or_table(text), dict) or "," in text else text


def _parameter(text: str) -> tuple[str, Any]:
    key, sign, value = text.partition("=")
    if not sign:
        raise InputError(
            f"a parameter of --policy is {text!r}: write KEY=VALUE, such as "
            "rcp-softmax-submax,estimator.hidden=64"
        )
    return key, read_value(value)


def label_of(text: str) -> str:
    """Return the name of a candidate: that inside its table, or the text itself."""
    table = text_or_table(text)
    return text if isinstance(table, str) else str(table.get("name", text))


OTHER_LOG = "log="
"""``log=other.csv`` is the policy that wrote another log."""


def split_name(text: str) -> tuple[str, str]:
    """Return the name of a candidate, and its text without it.

    >>> split_name("mine=columns=prob_*"), split_name("log=may.csv")
    (('mine', 'columns=prob_*'), ('log=may.csv', 'log=may.csv'))
    """
    for kind in (COLUMNS, OTHER_LOG):
        name, sign, rest = text.partition(f"={kind}")
        if sign and not text.startswith((ALWAYS, "{", COLUMNS, OTHER_LOG)):
            return name, f"{kind}{rest}"
    return label_of(text), text


def candidate_of(text: str, trust: bool) -> Candidate:
    """Return a policy by name, table or file, a variant of one, or the reward model."""
    if text.startswith(ALWAYS):
        return text
    variant = parsed_variant(text) if not text.lstrip().startswith("{") else None
    if variant is not None:
        return Sharpened(candidate_of(variant[0], trust), variant[1], text)
    if text == REWARD_MODEL or is_columns(text):
        return text
    if text.endswith(SUFFIX):
        return TrainedPolicy.read(text, trust=trust)
    try:
        return policy_table(text)
    except InputError as error:
        if not str(error).startswith("unknown policy"):
            raise
        raise InputError(
            f"{error}; if {text!r} is an action of the log, {ALWAYS}{text} is the policy that "
            "always takes this action"
        ) from error


def combinations_of(texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the weights of each combination of rewards, such as ``profit=click:0.1,buy:20``.

    >>> combinations_of(["profit=click:0.1,buy:20"])
    {'profit': {'click': 0.1, 'buy': 20.0}}
    """
    found: dict[str, dict[str, float]] = {}
    for text in texts:
        name, sign, parts = text.partition("=")
        try:
            pairs = [one.rsplit(":", 1) for one in parts.split(",")]
            found[name] = {reward: float(weight) for reward, weight in pairs}
        except ValueError:
            sign = ""
        if not sign or not name or "/" in name:
            raise InputError(
                f"--combine is {text!r}: write NAME=REWARD:WEIGHT,REWARD:WEIGHT, such as "
                "profit=click:0.1,buy:20"
            )
    return found


def is_columns(text: str) -> bool:
    """Return whether the probabilities of a policy are columns of the log; check the pattern."""
    if not text.startswith(COLUMNS):
        return False
    check_pattern(text.removeprefix(COLUMNS))
    return True


def text_or_table(text: str) -> str | dict[str, Any]:
    """Return text that begins with a brace as a table, read as JSON, and other text as it is."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        table: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise InputError(
            f"{text!r:.60} begins with a brace and is not valid JSON: {error}"
        ) from error
    return table


def common_schema(candidates: dict[str, Candidate]) -> Schema | None:
    """Return the schema of the candidates that are already learned; None if there are none."""
    learned = learned_among(candidates)
    schemas = [one.schema for one in learned.values()]
    if any(one != schemas[0] for one in schemas):
        raise InputError(
            f"the learned policies {', '.join(learned)} have different actions or "
            "contexts: evaluate them one at a time"
        )
    return schemas[0] if schemas else None


def learned_among(candidates: dict[str, Candidate]) -> dict[str, TrainedPolicy]:
    """Return the candidates that are learned policies, or variants of them."""
    bases = {
        name: one.base if isinstance(one, TargetPolicy) else one for name, one in candidates.items()
    }
    return {name: one for name, one in bases.items() if isinstance(one, TrainedPolicy)}


LISTS = ("context", "probability")
"""Roles whose column is always a list, so that a pattern can be given."""


def read_log(
    path: Path | str,
    columns: Sequence[str],
    declare: Path | None,
    action_features: Path | None,
    skip_bad_rows: bool,
    separator: str = ",",
    decimal: str = ".",
    bandit: str | None = None,
    schema: Schema | None = None,
    on_disk: bool = False,
    jobs: int | None = None,
    scheduler: str | None = None,
) -> Log:
    """Return the log, opened with the roles of its columns and what a file declares."""
    options = reading_options(columns, declare)
    if action_features is not None:
        if "action_features" in options:
            raise InputError(
                f"action features are in {str(declare)!r} and in --action-features: leave one out"
            )
        options["action_features"] = action_features
    if (separator, decimal) != (",", "."):
        options |= {"separator": separator.replace("\\t", "\t"), "decimal": decimal}
    options |= {"schema": schema, "skip_bad_rows": skip_bad_rows}
    options |= {"on_disk": on_disk, "jobs": jobs, "scheduler": scheduler}
    with slow(f"reading {without_password(path)}"):
        if is_store(path):
            return log_of_store(path, bandit, options)
        if bandit is not None:
            raise InputError(
                f"--bandit needs a store, and {str(path)!r} is none: leave --bandit out",
                code="unused-option",
            )
        return Log.read(path, **options)


SQLITE = b"SQLite format 3\0"
"""The beginning of every SQLite file."""


def is_store(path: str | Path) -> bool:
    """Whether a log is the store of bandits."""
    if is_address(path):
        return True
    if not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


_EXPORTS: list[TemporaryDirectory[str]] = []
"""Folders of exports, which live as long as the process: a log on disk is read again."""


def log_of_store(path: str | Path, bandit: str | None, options: Mapping[str, Any]) -> Log:
    """Return the log of a bandit, read from its export, which says which decisions have matured."""
    from submax.bandit.declaring import bandit_names
    from submax.bandit.export import export
    from submax.bandit.store import open_store
    from submax.cli.places import chosen

    _EXPORTS.append(TemporaryDirectory(prefix="submax-"))
    with open_store(path, read_only=True) as store:
        name = bandit or chosen(bandit_names(store))
        file = Path(_EXPORTS[-1].name) / f"{name}.parquet"
        export(store, name, file)
    return Log.read(file, **options)


def reading_options(columns: Sequence[str], declare: Path | None) -> dict[str, Any]:
    """Return the arguments of ``Log.read`` for the options --column and --declare."""
    declared = {} if declare is None else read_declaration(declare)
    return {"columns": columns_of(columns), **declared}


def read_log_of(path: Path | str, candidates: dict[str, Candidate], reading: dict[str, Any]) -> Log:
    """Read the log, with the schema of the candidates that are already learned, if any."""
    schema = common_schema(candidates)
    try:
        return read_log(path, schema=schema, **reading)
    except InputError as error:
        if schema is None:
            raise
        learned = next(iter(learned_among(candidates)))
        raise InputError(
            f"{error}\n(The log is read with the actions and context of {learned!r}.)"
        ) from error


def columns_of(given: Sequence[str]) -> dict[str, Any]:
    """Return the columns of each role that the options --column name."""
    return dict(column_of(one) for one in given)


def column_of(text: str) -> tuple[str, Any]:
    """Return the role and the column, or columns, of an option --column."""
    role, sign, name = text.partition("=")
    if not sign:
        raise InputError(f"--column is {text!r}: write ROLE=NAME, such as reward=clicked")
    if not name:
        return role, None
    return role, name.split(",") if "," in name or role in LISTS else name


def check_folder(path: Path) -> None:
    """Refuse a path to which no file can be written, before any work is done."""
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    if path.is_dir() or not folder.is_dir():
        blocking = path if path.is_dir() else folder
        kind = "a folder" if path.is_dir() else "not a folder"
        raise InputError(
            f"cannot write {str(path)!r}, because {str(blocking)!r} is {kind}: give another --out"
        )


def check_policy_file(path: Path) -> None:
    """Refuse a path to which no learned policy can be written: wrong ending, or no folder."""
    if path.suffix != SUFFIX:
        raise InputError(
            f"--out is {path.name!r}, and a learned policy must end in {SUFFIX}: give "
            f"--out {path.with_suffix(SUFFIX).name}"
        )
    check_folder(path)
    if not path.parent.is_dir():
        raise InputError(
            f"cannot write {str(path)!r}: there is no folder {str(path.parent)!r}: "
            "create it, or give another --out"
        )


SLATE = "slate="
"""Beginning of a --column that says that the log has ranked lists, a row for each position."""
OF_SLATES = {
    *("policies", "estimators", "interval", "level", "seed", "columns"),
    *("out", "every", "half_width", "effect", "top", "report"),
}
"""All parameters that are used if the log has ranked lists."""
OF_PARTS = ("jobs", "scheduler")
"""Parameters that are used only if the log is read in parts."""


def refuse_unused_options(given: Mapping[str, Any], flags: Mapping[str, str]) -> None:
    """Refuse options that do not go with others.

    ``given`` has the values of those that are not defaults, ``flags`` says how each is written.
    """

    def refuse(names: Sequence[str], other: str, reason: str, advice: str) -> None:
        for name in names:
            raise InputError(
                f"{flags[name]} does not work with {other}, because {reason}: {advice}",
                code="unused-option",
            )

    one_of_two = "leave one of the two out"
    if is_of_slates(given.get("columns", ())):
        unused = [name for name in given if name not in OF_SLATES]
        one_row = "it is for logs with one decision in each row"
        refuse(unused, "--column slate=…", one_row, one_of_two)
    parts = [name for name in OF_PARTS if name in given]
    if given.get("read") != "parts":
        processes = "it is about the processes that read parts"
        refuse(parts, "--read whole", processes, "leave it out, or give --read parts")
    if len(parts) == len(OF_PARTS):
        refuse(parts, "--scheduler", "the cluster has its own processes", one_of_two)


def is_of_slates(columns: Iterable[str]) -> bool:
    """Whether the options --column say that the log has ranked lists."""
    return any(one.startswith(SLATE) for one in columns)
