"""A shop in Django, in one file: every page view decides on a server, every purchase rewards.

Start it by ``python django_shop.py runserver 8001``; examples/README.md says how to start the
server.
"""

import os
import secrets
import sys

from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, JsonResponse
from django.middleware.csrf import get_token
from django.urls import path
from django.utils.html import format_html
from django.views.decorators.http import require_GET, require_POST

import submax

if not settings.configured:
    settings.configure(
        DEBUG=False,
        SECRET_KEY=secrets.token_hex(),
        ALLOWED_HOSTS=["127.0.0.1", "localhost", "testserver"],
        ROOT_URLCONF=__name__,
        MIDDLEWARE=[
            "django.middleware.security.SecurityMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
        ],
    )

HEADLINES = {"plain": "A good lamp.", "bold": "THE lamp!", "playful": "Let there be light."}
PAGE = (
    '<h1>{}</h1><form method="post" action="/buy"><input type="hidden" name="visit" value="{}">'
    '<input type="hidden" name="csrfmiddlewaretoken" value="{}"><button>Buy</button></form>'
)
# One client for all threads of the process: their requests share connections.
bandit = submax.Client(
    os.environ.get("SHOP_SUBMAX", "http://127.0.0.1:8000"),
    "shop",
    key=os.environ.get("SHOP_KEY"),
    deadline=float(os.environ.get("SHOP_DEADLINE", "1")),
)


@require_GET
def show(request: HttpRequest) -> HttpResponse:
    """Show the lamp; if there is no decision, for whatever reason, with the plain headline."""
    try:
        decision = bandit.decide()
        headline, visit = HEADLINES[str(decision.action)], decision.id
    except submax.Error:
        headline, visit = HEADLINES["plain"], ""
    return HttpResponse(format_html(PAGE, headline, visit, get_token(request)))


@require_POST
def buy(request: HttpRequest) -> HttpResponse:
    """Sell a lamp, and reward the decision of the visit."""
    try:
        receipt = bandit.reward(request.POST.get("visit", ""), 1.0)
    except submax.InputError as error:
        return HttpResponseBadRequest(str(error))
    return JsonResponse({"status": receipt.status})


urlpatterns = [path("", show), path("buy", buy)]

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
