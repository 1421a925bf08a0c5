"""The operations that have pages."""

from submax.web.dashboard.page import Page
from submax.web.server.interface.operation import Operation
from submax.web.server.interface.operations.paths import BANDIT
from submax.web.server.pages import handlers
from submax.web.server.pages import messages as m
from submax.web.server.pages.detail.context_messages import ContextsPage
from submax.web.server.pages.detail.decision_messages import DecisionsPage

SPAN = {"span": "How far back to look: 3h, 2d, 60d or 2y; without it, to the begin."}
LIVE_SECONDS = 5
"""How often a page that shows current numbers is loaded again."""


def page_operations() -> list[Operation]:
    """All operations that a browser sees as a page."""
    return [
        Operation(
            "home",
            "GET",
            "/",
            "read",
            "All bandits: how much they decide, what they earn, and what needs attention.",
            m.HomePage,
            handlers.home,
            partial=True,
            page=Page("home.html", "Bandits", "bandits", LIVE_SECONDS),
        ),
        *_pages_of_results(),
        *_pages_of_detail(),
        *_pages_of_operation(),
        *_server_pages(),
    ]


def _pages_of_results() -> list[Operation]:
    return [
        Operation(
            "overview",
            "GET",
            f"{BANDIT}/overview",
            "read",
            "How a bandit does: a sentence, numbers, and its reward over time.",
            m.OverviewPage,
            handlers.overview,
            page=Page("overview.html", "Overview", "overview", LIVE_SECONDS),
            query=SPAN,
        ),
        Operation(
            "arms",
            "GET",
            f"{BANDIT}/arms",
            "read",
            "The choices of a bandit: shares, rewards with intervals, and current probabilities.",
            m.ArmsPage,
            handlers.arms,
            page=Page("arms.html", "Arms", "arms", LIVE_SECONDS),
            query={
                **SPAN,
                "slot": "The slot whose choices are shown; without it, the first.",
                "page": "The page of choices, if there are more than 100; without it, 1.",
            },
        ),
    ]


def _pages_of_detail() -> list[Operation]:
    return [
        Operation(
            "contexts",
            "GET",
            f"{BANDIT}/contexts",
            "read",
            "Rewards and winners by the values of a context field; where decisions differ.",
            ContextsPage,
            handlers.contexts,
            page=Page("contexts.html", "Contexts", "contexts", LIVE_SECONDS),
            query={
                "field": "The field of the context; without it, the first.",
                "slot": "The slot whose choices are compared; without it, the first.",
            },
        ),
        Operation(
            "decisions",
            "GET",
            f"{BANDIT}/decisions",
            "read",
            "One decision: context, probabilities, rewards and reasons; or the newest decisions.",
            DecisionsPage,
            handlers.decisions,
            page=Page("decisions.html", "Decisions", "decisions"),
            query={
                "id": "The id of the decision.",
                "unit": "The unit whose newest decisions are listed, if no id is given.",
            },
        ),
    ]


def _pages_of_operation() -> list[Operation]:
    return [
        Operation(
            "version-history",
            "GET",
            f"{BANDIT}/version-history",
            "read",
            "The versions of a bandit: what each learned from, and what it earned.",
            m.VersionsPage,
            handlers.versions,
            page=Page("versions.html", "Versions", "versions", LIVE_SECONDS),
        ),
        Operation(
            "health-of-bandit",
            "GET",
            f"{BANDIT}/health",
            "read",
            "Whether a bandit works as it should: counts, delays of rewards, failures.",
            m.HealthPage,
            handlers.health,
            page=Page("health.html", "Health", "health", LIVE_SECONDS),
        ),
        Operation(
            "settings",
            "GET",
            f"{BANDIT}/settings",
            "read",
            "What is declared of a bandit.",
            m.SettingsPage,
            handlers.settings,
            page=Page("settings.html", "Settings", "settings"),
        ),
    ]


def _server_pages() -> list[Operation]:
    return [
        Operation(
            "login-page",
            "GET",
            "/login",
            None,
            "The form to sign in with a key.",
            m.Login,
            handlers.login,
            early=True,
            page=Page("login.html", "Sign in"),
            query={"next": "The path to go to afterwards."},
        ),
        Operation(
            "sign-in",
            "POST",
            "/login",
            "read",
            "Exchange the key in the header for a cookie, which is valid for 12 hours.",
            m.SignedIn,
            handlers.sign_in,
            partial=True,
        ),
        Operation(
            "sign-out",
            "POST",
            "/logout",
            None,
            "Take the cookie away.",
            m.SignedIn,
            handlers.sign_out,
            early=True,
        ),
    ]
