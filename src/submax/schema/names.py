"""Names of choices, slots, fields and categories."""

from submax.core.errors import InputError

LONGEST_NAME = 200


def check_name(what: str, value: object) -> None:
    """Refuse names of choices, slots and categories that are empty, too long or not printable."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME or not value.isprintable():
        raise InputError(
            f"{what} must be a text of 1 to {LONGEST_NAME} printable characters, not {short_repr(value)}"
        )


def short_repr(value: object) -> str:
    """A value in few words, whatever it is."""
    try:
        text = repr(value)
    except ValueError:
        # A whole number with thousands of digits.
        text = f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= 60 else f"{text[:57]}..."
