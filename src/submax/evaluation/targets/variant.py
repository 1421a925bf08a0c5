"""Names of variants of policies, such as ``linucb@greedy``."""

from submax.core.errors import InputError

SIGN, GREEDY, TEMPERATURE = "@", "greedy", "temperature="
"""``linucb@greedy`` is the greedy variant of linucb, ``linucb@temperature=0.5`` another one."""


def parsed_variant(text: str) -> tuple[str, float] | None:
    """Return the policy and the temperature of a text such as ``linucb@greedy``, or None."""
    policy, sign, variant = text.rpartition(SIGN)
    if not sign:
        return None
    if variant == GREEDY:
        return policy, 0.0
    try:
        return policy, float(variant.removeprefix(TEMPERATURE))
    except ValueError:
        raise InputError(
            f"the variant of {text!r} is {variant!r}; {GREEDY!r} and '{TEMPERATURE}0.5' are "
            f"allowed: write {policy}{SIGN}{GREEDY}",
            parameter="policies",
        ) from None
