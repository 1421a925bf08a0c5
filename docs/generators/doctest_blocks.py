"""An extension of griffe: the examples of a docstring are shown as blocks of code."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?:^>>> .*\n?(?:^(?!\s*$).*\n?)*\n*)+", flags=re.MULTILINE)
"""Lines that begin with >>>, with what they print, up to the first other paragraph."""


def with_blocks(text: str) -> str:
    """Return a docstring in which every example is a block of code.

    >>> print(with_blocks("Double a number.\\n\\n>>> double(2)\\n4"))
    Double a number.
    <BLANKLINE>
    ```pycon
    >>> double(2)
    4
    ```
    <BLANKLINE>
    """
    return (
        EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n\n", text).rstrip("\n")
        + "\n"
    )


class DoctestBlocks(griffe.Extension):
    """Marks the examples in the docstrings of all objects."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of an object when it is loaded."""
        if obj.docstring is not None:
            obj.docstring.value = with_blocks(obj.docstring.value)
