"""Trained networks on disk, as safetensors."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.core.running.whole_file import whole_file
from submax.networks.slot_network import SlotNetwork
from submax.networks.value_network import ValueNetwork

Network = SlotNetwork | ValueNetwork
KINDS: dict[str, type[SlotNetwork] | type[ValueNetwork]] = {
    "slot-network": SlotNetwork,
    "value-network": ValueNetwork,
}
FORMAT = "1"


def write_network(path: Path, network: Network) -> None:
    """Write a network with its kind; a crash leaves the old file or the new one."""
    kind = next(name for name, one in KINDS.items() if isinstance(network, one))
    write_tensors(path, network._asdict(), {"kind": kind, "format": FORMAT})


def read_network(path: Path) -> Network:
    """The network in a file that ``write_network`` wrote."""
    arrays, facts = read_tensors(path)
    one_of(f"kind of network in {path}:", facts.get("kind", ""), KINDS)
    one_of(f"format of {path}:", facts.get("format", ""), [FORMAT])
    kind = KINDS[facts["kind"]]
    if sorted(arrays) != sorted(kind._fields):
        raise InputError(f"{path} has the arrays {sorted(arrays)}, not {sorted(kind._fields)}")
    return kind(**arrays)


def write_tensors(path: Path, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, str]) -> None:
    """Write named arrays, with facts about them as text."""
    from safetensors.numpy import save

    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with whole_file(path) as file:
        file.write(save(plain, dict(facts)))


def read_tensors(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """The arrays and facts in a file; damage is said in one sentence."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118 - no mapping
    except (OSError, SafetensorError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
