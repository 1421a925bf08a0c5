"""What docs/reference/shell-completion.md says about completion."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from submax.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "shell-completion.md"
VARIABLE = "_SUBMAX_COMPLETE"


def completed(*words: str) -> set[str]:
    *before, last = words
    found = BashComplete(main, {}, "submax", VARIABLE).get_completions(before, last)
    return {one.value for one in found}


def test_commands_and_their_words_are_completed():
    assert completed("rep") == {"reproduce"}
    assert completed("reproduce", "--device", "") == {"cpu", "gpu"}
    assert completed("reproduce", "--rep") == {"--replicas"}
    assert {"add", "list", "revoke"} == completed("keys", "")


def test_the_page_names_the_shells_of_click():
    text = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(rf"{VARIABLE}=(\w+)_source", text)) == {"bash", "zsh", "fish"}


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_reads_the_script_and_completes(tmp_path):
    program = tmp_path / "submax"
    code = "from submax.cli import main\nmain()\n"
    program.write_text(f"#!{sys.executable}\n{code}", encoding="utf-8")
    program.chmod(0o755)
    script = (
        f'eval "$({VARIABLE}=bash_source submax)"\n'
        "COMP_WORDS=(submax rep) COMP_CWORD=1\n"
        "_submax_completion submax\n"
        'echo "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == ["reproduce"], done.stderr
