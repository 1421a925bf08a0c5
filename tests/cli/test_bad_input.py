from pathlib import Path

import pytest

OWN = """
observations = 20
policies = ["random"]
[environment]
kind = "bernoulli"
arms = 3
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "own.toml").write_text(OWN)
    return tmp_path / "own.toml"


@pytest.fixture
def names(refused):
    """A command is refused, and the message has the names and values that help the user."""

    def names(facts, *arguments):
        message = " ".join(refused(*arguments).split())
        for fact in facts:
            assert fact in message, message

    return names


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["all", "--only", "policy=ucb9"], ["policy=ucb9"]),
        (["bernoulli", "--jobs", "1", "--scheduler", "tcp://127.0.0.1:1"], ["--scheduler"]),
        ([], ["NAME"]),
    ],
)
def test_wrong_options_are_refused_and_nothing_is_written(arguments, facts, names, tmp_path):
    out = tmp_path / "out"
    names(facts, "reproduce", *arguments, "--out", out)
    assert not out.exists()


FAULTS = {
    "exit": ("import numpy as np", "raise SystemExit(0)", ["SystemExit"]),
    "missing": ("def update", "def upgrade", ["update"]),
    "nan": ("= 1.0", "= np.nan", ["nan"]),
    "shape": ("np.zeros((len(context), 1,", "np.zeros((1, 1,", ["shape"]),
}


@pytest.mark.parametrize("fault", list(FAULTS))
def test_own_policy_that_fails_is_named_and_nothing_is_written(fault, names, tmp_path):
    guide = Path(__file__).parents[2] / "docs" / "how-to" / "experiments.md"
    blocks = guide.read_text(encoding="utf-8").split("```")
    (code,) = [block for block in blocks if block.startswith("python\n# first_arm.py")]
    old, new, words = FAULTS[fault]
    assert old in code
    (tmp_path / "first_arm.py").write_text(code.removeprefix("python\n").replace(old, new, 1))
    file, out = tmp_path / "own.toml", tmp_path / "out"
    file.write_text(OWN.replace('["random"]', '[{ kind = "first_arm.py:FirstArm" }]'))
    names(words, "simulate", file, "--out", out)
    assert not out.exists()


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        (("arms = 3", "arms = [3, 3]"), ["[environment]"]),
        (("arms = 3", ""), ["'bernoulli'", "arms"]),
        (('["random"]', '[{ kind = "mine.py:Mine" }]'), ["mine.py"]),
        (("[environment]", "reference = { arm = 3 }\n[environment]"), ["'arm'", "reference"]),
    ],
)
def test_wrong_files_are_refused_and_nothing_is_written(change, facts, names, tmp_path):
    file, out = tmp_path / "own.toml", tmp_path / "out"
    file.write_text(OWN.replace(*change))
    names(facts, "simulate", file, "--out", out)
    assert not out.exists()


def test_policies_that_ignore_the_context_are_named(done, file, tmp_path):
    text = OWN.replace('"bernoulli"', '"contextual"\ndimension = 2')
    file.write_text(text.replace('"random"', '"random", "rcp-submax", "linucb"'))
    said = done("simulate", file, "--out", tmp_path, "--replicas", 2, "--no-figures")
    assert said.startswith("own: rcp-submax does not look at the context")


def test_directory_with_results_of_another_experiment(done, names, file, tmp_path):
    done("simulate", file, "--out", tmp_path, "--replicas", 2, "--no-figures")
    before = _contents(tmp_path / "own")
    names(["replicas = 2", "--out"], "simulate", file, "--out", tmp_path, "--replicas", 1)
    names(["seed = 0"], "simulate", file, "--out", tmp_path, "--replicas", 2, "--seed", 9)
    assert _contents(tmp_path / "own") == before


def test_directory_with_files_of_others(names, file, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "thesis.txt").write_text("do not lose")
    names(["own", "--out"], "simulate", file, "--out", tmp_path)
    assert _contents(tmp_path / "own") == {"thesis.txt": b"do not lose"}


def _contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }
