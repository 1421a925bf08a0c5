"""The operations on keys, the audit, and the health of the server."""

from submax.web.dashboard.page import Page
from submax.web.server.interface import answers, handlers
from submax.web.server.interface import messages as m
from submax.web.server.interface.operation import Operation


def server_operations() -> list[Operation]:
    """The operations on keys, the audit, and the health of the server."""
    return [*_keys(), *_audit(), *_health()]


def _keys() -> list[Operation]:
    return [
        Operation(
            "keys",
            "GET",
            "/keys",
            "admin",
            "All keys, without secrets.",
            answers.Keys,
            handlers.list_keys,
            page=Page("keys.html", "Keys", "keys"),
        ),
        Operation(
            "add-key",
            "POST",
            "/keys",
            "admin",
            "Make a key; only this answer has its text.",
            answers.KeyMade,
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
            answers.Keys,
            handlers.revoke_key,
        ),
    ]


def _audit() -> list[Operation]:
    return [
        Operation(
            "audit",
            "GET",
            "/audit",
            "admin",
            "The last 1000 changes, newest first: who made them, when, and what they changed.",
            answers.Audit,
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
            answers.Health,
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
            answers.Health,
            handlers.ready,
        ),
    ]
