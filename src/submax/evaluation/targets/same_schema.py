"""Whether a policy was learned for the actions and contexts of a log."""

from submax.core.errors import InputError
from submax.evaluation.logs.log import Log
from submax.schema.learned import Learned


def check_same_schema(learned: Learned, log: Log) -> None:
    """Refuse a policy that was learned for other actions or contexts than those of the log.

    Whether choices are still active makes no difference.
    """
    same_menu = learned.schema.menu.revived == log.schema.menu.revived
    if not same_menu or learned.schema.context != log.schema.context:
        raise InputError(
            "the policy was learned for other actions or contexts than this log has: read the "
            "log with its schema, Log.read(..., schema=learned.schema)",
            parameter="policies",
        )
