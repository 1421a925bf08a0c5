"""An extension of griffe: the examples of a docstring are shown as blocks of code."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?:^>>> .*\n?(?:^(?!\s*$).*\n?)*\n*)+", flags=re.MULTILINE)
"""Lines from >>> to the next paragraph, with what they print."""


class DoctestBlocks(griffe.Extension):
    """Marks the examples in the docstrings of all objects."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of an object when it is loaded."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(
                lambda found: f"```pycon\n{found[0].rstrip()}\n```\n\n", obj.docstring.value
            )
