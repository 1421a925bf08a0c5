"""The operations on bandits and their choices."""

from submax.web.server.interface import answers, handlers
from submax.web.server.interface import messages as m
from submax.web.server.interface.operation import Operation
from submax.web.server.interface.operations.paths import BANDIT


def bandit_operations() -> list[Operation]:
    """The operations that declare, show, change and delete bandits."""
    return [*_bandits(), *_one_bandit(), *_choices_and_log()]


def _bandits() -> list[Operation]:
    return [
        Operation(
            "list",
            "GET",
            "/bandits",
            "read",
            "All bandits.",
            answers.Bandits,
            handlers.list_bandits,
            partial=True,
        ),
        Operation(
            "create",
            "POST",
            "/bandits",
            "admin",
            "Declare a bandit.",
            answers.BanditDetails,
            handlers.create,
            m.Create,
            status=201,
            slow=True,
            subject=lambda call, made: str(made.name),
        ),
    ]


def _one_bandit() -> list[Operation]:
    return [
        Operation(
            "show",
            "GET",
            BANDIT,
            "read",
            "A bandit as it stands.",
            answers.BanditDetails,
            handlers.show,
        ),
        Operation(
            "delete",
            "DELETE",
            BANDIT,
            "admin",
            "Delete a bandit with its log and versions, for ever; the answer lists the others.",
            answers.Bandits,
            handlers.delete,
        ),
    ]


def _choices_and_log() -> list[Operation]:
    return [
        Operation(
            "change",
            "POST",
            f"{BANDIT}/choices",
            "admin",
            "Add, pause, resume or retire an arm or a choice.",
            answers.BanditDetails,
            handlers.change,
            m.ChangeChoice,
        ),
        Operation(
            "export",
            "GET",
            f"{BANDIT}/export",
            "read",
            "All decisions with their rewards, as a Parquet file.",
            bytes,
            handlers.export,
            media="application/vnd.apache.parquet",
        ),
    ]
