"""The operations by which policies are evaluated on the log of a bandit."""

from submax.web.server.evaluations.evaluation import Evaluation, Evaluations
from submax.web.server.interface import evaluation_handlers
from submax.web.server.interface import messages as m
from submax.web.server.interface.operation import Operation
from submax.web.server.interface.operations.paths import BANDIT


def evaluation_operations() -> list[Operation]:
    """The operations that begin, cancel and forget evaluations; a page shows them."""
    path = f"{BANDIT}/evaluations"
    # An evaluation takes a core for minutes: a key that only reads must not be able to spend it.
    return [
        Operation(
            "evaluate",
            "POST",
            path,
            "admin",
            "Estimate what other policies would have earned on the log, in the background.",
            Evaluation,
            evaluation_handlers.evaluate,
            body=m.NewEvaluation,
            status=202,
        ),
        Operation(
            "remove-evaluation",
            "DELETE",
            f"{path}/{{evaluation}}",
            "admin",
            "Cancel an evaluation that is under way; forget one that has ended.",
            Evaluations,
            evaluation_handlers.remove,
            subject=lambda call, answer: call.path["name"],
        ),
    ]
