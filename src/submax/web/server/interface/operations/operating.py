"""The operations by which people operate a bandit."""

from submax.web.server.interface import alarm_handlers, answers, handlers
from submax.web.server.interface import messages as m
from submax.web.server.interface.operation import Operation
from submax.web.server.interface.operations.paths import BANDIT


def operating_operations() -> list[Operation]:
    """The operations on settings, lift, versions and alarms."""
    return [
        *_settings(),
        *_statuses(),
        *_lift(),
        *_versions(),
        *_alarms(),
    ]


def _settings() -> list[Operation]:
    return [
        Operation(
            "set",
            "PATCH",
            BANDIT,
            "admin",
            "Change settings, the policy or guard rails, all or none; null stands for a default.",
            answers.BanditDetails,
            handlers.set_settings,
            m.Set,
            slow=True,
        ),
    ]


def _statuses() -> list[Operation]:
    return [
        Operation(
            "pause",
            "POST",
            f"{BANDIT}/pause",
            "admin",
            "Answer with the control, the baseline or uniformly, and do not learn from it.",
            answers.BanditDetails,
            handlers.pause,
        ),
        Operation(
            "resume",
            "POST",
            f"{BANDIT}/resume",
            "admin",
            "Let a paused or archived bandit decide and learn again.",
            answers.BanditDetails,
            handlers.resume,
        ),
        Operation(
            "archive",
            "POST",
            f"{BANDIT}/archive",
            "admin",
            "Refuse decisions and rewards; the log can still be read.",
            answers.BanditDetails,
            handlers.archive,
        ),
    ]


def _lift() -> list[Operation]:
    return [
        Operation(
            "lift",
            "GET",
            f"{BANDIT}/lift",
            "read",
            "How much more a decision earns than one of the holdout or the control.",
            answers.Lifts,
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
            answers.Versions,
            handlers.list_versions,
        ),
        Operation(
            "publish",
            "POST",
            f"{BANDIT}/publish",
            "admin",
            "Let a version decide and hold it; without one, the newest and later ones decide.",
            answers.Deciding,
            handlers.publish,
            m.Publish,
        ),
        Operation(
            "roll-back",
            "POST",
            f"{BANDIT}/roll-back",
            "admin",
            "Let the version before the current one decide.",
            answers.Deciding,
            handlers.roll_back,
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
            answers.Alarms,
            alarm_handlers.list_alarms,
        ),
        Operation(
            "acknowledge-alarms",
            "POST",
            f"{BANDIT}/alarms/acknowledge",
            "admin",
            "Say that all alarms were seen, so that they are no longer active.",
            answers.Alarms,
            alarm_handlers.acknowledge_alarms,
        ),
    ]
