"""Reward scales by name."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec

from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.core.rewards import Binary, Continuous, Counts, Discrete, Scale
from submax.schema.known_type import known_type

SCALES: dict[str, type[Scale]] = {
    "binary": Binary,
    "continuous": Continuous,
    "counts": Counts,
    "discrete": Discrete,
}
SCALE_PARAMETERS = frozenset(
    field.name
    for scale in SCALES.values()
    for field in dataclasses.fields(scale)  # type: ignore[arg-type]  # all are dataclasses
)
"""The names of the parameters of all scales."""


def scale_of(rewards: Mapping[str, Any]) -> Scale:
    """Return the scale that a table describes."""
    kind = rewards["kind"]
    table = {key: value for key, value in rewards.items() if key != "kind"}
    try:
        return msgspec.convert(table, known_type(SCALES[kind]))
    except msgspec.ValidationError as error:
        raise InputError(f"rewards of the kind {kind!r}: {error}") from error


def rewards_of(rewards: object) -> dict[str, Any]:
    """Return the table that describes a scale, given a scale, its name, or a table to check."""
    if isinstance(rewards, str):
        rewards = {"kind": rewards}
    if isinstance(rewards, Mapping):
        if "kind" not in rewards:
            raise InputError(f"the table rewards has no 'kind': give one of {', '.join(SCALES)}")
        kind = str(rewards["kind"])
        one_of("kind of rewards", kind, SCALES)
        wanted: Any = SCALES[kind]
        known = ["kind", *(field.name for field in dataclasses.fields(wanted))]
        for key in rewards:
            one_of(f"key of rewards {kind!r}:", str(key), known)
        rewards = scale_of(rewards)
    for kind, scale in SCALES.items():
        if type(rewards) is scale:
            given: Any = rewards
            return {"kind": kind, **dataclasses.asdict(given)}
    raise InputError(
        f"rewards must be a scale such as submax.Binary(), or its name, not {rewards!r:.60}"
    )
