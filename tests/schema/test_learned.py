import json

import numpy as np
import pytest
from safetensors.numpy import save

from submax.core.errors import InvalidValue
from submax.evaluation.learning import learn
from submax.evaluation.log import Log
from submax.networks.state_file import state_bytes
from submax.schema.learned import Learned
from submax.schema.model import Model


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(0)
    action = rng.integers(2, size=(50, 2))
    reward = (rng.random(50) < 0.3 + 0.2 * action[:, 0]) * 1.0
    return Log.from_arrays(action, reward, context=rng.normal(size=(50, 2)))


@pytest.mark.parametrize(
    "policy",
    ["linucb", "rcp-submax", {"kind": "thompson", "alpha": 2}, "hill-climbing-thompson"],
)
def test_what_was_written_is_read_back(log, policy, tmp_path):
    learned = learn(log, policy, share=0.6, by="random", seed=3, keep_rows=20)
    learned.write(tmp_path / "policy.safetensors")
    again = Learned.read(str(tmp_path / "policy.safetensors"))
    context = log.parts[0].context
    np.testing.assert_array_equal(again.probabilities(context), learned.probabilities(context))
    assert (again.schema, again.specification) == (learned.schema, learned.specification)
    assert again.origin == learned.origin
    assert again.rows.hash == learned.rows.hash
    assert again.policy == learned.policy
    assert again.to_bytes() == learned.to_bytes()
    assert [file.name for file in tmp_path.iterdir()] == ["policy.safetensors"]


def refused(data):
    with pytest.raises(InvalidValue, match=r"'the file'") as error:
        Learned.from_bytes(data, "the file")
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_damaged_file_is_named_in_one_sentence(log):
    data = learn(log, "linucb").to_bytes()
    for broken in (b"", b"no policy", data[: len(data) // 2], data[:-1], b"\xff" * 100):
        assert "damaged" in refused(broken)


def test_files_that_are_something_else_are_refused(log):
    assert "damaged or no policy" in refused(save({"x": np.zeros(3)}))
    model = Model.fresh(log.schema, learn(log, "linucb").policy, 0)
    assert "holds no policy that was learned" in refused(model.to_bytes())


@pytest.mark.parametrize("without", ["schema", "origin", "policy"])
def test_a_file_of_another_version_is_refused(log, without):
    learned = learn(log, "linucb")
    text = learned.to_bytes()
    size = int.from_bytes(text[:8], "little")
    facts = json.loads(json.loads(text[8 : 8 + size])["__metadata__"]["submax"])["facts"]["learned"]
    del facts[without]
    assert "another version" in refused(
        state_bytes((learned.model, learned.rows), {"learned": facts})
    )
    refused(state_bytes((learned.model, learned.rows), {"learned": 3}))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InvalidValue, match="cannot read the policy"):
        Learned.read(tmp_path / "none.safetensors")


def test_a_file_that_is_there_is_replaced_as_a_whole(log, tmp_path):
    path = tmp_path / "policy.safetensors"
    path.write_bytes(b"something else")
    learn(log, "linucb").write(path)
    assert Learned.read(path).specification == "linucb"
