"""The error of a request that is refused before its operation is called."""


class RefusedError(Exception):
    """A request is refused, with a status and a sentence that says why."""

    def __init__(
        self,
        status: int,
        sentence: str,
        headers: dict[str, str] | None = None,
        code: str | None = None,
    ) -> None:
        self.status, self.sentence, self.headers, self.code = status, sentence, headers, code
