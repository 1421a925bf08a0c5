import json

import numpy as np
import pytest

from submax.core.errors import InputError
from submax.networks.slot_network import SlotNetwork
from submax.networks.tensor_file import read_network, read_tensors, write_network, write_tensors
from submax.networks.value_network import ValueNetwork


def filled(silent, seed):
    rng = np.random.default_rng(seed)
    return type(silent)(*(rng.normal(size=array.shape).astype(np.float32) for array in silent))


NETWORKS = {
    "slot network": SlotNetwork.silent(2, 2, 3, 1, 4, 5),
    "slot network without context": SlotNetwork.silent(1, 2, 1, 0, 4, 5),
    "value network": ValueNetwork.silent(2, 5, 3, 4),
}


@pytest.fixture
def path(tmp_path, seed):
    """A good file."""
    path = tmp_path / "network.safetensors"
    write_network(path, filled(NETWORKS["slot network"], seed))
    return path


@pytest.mark.parametrize("silent", NETWORKS.values(), ids=NETWORKS)
def test_what_is_written_is_read(silent, tmp_path, seed):
    network = filled(silent, seed)
    path = tmp_path / "network.safetensors"
    write_network(path, network)
    found = read_network(path)
    assert type(found) is type(network)
    for name, array in network._asdict().items():
        read = getattr(found, name)
        assert read.dtype == array.dtype
        assert np.array_equal(read, array)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_arrays_that_are_not_contiguous_are_written_as_they_are(tmp_path, seed):
    array = np.random.default_rng(seed).normal(size=(4, 6))
    path = tmp_path / "arrays.safetensors"
    write_tensors(path, {"turned": array.T, "parts": array[::2, 1::3]}, {"a": "b"})
    arrays, facts = read_tensors(path)
    assert np.array_equal(arrays["turned"], array.T)
    assert np.array_equal(arrays["parts"], array[::2, 1::3])
    assert facts == {"a": "b"}


def test_a_file_is_replaced(path, seed):
    other = filled(NETWORKS["value network"], seed + 1)
    write_network(path, other)
    assert np.array_equal(read_network(path).head_bias, other.head_bias)


@pytest.mark.parametrize("kept", [0, 4, 8, 40, 0.5, -1])
def test_a_file_that_was_cut_off_is_refused(path, kept):
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content)) if isinstance(kept, float) else kept])
    with pytest.raises(InputError, match=r"cannot read .*network\.safetensors: "):
        read_network(path)


@pytest.mark.parametrize("damage", [b"\xff" * 8, b"\0" * 8, b"PK\x03\x04 zip"])
def test_a_file_that_was_written_over_is_refused(path, damage):
    path.write_bytes(damage + path.read_bytes()[len(damage) :])
    with pytest.raises(InputError, match=r"cannot read .*network\.safetensors: "):
        read_network(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*absent\.safetensors: No such file"):
        read_network(tmp_path / "absent.safetensors")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot read "):
        read_network(tmp_path)


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({}, "unknown kind of network in .*: '': allowed: slot-network, value-network"),
        ({"kind": "slot-net", "format": "1"}, "'slot-net': did you mean 'slot-network'?"),
        ({"kind": "slot-network", "format": "2"}, "unknown format of .*: '2': allowed: 1"),
        ({"kind": "slot-network"}, "unknown format of .*: '': allowed: 1"),
        ({"kind": "value-network", "format": "1"}, r"has the arrays \['context_weight', "),
    ],
    ids=json.dumps,
)
def test_another_kind_or_format_is_refused(path, facts, sentence):
    arrays, _ = read_tensors(path)
    write_tensors(path, arrays, facts)
    with pytest.raises(InputError, match=sentence):
        read_network(path)


def test_a_missing_array_is_refused(path):
    arrays, facts = read_tensors(path)
    del arrays["head_bias"]
    write_tensors(path, arrays, facts)
    with pytest.raises(InputError, match=r"has the arrays .*, not \['context_weight', "):
        read_network(path)
