"""A request that was received as a whole."""

from typing import NamedTuple

from starlette.datastructures import Address


class SmallRequest(NamedTuple):
    """A small request with its whole body.

    It has those attributes of Starlette's ``Request`` that ``RequestPipeline`` uses: making a
    ``Request``, finding its route and streaming its body would take longer than a decision.
    """

    headers: dict[str, str]
    path_params: dict[str, str]
    body: bytes
    address: tuple[str, int] | None

    @property
    def client(self) -> Address | None:
        """The address from which the request came."""
        return None if self.address is None else Address(*self.address)
