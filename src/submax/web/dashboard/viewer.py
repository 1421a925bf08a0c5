"""Who looks at a page."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Viewer:
    """What a page needs to know of the person who looks at it.

    ``may_change`` says whether forms that change something are shown. ``token`` is sent back with
    every change, so that a page of another site cannot make the browser send one. ``signed_in`` is
    false if the server needs no keys, and ``needs_key`` is true if the person has yet to sign in.
    """

    may_change: bool = True
    token: str = ""
    signed_in: bool = False
    name: str = ""
    needs_key: bool = False
