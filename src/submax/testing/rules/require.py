"""How a conformance suite says what is wrong."""


def require(condition: object, subject: object, rule: str) -> None:
    """Raise an AssertionError that names the class and the broken rule."""
    if not condition:
        raise AssertionError(f"{type(subject).__name__} breaks a rule: {rule} ({subject!r}).")
