"""All operations of the interface."""

from submax.dashboard.page import Page
from submax.live.serving.decision import Decision, Receipt
from submax.live.shadow.shadow_report import ShadowReport
from submax.server.evaluations.evaluation import Evaluation, Evaluations
from submax.server.interface import (
    alarm_handlers,
    evaluation_handlers,
    handlers,
    shadow_handlers,
)
from submax.server.interface import messages as m
from submax.server.interface.operation import Operation

BANDIT = "/bandits/{name}"
"""The path of one bandit."""


def operations() -> list[Operation]:
    """All operations, but those about the server itself."""
    return [
        *_deciding(),
        *_rewarding(),
        *_bandits(),
        *_one_bandit(),
        *_operating(),
        *_versions(),
        *_shadow(),
        *_alarms(),
        *_evaluations(),
        *_keys(),
        *_health(),
    ]


def _deciding() -> list[Operation]:
    return [
        Operation(
            "decide",
            "POST",
            f"{BANDIT}/decide",
            "decide",
            "Choose an action; the same id again gives the same decision.",
            Decision,
            handlers.decide,
            m.Decide,
            frequent=True,
        ),
        Operation(
            "decide-many",
            "POST",
            f"{BANDIT}/decide-many",
            "decide",
            "Choose several actions, all or none.",
            m.Decisions,
            handlers.decide_many,
            m.DecideMany,
            frequent=True,
            cost=lambda body: len(body.requests),
        ),
    ]


def _rewarding() -> list[Operation]:
    return [
        Operation(
            "reward",
            "POST",
            f"{BANDIT}/reward",
            "reward",
            "Record the reward of a decision; the same again changes nothing.",
            Receipt,
            handlers.reward,
            m.Reward,
            frequent=True,
        ),
        Operation(
            "reward-many",
            "POST",
            f"{BANDIT}/reward-many",
            "reward",
            "Record several rewards; one that conflicts gets the receipt 'conflict'.",
            m.Receipts,
            handlers.reward_many,
            m.RewardMany,
            frequent=True,
            cost=lambda body: len(body.rewards),
        ),
        Operation(
            "activate",
            "POST",
            f"{BANDIT}/activate",
            "decide",
            "Confirm a decision that was made with activate = false.",
            Receipt,
            handlers.activate,
            m.Activate,
        ),
    ]


def _bandits() -> list[Operation]:
    return [
        Operation(
            "list",
            "GET",
            "/bandits",
            "read",
            "All bandits.",
            m.Bandits,
            handlers.list_bandits,
            partial=True,
        ),
        Operation(
            "create",
            "POST",
            "/bandits",
            "admin",
            "Declare a bandit.",
            m.BanditDetails,
            handlers.create,
            m.Create,
            status=201,
            subject=lambda call, made: str(made.name),
        ),
    ]


def _one_bandit() -> list[Operation]:
    return [
        Operation(
            "show", "GET", BANDIT, "read", "A bandit as it stands.", m.BanditDetails, handlers.show
        ),
        Operation(
            "delete",
            "DELETE",
            BANDIT,
            "admin",
            "Delete a bandit with its log and versions, for ever; the answer lists the others.",
            m.Bandits,
            handlers.delete,
        ),
        Operation(
            "change",
            "POST",
            f"{BANDIT}/choices",
            "admin",
            "Add, pause, resume or retire an arm or a choice.",
            m.BanditDetails,
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


def _operating() -> list[Operation]:
    return [
        Operation(
            "set",
            "PATCH",
            BANDIT,
            "admin",
            "Change settings, the policy or guard rails, all or none; null stands for a default.",
            m.BanditDetails,
            handlers.set_settings,
            m.Set,
        ),
        Operation(
            "pause",
            "POST",
            f"{BANDIT}/pause",
            "admin",
            "Answer with the control, the baseline or uniformly, and do not learn from it.",
            m.BanditDetails,
            handlers.pause,
        ),
        Operation(
            "resume",
            "POST",
            f"{BANDIT}/resume",
            "admin",
            "Let a paused or archived bandit decide and learn again.",
            m.BanditDetails,
            handlers.resume,
        ),
        Operation(
            "archive",
            "POST",
            f"{BANDIT}/archive",
            "admin",
            "Refuse decisions and rewards; the log can still be read.",
            m.BanditDetails,
            handlers.archive,
        ),
        Operation(
            "lift",
            "GET",
            f"{BANDIT}/lift",
            "read",
            "How much more a decision earns than one of the holdout or the control.",
            m.Lifts,
            handlers.lift,
        ),
    ]


def _versions() -> list[Operation]:
    return [
        Operation(
            "versions",
            "GET",
            f"{BANDIT}/versions",
            "read",
            "All versions.",
            m.Versions,
            handlers.list_versions,
        ),
        Operation(
            "publish",
            "POST",
            f"{BANDIT}/publish",
            "admin",
            "Let a version decide and hold it; without one, the newest and later ones decide.",
            m.Deciding,
            handlers.publish,
            m.Publish,
        ),
        Operation(
            "roll-back",
            "POST",
            f"{BANDIT}/roll-back",
            "admin",
            "Let the version before the current one decide.",
            m.Deciding,
            handlers.roll_back,
        ),
    ]


def _shadow() -> list[Operation]:
    path = f"{BANDIT}/shadow"
    return [
        Operation(
            "shadow",
            "GET",
            path,
            "read",
            "The shadow, and how it compares with the policy that decides.",
            ShadowReport,
            shadow_handlers.show_shadow,
        ),
        Operation(
            "set-shadow",
            "POST",
            path,
            "admin",
            "Let a second policy decide beside the first, logged and never displayed; or none.",
            ShadowReport,
            shadow_handlers.set_shadow,
            m.SetShadow,
        ),
        Operation(
            "promote-shadow",
            "POST",
            f"{path}/promote",
            "admin",
            "Let the shadow decide; the policy that decided becomes the shadow.",
            m.Deciding,
            shadow_handlers.promote_shadow,
        ),
        Operation(
            "roll-back-shadow",
            "POST",
            f"{path}/roll-back",
            "admin",
            "Undo the last promotion of a shadow.",
            m.Deciding,
            shadow_handlers.roll_back_shadow,
        ),
    ]


def _alarms() -> list[Operation]:
    return [
        Operation(
            "alarms",
            "GET",
            f"{BANDIT}/alarms",
            "read",
            "The last 100 alarms, newest first.",
            m.Alarms,
            alarm_handlers.list_alarms,
        ),
        Operation(
            "acknowledge-alarms",
            "POST",
            f"{BANDIT}/alarms/acknowledge",
            "admin",
            "Say that all alarms were seen, so that they are no longer active.",
            m.Alarms,
            alarm_handlers.acknowledge_alarms,
        ),
    ]


def _evaluations() -> list[Operation]:
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


def _keys() -> list[Operation]:
    return [
        Operation(
            "keys",
            "GET",
            "/keys",
            "admin",
            "All keys, without secrets.",
            m.Keys,
            handlers.list_keys,
            page=Page("keys.html", "Keys", "keys"),
        ),
        Operation(
            "add-key",
            "POST",
            "/keys",
            "admin",
            "Make a key; only this answer has its text.",
            m.KeyMade,
            handlers.add_key,
            m.NewKey,
            status=201,
            subject=lambda call, made: str(made.id),
        ),
        Operation(
            "revoke-key",
            "DELETE",
            "/keys/{id}",
            "admin",
            "Revoke a key.",
            m.Keys,
            handlers.revoke_key,
        ),
        Operation(
            "audit",
            "GET",
            "/audit",
            "admin",
            "The last 1000 changes, newest first: who made them, when, and what they changed.",
            m.Audit,
            handlers.audit,
            page=Page("audit.html", "Audit", "audit"),
        ),
    ]


def _health() -> list[Operation]:
    return [
        Operation(
            "health",
            "GET",
            "/healthz",
            None,
            "Whether the process answers.",
            m.Health,
            handlers.healthy,
            early=True,
        ),
        Operation(
            "ready",
            "GET",
            "/readyz",
            None,
            "Whether the store can write, and every bandit was opened, or named in the log as "
            "impossible to open.",
            m.Health,
            handlers.ready,
        ),
    ]
